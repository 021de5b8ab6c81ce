"""All frames of a source, with their presentation times.

A picture that could not be decoded becomes a `Frame` without a picture: the anonymizer paints it black, and the length
of the video stays the same.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

from av.sidedata.sidedata import SideData
from av.video.frame import VideoFrame

from vidveil.core.errors import InputError
from vidveil.core.frame import COLOURS, FULL_RANGE, Frame
from vidveil.video.connection import Connection, Decoded
from vidveil.video.deinterlace import Deinterlacer
from vidveil.video.live import ClockReading, ConnectionState, LiveClock, whole_from_here
from vidveil.video.probe import CLOCKED_FORMATS, HDR_TRANSFERS, turned_by_exif
from vidveil.video.sources import Kind, Source


@dataclass(slots=True)
class ReadReport:
    """What happened while reading, complete at the end."""

    packets: int = 0
    frames: int = 0
    corrected_times: int = 0
    resized: int = 0
    deinterlaced: int = 0
    reconnects: int = 0
    cut_short: str | None = None
    """Why the source ended before its end."""
    warnings: list[str] = field(default_factory=list)
    away_s: float = 0.0
    """Seconds of all outages of a live source together."""

    def warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)

    def came_back(self, after_s: float) -> None:
        """Note an outage. One warning covers all outages."""
        self.reconnects += 1
        self.away_s += after_s
        self.cut_short = None
        start = "the stream was interrupted "
        self.warnings = [line for line in self.warnings if not line.startswith(start)]
        times = "1 time" if self.reconnects == 1 else f"{self.reconnects} times"
        self.warn(f"{start}{times}, for {self.away_s:.1f} s in all")


class Reader:
    """Iterates over the frames of a source from `start` to before `end` (seconds). Use it once, in a `with`.

    `start` and `end` count from where the source begins, as in players, whatever its first timestamp is. Times of
    frames count from the first frame; with `sound`, from the sound if that begins earlier; after a cut, from `start`.
    With `keep_offset` only `start` is subtracted from the source's times, except for live sources and formats whose
    clocks start anywhere.
    A live source that breaks off is waited for, at most `reconnect` seconds. Pictures of more than `max_pixels` (None:
    MAX_PIXELS of the kind) are not decoded: InputError if the header declares them, lost frames if they come midway.
    """

    def __init__(
        self,
        source: Source,
        *,
        start: Fraction | None = None,
        end: Fraction | None = None,
        reconnect: float = 60.0,
        sound: bool = False,
        keep_offset: bool = False,
        max_pixels: int | None = None,
    ) -> None:
        self.source = source
        self.report = ReadReport()
        self._connection_state = ConnectionState(reconnect)
        self._max_pixels = max_pixels
        self._connection = Connection(source, self._connection_state, max_pixels)
        self.info = self._connection.info
        """Of the first connection; its time base and rate apply to all frames."""
        self.colours: dict[str, int] = {}
        """The first picture's colour range, matrix, transfer and primaries."""
        self.matrix: tuple[int, ...] | None = None
        """The display matrix of the first picture: rotation and mirroring, as 9 fixed-point numbers."""
        self.start, self.end = start, end
        meaningless = source.live or not CLOCKED_FORMATS.isdisjoint(self.info.format.split(","))
        keep_offset = keep_offset and not meaningless
        self.shift = (Fraction(0) if keep_offset else self.info.origin) + (start or 0)
        """Seconds to subtract from the source's clock. Final when the first frame is out."""
        sound = sound and any(name.startswith("audio") for name in self.info.streams)
        self._begin_with_picture = start is None and not sound and not keep_offset
        self._clock = LiveClock(self.info.time_base, self.info.rate)
        self._back_again = False
        self.size: tuple[int, int] | None = None
        """Width and height of all pictures: those of the first."""
        self.pixel_shape = self._connection.pixel_shape
        """Width over height of a pixel, where it is not 1."""

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def stop(self) -> None:
        """End with the next packet, or at once during an outage. May be called from any thread."""
        self._connection_state.stop()

    @property
    def stopped(self) -> bool:
        return self._connection_state.stopped

    def __iter__(self) -> Iterator[Frame]:
        waiting: list[Frame] = []  # lost frames before the first picture, whose size is not known yet
        for frame in self._deinterlaced(self._numbered()):
            if frame.picture is not None:
                self._fit(frame)
            elif self.size is None:
                waiting.append(frame)
                continue
            for ready in (*waiting, frame):
                if ready.picture is None and self.size is not None:
                    ready.width, ready.height = self.size
                    ready.full_range = self.colours["color_range"] == FULL_RANGE
                ready.seconds, ready.matrix = float(ready.pts * self.info.time_base), self.matrix
                self.report.frames += 1
                yield ready
            waiting.clear()
        if self.size is None and not self.stopped:
            if waiting:
                raise InputError(f"none of its {len(waiting)} frames could be decoded")
            cut = self.start is not None or self.end is not None
            raise InputError("no frame lies between start and end" if cut else "holds no frame")

    def _numbered(self) -> Iterator[Frame]:
        """Frames in order of time, including lost ones, on the source's clock minus `shift`."""
        tick, zero = self.info.time_base, self._connection.zero
        first = None if self.start is None else -(-(self.start + self.info.origin) // tick) - zero
        last = None if self.end is None else -(-(self.end + self.info.origin) // tick) - zero
        shift = round(self.shift / tick) - zero
        index = 0
        for found, duration, picture, lost in self._decoded():
            before = self._clock.now
            pts = self._clock.next(found, duration)
            self.report.corrected_times = self._clock.corrected
            after_gap, self._back_again = self._back_again, False
            if after_gap:
                self.report.came_back(float((pts - before) * tick))
            if first is not None and pts < first:
                continue
            if last is not None and pts >= last:
                return
            if index == 0 and (pts < shift or self._begin_with_picture):  # MP4 hides frames before zero
                shift, self.shift = pts, (pts + zero) * tick
            length = duration or self._clock.step
            frame = Frame(index=index, pts=pts - shift, duration=length, width=0, height=0, picture=picture, lost=lost)
            frame.after_gap = after_gap
            yield frame
            index += 1

    def _decoded(self) -> Iterator[Decoded]:
        """Frames of all connections, in ticks of the first. A live source begins with its first key picture."""
        whole = self.start is None and self.end is None
        first = self._connection
        for connection in self._connections():
            again = None if connection is first else self._resume
            scale = connection.info.time_base / self.info.time_base
            joined = not self.source.live
            for pts, duration, picture, lost in connection.decoded(start=self.start, whole=whole, sighted=again):
                joined = joined or whole_from_here(picture, connection.info.codec)
                if joined:
                    self._connection_state.heard = self._connection_state.arrived
                    pts = None if pts is None else round(pts * scale)
                    yield Decoded(pts, round(duration * scale), picture, lost)
            self.report.packets += connection.packets
            self.report.cut_short = connection.broken or self.report.cut_short
        if self.stopped:
            self.report.cut_short = None  # a recording that was stopped during an outage is complete

    def _connections(self) -> Iterator[Connection]:
        """The first connection, and another each time that a live source comes back."""
        yield self._connection
        # A source with a duration is a file: opened again, it would begin again.
        while self.source.live and self.info.duration is None and self._connection_state.heard is not None:
            until = self._connection_state.heard + self._connection_state.patience
            if self.end is not None:  # nothing after it is read
                left = self.end - self._clock.now * self.info.time_base
                until = min(until, self._connection_state.heard + float(left))
            self._connection.close()
            connection = self._connection_state.reconnect(
                lambda: Connection(self.source, self._connection_state, self._max_pixels), until
            )
            if connection is None:
                if self._connection_state.patience > 0 and self.report.cut_short is None and not self.stopped:
                    self.report.warn("the stream ended, and did not come back")
                return
            self._connection = connection
            yield connection

    def _resume(self, sighting: ClockReading) -> None:
        """Continue the clock after an outage, by the time that passed on this machine's clock."""
        assert self._connection_state.heard is not None
        away = sighting.at - self._connection_state.heard
        scale = self._connection.info.time_base / self.info.time_base
        pts = None if sighting.pts is None else round(sighting.pts * scale)
        self._clock.resume(pts, round(away / self.info.time_base))
        self._back_again = True

    def _deinterlaced(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """Unchanged frames up to the first interlaced one, from there deinterlaced ones, as many as before."""
        for frame in frames:
            if frame.picture is not None and frame.picture.interlaced_frame:
                self.report.warn("interlaced video was deinterlaced")
                deinterlacer = Deinterlacer(frame.picture, self.info.time_base)
                for smooth in deinterlacer.run(frame, frames):
                    self.report.deinterlaced = deinterlacer.frames
                    yield smooth
                return
            yield frame

    def _fit(self, frame: Frame) -> None:
        """Convert a picture to 8-bit 4:2:0 and to the size of the first."""
        picture = frame.picture
        assert picture is not None
        if self.size is None:
            self.size = (picture.width, picture.height)
            self._describe(picture)
        width, height = self.size
        resized = (picture.width, picture.height) != self.size
        if resized:
            self.report.resized += 1
            self.report.warn("the size changes within the video: later sizes were brought to the first")
        name = picture.format.name
        if name not in ("yuv420p", "yuvj420p") or resized:
            full = picture.color_range == FULL_RANGE or name.startswith("yuvj")
            rgb = picture.format.is_rgb
            picture = picture.reformat(
                width,
                height,
                "yuv420p",
                dst_colorspace="ITU709" if rgb else None,
                dst_color_range=1 if rgb else FULL_RANGE if full else None,
            )
            if rgb:
                picture.colorspace = picture.color_primaries = picture.color_trc = picture.color_range = 1
            elif full:
                picture.color_range = FULL_RANGE
        frame.full_range = picture.color_range == FULL_RANGE or name.startswith("yuvj")
        if frame.full_range:
            picture.color_range = FULL_RANGE
        frame.picture, frame.width, frame.height = picture, width, height
        if not self.colours:
            self.colours = {name: getattr(picture, name) for name in COLOURS}

    def _describe(self, picture: VideoFrame) -> None:
        """Set the rotation of the first picture, and warn of what 8 bits will lose."""
        bits = max((c.bits for c in picture.format.components), default=8)
        if bits > 8:
            self.report.warn(f"{bits}-bit pictures become 8-bit")
        if picture.color_trc in HDR_TRANSFERS:
            self.report.warn(
                f"HDR ({HDR_TRANSFERS[picture.color_trc]}) is kept as a tag on 8-bit pictures: expect banding"
            )
        if self.source.kind is Kind.IMAGE:
            self.matrix = turned_by_exif(self.source.path)
        else:
            self.matrix = _display_matrix(picture)


def _display_matrix(picture: VideoFrame) -> tuple[int, ...] | None:
    try:
        data = cast("SideData | None", picture.side_data.get("DISPLAYMATRIX"))
    except ValueError:  # PyAV fails on unknown side data, but has the angle
        turn = math.radians(picture.rotation)
        c, s = round(65536 * math.cos(turn)), round(65536 * math.sin(turn))
        return (c, -s, 0, s, c, 0, 0, 0, 1 << 30) if picture.rotation else None
    return tuple(memoryview(bytes(data)).cast("i")) if data is not None else None
