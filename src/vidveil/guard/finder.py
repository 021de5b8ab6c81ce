"""Who is where, in every frame of a stream.

    1  A scene's frames are kept back for `delay` seconds. The whole picture is searched on key frames: every `every`
       seconds, on the first and on the last frame of a scene. Key frames are searched side by side, one on each core.
    2  What is found on a key frame is linked to the trails that are there. A trail that goes on nowhere is looked for
       closely, frame by frame, until it is lost; a new one is followed back, frame by frame, to where it came from.
       Somebody who moved far between two key frames is looked for closely halfway, and halfway again.
    3  A frame leaves when what comes within `delay` after it has been seen: with a region for each trail (tracks.py).

A frame that could not be searched has no regions and no picture any more: it becomes black.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from vidveil.guard.cuts import scenes
from vidveil.guard.detectors import Boxes, Detector
from vidveil.guard.moments import Findings, Span
from vidveil.guard.tracks import (
    BRIDGE,
    Settings,
    Sighting,
    Trail,
    between_sightings,
    clipped,
    extent,
    joint,
    link,
    middle,
    moved,
    strangeness,
    widened,
)
from vidveil.guard.view import piece, turn_of, whole
from vidveil.video.frame import Box, Frame, Region

FAR = 0.4  # of its own size: who moves further between two key frames is looked for in between
MISSES = 2  # frames in a row without a close find, after which a trail is lost
AT_LEAST = 3.0  # pixels of padding on each side
WINDOW_BYTES = 1 << 30  # of pictures kept back, at most


@dataclass(slots=True)
class _Search:
    """A key frame and what is, or will be, found on it."""

    frame: Frame
    found: "Future[list[Boxes]]"


class Finder:
    """Follows everybody that its detectors find. `findings` is complete when a stream has ended. One at a time."""

    def __init__(self, detectors: Sequence[Detector], settings: Settings | None = None) -> None:
        self.detectors = tuple(detectors)
        self.settings = settings or Settings()
        self.weights = [detector.weights for detector in detectors]
        self.looks_for = [detector.kind for detector in detectors]
        self.workers = max(1, os.cpu_count() or 1)
        self.findings = Findings()

    def follow(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """The same frames, `delay` later, each with its regions."""
        self.findings = Findings()
        with ThreadPoolExecutor(self.workers, "search") as pool:
            scene = None
            for frame, begins in scenes(frames):
                if begins:
                    if scene is not None:
                        yield from scene.end()
                    scene = _Scene(self, pool)
                assert scene is not None
                yield from scene.take(frame)
            if scene is not None:
                yield from scene.end()

    def search(self, frame: Frame) -> list[Boxes]:
        """Everything that each detector sees in a frame."""
        picture = whole(frame)
        height, width = picture.shape[:2]
        return [detector.look(picture, detector.scale(width, height)) for detector in self.detectors]


class _Scene:
    """The frames between two cuts: no trail leads out of it."""

    def __init__(self, finder: Finder, pool: ThreadPoolExecutor) -> None:
        self._finder, self._settings, self._pool = finder, finder.settings, pool
        self._frames: deque[Frame] = deque()  # all that have not left
        self._searches: deque[_Search] = deque()  # key frames whose finds have not been linked yet
        self._searched: Frame | None = None  # the key frame up to which everything is linked
        self._last_key: Frame | None = None
        self._trails: list[Trail] = []
        self._began: tuple[int, float] | None = None  # index and time of its first frame
        self._newest = (0, 0.0)  # and of its last, so far
        self._size = (0, 0)

    def take(self, frame: Frame) -> Iterator[Frame]:
        self._frames.append(frame)
        if self._began is None:
            self._began, self._size = (frame.index, frame.seconds), turn_of(frame).size
        self._newest = (frame.index, frame.seconds)
        due = self._last_key is None or frame.seconds - self._last_key.seconds >= self._settings.every - 1e-3
        if due and frame.picture is not None:
            self._ask(frame)
        while len(self._searches) > self._finder.workers:
            self._link_next()
        yield from self._leaving()

    def end(self) -> Iterator[Frame]:
        last = next((frame for frame in reversed(self._frames) if frame.picture is not None), None)
        if last is not None and last is not self._last_key:
            self._ask(last)
        while self._searches:
            self._link_next()
        while self._frames:
            yield self._done(self._frames.popleft())
        for trail in self._trails:
            self._over(trail)

    def _ask(self, frame: Frame) -> None:
        self._last_key = frame
        self._searches.append(_Search(frame, self._pool.submit(self._finder.search, frame)))

    def _leaving(self) -> Iterator[Frame]:
        """Frames behind which enough has been seen; or the oldest, before memory runs out."""
        seen = -1.0 if self._searched is None else self._searched.seconds
        while self._frames:
            oldest = self._frames[0]
            enough = seen >= oldest.seconds + self._settings.delay
            full = len(self._frames) * oldest.width * oldest.height * 3 // 2 > WINDOW_BYTES
            if not enough and not (full and seen >= oldest.seconds):
                return
            yield self._done(self._frames.popleft())

    def _done(self, frame: Frame) -> Frame:
        if frame.picture is None:
            frame.regions = ()
            return frame
        if frame.lost is not None:
            frame.picture = None
            return frame
        regions = []
        for trail in self._trails:
            detector = next(d for d in self._finder.detectors if d.kind == trail.kind)
            for region in trail.regions(frame.seconds, self._size, self._settings):
                regions.append(_padded(region, detector, self._size))
        frame.regions = tuple(region for region in regions if region is not None)
        self._finder.findings.frame_done(frame, self._size)
        self._forget(frame.seconds)
        return frame

    def _forget(self, seconds: float) -> None:
        """Let go of trails that reach no frame any more."""
        over = [t for t in self._trails if t.closed and t.last.seconds + self._settings.patience < seconds]
        for trail in over:
            self._trails.remove(trail)
            self._over(trail)

    def _over(self, trail: Trail) -> None:
        first, began = self._began or self._newest
        last, ended = self._newest
        rate = (last - first) / max(ended - began, 1e-3)
        self._finder.findings.trail_over(trail, self._size, Span(began, ended, rate), self._settings)

    def _link_next(self) -> None:
        search = self._searches.popleft()
        frame, since = search.frame, self._searched
        try:
            found = search.found.result()
            between = [f for f in self._frames if f.picture is not None and _within(f, since, frame)]
            for detector, boxes in zip(self._finder.detectors, found, strict=True):
                self._link(detector, boxes, frame, between)
        except Exception as error:  # whatever it was: these frames were not searched, and must not pass
            for f in self._frames:
                if f is frame or _within(f, since, frame):
                    f.lost = f"could not be searched ({type(error).__name__})"
        for trail in self._trails:
            if frame.seconds - trail.last.seconds > self._settings.patience:
                trail.closed = True
        self._searched = frame

    def _link(self, detector: Detector, boxes: Boxes, frame: Frame, between: list[Frame]) -> None:
        """Go on with each trail of one kind from the last key frame to this one."""
        open_trails = [t for t in self._trails if t.kind == detector.kind and not t.closed]
        places: list[Box] = [(float(b[0]), float(b[1]), float(b[2]), float(b[3])) for b in boxes]
        pairs, doubtful = link(open_trails, places, frame.seconds)
        for trail, at in pairs:
            before = trail.last
            new = at in doubtful or frame.seconds - before.seconds > BRIDGE + 1e-6
            number = self._finder.findings.new_number() if new else before.number
            here = Sighting(frame.index, frame.seconds, places[at], float(boxes[at, 4]), number)
            trail.add(here)
            if between and before.index < between[0].index - 1:  # found again after a gap
                self._follow(detector, trail, here, (0.0, 0.0), between[::-1])
            else:
                self._halfway(detector, trail, before, here, between)
        continued = {id(trail) for trail, _ in pairs}
        for trail in open_trails:
            if id(trail) not in continued:
                self._follow(detector, trail, trail.last, trail.speed(at_end=True), [*between, frame])
        used = {at for _, at in pairs}
        for at, place in enumerate(places):
            if at not in used and boxes[at, 4] >= detector.start and not self._known(detector.kind, place, frame):
                number = self._finder.findings.new_number()
                here = Sighting(frame.index, frame.seconds, place, float(boxes[at, 4]), number)
                trail = Trail(detector.kind, [here])
                self._trails.append(trail)
                self._follow(detector, trail, here, (0.0, 0.0), between[::-1])

    def _known(self, kind: str, place: Box, frame: Frame) -> bool:
        """Whether a close look has just found what the whole picture shows, too."""
        return any(
            t.kind == kind and t.last.index == frame.index and strangeness(t.last.box, place) < 0.5
            for t in self._trails
        )

    def _follow(
        self, detector: Detector, trail: Trail, here: Sighting, speed: tuple[float, float], frames: Sequence[Frame]
    ) -> None:
        """Look closely for one person, frame by frame in this order, from a sighting on, until they are lost."""
        missed = 0
        for frame in frames:
            place = moved(here.box, speed, frame.seconds - here.seconds)
            found = self._look_closely(detector, frame, place, here.number)
            if found is None:
                missed += 1
                if missed == MISSES:
                    return
                continue
            missed = 0
            trail.add(found)
            speed = between_sightings(here, found)
            here = found

    def _halfway(self, detector: Detector, trail: Trail, a: Sighting, b: Sighting, frames: list[Frame]) -> None:
        """Look closely in the middle between two sightings that lie far apart, then in both halves."""
        (ax, ay), (bx, by) = middle(a.box), middle(b.box)
        inner = [f for f in frames if a.index < f.index < b.index]
        if not inner or max(abs(bx - ax), abs(by - ay)) < FAR * min(extent(a.box), extent(b.box)):
            return
        frame = inner[len(inner) // 2]
        share = (frame.seconds - a.seconds) / (b.seconds - a.seconds)
        around = joint(a.box, b.box)
        x, y = ax + share * (bx - ax), ay + share * (by - ay)
        reach = extent(a.box) / 2
        place = (x - reach, y - reach, x + reach, y + reach)
        found = self._look_closely(detector, frame, place, a.number, around)
        if found is not None:
            trail.add(found)
            self._halfway(detector, trail, a, found, inner)
            self._halfway(detector, trail, found, b, inner)

    def _look_closely(
        self, detector: Detector, frame: Frame, place: Box, number: int, around: Box | None = None
    ) -> Sighting | None:
        """Search a piece of the frame around a place for somebody who should be about there."""
        around = around or place
        wide = max(around[2] - around[0], around[3] - around[1])
        side = wide + (detector.context - 1) * extent(place)
        reach = max(side, detector.glance / detector.scale(*self._size)) / 2
        x, y = middle(around)
        picture, left, top, step = piece(frame, (x - reach, y - reach, x + reach, y + reach), detector.glance)
        best, least = None, 1.0
        for x0, y0, x1, y1, score in detector.look(picture).tolist():
            box = (left + x0 * step, top + y0 * step, left + x1 * step, top + y1 * step)
            strange = strangeness(place, box)
            if strange < least:
                best, least = Sighting(frame.index, frame.seconds, box, score, number), strange
        return best


def _within(frame: Frame, since: Frame | None, until: Frame) -> bool:
    return (since is None or frame.index > since.index) and frame.index < until.index


def _padded(region: Region, detector: Detector, size: tuple[int, int]) -> Region | None:
    """With a margin; None if nothing of it is in the picture."""
    if region.box is None:
        return region
    x0, y0, x1, y1 = region.box
    x, y = (max(AT_LEAST, detector.pad * side) for side in (x1 - x0, y1 - y0))
    box = widened(region.box, x, y)
    x0, y0, x1, y1 = clipped(box, size)
    if x1 - x0 < 1 or y1 - y0 < 1:
        return None
    return replace(region, box=box, shape="ellipse" if detector.ellipse else "box")
