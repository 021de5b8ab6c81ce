"""Which packets gave a picture, and when each picture is shown."""

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import av

MAX_GAP_S = 6 * 3600  # a later jump is a broken clock, not a pause
JITTER_FRAMES = 2  # smaller steps back are jitter, larger ones a clock that was reset
EPOCH = 1 << 44  # ticks: half a year at the finest clock in use, and room for half a million epochs
IN_ORDER_FORMATS = frozenset({"avi", "rm"})
"""Containers that number frames, without the order in which they are shown."""


@dataclass(slots=True)
class PendingPacket:
    """A packet that was sent to the decoder and should give a picture."""

    number: int
    pts: int
    duration: int
    shown: bool = False


class PacketTracker:
    """Which packets have given a picture, and which never will because a later picture is out already.

    A picture has the timestamp of its packet. Where the source's clock is set back, which happens when recordings are
    joined, timestamps repeat: from then on an epoch is added before packets go to the decoder.
    """

    def __init__(self, codec: str, step: int, rate: Fraction) -> None:
        self._due = _Due(codec)
        self._open: list[tuple[int, int, PendingPacket]] = []  # heap in order of display
        self._of_key: dict[int, deque[PendingPacket]] = {}
        self._given_up: deque[int] = deque(maxlen=256)
        self._fields = _Fields(step, rate)
        self._number = self._epoch = 0
        self._last_dts: int | None = None

    def enter(self, packet: "av.Packet[av.VideoStream]") -> None:
        """Register a packet before it is decoded."""
        self._number += 1
        if packet.dts is not None:
            self._epoch += self._last_dts is not None and packet.dts < self._last_dts
            self._last_dts = packet.dts
        if any(time is not None and abs(time) >= EPOCH // 2 for time in (packet.pts, packet.dts)):
            packet.pts = packet.dts = None  # no valid clock value
        if packet.pts is None or packet.is_discard or not self._due(packet):
            return
        pending = PendingPacket(self._number, packet.pts, packet.duration or 0)
        packet.pts += self._epoch * EPOCH
        if packet.dts is not None:
            packet.dts += self._epoch * EPOCH
        heapq.heappush(self._open, (packet.pts, pending.number, pending))
        self._of_key.setdefault(packet.pts, deque()).append(pending)

    def failed(self, packet: "av.Packet[av.VideoStream]") -> Iterator[PendingPacket]:
        """What is lost when the decoder refuses a packet: reported later, by its time, unless it has none."""
        if packet.pts is None and packet.size:
            yield PendingPacket(self._number, NO_TIME, packet.duration or 0)

    def settle(self, key: int | None, *, interlaced: bool) -> Iterator[PendingPacket]:
        """Register the picture of the packet sent with this timestamp; yield the lost packets before it."""
        if key is None:
            return
        waiting = self._of_key.get(key)
        if waiting:
            pending = waiting.popleft()
            pending.shown = True
            if interlaced:
                self._fields.first(pending)
        while self._open and (self._open[0][0] < key or self._open[0][2].shown):
            before, _, found = heapq.heappop(self._open)
            if not self._of_key.get(before):
                self._of_key.pop(before, None)
            if self._is_lost(found):
                self._of_key.pop(before, None)
                self._given_up.append(before)
                yield found

    def time_of(self, key: int | None) -> int | None:
        """When the picture with this timestamp is shown, on the source's clock."""
        return None if key is None else (key + EPOCH // 2) % EPOCH - EPOCH // 2

    def gave_up(self, key: int | None) -> bool:
        """Whether this picture comes too late: it was reported as lost."""
        return key in self._given_up

    def rest(self) -> Iterator[PendingPacket]:
        for _, _, pending in sorted(self._open, key=lambda entry: entry[:2]):
            if self._is_lost(pending):
                yield pending

    def _is_lost(self, pending: PendingPacket) -> bool:
        return not self._fields.second(pending) and not pending.shown


class InOrderPacketTracker(PacketTracker):
    """For containers without presentation times: each picture takes the next time, as in players."""

    def __init__(self, codec: str, step: int, rate: Fraction) -> None:
        super().__init__(codec, step, rate)
        self._slots: list[tuple[int, int]] = []  # heap of (time, duration)
        self._failures = 0

    def enter(self, packet: "av.Packet[av.VideoStream]") -> None:
        time = packet.dts if packet.dts is not None else packet.pts
        if time is not None and abs(time) < EPOCH // 2 and not packet.is_discard and self._due(packet):
            heapq.heappush(self._slots, (time, packet.duration or 0))

    def failed(self, packet: "av.Packet[av.VideoStream]") -> Iterator[PendingPacket]:
        self._failures += bool(packet.size)
        if packet.size:
            yield self._next_slot()

    def settle(self, key: int | None, *, interlaced: bool) -> Iterator[PendingPacket]:  # noqa: ARG002
        return iter(())

    def time_of(self, key: int | None) -> int | None:  # noqa: ARG002
        return self._next_slot().pts if self._slots else None

    def rest(self) -> Iterator[PendingPacket]:
        while self._slots and self._failures:  # without a failure, remaining slots were never pictures
            yield self._next_slot()

    def _next_slot(self) -> PendingPacket:
        time, duration = heapq.heappop(self._slots) if self._slots else (NO_TIME, 0)
        return PendingPacket(0, time, duration)


NO_TIME = 1 << 62
"""In place of a missing timestamp; the clock then takes the next step."""


class _Due:
    """Whether a packet should give a picture. Some are for the decoder alone, or repeat the last picture."""

    def __init__(self, codec: str) -> None:
        self._codec = codec
        self._packed = 0

    def __call__(self, packet: "av.Packet[av.VideoStream]") -> bool:
        if not packet.size:
            return False
        if self._codec.startswith("vp8"):
            return bool(bytes(packet)[0] & 0x10)  # reference frames are never shown
        if self._codec == "mpeg4":
            return self._due_in_mpeg4(packet)
        return True

    def _due_in_mpeg4(self, packet: "av.Packet[av.VideoStream]") -> bool:
        # Old files pack two pictures into one packet, followed by an empty one that keeps the count.
        self._packed += max(0, bytes(packet).count(b"\0\0\1\xb6") - 1)
        if packet.size > 7:
            return True
        if self._packed:
            self._packed -= 1
            return True
        return False  # "not coded": the last picture stays


class _Fields:
    """Interlaced sources with a packet per field: the second one gives no picture, and must not count as lost."""

    def __init__(self, step: int, rate: Fraction) -> None:
        self._near = step if rate > 45 else step * 0.75  # a rate of 50 or 60 may count fields
        self._firsts: deque[PendingPacket] = deque(maxlen=64)
        self._seen = self._without_picture = 0

    def first(self, pending: PendingPacket) -> None:
        self._firsts.append(pending)

    def second(self, pending: PendingPacket) -> bool:
        self._seen += 1
        self._without_picture += not pending.shown
        if pending.shown or self._without_picture < 0.35 * self._seen:  # in such a source, every other has none
            return False
        return any(t.number == pending.number - 1 and 0 <= pending.pts - t.pts <= self._near for t in self._firsts)


class Clock:
    """Turns the timestamps of a source into strictly increasing ones."""

    def __init__(self, time_base: Fraction, rate: Fraction) -> None:
        self.step = max(1, round(1 / (rate * time_base)))
        self.corrected = 0
        """Timestamps that were changed."""
        self._last: int | None = None
        self._offset = 0
        self._far = min(int(MAX_GAP_S / time_base), 1 << 28)  # MP4 has 32 bits for a few gaps together
        self._back = JITTER_FRAMES * self.step

    @property
    def now(self) -> int:
        return self._last or 0

    def next(self, pts: int | None, duration: int) -> int:
        pts = None if pts == NO_TIME else pts
        last, step = self._last, duration or self.step
        if last is None:
            found = 0 if pts is None or abs(pts) > 1 << 40 else pts
            self._offset = found - (found if pts is None else pts)
        elif pts is None:
            found = last + step
        else:
            found = pts + self._offset
            if found < last - self._back or found > last + self._far:
                self._offset += last + step - found
                found = last + step
                self.corrected += 1
            elif found <= last:
                found = last + 1
                self.corrected += 1
        self._last = found
        return found
