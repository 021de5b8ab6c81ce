"""When torch compiles a model: at once if asked to, else where enough time is left to gain by it.

Compiling takes about 30 seconds on an H200 and saves about a third of each step. How long steps take is known once some
were taken, so compiling begins in the middle of a training.
"""

from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

SETTLED = 50, 75
"""Steps between which it is measured how long one takes."""
PAYS = 100.0
"""Seconds of training that must be left."""


@runtime_checkable
class CompilesParts(Protocol):
    """A model that knows which of its parts are worth compiling: blocks that it repeats are compiled once."""

    parts_are_compiled: bool
    """False at first."""

    def compile_parts(self) -> None: ...


def compiled_in_training(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled where gradients are computed, for any number of tokens. Validation calls it as it is: to compile that,
    too, takes longer than it saves."""
    fast = torch.compile(function, dynamic=True)

    def call(*arguments: Any) -> Any:
        return (fast if torch.is_grad_enabled() else function)(*arguments)

    return call


class Compiling:
    def __init__(self, model: nn.Module, choice: bool | None, device: torch.device) -> None:
        """`choice`: None leaves it to time, for a model that compiles its parts, on CUDA."""
        self._model = model
        done = getattr(model, "parts_are_compiled", False)  # in an earlier phase
        self._at_once = bool(choice) and not done
        self._undecided = choice is None and not done and device.type == "cuda" and isinstance(model, CompilesParts)
        self._steps, self._began = 0, 0.0

    def begin(self) -> Any:
        """The model, compiled if it is to be from the first step on."""
        if not self._at_once:
            return self._model
        return self._model if self._compile_parts() else torch.compile(self._model)

    def _compile_parts(self) -> bool:
        if not isinstance(self._model, CompilesParts):
            return False
        self._model.compile_parts()
        self._model.parts_are_compiled = True
        return True

    def before_step(self, left: int) -> bool:
        """Whether the model is compiled now, with so many steps left."""
        self._steps += 1
        if not self._undecided or self._steps not in SETTLED:
            return False
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if self._steps == SETTLED[0]:
            self._began = monotonic()
            return False
        self._undecided = False
        seconds = (monotonic() - self._began) / (SETTLED[1] - SETTLED[0])
        return seconds * left >= PAYS and self._compile_parts()
