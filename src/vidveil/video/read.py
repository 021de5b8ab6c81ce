"""Frames of a source, every one of them, with the times they are shown at.

What goes into the decoder is compared with what comes out. A packet whose picture never appears, or appears damaged,
becomes a `Frame` without a picture at the packet's own time: the anonymizer paints it black, the length of the video
stays what it was, and no half-decoded picture can slip past a method that was made for whole ones.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

import av
from av.sidedata.sidedata import SideData
from av.video.frame import VideoFrame

from vidveil.errors import InputError
from vidveil.video.deinterlace import Deinterlacer
from vidveil.video.frame import COLOURS, FULL_RANGE, Frame
from vidveil.video.ledger import IN_ORDER_FORMATS, Clock, InOrderLedger, Ledger
from vidveil.video.probe import (
    HDR_TRANSFERS,
    MAX_PIXELS,
    SEEKABLE_FORMATS,
    describe,
    open_source,
    picture_stream,
    reach,
    turned_by_exif,
)
from vidveil.video.sources import Kind, Source

UNDECODABLE = "could not be decoded"
DAMAGED = "was damaged"
PREROLL_S = 1  # containers index by decoding time, which is earlier than display by less than this


@dataclass(slots=True)
class ReadReport:
    """What the reader met, complete when it has ended."""

    packets: int = 0
    frames: int = 0
    mended_times: int = 0
    resized: int = 0
    deinterlaced: int = 0
    cut_short: str | None = None
    """Why the source ended before its end."""
    warnings: list[str] = field(default_factory=list)

    def warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)


class Reader:
    """Iterates over the frames of a source from `start` to before `end` (seconds). Use it once, in a `with`."""

    def __init__(self, source: Source, *, start: Fraction | None = None, end: Fraction | None = None) -> None:
        self.source = source
        self.report = ReadReport()
        self._open()
        self.colours: dict[str, int] = {}
        """How the first picture's numbers mean colours: range, matrix, transfer, primaries."""
        self.matrix: tuple[int, ...] | None = None
        """The display matrix of the first picture: rotation and mirroring, as 9 fixed-point numbers."""
        self.start, self.end = start, end
        self.shift = self.info.origin + (start or 0)
        """Seconds to take off the source's clock. Final when the first frame is out."""
        self._clock = Clock(self.info.time_base, self.info.rate)
        self.size: tuple[int, int] | None = None
        """Width and height of the first picture, and so of all."""

    def _open(self) -> None:
        self._container = open_source(self.source)
        try:
            self._stream = picture_stream(self._container)
            self.info = describe(self._container, self._stream)
        except BaseException:
            self._container.close()
            raise
        context = self._stream.codec_context
        context.thread_type = "AUTO"
        context.options = {**context.options, "max_pixels": str(MAX_PIXELS[self.source.kind])}

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._container.close()

    @property
    def pixel_shape(self) -> Fraction | None:
        """Width over height of a pixel, where it is not 1."""
        ratio = self._stream.sample_aspect_ratio
        return ratio if ratio and ratio > 0 and ratio != 1 else None

    def __iter__(self) -> Iterator[Frame]:
        waiting: list[Frame] = []  # lost frames from before the first picture, whose size nobody knows yet
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
        if self.size is None:
            if waiting:
                raise InputError(f"none of its {len(waiting)} frames could be decoded")
            cut = self.start is not None or self.end is not None
            raise InputError("no frame lies between start and end" if cut else "holds no frame")

    def _numbered(self) -> Iterator[Frame]:
        """Frames in order of time, lost ones in their places, on the source's clock less `shift`."""
        tick = self.info.time_base
        first = None if self.start is None else -(-(self.start + self.info.origin) // tick)
        last = None if self.end is None else -(-(self.end + self.info.origin) // tick)
        shift = round(self.shift / tick)
        index = 0
        for pts, duration, picture, lost in self._decoded():
            pts = self._clock.next(pts, duration)
            self.report.mended_times = self._clock.mended
            if first is not None and pts < first:
                continue
            if last is not None and pts >= last:
                return
            if index == 0 and pts < shift:  # MP4 would hide what comes before zero
                shift, self.shift = pts, pts * tick
            length = duration or self._clock.step
            yield Frame(index=index, pts=pts - shift, duration=length, width=0, height=0, picture=picture, lost=lost)
            index += 1

    def _decoded(self) -> Iterator[tuple[int | None, int, VideoFrame | None, str | None]]:
        """(pts, duration, picture, why there is none), as the decoder gives them and as it fails to."""
        kind = Ledger if IN_ORDER_FORMATS.isdisjoint(self.info.format.split(",")) else InOrderLedger
        ledger = kind(self.info.codec, self._clock.step, self.info.rate)
        for packet in self._packets():
            ledger.enter(packet)
            pictures: list[VideoFrame] = []
            try:
                pictures = packet.decode()
            except av.error.FFmpegError:
                for lost in ledger.failed(packet):
                    yield lost.pts, lost.duration, None, UNDECODABLE
            except MemoryError as error:
                raise InputError("its pictures are too large for this machine's memory") from error
            for picture in pictures:
                key = picture.pts
                for lost in ledger.settle(key, interlaced=picture.interlaced_frame):
                    yield lost.pts, lost.duration, None, UNDECODABLE
                if ledger.gave_up(key):
                    continue
                if picture.is_corrupt:
                    yield ledger.time_of(key), picture.duration, None, DAMAGED
                else:
                    yield ledger.time_of(key), picture.duration, picture, None
        for lost in ledger.rest():
            yield lost.pts, lost.duration, None, UNDECODABLE

    def _packets(self) -> Iterator["av.Packet[av.VideoStream]"]:
        """Packets of the picture's stream, then the empty one that empties the decoder, come what may."""
        if self.start:
            self._seek(self.start + self.info.origin)
        packets = self._container.demux(self._stream)
        end = 0
        while True:
            try:
                packet = next(packets)
            except (StopIteration, IndexError):  # PyAV's IndexError: a stream that appeared midway, at the very end
                break
            except av.error.FFmpegError as error:
                gone = "was lost" if self.source.live else "cannot be read to its end"
                self.report.cut_short = f"{gone} ({(error.strerror or type(error).__name__).lower()})"
                empty: av.Packet[av.VideoStream] = av.Packet()  # type: ignore[assignment]
                empty.stream = self._stream
                yield empty
                break
            self.report.packets += bool(packet.size)
            if packet.pts is not None:
                end = max(end, packet.pts + (packet.duration or 0))
            yield packet
        if not self.source.live and self.start is None and self.end is None and self.report.cut_short is None:
            self.report.cut_short = self._short_of_its_header(end * self.info.time_base)

    def _short_of_its_header(self, end: Fraction) -> str | None:
        """Whether a file ends before its header says. Packets may be fewer than counted: editors trim by a list."""
        declared, there, counted = self.info.declared, self.report.packets, self.info.frames
        if declared is None or end >= declared - Fraction(3, 2) / self.info.rate:
            return None
        if there >= counted > 0 and self.info.format != "avi":
            return None  # the picture ends before the sound
        end = max(end, reach(self.source))  # of all streams: reads the file once more, if something is odd with it
        if end >= declared - (Fraction(3, 2) / self.info.rate if counted else 1):
            return None
        frames = f"{there} of {counted} frames" if counted else f"{float(end):.1f} of {float(declared):.1f} s"
        return f"ends early or is damaged: {frames} are there"

    def _seek(self, seconds: Fraction) -> None:
        """Go to a key frame well before a time, where that is sure to work; otherwise read from the beginning."""
        indexed = self.info.format in SEEKABLE_FORMATS and (self.info.frames or "matroska" in self.info.format)
        target = seconds - PREROLL_S
        if not indexed or target <= 0:
            return
        ticks = int(target / self.info.time_base)
        with suppress(av.error.FFmpegError, StopIteration):
            self._container.seek(ticks, stream=self._stream)
            first = next(self._container.demux(self._stream))
            if first.pts is not None and first.is_keyframe and first.pts <= ticks:
                self._container.seek(ticks, stream=self._stream)
                return
        self._container.close()
        self._open()

    def _deinterlaced(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """Frames as they are until the first interlaced one, from there through a filter that keeps their number."""
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
        """Bring a picture to 8-bit 4:2:0 and to the size of the first."""
        picture = frame.picture
        assert picture is not None
        if self.size is None:
            self.size = (picture.width, picture.height)
            self._look_at(picture)
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

    def _look_at(self, picture: VideoFrame) -> None:
        """Note what the first picture tells: its rotation, and what 8 bits will lose."""
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
    except ValueError:  # PyAV stumbles over side data that it has no name for, but knows the angle
        turn = math.radians(picture.rotation)
        c, s = round(65536 * math.cos(turn)), round(65536 * math.sin(turn))
        return (c, -s, 0, s, c, 0, 0, 0, 1 << 30) if picture.rotation else None
    return tuple(memoryview(bytes(data)).cast("i")) if data is not None else None
