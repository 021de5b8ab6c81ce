"""A learned mask over a stream: frames wait until every window that covers them has decided.

Fails closed. A frame without a picture, a network that breaks, a frame that no window covers: black, with the reason.
Memory is bounded: no more than a window of frames waits, and the small pictures of two.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import Frame, Heat, SafeFrame
from vidveil.core.rotation import turn_of
from vidveil.methods.masking.windows import Grid, Window, hide_cells, small_picture, stored

if TYPE_CHECKING:
    from vidveil.methods.masking.masker import TubeletMasker


@dataclass(slots=True)
class Waiting:
    """A frame, and what the windows that are done say about it, as seen upright."""

    frame: Frame
    kept: Grid | None = None
    worth: NDArray[np.float32] | None = None
    failed: str | None = None

    def judge(self, kept: Grid, worth: NDArray[np.float32]) -> None:
        self.kept = kept if self.kept is None else self.kept & kept
        self.worth = worth if self.worth is None else np.minimum(self.worth, worth)


class Stretch:
    """Frames without a gap, each kept back until all windows that cover it have decided."""

    def __init__(self, masker: "TubeletMasker") -> None:
        self._masker, self._plan = masker, masker.plan
        self._waiting: deque[Waiting] = deque()
        self._seen: dict[int, NDArray[np.float32]] = {}  # what the network is shown, by the frame's number
        self._count = self._gone = self._next = 0  # frames that came, frames that left, start of the next window

    def take(self, frame: Frame) -> Iterator[SafeFrame]:
        self._waiting.append(waiting := Waiting(frame))
        # Of a stretch that may turn out short, any frame may be needed.
        if self._count < self._plan.span or self._count % self._plan.stride == 0:
            self._look(waiting)
        self._count += 1
        if self._count == self._next + self._plan.span:
            self._decide(self._plan.whole(self._next))
            self._seen = {number: seen for number, seen in self._seen.items() if number >= self._next}
            self._next += self._plan.hop
            yield from self._leave(self._next)

    def end(self) -> Iterator[SafeFrame]:
        if self._count and not self._next:
            self._decide(self._plan.short(self._count))
        elif self._count > self._next - self._plan.hop + self._plan.span:
            self._decide(self._plan.last(self._count, self._next))
        yield from self._leave(self._count)

    def _look(self, waiting: Waiting) -> None:
        frame, size = waiting.frame, self._masker.scorer.size
        before = next(reversed(self._seen.values()), None)
        self._seen[self._count] = np.zeros((3, size, size), np.float32) if before is None else before
        if frame.picture is None:
            return  # black anyway; to the network the picture before it stands still
        try:
            self._seen[self._count] = small_picture(frame, size)
        except Exception as error:  # whatever it was: this frame must not pass
            waiting.failed = f"could not be looked at ({type(error).__name__})"

    def _decide(self, window: Window) -> None:
        import torch

        covered = range(max(self._gone, window.spans[0][0]), self._count)
        try:
            clip = np.stack([self._seen[number] for number in window.samples], 1)  # (3, frames, size, size)
            decision = self._masker.ask(torch.from_numpy(clip)[None])
            kept = decision.kept[0].cpu().numpy()  # (L, h, w)
            worth = worth_of(decision.scores[0].float().cpu().numpy())
        except Exception as error:  # whatever it was: these frames must not pass
            for number in covered:
                self._waiting[number - self._gone].failed = f"could not be anonymized ({type(error).__name__})"
            return
        for layer, (begin, end) in enumerate(window.spans):
            for number in range(begin, end):
                self._waiting[number - self._gone].judge(kept[layer], worth[layer])

    def _leave(self, until: int) -> Iterator[SafeFrame]:
        while self._gone < until:
            self._gone += 1
            yield self._painted(self._waiting.popleft())

    def _painted(self, waiting: Waiting) -> SafeFrame:
        frame = waiting.frame
        if isinstance(frame, SafeFrame) and frame.hidden is not None:
            return frame  # black already, from an earlier stage
        if frame.picture is None:
            return frame.black(frame.lost or "had no picture")
        if waiting.failed is not None or waiting.kept is None or waiting.worth is None:
            return frame.black(waiting.failed or "was not looked at")
        try:
            turn = turn_of(frame)
            under = frame if isinstance(frame, SafeFrame) and self._masker.after is not None else None
            heat = Heat(stored(waiting.kept, turn), stored(waiting.worth, turn), under)
            safe = hide_cells(frame, heat.kept, self._masker.fill)
            safe.heat = heat  # of several masks in a chain the last one's is told
            return safe
        except Exception as error:
            return frame.black(f"could not be anonymized ({type(error).__name__})")


def worth_of(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """The share of scores that are lower than each one."""
    lower = np.searchsorted(np.sort(scores, axis=None), scores)
    return (lower / max(1, scores.size - 1)).astype(np.float32)
