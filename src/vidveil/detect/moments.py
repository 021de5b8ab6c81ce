"""Moments at which somebody may have been visible: where a person should look again.

    gap                      nobody was seen for more than half a second, then somebody again
    low score                the detector was hardly sure for a while
    sudden change of size    from one sighting to the next: perhaps another person, or another thing
    first seen mid-picture   first seen away from the border: the half second before their box begins
    lost mid-picture         last seen away from the border: the half second after their box ends
    hidden whole             the frame is black, because somebody was lost from sight

They stand in the manifest; `vidveil review` shows them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np

from vidveil.core.frame import Box, Frame
from vidveil.core.rotation import turn_of
from vidveil.detect.tracks import BRIDGE, Sighting, TrackSettings, Trajectory, clipped, extent

WEAK = 0.35  # a score below this is hardly sure
LEAP = 1.6  # times as large, or as small
MOST = 1000  # moments in a manifest
LONGEST = 1e9  # seconds: of any video, and of its clock
STRETCH = 0.5  # seconds that are worth a look before somebody's box begins, or after it ends


@dataclass(frozen=True, slots=True)
class Moment:
    """A place where somebody may be visible."""

    what: str
    track: int | None
    kind: str
    first: int
    last: int
    start: float
    """Seconds on the output's clock, of the first frame and of the last."""
    end: float
    box: Box | None
    """On the upright picture, at the middle of the moment."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Moment":
        """From a manifest. Raises KeyError, TypeError, ValueError or OverflowError if it is damaged."""
        box = None if values["box"] is None else tuple(map(float, values["box"]))
        start, end = float(values["from"]), float(values["to"])
        if not all(map(math.isfinite, (start, end, *(box or ())))) or (box is not None and len(box) != 4):
            raise ValueError("not a time or not a box")
        track, first, last = values["track"], values["first"], values["last"]
        if not all(type(number) is int for number in (first, last, 0 if track is None else track)):
            raise ValueError("a frame or a track is no number")
        if max(abs(start), abs(end)) > LONGEST:
            raise ValueError("no video is that long")
        return cls(str(values["what"]), track, str(values["kind"]), first, last, start, end, box)

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2

    @property
    def who(self) -> str:
        return f"({self.kind})" if self.track is None else f"track {self.track} ({self.kind})"

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        box = None if self.box is None else [round(v) for v in self.box]
        return {
            "what": self.what,
            "track": self.track,
            "kind": self.kind,
            "first": self.first,
            "last": self.last,
            "from": round(self.start, 3),
            "to": round(self.end, 3),
            "box": box,
        }


class Span(NamedTuple):
    """A scene, as far as it has been seen."""

    began: float
    ended: float
    rate: float
    """Frames per second."""


class Findings:
    """Counts of frames and tracks of one stream, and its moments."""

    def __init__(self) -> None:
        self.frames_with_regions = 0
        self.left_out = 0
        self._numbers = count(1)
        self._tracks: set[int] = set()
        self._frames = 0
        self._area = 0.0
        self._moments: list[Moment] = []
        self._black: Moment | None = None

    def new_number(self) -> int:
        return next(self._numbers)

    def frame_done(self, frame: Frame) -> None:
        regions, size = frame.regions or (), turn_of(frame).size
        self._frames += 1
        self.frames_with_regions += bool(regions)
        self._tracks.update(region.track for region in regions)
        boxes = [region.box for region in regions]
        self._area += 1.0 if None in boxes else hidden_share([box for box in boxes if box is not None], size)
        lost = next((region for region in regions if region.box is None), None)
        black = self._black
        if black is not None and (lost is None or lost.track != black.track):
            self._keep(black)
            self._black = None
        if lost is not None:
            first, start = (
                (frame.index, frame.seconds) if self._black is None else (self._black.first, self._black.start)
            )
            self._black = Moment(
                what="hidden whole",
                track=lost.track,
                kind=lost.kind,
                first=first,
                last=frame.index,
                start=start,
                end=frame.seconds,
                box=None,
            )

    def trajectory_so_far(self, trajectory: Trajectory, past: Sequence[Sighting]) -> None:
        """Note the moments at the beginning of a very long trajectory, and forget its sightings."""
        if len(past) > 1:
            self._along(trajectory, past)
            trajectory.sightings = trajectory.sightings[len(past) - 1 :]
            trajectory.older = True

    def trajectory_over(
        self, trajectory: Trajectory, size: tuple[int, int], scene: Span, settings: TrackSettings
    ) -> None:
        if not trajectory.sure:
            self._note("low score", trajectory, trajectory.first, trajectory.first)
            return
        if not trajectory.older and not trajectory.leaves(size, at_end=False):
            until = trajectory.first.seconds - min(settings.hold, settings.delay)
            self._stretch("first seen mid-picture", trajectory, trajectory.first, until - STRETCH, until, scene)
        if not trajectory.leaves(size, at_end=True):
            since = trajectory.last.seconds + settings.patience
            self._stretch("lost mid-picture", trajectory, trajectory.last, since, since + STRETCH, scene)
        self._along(trajectory, trajectory.sightings)

    def _along(self, trajectory: Trajectory, sightings: Sequence[Sighting]) -> None:
        weak: list[Sighting] = []
        for sighting in sightings:
            if sighting.score < WEAK:
                weak.append(sighting)
                continue
            self._weak(trajectory, weak)
            weak = []
        self._weak(trajectory, weak)
        for a, b in pairwise(sightings):
            if b.seconds - a.seconds > BRIDGE + 1e-6:
                self._note("gap", trajectory, a, b)
            elif abs(math.log(extent(b.box) / extent(a.box))) > math.log(LEAP):
                self._note("sudden change of size", trajectory, a, b)

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        if self._black is not None:
            self._keep(self._black)
            self._black = None
        ordered = sorted(self._moments, key=lambda m: (m.first, m.track, m.what))
        return {
            "tracks": len(self._tracks),
            "frames_with_regions": self.frames_with_regions,
            "hidden_area": round(self._area / max(1, self._frames), 4),
            "moments": [moment.as_dict() for moment in ordered],
            "moments_left_out": self.left_out,
        }

    def _stretch(
        self, what: str, trajectory: Trajectory, near: Sighting, start: float, end: float, scene: Span
    ) -> None:
        """A time in which somebody may be visible, as far as it lies in the scene."""
        start, end = max(start, scene.began), min(end, scene.ended)
        if start >= end:
            return  # hidden up to the cut
        first, last = (near.index + round((t - near.seconds) * scene.rate) for t in (start, end))
        moment = Moment(
            what=what,
            track=near.number,
            kind=trajectory.kind,
            first=max(0, first),
            last=last,
            start=start,
            end=end,
            box=near.box,
        )
        self._keep(moment)

    def _weak(self, trajectory: Trajectory, run: Sequence[Sighting]) -> None:
        if len(run) > 1:  # one may happen to anybody
            self._note("low score", trajectory, run[0], run[-1])

    def _note(self, what: str, trajectory: Trajectory, a: Sighting, b: Sighting) -> None:
        middle = tuple((p + q) / 2 for p, q in zip(a.box, b.box, strict=True))
        self._keep(
            Moment(
                what=what,
                track=b.number,
                kind=trajectory.kind,
                first=a.index,
                last=b.index,
                start=a.seconds,
                end=b.seconds,
                box=(middle[0], middle[1], middle[2], middle[3]),
            )
        )

    def _keep(self, moment: Moment) -> None:
        if len(self._moments) < MOST:
            self._moments.append(moment)
        else:
            self.left_out += 1


def hidden_share(boxes: Sequence[Box], size: tuple[int, int]) -> float:
    """Share of the picture that lies in at least one box, counted on a grid of 64 × 64 points."""
    grid = np.zeros((64, 64), bool)
    for box in boxes:
        x0, y0, x1, y1 = clipped(box, size)
        if x0 >= x1 or y0 >= y1:
            continue
        columns = [round(v * 64 / size[0]) for v in (x0, x1)]
        rows = [round(v * 64 / size[1]) for v in (y0, y1)]
        grid[rows[0] : max(rows[1], rows[0] + 1), columns[0] : max(columns[1], columns[0] + 1)] = True
    return float(grid.mean())
