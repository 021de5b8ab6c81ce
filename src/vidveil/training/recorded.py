"""Steps of training as CUDA graphs: an accelerator gets all kernels of a step at once.

A step of a small network is thousands of kernels. The host launches each of them in about 10 µs, and meanwhile the
accelerator waits. A step is run as usual when a batch of its kind comes for the first time, recorded when one comes for
the second time, and from then on replayed with the numbers of the next batch.

    kind       shapes of the batch's tensors, and all else in it (such as a keep rate), which is part of the record
    not kept   numbers that the host draws or looks up in a step. A step that draws some, or waits for the device,
               cannot be recorded and is always run as usual
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from vidveil.training.seeds import restore, snapshot
from vidveil.training.transfer import to_device

MOST_KINDS = 64
"""Records, at most, and kinds of batch that are waited for to come again."""
Step = Callable[[Any, int], None]
"""Of a batch, and the number of the update rule."""


class RecordedSteps:
    """Calls `step`, and records it if `enabled`. The step may change tensors in place, and nothing else."""

    def __init__(
        self,
        step: Step,
        device: torch.device,
        *,
        enabled: bool,
        say: Callable[[str], None],
        reset: Callable[[], None],
    ) -> None:
        """`reset` removes what a step that broke off left behind."""
        self._step, self._device, self._say, self._reset = step, device, say, reset
        self.enabled = enabled and device.type == "cuda"
        self._records: dict[Hashable, tuple[torch.cuda.CUDAGraph, list[Tensor]]] = {}
        self._seen: set[Hashable] = set()
        self._inputs: dict[Hashable, Tensor] = {}  # which all records read from, by place, shape and type
        self._pool: Any = None

    def forget(self) -> None:
        """What was recorded no longer holds, since the networks were compiled."""
        self._records.clear()
        self._seen.clear()
        self._pool = None  # its memory goes with the records

    def __call__(self, batch: Any, rule: int) -> None:
        if self._device.type == "cuda":  # at once: an index on the host would make the device wait for each lookup
            batch = with_tensors(batch, lambda tensor: to_device(tensor, self._device))
        if not self.enabled or (key := kind(batch, rule)) is None:
            self._step(batch, rule)
        elif key in self._records:
            self._replay(key, batch)
        elif key not in self._seen:
            if len(self._seen) < MOST_KINDS:
                self._seen.add(key)
            self._step(batch, rule)
        else:
            self._record(key, batch, rule)

    def _record(self, key: Hashable, batch: Any, rule: int) -> None:
        if problem := self._captured(key, batch, rule):
            self._give_up(problem)
            self._step(batch, rule)
        else:
            self._replay(key, batch)

    def _captured(self, key: Hashable, batch: Any, rule: int) -> str:
        """Records the step. What kept it from being recorded, or nothing."""
        inputs: list[Tensor] = []

        def as_input(tensor: Tensor) -> Tensor:
            place = (len(inputs), tuple(tensor.shape), tensor.dtype)
            if place not in self._inputs:
                self._inputs[place] = torch.empty_like(tensor)
            inputs.append(self._inputs[place])
            return inputs[-1]

        given = with_tensors(batch, as_input)
        graph = torch.cuda.CUDAGraph()
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        before = snapshot()
        try:
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                self._step(given, rule)
        except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
            _renew_generators(before)
            return str(error).splitlines()[0]
        if drawn_on_host(before, snapshot()):
            restore(before)
            return "they draw random numbers on the host"
        self._records[key] = graph, inputs
        return ""

    def _replay(self, key: Hashable, batch: Any) -> None:
        graph, inputs = self._records[key]
        torch._foreach_copy_(inputs, tensors(batch))
        graph.replay()

    def _give_up(self, why: str) -> None:
        self.enabled = False
        self.forget()
        self._inputs.clear()
        self._reset()  # gradients of a recording that broke off were never computed
        torch.cuda.empty_cache()
        self._say(f"steps are not recorded, and may be slower: {why}")


def _renew_generators(states: Mapping[str, Tensor]) -> None:
    """A recording that broke off leaves generators of accelerators in the state of being recorded, in which they refuse
    to draw. They get a new state with the old numbers."""
    for number, generator in enumerate(torch.cuda.default_generators):
        if (state := states.get(f"cuda{number}")) is not None:
            fresh = torch.Generator(f"cuda:{number}")
            fresh.set_state(state)
            generator.graphsafe_set_state(fresh.graphsafe_get_state())


def drawn_on_host(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> bool:
    """Whether a generator of the host was used between these states of all generators."""
    return any(not torch.equal(before[name], after[name]) for name in before if not name.startswith("cuda"))


def kind(batch: Any, rule: int) -> Hashable | None:
    """What two batches have in common that one record serves; None for batches that hold anything but tensors and plain
    values."""
    shapes = tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors(batch))
    try:
        return rule, shapes, constants(batch)
    except TypeError:
        return None


def tensors(value: Any) -> list[Tensor]:
    """All tensors in dataclasses, tuples, lists and dicts, in their order."""
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    with_tensors(value, note)
    return found


def constants(value: Any) -> Hashable:
    """The same value without its tensors, to be compared. TypeError if that may miss a part of it."""
    if isinstance(value, Tensor):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), tuple(constants(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, Mapping):
        return tuple((key, constants(part)) for key, part in value.items())
    if isinstance(value, tuple | list):
        return type(value), tuple(map(constants, value))
    if value is None or isinstance(value, bool | int | float | str | Enum):
        return type(value), value  # 1, 1.0 and True are equal
    raise TypeError(f"{type(value).__name__} may change without being another one")


def with_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A copy with each tensor replaced."""
    if isinstance(value, Tensor):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: with_tensors(getattr(value, f.name), change) for f in fields(value)})
    if isinstance(value, Mapping):
        return {key: with_tensors(part, change) for key, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [with_tensors(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
