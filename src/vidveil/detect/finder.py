"""Who is where, in every frame of a stream.

    1  A scene's frames are kept back for `delay` seconds. The whole picture is searched on key frames: every `every`
       seconds, on the first and on the last frame of a scene. Key frames are searched side by side, one on each core.
    2  What is found on a key frame is linked to the trajectories that are there; in between one looks closely
       (scene.py).
    3  A frame leaves when what comes within `delay` after it has been seen: with a region for each trajectory
       (tracks.py).

A frame that could not be searched has no regions and no picture any more: it becomes black. Where that happens again
and again, the stream fails (searches.py).
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from vidveil.core.frame import Frame
from vidveil.detect.cuts import scenes
from vidveil.detect.detectors import Detector
from vidveil.detect.moments import Findings
from vidveil.detect.scene import IN_FLIGHT, Scene
from vidveil.detect.searches import Searches
from vidveil.detect.tracks import TrackSettings


class Finder:
    """Follows everybody that its detectors find. `findings` is complete when a stream has ended. One at a time."""

    def __init__(self, detectors: Sequence[Detector], settings: TrackSettings | None = None) -> None:
        self.detectors = tuple(detectors)
        self.settings = settings or TrackSettings()
        self.weights = [detector.weights for detector in detectors]
        self.looks_for = [detector.kind for detector in detectors]
        self.findings = Findings()
        self._searches = Searches(detectors)

    def follow(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """The same frames, `delay` later, each with its regions. Raises DetectorError if searches fail repeatedly."""
        self.findings, self._searches = Findings(), Searches(self.detectors)
        return self._follow(frames, self._searches)

    def stop(self) -> None:
        """Nothing more is wanted of the stream that is followed: searches under way are given up."""
        self._searches.stop()

    def _follow(self, frames: Iterable[Frame], searches: Searches) -> Iterator[Frame]:
        for detector in self.detectors:
            detector.ready()  # a network that is not there fails the whole stream, not frame after frame
        workers = max(1, min(IN_FLIGHT, os.cpu_count() or 1))
        with ThreadPoolExecutor(workers, "search") as pool:
            try:
                scene: Scene | None = None
                for frame, change in scenes(frames):
                    if scene is None or change.cut:
                        if scene is not None:
                            yield from scene.end()
                        scene = Scene(searches, self.settings, self.findings, pool)
                    yield from scene.take(frame, doubtful=change.doubtful)
                if scene is not None:
                    yield from scene.end()
                searches.finish()
            finally:
                searches.stop()  # before the pool waits for its threads
