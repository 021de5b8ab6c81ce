"""From single sightings to the way of one person through a scene, and to the box that hides them in every frame of it.

A `Trajectory` is what one detector saw of one person within one scene: sightings in order of time. Between two
sightings the box is drawn in between; before the first and after the last it is held, moving on a little and growing,
since a face that is not found is not gone. All times are seconds.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vidveil.core.frame import Box, Region

BRIDGE = 0.5  # a gap up to this long is no doubt: the detector blinked
SLOWING = 0.25  # a held box moves on as if braked: as far as it came in this time
GROWTH = 0.5  # of its size, added while a box is held for the whole time
SLACK = 0.15  # of the way between two sightings, added on each side of what lies in between
CERTAIN = 0.5  # mismatch (below) up to which a find continues a trajectory
SAME = 0.4  # and up to which it is surely the same person
SURE = 0.5  # a single find with this score counts as a person
OUTWARD = 0.25  # of its size in a second: who is slower at the border does not leave, but is cut by it
UNSURE_HOLD = 0.2  # a single weak find is held this long
EDGE_HOLD = 0.3  # who leaves through the border of the picture is held this long


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackSettings:
    """How long, and what, when somebody is lost from sight."""

    on_lost: str = "hold"
    """`hold`: the box stays and grows. `hide`: the whole frame is black until they are found again."""
    hide_for: float = 2.0
    """`hide` ends after this time if they are not found again."""
    delay: float = 1.0
    """How long frames are kept back, so that what is seen later can hide what came before."""
    hold: float = 1.0
    every: float = 0.2
    """The whole picture is searched this often."""

    @property
    def patience(self) -> float:
        """For how long somebody lost may be found again as the same."""
        return max(self.hold, self.hide_for) if self.on_lost == "hide" else self.hold


@dataclass(frozen=True, slots=True)
class Sighting:
    index: int
    seconds: float
    box: Box
    score: float
    number: int
    """Of the track. It changes within a trajectory where it is in doubt whether this is still the same person."""


@dataclass(slots=True, eq=False)
class Trajectory:
    kind: str
    sightings: list[Sighting] = field(default_factory=list)
    older: bool = False
    """There were more sightings before the first."""
    closed: bool = False
    """Nobody looks for this person any more: the scene is over, or patience was."""

    @property
    def first(self) -> Sighting:
        return self.sightings[0]

    @property
    def last(self) -> Sighting:
        return self.sightings[-1]

    @property
    def sure(self) -> bool:
        """More than one weak find in a single frame."""
        return len(self.sightings) > 1 or self.first.score >= SURE

    def add(self, sighting: Sighting) -> None:
        at = len(self.sightings)
        while at and self.sightings[at - 1].index > sighting.index:
            at -= 1
        if at and self.sightings[at - 1].index == sighting.index:
            return  # seen already
        self.sightings.insert(at, sighting)

    def speed(self, *, at_end: bool) -> tuple[float, float]:
        """Pixels per second, over the last (or first) half second of sightings."""
        anchor = self.last if at_end else self.first
        other = anchor
        for sighting in reversed(self.sightings) if at_end else self.sightings:
            if abs(sighting.seconds - anchor.seconds) > 0.5:
                break
            other = sighting
        return between_sightings(other, anchor)

    def expected(self, seconds: float) -> Box:
        """Where the person will be soon after the last sighting, or was before the first."""
        at_end = seconds >= self.last.seconds
        anchor = self.last if at_end else self.first
        return moved(anchor.box, self.speed(at_end=at_end), seconds - anchor.seconds)

    def near(self, seconds: float) -> Box | None:
        """Where the person is at a time from or close to the sightings; None if that is too long from any."""
        if not self.first.seconds - BRIDGE <= seconds <= self.last.seconds + BRIDGE:
            return None
        after = bisect_left(self.sightings, seconds, key=lambda s: s.seconds)
        if not 0 < after < len(self.sightings):
            return self.expected(seconds)
        a, b = self.sightings[after - 1], self.sightings[after]
        return _between(a.box, b.box, (seconds - a.seconds) / (b.seconds - a.seconds))

    def leaves(self, size: tuple[int, int], *, at_end: bool) -> bool:
        """Whether they go out (or come in) through the border: they move that way, and touch it or soon would."""
        anchor = self.last if at_end else self.first
        outwards = 1 if at_end else -1
        dx, dy = (outwards * v for v in self.speed(at_end=at_end))
        least, margin = OUTWARD * extent(anchor.box), 0.01 * min(size) + 1
        x0, y0, x1, y1 = anchor.box
        for inner, outer, speed, limit in ((x0, x1, dx, size[0]), (y0, y1, dy, size[1])):
            middle = (inner + outer) / 2 + speed * EDGE_HOLD
            if speed > least and (outer >= limit - margin or middle >= limit):
                return True
            if -speed > least and (inner <= margin or middle <= 0):
                return True
        return False

    def regions(self, seconds: float, size: tuple[int, int], settings: TrackSettings) -> list[Region]:
        """What hides this person at a time, before padding; nothing if the time is too far from any sighting."""
        if seconds < self.first.seconds:
            return self._outside(seconds, size, settings, at_end=False)
        if seconds > self.last.seconds:
            return self._outside(seconds, size, settings, at_end=True)
        after = bisect_left(self.sightings, seconds, key=lambda s: s.seconds)
        b = self.sightings[after]
        if b.seconds == seconds:
            return [self._region(b.box, b.number, "detected", b.score)]
        a = self.sightings[after - 1]
        gap = b.seconds - a.seconds
        numbers = dict.fromkeys((a.number, b.number))  # in doubt both: neither may be shown while the other is hidden
        if gap > BRIDGE + 1e-6 and settings.on_lost == "hide":
            return [self._region(None, number, "lost") for number in numbers]
        share = (seconds - a.seconds) / gap
        box = _between(a.box, b.box, share)
        (ax, ay), (bx, by) = middle(a.box), middle(b.box)
        slack = (SLACK * abs(bx - ax), SLACK * abs(by - ay))
        if gap > BRIDGE + 1e-6:  # they may have stood for most of it, and hurried for the rest
            grow = GROWTH * min(1.0, min(seconds - a.seconds, b.seconds - seconds) / settings.hold)
            return [self._region(grown(joint(a.box, b.box), grow), number, "gap") for number in numbers]
        return [self._region(widened(box, *slack), number, "between") for number in numbers]

    def _outside(self, seconds: float, size: tuple[int, int], settings: TrackSettings, *, at_end: bool) -> list[Region]:
        if self.older and not at_end:
            return []
        anchor = self.last if at_end else self.first
        lapse = abs(seconds - anchor.seconds)
        at_border = self.leaves(size, at_end=at_end)
        if at_end and self.sure and not at_border and settings.on_lost == "hide" and lapse <= settings.hide_for:
            return [self._region(None, anchor.number, "lost")]
        hold = min(settings.hold, EDGE_HOLD) if at_border else settings.hold
        if lapse > (hold if self.sure else UNSURE_HOLD) + 1e-6:
            return []
        box = grown(joint(anchor.box, self.expected(seconds)), GROWTH * lapse / max(settings.hold, 1e-6))
        return [self._region(box, anchor.number, "after" if at_end else "before")]

    def _region(self, box: Box | None, number: int, source: str, score: float = 0.0) -> Region:
        return Region(box=box, kind=self.kind, track=number, score=score, source=source)


class Link(NamedTuple):
    trajectory: Trajectory
    at: int
    """Which box."""
    cost: float
    certain: bool
    """Nobody else could be meant."""


def link(trajectories: Sequence[Trajectory], boxes: Sequence[Box], seconds: float) -> list[Link]:
    """Which box continues which trajectory, the likeliest first; none twice."""
    costs = []
    for t, trajectory in enumerate(trajectories):
        expected, lapse = trajectory.expected(seconds), abs(seconds - trajectory.last.seconds)
        for b, box in enumerate(boxes):
            cost = mismatch(expected, box)
            if cost < min(0.7 + 2.5 * lapse, 2.0):
                costs.append((cost, t, b))
    costs.sort()
    links: list[Link] = []
    used_trajectories: set[int] = set()
    used_boxes: set[int] = set()
    for cost, t, b in costs:
        if t in used_trajectories or b in used_boxes:
            continue
        # other people who could be here, and other places where this one could be
        rivals = [c for c, other_t, other_b in costs if (other_t == t) != (other_b == b)]
        certain = cost <= SAME and all(rival > cost + 0.5 for rival in rivals)
        used_trajectories.add(t)
        used_boxes.add(b)
        links.append(Link(trajectories[t], b, cost, certain))
    return links


def mismatch(expected: Box, box: Box) -> float:
    """How unlikely a box is where one is expected: distance in sizes, and half the logarithm of the change of size."""
    (x0, y0), (x1, y1) = middle(expected), middle(box)
    a, b = extent(expected), extent(box)
    return math.hypot(x1 - x0, y1 - y0) / ((a + b) / 2) + 0.5 * abs(math.log2(b / a))


def between_sightings(a: Sighting, b: Sighting) -> tuple[float, float]:
    """Speed from one to the other, in pixels per second; none if they are too close in time to tell."""
    lapse = b.seconds - a.seconds
    if abs(lapse) < 0.01:
        return 0.0, 0.0
    (x0, y0), (x1, y1) = middle(a.box), middle(b.box)
    return (x1 - x0) / lapse, (y1 - y0) / lapse


def middle(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def extent(box: Box) -> float:
    """The side of a square of the same area."""
    return max(1.0, math.sqrt(max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])))


def moved(box: Box, speed: tuple[float, float], lapse: float) -> Box:
    """Moved on at a speed that decays: far ahead, nobody knows."""
    reach = math.copysign(SLOWING * (1 - math.exp(-abs(lapse) / SLOWING)), lapse)
    dx, dy = speed[0] * reach, speed[1] * reach
    return box[0] + dx, box[1] + dy, box[2] + dx, box[3] + dy


def grown(box: Box, share: float) -> Box:
    """Wider and higher by a share of its size, half on each side."""
    return widened(box, share * (box[2] - box[0]) / 2, share * (box[3] - box[1]) / 2)


def widened(box: Box, x: float, y: float) -> Box:
    return box[0] - x, box[1] - y, box[2] + x, box[3] + y


def joint(a: Box, b: Box) -> Box:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def clipped(box: Box, size: tuple[int, int]) -> Box:
    width, height = size
    x0, x1 = (min(max(v, 0.0), float(width)) for v in (box[0], box[2]))
    y0, y1 = (min(max(v, 0.0), float(height)) for v in (box[1], box[3]))
    return x0, y0, x1, y1


def _between(a: Box, b: Box, share: float) -> Box:
    x0, y0, x1, y1 = (p + share * (q - p) for p, q in zip(a, b, strict=True))
    return x0, y0, x1, y1
