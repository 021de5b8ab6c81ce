"""Deinterlacing: one progressive picture for each interlaced one, so that no other module handles fields."""

from collections import deque
from collections.abc import Iterator
from fractions import Fraction

import av
import av.filter
from av.video.frame import VideoFrame

from vidveil.core.frame import Frame


class Deinterlacer:
    """FFmpeg's bwdif, one frame out for each frame in. It looks one frame ahead, so frames wait for their pictures."""

    def __init__(self, like: VideoFrame, time_base: Fraction) -> None:
        self.frames = 0
        """Interlaced frames so far."""
        self._graph = av.filter.Graph()
        source = self._graph.add_buffer(width=like.width, height=like.height, format=like.format, time_base=time_base)
        filter_ = self._graph.add("bwdif", "mode=send_frame:deint=interlaced")
        sink = self._graph.add("buffersink")
        source.link_to(filter_)
        filter_.link_to(sink)
        self._graph.configure()
        self._like = (like.width, like.height, like.format.name)
        self._waiting: deque[Frame] = deque()

    def run(self, first: Frame, rest: Iterator[Frame]) -> Iterator[Frame]:
        yield from self._take(first)
        for frame in rest:
            yield from self._take(frame)
        self._graph.push(None)
        yield from self._give()
        yield from (frame for frame in self._waiting if frame.picture is None)  # lost ones at the very end

    def _take(self, frame: Frame) -> Iterator[Frame]:
        self._waiting.append(frame)
        picture = frame.picture
        if picture is None:
            return
        width, height, name = self._like
        if (picture.width, picture.height, picture.format.name) != self._like:
            picture = picture.reformat(width, height, name)
        self.frames += picture.interlaced_frame
        picture.pts, picture.time_base = frame.index, Fraction(1, 25)  # any steady clock: frames are matched by order
        self._graph.push(picture)
        yield from self._give()

    def _give(self) -> Iterator[Frame]:
        while True:
            try:
                picture = self._graph.pull()
            except (av.error.BlockingIOError, av.error.EOFError):
                return
            while self._waiting:
                frame = self._waiting.popleft()
                if frame.picture is None:
                    yield frame
                    continue
                frame.picture = picture  # type: ignore[assignment]
                yield frame
                break
