"""From angles of joints to points in space: proportions of a body and where its joints are.

The body's own axes are x to its left, y up, z forwards. Projected by a camera the same letters mean right, up and
towards the camera, so that someone with yaw 0 faces the camera; yaw grows as they turn to their left (the right of the
frame). One unit is the stature of an average person; the ground is y = 0.
"""

from dataclasses import dataclass, fields

import numpy as np

from vidveil.data.puppets.style import Angles, Array

ARM, LEG = ("shoulder", "elbow", "wrist", "hand"), ("hip", "knee", "ankle", "toe")
JOINTS = ("pelvis", "neck", "head", *(f"{name}_{side}" for name in (*ARM, *LEG) for side in "lr"))
J = {name: i for i, name in enumerate(JOINTS)}


@dataclass(frozen=True, kw_only=True)
class Build:
    """Lengths and half-widths in statures. The defaults are the body that everyone has where build is not personal."""

    upper_arm: float = 0.155
    forearm: float = 0.14
    thigh: float = 0.225
    shin: float = 0.215
    torso: float = 0.285
    shoulders: float = 0.105
    hips: float = 0.062
    head: float = 0.108
    """Half the height of the head."""
    arm_width: float = 0.033
    leg_width: float = 0.047
    chest: float = 0.098
    """Half the width of the upper torso."""
    waist: float = 0.082
    depth: float = 0.068
    """Half of the torso from front to back."""


def small(build: Build, share: float = 0.66) -> Build:
    """A child's body: shorter by that share, with a larger head for it."""
    shrunk = {field.name: getattr(build, field.name) * share for field in fields(build)}
    return Build(**{**shrunk, "head": build.head * share**0.6})


ANKLE, FOOT, HAND, NECK = 0.036, 0.085, 0.03, 0.035


@dataclass(frozen=True)
class Posed:
    """A body in motion, in the camera's axes."""

    joints: Array
    """(T, J, 3)"""
    torso: Array
    """(T, 3, 3): columns are left, up and forwards of the chest."""
    head: Array
    """(T, 3, 3): the same of the head."""
    build: Build

    def at(self, name: str) -> Array:
        return self.joints[:, J[name]]  # (T, 3)

    def moved(self, by: Array) -> "Posed":
        return Posed(self.joints + by, self.torso, self.head, self.build)


def _turn(axis: int, angle: Array) -> Array:
    """(T, 3, 3) about x (up goes forwards), y (forwards goes left) or z (left goes up)."""
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = ((1, 2), (2, 0), (0, 1))[axis]
    out = np.zeros((*np.shape(angle), 3, 3))
    out[..., axis, axis] = 1
    out[..., a, a] = out[..., b, b] = cos
    out[..., b, a], out[..., a, b] = sin, -sin
    return out


def _down(frame: Array, forwards: Array, sideways: Array) -> Array:
    """(T, 3) where a limb points in `frame`, hanging at 0 and 0."""
    local = np.stack(
        [np.sin(sideways) * np.cos(forwards), -np.cos(sideways) * np.cos(forwards), np.sin(forwards)], axis=-1
    )
    out: Array = np.einsum("tij,tj->ti", frame, local)
    return out


def pose(build: Build, angles: Angles, yaw: float | Array = 0.0) -> Posed:
    """Forward kinematics, then the lowest point of the body is put on the ground."""
    steps = len(angles["lean"])
    facing = _turn(1, np.broadcast_to(np.asarray(yaw, dtype=float), (steps,)))
    pelvis_frame = facing @ _turn(0, angles["pitch"])
    torso = pelvis_frame @ _turn(0, angles["lean"]) @ _turn(2, angles["side"]) @ _turn(1, angles["twist"])
    head = torso @ _turn(1, angles["gaze"]) @ _turn(0, angles["nod"])
    joints = np.zeros((steps, len(JOINTS), 3))
    neck = torso[..., 1] * build.torso
    joints[:, J["neck"]] = neck
    joints[:, J["head"]] = neck + torso[..., 1] * NECK + head[..., 1] * build.head * 0.92
    for side, sign in (("l", 1.0), ("r", -1.0)):
        flex, out = angles[f"flex_{side}"], sign * angles[f"abd_{side}"]
        shoulder = neck + sign * torso[..., 0] * build.shoulders - torso[..., 1] * 0.02
        elbow = shoulder + build.upper_arm * _down(torso, flex, out)
        along = _down(torso, flex + angles[f"elbow_{side}"], out + sign * angles[f"out_{side}"])
        wrist = elbow + build.forearm * along
        hip = sign * pelvis_frame[..., 0] * build.hips
        swing, spread = angles[f"hip_{side}"], sign * angles[f"spread_{side}"]
        knee = hip + build.thigh * _down(pelvis_frame, swing, spread)
        shin = swing - angles[f"knee_{side}"]
        ankle = knee + build.shin * _down(pelvis_frame, shin, spread)
        sole = np.where(np.abs(angles["pitch"]) < 0.6, 0.45, 1.0) * np.clip(shin, -1.3, 1.3)  # feet like to be flat
        toe = ankle + _down(pelvis_frame, sole + np.pi / 2 - 0.12, 0.3 * spread + sign * 0.1) * FOOT
        points = (shoulder, elbow, wrist, wrist + along * HAND, hip, knee, ankle, toe)
        for name, point in zip((*ARM, *LEG), points, strict=True):
            joints[:, J[f"{name}_{side}"]] = point
    joints[..., 1] += (angles["rise"] - _lowest(joints, build))[:, None]
    joints += facing[:, None, :, 2] * angles["advance"][:, None, None]
    return Posed(joints, torso, head, build)


def _lowest(joints: Array, build: Build) -> Array:
    """(T,) height of the lowest point of the flesh around the joints."""
    flesh = np.full(len(JOINTS), 0.02)
    for name, radius in (("pelvis", build.depth), ("neck", build.depth), ("head", 0.8 * build.head)):
        flesh[J[name]] = radius
    for side in "lr":
        flesh[J[f"ankle_{side}"]] = ANKLE
        flesh[J[f"knee_{side}"]] = build.leg_width
    low: Array = (joints[..., 1] - flesh).min(axis=1)
    return low
