"""What is different about cameras and streams: they are joined midway, break off, come back, and have no end.

Time in the file goes on while a source is away. Its clock may start anywhere when it is back, so the first frame after
an outage is placed by this machine's clock, and those after it by the source's.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from time import monotonic
from typing import NamedTuple, TypeAlias, TypeVar

import av
from av.video.frame import PictureType, VideoFrame

from vidveil.core.errors import InputError
from vidveil.video.ledger import Clock

T = TypeVar("T")
Packet: TypeAlias = "av.Packet[av.VideoStream]"

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 5.0)  # before each try to reach a source again, and the last one for ever
WAITED_S = 0.005  # a packet that took longer was waited for; one that took less had been there
BACKLOG_S = 1.0  # a source that is still ahead after this long does not send at the speed of life


class Line:
    """The line to a source that may go dead: when it was last heard, and for how long it is tried again."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        """Seconds after which a silent source is given up."""
        self.heard: float | None = None
        """When the last packet came that pictures were made of; None before the first."""
        self.arrived = 0.0
        """When the last packet came, whether or not it was of use."""
        self._stop = threading.Event()

    def stop(self) -> None:
        """Nothing more is wanted. May be called from any thread, and by a signal."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def redial(self, dial: Callable[[], T], until: float) -> T | None:
        """What `dial` gives, tried with growing pauses; None if the source is not there at `until`, or on `stop`."""
        for pause in chain(PAUSES_S, repeat(PAUSES_S[-1])):
            left = until - monotonic()
            if left <= 0 or self._stop.wait(min(pause, left)):
                break
            with suppress(InputError):
                return dial()
        return None


class Sighting(NamedTuple):
    """A moment at which both clocks are known."""

    pts: int | None
    """On the source's clock; None if it has none."""
    at: float
    """On this machine's."""


def backlog_first(packets: Iterator[Packet], sighted: Callable[[Sighting], None], step: int) -> Iterator[Packet]:
    """All packets; before the first, `sighted` is told when they came.

    While a stream is being opened, packets pile up. They say nothing of when they came, so they are all taken out until
    one has to be waited for. That one is new; of several, the one that was least late counts.
    """
    backlog: list[Packet] = []
    ages: list[tuple[float, Sighting]] = []
    failure: Exception | None = None
    begun = asked = monotonic()
    try:
        while asked - begun < BACKLOG_S:
            packet = next(packets)
            now = monotonic()
            backlog.append(packet)
            if packet.pts is not None and packet.time_base:
                ages.append((now - float(packet.pts * packet.time_base), Sighting(packet.pts, now)))
            if ages and now - asked > WAITED_S:
                break
            asked = now
    except StopIteration:
        pass
    except (av.error.FFmpegError, IndexError) as error:
        failure = error  # after what came before it
    sighted(min(ages)[1] if ages else Sighting(None, begun))
    _date(backlog, step)
    yield from backlog
    if failure is not None:
        raise failure
    yield from packets


def _date(packets: list[Packet], step: int) -> None:
    """Give times to the first packets, which RTSP has none for until the server has told how its clocks relate."""
    first = next((i for i, packet in enumerate(packets) if packet.pts is not None), 0)
    for i, packet in enumerate(packets[:first]):
        if packet.size:
            packet.pts = packet.dts = (packets[first].pts or 0) - (first - i) * step


class LiveClock(Clock):
    """A clock that can go on where it was, when a source is back with another one."""

    def resume(self, pts: int | None, ticks: int) -> None:
        """From now on `pts` is shown `ticks` after the last frame."""
        at = self.now + min(max(ticks, self.step), self._far)
        if pts is None:
            self._last = at - self.step  # the next time is one step on
        else:
            self._offset = at - pts


def whole_from_here(picture: VideoFrame | None, codec: str) -> bool:
    """Whether this picture and those after it are whole, in a stream that was joined midway.

    Most decoders fill in what they miss with grey until a picture comes that was made without others. That of H.264
    knows better: it gives nothing before, and there are streams renewed stripe by stripe, without any such picture.
    """
    return picture is not None and (codec == "h264" or picture.key_frame or picture.pict_type == PictureType.I)


def whole_packets(packets: Iterator[Packet], codec: str, extradata: bytes | None) -> Iterator[Packet]:
    """All but the first and the last, where those may have been cut off midway.

    Some decoders make half a picture of half a packet without a word. Nobody can tell whether the last packet before an
    outage is whole: each is held back until the next is there.
    """
    joining, held = True, None
    for packet in packets:
        if not packet.size:  # the one that empties the decoder
            yield packet
            return
        joining = joining and begins_midway(packet, codec, extradata)
        if joining:
            continue
        if held is not None:
            yield held
        held = packet


SLICES = {"h264": frozenset({1, 2, 5}), "hevc": frozenset(range(32))}  # units that hold a piece of a picture, by type


def begins_midway(packet: Packet, codec: str, extradata: bytes | None) -> bool:
    """Whether the first piece of a picture is missing. A decoder would make up what it showed, and call it whole.

    H.264 and HEVC can cut a picture into slices, each sent by itself. The header of the first begins with a set bit.
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


@contextmanager
def interrupts_as(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM call `stop`, where they would raise in the middle of a write. The second time they raise."""

    def handle(number: int, _: object) -> None:
        signal.signal(number, signal.default_int_handler)
        stop()

    numbers: list[int] = []
    if threading.current_thread() is threading.main_thread():  # no other may set handlers, nor is interrupted
        numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is signal.default_int_handler]
    for number in numbers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.default_int_handler)
