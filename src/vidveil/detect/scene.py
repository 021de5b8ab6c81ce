"""The frames between two cuts, and the trajectories of everybody in them: no trajectory leads out of a scene.

A trajectory that goes on nowhere is looked for closely, frame by frame, until it is lost; a new one is followed back,
frame by frame, as far as frames have been kept. Between two key frames everybody is looked for closely twice, and
halfway again where they are not where a straight way would have them.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from vidveil.core.frame import Box, Frame
from vidveil.core.rotation import piece, turn_of
from vidveil.detect.detections import Boxes
from vidveil.detect.detectors import Detector
from vidveil.detect.moments import Findings, Span
from vidveil.detect.searches import Searches, StoppedError, why
from vidveil.detect.tracks import (
    BRIDGE,
    CERTAIN,
    Sighting,
    TrackSettings,
    Trajectory,
    between_sightings,
    extent,
    joint,
    link,
    middle,
    mismatch,
    moved,
)

IN_FLIGHT = 4  # key frames searched at once, at most; a constant, so that the result does not depend on the machine
FRAMES = 30  # from one search of the whole picture to the next, at most: the times of a damaged file may be too short
FAR = 0.4  # of its own size: who moves further between two key frames is looked for in all frames between
ASTRAY = 0.12  # of its own size: who is this far from the straight way between two sightings is looked for further
CLOSE = 1.2  # mismatch up to which a find between two key frames is believed
MISSES = 2  # frames in a row without a close find, after which a trajectory is lost
WINDOW_BYTES = 1 << 30  # of pictures kept back, at most
LONG = 2000  # sightings after which the oldest are forgotten, once their moments are noted


@dataclass(slots=True)
class _Search:
    """A key frame and what is, or will be, found on it."""

    frame: Frame
    found: "Future[list[Boxes]]"


class Scene:
    def __init__(
        self,
        searches: Searches,
        settings: TrackSettings,
        findings: Findings,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._detectors = {detector.kind: detector for detector in searches.detectors}
        self._search, self._settings, self._findings, self._pool = searches, settings, findings, pool
        self._frames: deque[Frame] = deque()  # all that have not left
        self._searches: deque[_Search] = deque()  # key frames whose finds have not been linked yet
        self._searched: Frame | None = None  # the key frame up to which everything is linked
        self._failed: str | None = None  # why that one could not be searched
        self._last_key: Frame | None = None
        self._trajectories: list[Trajectory] = []
        self._doubts: list[float] = []  # times at which the picture changed so much that this may be another scene
        self._began: tuple[int, float] | None = None  # index and time of its first frame
        self._newest = (0, 0.0)  # and of its last, so far
        self._size = (0, 0)

    def take(self, frame: Frame, *, doubtful: bool = False) -> Iterator[Frame]:
        self._frames.append(frame)
        if self._began is None:
            self._began, self._size = (frame.index, frame.seconds), turn_of(frame).size
        else:
            self._pace(frame.seconds - self._newest[1])
        step = frame.seconds - self._newest[1]
        self._newest = (frame.index, frame.seconds)
        if doubtful:
            self._doubts.append(frame.seconds)
        key = self._last_key
        # now, if the next frame would come too late
        due = key is None or frame.seconds + max(step, 0.0) - key.seconds > self._settings.every + 1e-3
        if key is not None and frame.index - key.index >= (FRAMES if self._settings.every else 1):
            due = True
        if due and frame.picture is not None:
            self._ask(frame)
        while len(self._searches) > IN_FLIGHT or (self._searches and self._full()):
            self._link_next()
        yield from self._leaving()

    def end(self) -> Iterator[Frame]:
        last = next((frame for frame in reversed(self._frames) if frame.picture is not None), None)
        if last is not None and last is not self._last_key:
            self._ask(last)
        while self._searches:
            self._link_next()
            yield from self._leaving()
        while self._frames:
            yield self._done(self._frames.popleft())
        for trajectory in self._trajectories:
            self._over(trajectory)

    def _pace(self, step: float) -> None:
        """Where frames come seldom, a second is not enough: hold and look for two frames at least."""
        if 2 * step > min(self._settings.hold, self._settings.delay or self._settings.hold):
            least = 2 * step + 0.01
            delay = max(self._settings.delay, least) if self._settings.delay else 0.0
            self._settings = replace(self._settings, hold=max(self._settings.hold, least), delay=delay)

    def _ask(self, frame: Frame) -> None:
        self._last_key = frame
        self._searches.append(_Search(frame, self._pool.submit(self._search.frame, frame)))

    def _full(self) -> bool:
        return len(self._frames) * self._size[0] * self._size[1] * 3 // 2 > WINDOW_BYTES

    def _leaving(self) -> Iterator[Frame]:
        """Frames behind which enough has been seen; or the oldest, before memory runs out."""
        seen = -1.0 if self._searched is None else self._searched.seconds
        while self._frames:
            oldest = self._frames[0].seconds
            if seen < oldest + self._settings.delay and not (self._full() and seen >= oldest):
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
        for trajectory in self._trajectories:
            for region in trajectory.regions(frame.seconds, self._size, self._settings):
                regions.append(self._detectors[trajectory.kind].padded(region, self._size))
        frame.regions = tuple(region for region in regions if region is not None)
        self._forget(frame.seconds)
        return frame

    def _forget(self, seconds: float) -> None:
        """Let go of trajectories that reach no frame any more, and of the beginnings of very long ones."""
        gone = seconds - self._settings.patience - 1
        for trajectory in [t for t in self._trajectories if t.closed and t.last.seconds < gone]:
            self._trajectories.remove(trajectory)
            self._over(trajectory)
        for trajectory in self._trajectories:
            if len(trajectory.sightings) > LONG and trajectory.sightings[-2].seconds > gone:
                self._findings.trajectory_so_far(trajectory, [s for s in trajectory.sightings if s.seconds < gone])

    def _over(self, trajectory: Trajectory) -> None:
        first, began = self._began or self._newest
        last, ended = self._newest
        rate = (last - first) / max(ended - began, 1e-3)
        self._findings.trajectory_over(trajectory, self._size, Span(began, ended, rate), self._settings)

    def _link_next(self) -> None:
        search = self._searches.popleft()
        frame, since, failed = search.frame, self._searched, self._failed
        self._failed = None
        try:
            found = search.found.result()
            for detector, boxes in zip(self._detectors.values(), found, strict=True):
                self._link(detector, boxes, frame)
            self._search.succeeded()
        except StoppedError:
            raise
        except Exception as error:  # whatever it was: these frames were not searched, and must not pass
            self._search.failed(error)
            self._failed = why(error)
        for f in self._frames:
            if _within(f, since, frame) and (failed or self._failed):
                f.lost = failed or self._failed
            elif f is frame and self._failed:
                f.lost = self._failed
        for trajectory in self._trajectories:
            if frame.seconds - trajectory.last.seconds > self._settings.patience:
                trajectory.closed = True
        self._searched = frame

    def _link(self, detector: Detector, boxes: Boxes, frame: Frame) -> None:
        """Go on with each trajectory of one kind from the last key frame to this one."""
        sound = [f for f in self._frames if f.picture is not None and f.lost is None]
        between = [f for f in sound if _within(f, self._searched, frame)]
        earlier = [f for f in sound if f.index < frame.index][::-1]
        open_trajectories = [t for t in self._trajectories if t.kind == detector.kind and not t.closed]
        places: list[Box] = [(float(b[0]), float(b[1]), float(b[2]), float(b[3])) for b in boxes]
        links = link(open_trajectories, places, frame.seconds)
        continued: set[int] = set()
        for found in links:
            before, score = found.trajectory.last, float(boxes[found.at, 4])
            same = found.certain and not self._doubt(before, frame)
            number = before.number if same else self._findings.new_number()
            here = Sighting(frame.index, frame.seconds, places[found.at], score, number)
            trajectory = found.trajectory
            if found.cost > CERTAIN:
                self._follow(detector, trajectory, before, trajectory.speed(at_end=True), [*between, frame])
                continued.add(id(trajectory))
                if trajectory.last.index == frame.index and mismatch(trajectory.last.box, here.box) < CERTAIN:
                    continue  # followed all the way
                trajectory = Trajectory(detector.kind, [before], older=True)  # perhaps somebody else: both are hidden
                self._trajectories.append(trajectory)
            continued.add(id(trajectory))
            trajectory.add(here)
            if not between or before.index >= between[0].index - 1:
                self._halfway(detector, trajectory, before, here, between)
            else:  # found again after a gap
                back = [f for f in earlier if f.index > before.index]
                self._follow(detector, trajectory, here, (0.0, 0.0), back)
        for trajectory in open_trajectories:
            if id(trajectory) not in continued:
                self._follow(detector, trajectory, trajectory.last, trajectory.speed(at_end=True), [*between, frame])
        used = {found.at for found in links}
        for at, place in enumerate(places):
            if at not in used and boxes[at, 4] >= detector.start and not self._known(detector.kind, place, frame):
                here = Sighting(frame.index, frame.seconds, place, float(boxes[at, 4]), self._findings.new_number())
                trajectory = Trajectory(detector.kind, [here])
                self._trajectories.append(trajectory)
                self._follow(detector, trajectory, here, (0.0, 0.0), earlier)

    def _doubt(self, before: Sighting, frame: Frame) -> bool:
        """Whether so long or so much happened since somebody was seen that it may be another."""
        return self._changed(before.seconds, frame.seconds) or frame.seconds - before.seconds > BRIDGE + 1e-6

    def _changed(self, one: float, other: float) -> bool:
        return any(min(one, other) < time <= max(one, other) for time in self._doubts)

    def _known(self, kind: str, place: Box, frame: Frame) -> bool:
        """Whether a close look has just found what the whole picture shows, too."""
        return any(
            t.kind == kind and t.last.index == frame.index and mismatch(t.last.box, place) < 0.5
            for t in self._trajectories
        )

    def _follow(
        self,
        detector: Detector,
        trajectory: Trajectory,
        here: Sighting,
        speed: tuple[float, float],
        frames: Sequence[Frame],
    ) -> None:
        """Look closely for one person, frame by frame in this order, from a sighting on, until they are lost."""
        missed = 0
        for at, frame in enumerate(frames):
            place = moved(here.box, speed, frame.seconds - here.seconds)
            near = min(CLOSE, CERTAIN + 2 * abs(frame.seconds - here.seconds))
            number = self._findings.new_number() if self._changed(here.seconds, frame.seconds) else here.number
            try:
                found = self._look_closely(detector, trajectory, frame, place, number, near=near)
            except Exception as error:
                for unseen in frames[at:]:  # also those before the last key frame: somebody new was followed back
                    unseen.lost = why(error)
                raise
            if found is None:
                missed += 1
                if missed == MISSES:
                    return
                continue
            missed = 0
            trajectory.add(found)
            speed = between_sightings(here, found)
            here = found

    def _halfway(
        self,
        detector: Detector,
        trajectory: Trajectory,
        a: Sighting,
        b: Sighting,
        frames: list[Frame],
        fresh: bool = True,
    ) -> None:
        """Look closely in the middle between two sightings, then in both halves, until the way is straight."""
        (ax, ay), (bx, by) = middle(a.box), middle(b.box)
        inner = [f for f in frames if a.index < f.index < b.index]
        if not inner:
            return
        frame = inner[len(inner) // (3 if fresh else 2)]
        share = (frame.seconds - a.seconds) / (b.seconds - a.seconds)
        x, y = ax + share * (bx - ax), ay + share * (by - ay)
        size = min(extent(a.box), extent(b.box))
        place = (x - size / 2, y - size / 2, x + size / 2, y + size / 2)
        number = a.number if a.number == b.number else self._findings.new_number()
        found = self._look_closely(detector, trajectory, frame, place, number, joint(a.box, b.box))
        if found is None:
            self._follow(detector, trajectory, replace(a, number=number), (0.0, 0.0), inner)
            return
        trajectory.add(found)
        fx, fy = middle(found.box)
        far = max(abs(bx - ax), abs(by - ay)) > FAR * size
        if far or max(abs(fx - x), abs(fy - y)) > ASTRAY * size:
            self._halfway(detector, trajectory, a, found, inner, fresh=False)
            self._halfway(detector, trajectory, found, b, inner, fresh=False)
        elif fresh:
            self._halfway(detector, trajectory, found, b, inner, fresh=False)

    def _look_closely(
        self,
        detector: Detector,
        trajectory: Trajectory,
        frame: Frame,
        place: Box,
        number: int,
        around: Box | None = None,
        near: float = CLOSE,
    ) -> Sighting | None:
        """Search a piece of the frame for somebody who should be about there, with a mismatch below `near`."""
        around = around or place
        wide = max(around[2] - around[0], around[3] - around[1])
        side = wide + (detector.context - 1) * extent(place)
        reach = max(side, detector.glance / detector.scale(*self._size)) / 2
        x, y = middle(around)
        picture, left, top, step = piece(frame, (x - reach, y - reach, x + reach, y + reach), detector.glance)
        best, least = None, near
        for x0, y0, x1, y1, score in self._search.look(detector, picture).tolist():
            box = (left + x0 * step, top + y0 * step, left + x1 * step, top + y1 * step)
            cost = mismatch(place, box)
            if cost < least and not self._somebody_else(trajectory, frame.seconds, box, cost):
                best, least = Sighting(frame.index, frame.seconds, box, score, number), cost
        return best

    def _somebody_else(self, trajectory: Trajectory, seconds: float, box: Box, cost: float) -> bool:
        """Whether a box fits another trajectory better: somebody who passes by must not be taken for them."""
        others = (t for t in self._trajectories if t is not trajectory and t.kind == trajectory.kind)
        places = (other.near(seconds) for other in others)
        return any(place is not None and mismatch(place, box) < cost for place in places)


def _within(frame: Frame, since: Frame | None, until: Frame) -> bool:
    return (since is None or frame.index > since.index) and frame.index < until.index
