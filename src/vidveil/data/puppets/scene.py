"""A plan acted out: bodies in space over time, the camera's shot of them, props, and who holds on to whom."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vidveil.data.puppets.appearance import ACTION, IDENTITY, NEITHER, Appearance, carrying
from vidveil.data.puppets.body import Build, J, Posed, pose, small
from vidveil.data.puppets.camera import CAMERAS, GROUND, Shot, follow
from vidveil.data.puppets.head import face_seen
from vidveil.data.puppets.motion import ACTIONS, RELEASE, angles, progress, standing
from vidveil.data.puppets.plan import Companion, Plan
from vidveil.data.puppets.style import Array, Performance, Style

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Prop:
    """A thing that belongs to an action."""

    name: str
    xyz: Array
    """(T, 3) in the camera's axes, not a number while it is not there"""
    kind: int


@dataclass(frozen=True)
class Actor:
    appearance: Appearance
    posed: Posed
    masked: bool = False


@dataclass(frozen=True)
class Scene:
    times: Array
    shot: Shot
    cast: tuple[tuple[Actor, Shot], ...]
    """Identity about, the furthest first. The last one is the person of interest."""
    props: tuple[Prop, ...]
    bystanders: tuple[tuple[Actor, Shot], ...]
    holding: Flags
    """(T,) bool: someone holds on."""
    facing: Flags
    """(T,) bool: the face is seen."""


def act(plan: Plan, times: Array, build: Build | None = None) -> Scene:
    """Act a plan out at the given seconds. With `build`, everybody has this body (to show motion alone)."""
    appearance = plan.appearance if build is None else replace(plan.appearance, build=build)
    moves = angles(plan.action, times, appearance.style, plan.performance)
    moves["gaze"] = moves["gaze"] + plan.gaze + _glancing(plan.glance, times)
    posed = pose(appearance.build, moves, plan.yaw)
    camera = CAMERAS[plan.camera]
    centre = follow(posed.joints, times, plan.room) + plan.shift + plan.drift * (times - times.mean())
    shot = Shot(camera.zoom * plan.zoom, camera.tilt, centre)
    holding = np.zeros(len(times), bool)
    cast = [(Actor(appearance, posed, plan.masked), shot)]
    if plan.companion is not None:
        holding = (times >= plan.companion.since) & (times <= plan.companion.until)
        cast.insert(0, (_holding_on(plan.companion, posed, times, holding), shot))
    return Scene(
        times=times,
        shot=shot,
        cast=tuple(cast),
        props=_props(plan, posed, times),
        bystanders=tuple(_apart(plan, k, times, shot) for k in range(len(plan.bystanders))),
        holding=holding,
        facing=face_seen(posed.head) & (not plan.masked),
    )


def _glancing(glance: tuple[float, float, float], times: Array) -> Array:
    """A head turns within a fifth of a second."""
    size, start, end = glance
    rise, fall = np.clip((times - start) / 0.2 + 0.5, 0, 1), np.clip((end - times) / 0.2 + 0.5, 0, 1)
    out: Array = size * np.minimum(rise, fall)
    return out


def _ahead(yaw: float) -> Array:
    return np.array([np.sin(yaw), 0.0, np.cos(yaw)])


def _props(plan: Plan, posed: Posed, times: Array) -> tuple[Prop, ...]:
    found: list[Prop] = []
    name = ACTIONS[plan.action].prop
    hands = (posed.at("hand_l") + posed.at("hand_r")) / 2  # (T, 3)
    if plan.stool:
        seat = -0.14 * _ahead(plan.yaw)
        if name != "stool":  # it stands about, and nobody sits on it
            seat = np.array([0.42 * (1 if plan.performance.way else -1), 0.0, -0.3])
        found.append(Prop("stool", np.repeat(seat[None], len(times), 0), ACTION if name == "stool" else NEITHER))
    if name == "box":
        found.append(Prop("box", hands, ACTION))
    if name == "ball":
        hand = posed.at("hand_r" if plan.performance.side else "hand_l")
        found.append(Prop("ball", _flight(plan, hand, times), ACTION))
    return tuple(found)


