"""Cameras and streams: they are joined midway, break off, come back, and have no end.

Time in the file continues during an outage. The source's clock may start anywhere when it is back, so the first frame
after an outage is placed by this machine's clock, and those after it by the source's.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, repeat
from time import monotonic
from typing import NamedTuple, TypeAlias, TypeVar

import av
from av.video.frame import PictureType, VideoFrame

from vidveil.core.errors import InputError
from vidveil.video.packet_tracker import Clock

T = TypeVar("T")
Packet: TypeAlias = "av.Packet[av.VideoStream]"

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 5.0)  # before each attempt to reconnect; the last one repeats
WAITED_S = 0.005  # a packet that took longer is new; one that took less was buffered
BACKLOG_S = 1.0  # a source that is ahead for longer does not send in real time


class ConnectionState:
    """The state of a connection that may break off: when data last came, and how long to reconnect."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        """Seconds after which a silent source is given up."""
        self.heard: float | None = None
        """When the last packet came that gave pictures; None before the first."""
        self.arrived = 0.0
        """When the last packet came, with or without pictures."""
        self._stop = threading.Event()

    def stop(self) -> None:
        """End the recording. May be called from any thread, and by a signal handler."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def reconnect(self, connect: Callable[[], T], until: float) -> T | None:
        """The result of `connect`, tried with growing pauses; None if it still fails at `until`, or on `stop`."""
        for pause in chain(PAUSES_S, repeat(PAUSES_S[-1])):
            left = until - monotonic()
            if left <= 0 or self._stop.wait(min(pause, left)):
                break
            with suppress(InputError):
                return connect()
        return None


class ClockReading(NamedTuple):
    """A time on both clocks."""

    pts: int | None
    """On the source's clock; None if it has none."""
    at: float
    """On this machine's."""


def backlog_first(packets: Iterator[Packet], sighted: Callable[[ClockReading], None], step: int) -> Iterator[Packet]:
    """All packets; before the first, `sighted` is called with a time on both clocks.

    While a stream is opened, packets are buffered, and their arrival times are unknown. So they are read until one has
    to be waited for. That one is new; of several, the one with the smallest delay counts.
    """
    backlog: list[Packet] = []
    ages: list[tuple[float, ClockReading]] = []
    failure: Exception | None = None
    begun = asked = monotonic()
    try:
        while asked - begun < BACKLOG_S:
            packet = next(packets)
            now = monotonic()
            backlog.append(packet)
            if packet.pts is not None and packet.time_base:
                ages.append((now - float(packet.pts * packet.time_base), ClockReading(packet.pts, now)))
            if ages and now - asked > WAITED_S:
                break
            asked = now
    except StopIteration:
        pass
    except (av.error.FFmpegError, IndexError) as error:
        failure = error  # raised after the packets before it
    sighted(min(ages)[1] if ages else ClockReading(None, begun))
    _date(backlog, step)
    yield from backlog
    if failure is not None:
        raise failure
    yield from packets


def _date(packets: list[Packet], step: int) -> None:
    """Set the times of the first packets, which RTSP has only after the server has reported how its clocks relate."""
    first = next((i for i, packet in enumerate(packets) if packet.pts is not None), 0)
    for i, packet in enumerate(packets[:first]):
        if packet.size:
            packet.pts = packet.dts = (packets[first].pts or 0) - (first - i) * step


class LiveClock(Clock):
    """A clock that continues when a source is back with another clock."""

    def resume(self, pts: int | None, ticks: int) -> None:
        """Show `pts` `ticks` after the last frame, and later timestamps accordingly."""
        at = self.now + min(max(ticks, self.step), self._far)
        if pts is None:
            self._last = at - self.step  # the next frame is one step later
        else:
            self._offset = at - pts


def whole_from_here(picture: VideoFrame | None, codec: str) -> bool:
    """Whether this picture and those after it are whole, in a stream that was joined midway.

    Most decoders fill in missing references with grey until an intra picture comes. The H.264 decoder returns nothing
    before that, and there are streams that refresh stripe by stripe, without any intra picture.
    """
    return picture is not None and (codec == "h264" or picture.key_frame or picture.pict_type == PictureType.I)


def whole_packets(packets: Iterator[Packet], codec: str, extradata: bytes | None) -> Iterator[Packet]:
    """All packets but the first and the last, which may be incomplete.

    Some decoders return half a picture for half a packet without an error. Whether the last packet before an outage is
    complete is unknown, so each is held back until the next one comes.
    """
    joining, held = True, None
    for packet in packets:
        if not packet.size:  # the one that flushes the decoder
            yield packet
            return
        joining = joining and begins_midway(packet, codec, extradata)
        if joining:
            continue
        if held is not None:
            yield held
        held = packet


SLICES = {"h264": frozenset({1, 2, 5}), "hevc": frozenset(range(32))}  # types of units with a slice of a picture


def begins_midway(packet: Packet, codec: str, extradata: bytes | None) -> bool:
    """Whether the first slice of a picture is missing. A decoder would fill it in without reporting it.

    H.264 and HEVC can split a picture into slices, sent one by one. The header of the first begins with a set bit.
    """
    if codec not in SLICES or (extradata or b"").startswith(b"\1"):  # as in MP4, where packets are whole
        return False
    data = bytes(packet)
    at = data.find(b"\0\0\1") + 3
    while 3 <= at < len(data) - 2:
        kind, header = (data[at] & 31, 1) if codec == "h264" else (data[at] >> 1 & 63, 2)
        if kind in SLICES[codec]:
            return not data[at + header] & 0x80
        at = data.find(b"\0\0\1", at) + 3
    return True
