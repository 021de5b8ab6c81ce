"""A learned method over a stream: frames wait until every window that covers them is decided.

Fails closed. A frame without a picture, an error in the network, a frame that no window covers: black, with the reason.
Memory is bounded: at most one window of frames waits, with the network inputs of two.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import Frame, SafeFrame
from vidveil.methods.learned.windows import Window, small_picture

if TYPE_CHECKING:
    from torch import Tensor

    from vidveil.methods.learned.anonymizer import LearnedAnonymizer

Result = TypeVar("Result")
"""What a window says about a frame."""


@dataclass(slots=True)
class PendingFrame(Generic[Result]):
    frame: Frame
    result: Result | None = None
    """Of its windows so far."""
    failed: str | None = None


class StreamSegment(ABC, Generic[Result]):
    """Frames without a gap, each held until all windows that cover it are decided."""

    def __init__(self, method: "LearnedAnonymizer") -> None:
        self._size, self._plan = method.network.size, method.plan
        self._waiting: deque[PendingFrame[Result]] = deque()
        self._inputs: dict[int, NDArray[np.float32]] = {}  # of the network, (3, size, size), by the frame's number
        self._latest = np.zeros((3, self._size, self._size), np.float32)
        self._count = self._done = self._next = 0  # frames received, frames yielded, start of the next window

    @abstractmethod
    def results(self, clip: "Tensor", window: Window) -> Iterable[tuple[int, Result]]:
        """What the network says about each frame that a window decides, by the frame's number. `clip` is the network's
        input, (1, 3, frames, size, size) on the processor. It may raise: the frames are then black."""

    @abstractmethod
    def combined(self, first: Result, second: Result) -> Result:
        """What two windows say about a frame."""

    @abstractmethod
    def shown(self, frame: Frame, result: Result) -> SafeFrame:
        """The frame with a picture, anonymized. It may raise: the frame is then black."""

    def take(self, frame: Frame) -> Iterator[SafeFrame]:
        waiting: PendingFrame[Result] = PendingFrame(frame)
        self._waiting.append(waiting)
        # If the stretch turns out to be short, any frame may be needed.
        if self._count < self._plan.span or self._count % self._plan.stride == 0:
            self._add_input(waiting)
        self._count += 1
        if self._count == self._next + self._plan.span:
            self._decide(self._plan.whole(self._next))
            # the last window may begin after this one, and before the next
            self._inputs = {number: picture for number, picture in self._inputs.items() if number >= self._next}
            self._next += self._plan.hop
            yield from self._yield_until(self._next)

    def end(self) -> Iterator[SafeFrame]:
        if self._count and not self._next:
            self._decide(self._plan.short(self._count))
        elif self._count > self._next - self._plan.hop + self._plan.span:
            self._decide(self._plan.last(self._count, self._next))
        yield from self._yield_until(self._count)

    def _add_input(self, waiting: PendingFrame[Result]) -> None:
        try:
            if waiting.frame.picture is not None:  # else black anyway; the network sees the picture before it again
                self._latest = small_picture(waiting.frame, self._size)
        except Exception as error:  # of any kind: this frame must not be shown
            waiting.failed = f"could not be looked at ({type(error).__name__})"
        self._inputs[self._count] = self._latest

    def _decide(self, window: Window) -> None:
        import torch

        covered = range(max(self._done, window.spans[0][0]), self._count)
        try:
            clip = np.stack([self._inputs[number] for number in window.samples], 1)  # (3, frames, size, size)
            results = list(self.results(torch.from_numpy(clip)[None], window))
        except Exception as error:  # of any kind: these frames must not be shown
            for number in covered:
                self._waiting[number - self._done].failed = f"could not be anonymized ({type(error).__name__})"
            return
        for number, result in results:
            waiting = self._waiting[number - self._done]
            waiting.result = result if waiting.result is None else self.combined(waiting.result, result)

    def _yield_until(self, until: int) -> Iterator[SafeFrame]:
        while self._done < until:
            self._done += 1
            yield self._finished(self._waiting.popleft())

    def _finished(self, waiting: PendingFrame[Result]) -> SafeFrame:
        frame = waiting.frame
        if isinstance(frame, SafeFrame) and frame.hidden is not None:
            return self.already_black(frame, frame.hidden)
        if frame.picture is None:
            return self.black(frame, frame.lost or "had no picture")
        if waiting.failed is not None or waiting.result is None:
            return self.black(frame, waiting.failed or "was not looked at")
        try:
            return self.shown(frame, waiting.result)
        except Exception as error:
            return self.black(frame, f"could not be anonymized ({type(error).__name__})")

    def already_black(self, frame: SafeFrame, why: str) -> SafeFrame:  # noqa: ARG002
        """A frame that an earlier stage made black."""
        return frame

    def black(self, frame: Frame, why: str) -> SafeFrame:
        return frame.black(why)
