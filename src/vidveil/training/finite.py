"""Detection of NaN and infinite numbers in training, without waiting for the GPU at each step.

Reading the loss of each step back from a GPU would leave the GPU idle meanwhile. So the first step with a bad loss or
gradient is recorded on the device, the optimizer skips every update from there on (weights stay as they were before
it), and the host reads the record every few steps. The batch of that step is then run again, module by module, to find
where the first bad number appears.

    bad_i   = not (loss_i and every ‖∇_p‖_i are finite)
    record  = (i, loss_i, (‖∇_p‖_i for all p)) of the smallest i with bad_i
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class FiniteRecord:
    """The record of one learner. It changes in place, so that a recorded step may write it."""

    def __init__(
        self, parameters: Mapping[str, nn.Parameter], device: torch.device, shared: "FiniteRecord | None" = None
    ) -> None:
        """`parameters`: those that learn, by name. `shared`: the record of another learner of the same training; the
        first bad step of any of them counts for all."""
        self.names, self.parameters = list(parameters), list(parameters.values())
        self._zero = torch.zeros((), device=device)
        self.bad: Tensor = shared.bad if shared else torch.zeros((), device=device)
        """1 from the first bad step on: AdamW's `found_inf`."""
        self.step: Tensor = shared.step if shared else torch.zeros((), dtype=torch.int64, device=device)
        """The number of the current step, from 0."""
        self._first = torch.full((), -1, dtype=torch.int64, device=device)
        self._loss = torch.zeros((), device=device)
        self._norms = torch.zeros(len(self.names), device=device)  # (P,)

    @torch.no_grad()
    def check(self, loss: Tensor) -> Tensor:
        """Record this step if it is the first bad one. Returns the norm of the whole gradient."""
        gradients = [self._zero if p.grad is None else p.grad for p in self.parameters]
        norms = torch.stack(torch._foreach_norm(gradients)).float()  # (P,)
        total: Tensor = torch.linalg.vector_norm(norms)
        first = ~(torch.isfinite(total) & torch.isfinite(loss)) & (self.bad == 0)
        self._first.copy_(torch.where(first, self.step, self._first))
        self._loss.copy_(torch.where(first, loss.detach().float(), self._loss))
        self._norms.copy_(torch.where(first, norms, self._norms))
        self.bad.copy_(torch.maximum(self.bad, first.float()))
        return total

    def first_bad(self) -> tuple[int, float, str] | None:
        """Step, loss, and the name of the first parameter with a bad gradient, or "". Waits for the device."""
        if not self.bad.item() or self._first.item() < 0:
            return None
        broken = (~torch.isfinite(self._norms)).nonzero().flatten().tolist()
        return int(self._first.item()), float(self._loss.item()), self.names[broken[0]] if broken else ""


def explain(bad: tuple[int, float, str], origin: str, steps: int) -> str:
    """The error message. `steps` is per epoch; numbers in the message count from 1."""
    step, loss, parameter = bad
    return (
        f"training broke at step {step + 1} (epoch {step // steps + 1}, batch {step % steps + 1}): the loss is {loss:g}"
        + (f", the first number that is not finite is in {origin}" if origin else "")
        + (f", the first such gradient is that of {parameter}" if parameter else "")
        + "; try a lower lr, a longer warm-up or precision=32-true"
    )


def find_origin(model: nn.Module, forward: Callable[[], Any], batch: Any) -> str:
    """Where the first bad number appears between a batch and its loss; "" if all are finite this time."""
    if any(not bool(torch.isfinite(tensor).all()) for tensor in _tensors(batch)):
        return "the batch itself"
    found: list[str] = []

    def hook_of(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, _: Any, output: Any) -> None:
            if not found and any(not bool(torch.isfinite(tensor).all()) for tensor in _tensors(output)):
                found.append(f"the output of {name} ({type(module).__name__})")

        return hook

    for name, parameter in model.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            return f"the weights {name}"
    hooks = [module.register_forward_hook(hook_of(name or "the model")) for name, module in model.named_modules()]
    try:
        with torch.no_grad():
            forward()
    finally:
        for handle in hooks:
            handle.remove()
    return found[0] if found else ""


def _tensors(value: Any) -> list[Tensor]:
    """Floating-point tensors anywhere in tuples, lists, dicts and objects with attributes."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, Mapping):
        return [tensor for part in value.values() for tensor in _tensors(part)]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [tensor for part in value for tensor in _tensors(part)]
    if hasattr(value, "__dict__"):
        return [tensor for part in vars(value).values() for tensor in _tensors(part)]
    return []
