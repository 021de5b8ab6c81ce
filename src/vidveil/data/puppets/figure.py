"""A whole person on the canvas: limbs as lit capsules, a torso with depth, parts sorted by their distance.

A torso is mapped by (s, q): s along the spine from neck 0 to hips 1, q across from the right rim -1 to the left one 1
as seen on the screen. Patterns of cloth are drawn in these coordinates, and so bend and turn with the body.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.data.puppets.appearance import Appearance, Limb
from vidveil.data.puppets.body import J, Posed
from vidveil.data.puppets.brush import Brush, shade
from vidveil.data.puppets.head import draw_head, hanging_hair
from vidveil.data.puppets.people import Colour
from vidveil.data.puppets.style import Array


@dataclass(frozen=True)
class Projected:
    """One frame of a posed body as a camera sees it."""

    points: list[complex]
    """(J,) on the screen"""
    near: Array
    """(J,) towards the camera"""
    torso: Array
    head: Array
    scale: float
    """Frame units a stature."""

    def at(self, name: str) -> complex:
        return self.points[J[name]]


def draw_figure(brush: Brush, appearance: Appearance, posed: Posed, seen: Projected, *, masked: bool = False) -> None:
    near = seen.near
    middle = near[J["pelvis"]] * 0.5 + near[J["neck"]] * 0.5
    parts: list[tuple[float, Callable[[], None]]] = [(float(middle), lambda: _torso(brush, appearance, posed, seen))]
    for side in "lr":
        arm = near[[J[f"shoulder_{side}"], J[f"elbow_{side}"], J[f"hand_{side}"]]] @ [0.5, 0.3, 0.2]
        leg = near[[J[f"hip_{side}"], J[f"knee_{side}"]]].mean()
        parts.append((float(arm), lambda side=side: _arm(brush, appearance, posed, seen, side)))  # type: ignore[misc]
        parts.append((float(min(leg, middle - 1e-3)), lambda side=side: _leg(brush, appearance, posed, seen, side)))  # type: ignore[misc]
    ahead = float(near[J["head"]] - middle)
    parts.append((float(middle) + max(1e-3, ahead), lambda: _head(brush, appearance, posed, seen, masked)))
    hanging = hanging_hair(appearance)
    if hanging is not None:
        where = -0.09 if seen.head[2, 2] > 0 else 0.2
        radius = posed.build.head * seen.scale
        parts.append((float(middle) + where, lambda: hanging(brush, seen.at("head"), radius, seen.head)))
    if appearance.skirt:
        parts.append((float(middle) - 5e-4, lambda: _skirt(brush, appearance, posed, seen)))
    for _, draw in sorted(parts, key=lambda part: part[0]):
        draw()


def _head(brush: Brush, appearance: Appearance, posed: Posed, seen: Projected, masked: bool) -> None:
    radius = posed.build.head * seen.scale
    neck, head = seen.at("neck"), seen.at("head")
    brush.capsule(
        neck,
        neck + (head - neck) * 0.5,
        radius * 0.42,
        radius * 0.4,
        shade(appearance.head_skin, 0.8),
        appearance.head_kind,
    )
    draw_head(brush, appearance, head, radius, seen.head, masked=masked)


def _arm(brush: Brush, appearance: Appearance, posed: Posed, seen: Projected, side: str) -> None:
    width = posed.build.arm_width * seen.scale
    points = [seen.at(f"{name}_{side}") for name in ("shoulder", "elbow", "wrist")]
    brush.disc(seen.at(f"hand_{side}"), width * 0.95, shade(appearance.arm.end, 0.8), appearance.arm.end_kind)
    brush.disc(
        seen.at(f"hand_{side}") - width * (0.12 + 0.12j), width * 0.78, appearance.arm.end, appearance.arm.end_kind
    )
    _two_bones(brush, appearance.arm, points, (width * 1.1, width * 0.95, width * 0.72))


def _leg(brush: Brush, appearance: Appearance, posed: Posed, seen: Projected, side: str) -> None:
    width = posed.build.leg_width * seen.scale
    points = [seen.at(f"{name}_{side}") for name in ("hip", "knee", "ankle")]
    toe = seen.at(f"toe_{side}")
    _two_bones(brush, appearance.leg, points, (width * 1.12, width * 0.86, width * 0.6))
    brush.limb(
        points[2] + 0.012j * seen.scale, toe, width * 0.68, width * 0.5, appearance.leg.end, appearance.leg.end_kind
    )


def _two_bones(brush: Brush, limb: Limb, points: list[complex], radii: tuple[float, float, float]) -> None:
    """Upper and lower part of a limb: skin, then cloth down to where it ends, with its pattern."""
    upper, joint, lower = points
    a, b, c = radii
    if limb.cover < 0.9:
        brush.limb(joint, lower, b, c, limb.skin, limb.skin_kind)
        brush.limb(upper, joint, a, b, limb.skin, limb.skin_kind)
    if limb.cover > 0:
        first, second = min(1.0, limb.cover * 2), max(0.0, limb.cover * 2 - 1)
        if second > 0:
            brush.limb(joint, joint + (lower - joint) * second, b, b + (c - b) * second, limb.cloth, limb.kind)
        brush.limb(upper, upper + (joint - upper) * first, a, a + (b - a) * first, limb.cloth, limb.kind)
        if limb.pattern != "plain":
            _limb_pattern(brush, limb, upper, upper + (joint - upper) * first, a, b, upper_half=True)
            if second > 0:
                _limb_pattern(brush, limb, joint, joint + (lower - joint) * second, b, c, upper_half=False)


def _limb_pattern(brush: Brush, limb: Limb, a: complex, b: complex, ra: float, rb: float, *, upper_half: bool) -> None:
    colour, way = limb.cloth_2, b - a
    if limb.pattern == "hoops":
        for start in (0.12, 0.6):
            r0, r1 = ra + (rb - ra) * start, ra + (rb - ra) * (start + 0.26)
            brush.tube(a + way * start, a + way * (start + 0.26), r0, r1, colour, limb.kind)
    elif limb.pattern == "seam":
        brush.tube(a, b, ra * 0.34, rb * 0.34, colour, limb.kind)
    elif limb.pattern == "halves" and not upper_half:
        brush.limb(a + way * 0.1, b, ra, rb, colour, limb.kind)


LEVELS = (0.0, 0.07, 0.3, 0.66, 1.0)
"""Where along the spine the width of a torso is given: neck, shoulders, chest, waist, hips."""


class _Cloth:
    """The map (s, q) of a torso."""

    def __init__(self, posed: Posed, seen: Projected) -> None:
        build, chest = posed.build, seen.torso
        self.top = seen.at("neck")
        self.spine = (seen.at("hip_l") + seen.at("hip_r")) / 2 - self.top
        across = self.spine * (-1j / max(abs(self.spine), 0.02))  # to the right while upright
        self.across = across
        flat = (chest[0] - 1j * chest[1]) * across.conjugate()  # (3,) the chest's axes; real parts lie across the spine
        left, up, ahead = np.abs(flat.real).tolist()
        deep = build.depth * max(ahead, up)
        top, bottom = build.shoulders, build.hips + build.leg_width * 0.85
        widths = (top * 0.72, top * 1.08, build.chest, build.waist, bottom)
        self.half = [
            seen.scale * math.hypot(width * left, deep * share)
            for width, share in zip(widths, (0.6, 0.9, 1.05, 0.95, 1.0), strict=True)
        ]
        self.front = float(chest[2, 2])

    def point(self, s: float, q: float) -> complex:
        k = min(bisect_right(LEVELS, s), len(LEVELS) - 1)
        share = (s - LEVELS[k - 1]) / (LEVELS[k] - LEVELS[k - 1])
        half = self.half[k - 1] + (self.half[k] - self.half[k - 1]) * share
        return self.top + self.spine * s + self.across * (q * half)

    def patch(self, s0: float, s1: float, q0: float, q1: float) -> list[complex]:
        """Outline of a piece of the torso, following its shape."""
        levels = [s0, *(s for s in LEVELS if s0 < s < s1), s1]
        return [self.point(s, q0) for s in levels] + [self.point(s, q1) for s in reversed(levels)]


def _torso(brush: Brush, appearance: Appearance, posed: Posed, seen: Projected) -> None:
    cloth = _Cloth(posed, seen)
    kind = appearance.torso_kind

    def fill(colour: Colour, s0: float, s1: float, q0: float = -1.0, q1: float = 1.0) -> None:
        brush.polygon(cloth.patch(s0, s1, q0, q1), colour, kind)

    if appearance.bare == "none":
        fill(shade(appearance.torso, 0.8), 0, 1)
        fill(appearance.torso, 0, 1, -0.95, 0.55)
        _pattern(appearance, fill)
        if appearance.emblem and cloth.front > 0.1:
            _emblem(brush, appearance, cloth, kind)
    else:
        skin = appearance.torso_skin
        fill(shade(skin, 0.8), 0, 0.98)
        fill(skin, 0, 0.98, -0.95, 0.55)
        if appearance.bare == "midriff":
            fill(appearance.torso, 0.14, 0.4)
        elif cloth.front > 0:
            fill(shade(skin, 0.86), 0.36, 0.4, -0.7, 0.7)
    belt = appearance.leg.cloth
    hips = [cloth.point(0.88, -1), cloth.point(0.88, 1), cloth.point(1.04, 1), cloth.point(1.04, -1)]
    brush.polygon(hips, shade(belt, 0.9), appearance.leg.kind)


def _pattern(appearance: Appearance, fill: Callable[..., None]) -> None:
    colour = appearance.torso_2
    if appearance.pattern == "hoops":
        for s in (0.14, 0.42, 0.7):
            fill(colour, s, s + 0.15)
    elif appearance.pattern == "bars":
        for q in (-0.85, -0.2, 0.45):
            fill(colour, 0.02, 1, q, q + 0.36)
    elif appearance.pattern == "checks":
        for row, s in enumerate((0.02, 0.26, 0.5, 0.74)):
            for q in (-1.0, 0.0) if row % 2 else (-0.5, 0.5):
                fill(colour, s, s + 0.24, q, q + 0.5)
    elif appearance.pattern == "halves":
        fill(colour, 0.5, 1)
    elif appearance.pattern == "band":
        fill(colour, 0.26, 0.56)
    elif appearance.pattern == "sash":
        for k in range(6):
            fill(colour, k / 6, (k + 1) / 6, -0.95 + k * 0.24, -0.35 + k * 0.24)


def _emblem(brush: Brush, appearance: Appearance, cloth: _Cloth, kind: int) -> None:
    place = cloth.point(0.34, 0.0)
    size = cloth.half[2] * 0.5
    if appearance.emblem == 1:
        brush.disc(place, size, appearance.torso_2, kind)
    else:
        corners = (-1 + 1j, 1 + 1j, 1 - 1j, -1 - 1j) if appearance.emblem == 2 else (-1 + 1j, 1 + 1j, -1j)
        brush.polygon([place + corner * size for corner in corners], appearance.torso_2, kind, convex=True)


def _skirt(brush: Brush, appearance: Appearance, posed: Posed, seen: Projected) -> None:
    """Cloth from the hips around both thighs, nearly to the knees."""
    width = posed.build.leg_width * seen.scale
    outline: list[complex] = []
    for side in "lr":
        hip, knee = seen.at(f"hip_{side}"), seen.at(f"knee_{side}")
        hem = hip + (knee - hip) * 0.95
        for centre, radius in ((hip, width * 1.3), (hem, width * 2.1)):
            outline += [centre + radius * way for way in (-1 - 0.2j, 1 - 0.2j, 0.8 + 0.5j, -0.8 + 0.5j)]
    hull = _hull(outline)
    brush.polygon(hull, shade(appearance.leg.cloth, 0.85), appearance.leg.kind, convex=True)
    middle = hull.mean()
    inner = middle + (hull - middle) * 0.82 - (0.12 + 0.12j) * width
    brush.polygon(inner, appearance.leg.cloth, appearance.leg.kind, convex=True)
    if appearance.leg.pattern != "plain":
        belt = middle + (hull - middle).real * 0.9 + 1j * (hull - middle).imag * 0.28
        brush.polygon(belt, appearance.leg.cloth_2, appearance.leg.kind, convex=True)


def _hull(points: list[complex]) -> NDArray[np.complex128]:
    """Convex hull, by Andrew's monotone chain: a handful of points, so no need for more."""
    ordered = sorted(points, key=lambda p: (p.real, p.imag))
    found: list[complex] = []
    for run in (ordered, ordered[::-1]):
        chain: list[complex] = []
        for p in run:
            while len(chain) > 1 and ((chain[-1] - chain[-2]).conjugate() * (p - chain[-2])).imag <= 0:
                chain.pop()
            chain.append(p)
        found += chain[:-1]
    return np.array(found)
