"""Bookkeeping of a decoder: which packets gave a picture, and when each picture is to be shown."""

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import av

MAX_GAP_S = 6 * 3600  # a later jump is a broken clock, not a pause
JITTER_FRAMES = 2  # smaller steps back are jitter, larger ones a clock that was set anew
EPOCH = 1 << 44  # ticks: half a year at the finest clock in use, and room for half a million epochs


def pts_of(key: int | None) -> int | None:
    """The source's timestamp in a key of the ledger."""
    return None if key is None else (key + EPOCH // 2) % EPOCH - EPOCH // 2


@dataclass(slots=True)
class Ticket:
    """A packet that went into the decoder, and has not given a picture yet."""

    number: int
    pts: int
    duration: int
    shown: bool = False


class Ledger:
    """Which packets have given a picture, and which never will because a later picture is out already.

    A picture bears the timestamp of its packet. Where the source's clock is set back, which happens when recordings are
    joined, the same timestamps come again: from then on packets are sent through the decoder one epoch later.
    """

    def __init__(self) -> None:
        self._open: list[tuple[int, int, Ticket]] = []  # heap in order of display
        self._of_key: dict[int, deque[Ticket]] = {}
        self._given_up: deque[int] = deque(maxlen=256)
        self._fields: deque[int] = deque(maxlen=64)
        self._number = self._epoch = 0
        self._last_dts: int | None = None

    def enter(self, packet: "av.Packet[av.VideoStream]") -> None:
        self._number += 1
        if packet.dts is not None:
            self._epoch += self._last_dts is not None and packet.dts < self._last_dts
            self._last_dts = packet.dts
        if any(time is not None and abs(time) >= EPOCH // 2 for time in (packet.pts, packet.dts)):
            packet.pts = packet.dts = None  # no clock shows that
        if packet.pts is None or not packet.size or packet.is_discard:
            return
        ticket = Ticket(self._number, packet.pts, packet.duration or 0)
        packet.pts += self._epoch * EPOCH
        if packet.dts is not None:
            packet.dts += self._epoch * EPOCH
        heapq.heappush(self._open, (packet.pts, ticket.number, ticket))
        self._of_key.setdefault(packet.pts, deque()).append(ticket)

    def settle(self, key: int | None, *, interlaced: bool) -> Iterator[Ticket]:
        """Note that the packet sent with this timestamp has its picture; give those before it that are lost."""
        if key is None:
            return
        waiting = self._of_key.get(key)
        if waiting:
            ticket = waiting.popleft()
            ticket.shown = True
            if interlaced:
                self._fields.append(ticket.number)
        while self._open and (self._open[0][0] < key or self._open[0][2].shown):
            before, _, found = heapq.heappop(self._open)
            if not self._of_key.get(before):
                self._of_key.pop(before, None)
            if self._is_lost(found):
                self._of_key.pop(before, None)
                self._given_up.append(before)
                yield found

    def gave_up(self, key: int | None) -> bool:
        """Whether this picture comes after a black one took its place."""
        return key in self._given_up

    def rest(self) -> Iterator[Ticket]:
        for _, _, ticket in sorted(self._open, key=lambda entry: entry[:2]):
            if self._is_lost(ticket):
                yield ticket

    def _is_lost(self, ticket: Ticket) -> bool:
        # The second field of an interlaced picture may be a packet of its own, right after the first: no picture lost.
        return not ticket.shown and ticket.number - 1 not in self._fields


class Clock:
    """Turns timestamps as found into timestamps that strictly increase."""

    def __init__(self, time_base: Fraction, rate: Fraction) -> None:
        self.step = max(1, round(1 / (rate * time_base)))
        self.mended = 0
        self._last: int | None = None
        self._offset = 0
        self._far = min(int(MAX_GAP_S / time_base), 1 << 28)  # MP4 has 32 bits for a few gaps together
        self._back = JITTER_FRAMES * self.step

    @property
    def now(self) -> int:
        return self._last or 0

    def next(self, pts: int | None, duration: int) -> int:
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
                self.mended += 1
            elif found <= last:
                found = last + 1
                self.mended += 1
        self._last = found
        return found
