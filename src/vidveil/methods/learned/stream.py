"""A learned mask over a stream: frames wait until every window that covers them is decided.

Fails closed. A frame without a picture, an error in the network, a frame that no window covers: black, with the reason.
Memory is bounded: at most one window of frames waits, with the network inputs of two.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import CellScores, Frame, SafeFrame
from vidveil.core.rotation import turn_of
from vidveil.methods.learned.windows import Grid, Window, hide_cells, small_picture, stored

if TYPE_CHECKING:
    from torch import Tensor

    from vidveil.methods.masking.masker import Decision, TubeletMasker


@dataclass(slots=True)
class PendingFrame:
    """A frame, and the decision of its windows so far, for the upright picture."""

    frame: Frame
    kept: Grid | None = None
    ranks: NDArray[np.float32] | None = None
    failed: str | None = None

    def combine(self, kept: Grid, ranks: NDArray[np.float32]) -> None:
        self.kept = kept if self.kept is None else self.kept & kept
        self.ranks = ranks if self.ranks is None else np.minimum(self.ranks, ranks)


class StreamSegment:
    """Frames without a gap, each held until all windows that cover it are decided."""

    def __init__(self, masker: "TubeletMasker") -> None:
        self._masker, self._plan = masker, masker.plan
        self._waiting: deque[PendingFrame] = deque()
        self._inputs: dict[int, NDArray[np.float32]] = {}  # of the network, (3, size, size), by the frame's number
        self._count = self._done = self._next = 0  # frames received, frames yielded, start of the next window

    def take(self, frame: Frame) -> Iterator[SafeFrame]:
        self._waiting.append(waiting := PendingFrame(frame))
        # If the stretch turns out to be short, any frame may be needed.
        if self._count < self._plan.span or self._count % self._plan.stride == 0:
            self._add_input(waiting)
        self._count += 1
        if self._count == self._next + self._plan.span:
            self._decide(self._plan.whole(self._next))
            self._inputs = {number: picture for number, picture in self._inputs.items() if number >= self._next}
            self._next += self._plan.hop
            yield from self._yield_until(self._next)

    def end(self) -> Iterator[SafeFrame]:
        if self._count and not self._next:
            self._decide(self._plan.short(self._count))
        elif self._count > self._next - self._plan.hop + self._plan.span:
            self._decide(self._plan.last(self._count, self._next))
        yield from self._yield_until(self._count)

    def _add_input(self, waiting: PendingFrame) -> None:
        frame, size = waiting.frame, self._masker.scorer.size
        before = next(reversed(self._inputs.values()), None)
        self._inputs[self._count] = np.zeros((3, size, size), np.float32) if before is None else before
        if frame.picture is None:
            return  # black anyway; the network sees the picture before it again
        try:
            self._inputs[self._count] = small_picture(frame, size)
        except Exception as error:  # of any kind: this frame must not be shown
            waiting.failed = f"could not be looked at ({type(error).__name__})"

    def _decide(self, window: Window) -> None:
        import torch

        covered = range(max(self._done, window.spans[0][0]), self._count)
        try:
            clip = np.stack([self._inputs[number] for number in window.samples], 1)  # (3, frames, size, size)
            decision = self._ask(torch.from_numpy(clip)[None], window)
            kept = decision.kept[0].cpu().numpy()  # (L, h, w)
            ranks = score_ranks(decision.scores[0].float().cpu().numpy())
        except Exception as error:  # of any kind: these frames must not be shown
            for number in covered:
                self._waiting[number - self._done].failed = f"could not be anonymized ({type(error).__name__})"
            return
        for layer, (begin, end) in enumerate(window.spans):
            for number in range(begin, end):
                self._waiting[number - self._done].combine(kept[layer], ranks[layer])

    def _ask(self, clip: "Tensor", window: Window) -> "Decision":  # noqa: ARG002
        return self._masker.ask(clip)

    def _yield_until(self, until: int) -> Iterator[SafeFrame]:
        while self._done < until:
            self._done += 1
            yield self._paint(self._waiting.popleft())

    def _paint(self, waiting: PendingFrame) -> SafeFrame:
        frame = waiting.frame
        if isinstance(frame, SafeFrame) and frame.hidden is not None:
            return self._already_black(frame, frame.hidden)
        if frame.picture is None:
            return self._black(frame, frame.lost or "had no picture")
        if waiting.failed is not None or waiting.kept is None or waiting.ranks is None:
            return self._black(frame, waiting.failed or "was not looked at")
        try:
            turn = turn_of(frame)
            under = frame if isinstance(frame, SafeFrame) and self._masker.preprocess is not None else None
            heat = CellScores(stored(waiting.kept, turn), stored(waiting.ranks, turn), under)
            safe = self._shown(frame, heat, waiting.kept)
            safe.heat = heat  # of several masks in a chain the last one's is kept
            return safe
        except Exception as error:
            return self._black(frame, f"could not be anonymized ({type(error).__name__})")

    def _shown(self, frame: Frame, heat: CellScores, upright: Grid) -> SafeFrame:  # noqa: ARG002
        """The frame without its hidden cells; `upright` are the kept ones of the upright picture."""
        return hide_cells(frame, heat.kept, self._masker.fill)

    def _already_black(self, frame: SafeFrame, why: str) -> SafeFrame:  # noqa: ARG002
        """A frame that an earlier stage made black."""
        return frame

    def _black(self, frame: Frame, why: str) -> SafeFrame:
        return frame.black(why)


def score_ranks(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """For each score, the share of scores that are lower."""
    lower = np.searchsorted(np.sort(scores, axis=None), scores)
    return (lower / max(1, scores.size - 1)).astype(np.float32)