def _flight(plan: Plan, hand: Array, times: Array) -> Array:
    """(T, 3): in the hand until it is let go, then away in a bow. Caught is thrown, backwards."""
    performance, style = plan.performance, plan.appearance.style
    clock = performance.length - times if ACTIONS[plan.action].backwards else times
    fine = np.linspace(0, performance.length, 161)
    gone = progress(fine, style, performance, 1.0)
    release = float(fine[int(np.argmax(gone >= RELEASE))])
    let_go = pose(plan.appearance.build, angles(plan.action, _at(plan, release), style, performance), plan.yaw)
    start = let_go.at("hand_l" if performance.side == 0 else "hand_r")[0]
    flown = np.maximum(0, clock - release)[:, None]  # (T, 1) seconds
    path = start + flown * (1.5 * _ahead(plan.yaw) + [0, 0.55, 0]) - flown**2 * np.array([0, 1.1, 0])
    return np.where(flown > 0, path, hand)


def _at(plan: Plan, clock: float) -> Array:
    """The time of the clip at which its performance stands at `clock`."""
    return np.array([plan.performance.length - clock if ACTIONS[plan.action].backwards else clock])


def _holding_on(companion: Companion, posed: Posed, times: Array, holding: Flags) -> Actor:
    """A child stands behind the person and to one side, goes along, bends down, and clings to their hip or hand."""
    pelvis, side = posed.at("pelvis"), companion.side
    near = "l" if (posed.at("shoulder_l") - posed.at("shoulder_r"))[:, 0].mean() * side > 0 else "r"
    hip, hand = posed.at(f"hip_{near}"), posed.at(f"wrist_{near}")
    low = np.clip((0.34 - hip[:, 1]) / 0.25, 0, 1)
    moves = standing(times, Style(), Performance(phase=0.3, onset=0.2, tempo=1, size=1, side=0, way=0))
    for name, amount in (("hip", 1.5), ("knee", 1.7)):
        for leg in "lr":
            moves[f"{name}_{leg}"] = moves[f"{name}_{leg}"] + amount * low
    moves["lean"] = moves["lean"] + 0.6 * low
    child = small(companion.appearance.build)
    stood = pose(child, moves, -side * 1.0)
    place = np.zeros((len(times), 1, 3))
    place[:, 0, 0] = pelvis[:, 0] + side * 0.25
    place[:, 0, 2] = pelvis[:, 2] - 0.12
    stood = stood.moved(place)
    arm = "l" if (stood.at("shoulder_l") - stood.at("shoulder_r"))[:, 2].mean() > 0 else "r"
    within = np.linalg.norm(hand - stood.at(f"shoulder_{arm}"), axis=1) < 1.2 * (child.upper_arm + child.forearm)
    target = np.where((within & companion.hand)[:, None], hand, hip)  # (T, 3)
    joints = stood.joints.copy()
    reached = _reach(stood, arm, target)
    for k, joint in enumerate(("elbow", "wrist", "hand")):
        joints[holding, J[f"{joint}_{arm}"]] = reached[holding, k]
    # that someone is there is private, what they do is not
    shown = carrying(companion.appearance, limbs=IDENTITY, rest=IDENTITY)
    return Actor(shown, Posed(joints, stood.torso, stood.head, child))


def _reach(posed: Posed, arm: str, target: Array) -> Array:
    """(T, 3, 3) elbow, wrist and hand of an arm that takes hold of the target; it stretches a little if it must."""
    shoulder = posed.at(f"shoulder_{arm}")
    goal = target + np.array([0, 0, 0.03])
    way = goal - shoulder
    length = np.linalg.norm(way, axis=1, keepdims=True)
    upper, lower = posed.build.upper_arm, posed.build.forearm
    sag = np.sqrt(np.maximum(0, ((upper + lower) / 2) ** 2 - (length / 2) ** 2))
    elbow = shoulder + way * 0.5 - sag * np.array([0, 1.0, 0])
    return np.stack([elbow, shoulder + way * 0.93, goal], axis=1)


def _apart(plan: Plan, number: int, times: Array, shot: Shot) -> tuple[Actor, Shot]:
    """A bystander further away: smaller, higher on the screen, and left behind less quickly by a panning camera."""
    other = plan.bystanders[number]
    posed = pose(other.appearance.build, standing(times, other.appearance.style, other.performance), other.yaw)
    appearance = carrying(other.appearance, limbs=NEITHER, rest=NEITHER)
    centre = (shot.centre - shot.centre.mean()) * 0.9 - other.x / other.far
    view = Shot(shot.zoom * other.far, shot.tilt, centre, GROUND - 0.3 * (1 - other.far))
    return Actor(appearance, posed), view
