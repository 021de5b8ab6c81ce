"""An open source: its packets, decoded.

Packets that go into the decoder are matched with the pictures that come out. A packet whose picture never appears, or
is damaged, is reported without a picture at the packet's time, so that no frame is missing or half-decoded.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from time import monotonic
from typing import NamedTuple

import av
from av.video.frame import VideoFrame

from vidveil.core.errors import InputError
from vidveil.video.live import ClockReading, ConnectionState, Packet, backlog_first, whole_packets
from vidveil.video.packet_tracker import IN_ORDER_FORMATS, NO_TIME, InOrderPacketTracker, PacketTracker, PendingPacket
from vidveil.video.probe import (
    MAX_PIXELS,
    SEEKABLE_FORMATS,
    TIMEOUT_S,
    check_size,
    describe,
    ffmpeg_limit,
    open_source,
    picture_stream,
    reach,
)
from vidveil.video.sources import Source

UNDECODABLE = "could not be decoded"
DAMAGED = "was damaged"
TOO_LARGE = "has too many pixels"
SILENT = f"silent for {TIMEOUT_S:.0f} s"
PREROLL_S = 1  # containers index by decoding time, which is earlier than display by less than this
NEVER_SIDE_BY_SIDE = frozenset({"ffv1"})
"""Decoders that must not work on several frames at once, only on several slices of one.

FFmpeg's FFV1 (8.1) with a thread for each frame corrupts memory after a truncated packet, most often the first one
after a key picture: now and then the process crashes or hangs. With slice threads it never did.
"""


class Decoded(NamedTuple):
    pts: int | None
    """In the connection's time base, from the source's origin; None if unknown."""
    duration: int
    picture: VideoFrame | None
    lost: str | None
    """Why there is no picture."""


class Connection:
    """An open source, until it ends or breaks off. `state` can stop it."""

    def __init__(self, source: Source, state: ConnectionState, max_pixels: int | None = None) -> None:
        self.source, self._connection_state = source, state
        self._max_pixels = max_pixels or MAX_PIXELS[source.kind]
        self.packets = 0
        self.broken: str | None = None
        """Why it ended before its end."""
        self._reached = 0  # the time at which the last packet ends
        self._open()
        self.zero = math.floor(self.info.origin / self.info.time_base)
        """Subtracted from all timestamps, in ticks, so that they count from the source's origin."""

    def _open(self) -> None:
        self._container = open_source(self.source, self._max_pixels)
        try:
            self._stream = picture_stream(self._container)
            check_size(self.source, self._stream, self._max_pixels)
            self.info = describe(self._container, self._stream)
        except BaseException:
            self._container.close()
            raise
        self.step = max(1, round(1 / (self.info.rate * self.info.time_base)))
        ratio = self._stream.sample_aspect_ratio
        self.pixel_shape = ratio if ratio and ratio > 0 and ratio != 1 else None
        """Width over height of a pixel, where it is not 1."""
        context = self._stream.codec_context
        context.thread_type = "SLICE" if self.info.codec in NEVER_SIDE_BY_SIDE else "AUTO"
        context.options = {**context.options, "max_pixels": ffmpeg_limit(self._max_pixels)}

    def close(self) -> None:
        self._container.close()

    def decoded(
        self,
        *,
        start: Fraction | None = None,
        whole: bool = True,
        sighted: Callable[[ClockReading], None] | None = None,
    ) -> Iterator[Decoded]:
        """All frames from a key picture before `start` on. With `whole`, the length is compared with the header.

        After an outage, `sighted` is first called with the source's current time.
        """
        if start:
            self._seek(start + self.info.origin)
        packets = self._from_zero(self._container.demux(self._stream))
        if sighted is not None:
            packets = backlog_first(packets, sighted, self.step)
        packets = self._until_its_end(packets)
        if self.source.live and self.info.duration is None:
            packets = whole_packets(packets, self.info.codec, self._stream.codec_context.extradata)
        kind = PacketTracker if IN_ORDER_FORMATS.isdisjoint(self.info.format.split(",")) else InOrderPacketTracker
        tracker = kind(self.info.codec, self.step, self.info.rate)
        for packet in packets:
            tracker.enter(packet)
            pictures: list[VideoFrame] = []
            try:
                pictures = packet.decode()
            except av.error.FFmpegError:
                yield from map(_lost, tracker.failed(packet))
            except MemoryError as error:
                raise InputError("its pictures are too large for this machine's memory") from error
            for picture in pictures:
                key = picture.pts
                yield from map(_lost, tracker.settle(key, interlaced=picture.interlaced_frame))
                if tracker.gave_up(key):
                    continue
                lost = DAMAGED if picture.is_corrupt else None
                if picture.width * picture.height > self._max_pixels:
                    lost = TOO_LARGE
                yield Decoded(tracker.time_of(key), picture.duration, None if lost else picture, lost)
        yield from map(_lost, tracker.rest())
        if whole and not self.source.live and self.broken is None and not self._connection_state.stopped:
            self.broken = self._short_of_its_header(self._reached * self.info.time_base)

    def _from_zero(self, packets: Iterator[Packet]) -> Iterator[Packet]:
        for packet in packets:
            packet.pts = None if packet.pts is None else packet.pts - self.zero
            packet.dts = None if packet.dts is None else packet.dts - self.zero
            yield packet

    def _until_its_end(self, packets: Iterator[Packet]) -> Iterator[Packet]:
        """Packets of the picture's stream, then always the empty one that flushes the decoder."""
        while not self._connection_state.stopped:
            asked = monotonic()
            try:
                packet = next(packets)
            except (StopIteration, IndexError):  # PyAV's IndexError: a stream that appeared midway, at the very end
                return
            except av.error.FFmpegError as error:
                gone = "was lost" if self.source.live else "cannot be read to its end"
                timeout = isinstance(error, av.error.ExitError)
                self.broken = f"{gone} ({SILENT if timeout else (error.strerror or type(error).__name__).lower()})"
                break
            now = monotonic()
            if self.source.live and now - asked >= TIMEOUT_S:  # it waited for the end until the timeout
                self.broken = f"was lost ({SILENT})"
                break
            self._connection_state.arrived = now
            self.packets += bool(packet.size)
            if packet.pts is not None:
                self._reached = max(self._reached, packet.pts + (packet.duration or 0))
            yield packet
        empty: Packet = av.Packet()  # type: ignore[assignment]
        empty.stream = self._stream
        yield empty

    def _short_of_its_header(self, end: Fraction) -> str | None:
        """How a file ends before its header says, if it does. An edit list may leave fewer packets than counted."""
        declared, there, counted = self.info.declared, self.packets, self.info.frames
        if declared is None or end >= declared - Fraction(3, 2) / self.info.rate:
            return None
        if there >= counted > 0 and self.info.format != "avi":
            return None  # the picture ends before the sound
        end = max(end, reach(self.source) - self.info.origin)  # of all streams: this reads the file once more
        if end >= declared - (Fraction(3, 2) / self.info.rate if counted else 1):
            return None
        frames = f"{there} of {counted} frames" if counted else f"{float(end):.1f} of {float(declared):.1f} s"
        return f"ends early or is damaged: {frames} are there"

    def _seek(self, seconds: Fraction) -> None:
        """Seek to a key frame well before a time, if that is reliable; otherwise read from the beginning."""
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


def _lost(pending: PendingPacket) -> Decoded:
    return Decoded(None if pending.pts == NO_TIME else pending.pts, pending.duration, None, UNDECODABLE)
