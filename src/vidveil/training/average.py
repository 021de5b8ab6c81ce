"""The running average of weights (EMA): smoother than the last step's, and usually better on unseen data.

    d_n = min(ema, (1 + n) / (10 + n))          n = averages made before this one
    avg ← d_n · avg + (1 - d_n) · weights

The smaller d of the first steps lets the average forget the random start, which a short run would otherwise carry to
its end. Floating-point buffers are averaged, too, so that the statistics of a BatchNorm fit the averaged weights;
counters are copied.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class Average:
    """`live`: the model's own tensors, by name, which change in place as it learns."""

    def __init__(self, live: dict[str, Tensor], decay: float) -> None:
        self._live, self.decay, self.count = live, decay, 0
        self.state = {name: tensor.clone() for name, tensor in live.items()}
        smooth = [name for name, tensor in live.items() if tensor.is_floating_point()]
        self._smooth = [self.state[name] for name in smooth], [live[name] for name in smooth]
        rest = [name for name, tensor in live.items() if not tensor.is_floating_point()]
        self._rest = [self.state[name] for name in rest], [live[name] for name in rest]

    @torch.no_grad()
    def update(self) -> None:
        decay = min(self.decay, (1 + self.count) / (10 + self.count))
        torch._foreach_lerp_(*self._smooth, 1 - decay)
        for mine, live in zip(*self._rest, strict=True):
            mine.copy_(live)
        self.count += 1

    @torch.no_grad()
    def forget(self, parts: tuple[str, ...]) -> None:
        """Tensors whose names begin so start anew, from the model's own."""
        for name, tensor in self.state.items():
            if name.startswith(parts):
                tensor.copy_(self._live[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the averaged weights inside this block. Afterwards it has its own again, to the bit."""
        own = {name: tensor.clone() for name, tensor in self._live.items()}
        fill(self._live, self.state)
        try:
            yield
        finally:
            fill(self._live, own)


@torch.no_grad()
def fill(target: dict[str, Tensor], source: dict[str, Tensor]) -> None:
    """Copy into the tensors of `target` in place: their device and layout in memory stay."""
    for name, tensor in target.items():
        tensor.copy_(source[name])
