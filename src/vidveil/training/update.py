"""One step of training on the device: for each learner of an update rule

    terms of its loss → backward → gradient's norm, and whether all is finite → clipping → AdamW

A step changes tensors in place and waits for nothing, so that it can be recorded (`recorded`). Sums of all terms stay
on the device until an epoch ends.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vidveil.core.errors import TrainingError
from vidveil.training.finite import FiniteRecord
from vidveil.training.learner import ONE, Learner, Terms, UpdateRule
from vidveil.training.options import Options
from vidveil.training.schedule import parameter_groups, rate

if TYPE_CHECKING:
    from lightning.fabric import Fabric

OWN = ("loss", "gradient", "updates")
"""What is summed next to the terms: their sum, the gradient's norm before clipping, and 1."""


@dataclass(eq=False)
class LearnerState:
    """A learner, with its parameters and its optimizer."""

    learner: Learner
    options: Options
    parameters: dict[str, nn.Parameter]
    optimizer: torch.optim.AdamW
    finite: FiniteRecord
    terms: tuple[str, ...] | None = None
    """Names of the terms of its loss; None before the first step."""
    sums: Tensor | None = None
    """Of the terms and `OWN`, over the updates of this epoch."""
    last: Tensor | None = None
    """The same of the last update."""

    def named(self, values: Tensor) -> dict[str, float]:
        """`loss`, `loss/TERM`, `gradient`, `updates`. Waits for the device."""
        names = (*(f"loss/{term}" for term in self.terms or ()), *OWN)
        found = dict(zip(names, values.tolist(), strict=True))
        found.pop("loss/", None)  # the only term, if the loss is a number: it is the loss
        return found

    def restart(self, weights: Mapping[str, Tensor]) -> None:
        """Fresh weights, and an optimizer without memory; all tensors stay where they are."""
        assert self.learner.restart is not None
        (part,) = self.learner.parts
        with torch.no_grad():
            for name, tensor in self.learner.restart.fresh().state_dict().items():
                weights[part + name].copy_(tensor)
            for state in self.optimizer.state.values():
                for tensor in state.values():
                    tensor.zero_()


def learner_states(
    model: nn.Module, learners: Sequence[Learner], options: Options, device: torch.device
) -> list[LearnerState]:
    found: list[LearnerState] = []
    on_host = device.type == "cpu"
    for learner in learners:
        own = learner.options(options)
        groups = parameter_groups(model, own, learner.parts)
        if not on_host:  # a record of a step reads the rate from the device
            groups = [{**group, "lr": torch.zeros((), device=device)} for group in groups]
        # fused AdamW is one kernel for all parameters
        optimizer = torch.optim.AdamW(groups, lr=own.lr, betas=own.betas, fused=True, capturable=not on_host)
        named = model.named_parameters()
        learning = {name: p for name, p in named if p.requires_grad and learner.has(name)}
        finite = FiniteRecord(learning, device, found[0].finite if found else None)
        if not on_host:
            optimizer.found_inf = finite.bad  # type: ignore[attr-defined]  # where 1, the step changes no weight
        found.append(LearnerState(learner, own, learning, optimizer, finite))
    return found


class Update:
    """Callable with a batch and the number of an update rule."""

    def __init__(
        self,
        fabric: "Fabric",
        net: Any,
        states: Sequence[LearnerState],
        optimizers: Sequence[Any],
        rules: Sequence[UpdateRule],
        check_now: Callable[[], None] | None,
    ) -> None:
        """`optimizers` are those of the states, as Fabric wraps them. `check_now` is called before weights change."""
        self._fabric, self._net, self._check_now = fabric, net, check_now
        self.learners = list(states)
        by_name = {one.learner.name: (one, own) for one, own in zip(states, optimizers, strict=True)}
        self._rules = [[by_name[name] for name in rule.learners] for rule in rules]

    def __call__(self, batch: Any, rule: int) -> None:
        for one, optimizer in self._rules[rule]:
            with self._fabric.autocast():
                terms = terms_of(one.learner.loss(self._net, batch))
                total = torch.stack(list(terms.values())).sum()
            if len(self.learners) == 1:
                self._fabric.backward(total)
            else:  # what another learner owns gets no gradient
                self._fabric.backward(total, inputs=one.finite.parameters)
            norm = one.finite.check(total)
            if self._check_now is not None:
                self._check_now()
            if one.options.clip_norm:
                torch.nn.utils.clip_grads_with_norm_(one.finite.parameters, one.options.clip_norm, norm)
            optimizer.step()
            optimizer.zero_grad()
            self._add(one, terms, total, norm)
        self.learners[0].finite.step += 1

    def _add(self, one: LearnerState, terms: Mapping[str, Tensor], total: Tensor, norm: Tensor) -> None:
        if one.terms is None:
            one.terms = tuple(terms)
        if one.terms != tuple(terms):
            raise TrainingError(
                f"the terms of the loss, logged by name, changed from {', '.join(one.terms)} to {', '.join(terms)}"
            )
        values = torch.stack([*terms.values(), total, norm, torch.ones_like(norm)]).detach().double()
        if one.sums is None:
            one.sums = torch.zeros_like(values)
        if one.last is None:
            one.last = torch.zeros_like(values)
        one.sums += values
        one.last.copy_(values)

    def clear_gradients(self) -> None:
        for one in self.learners:
            one.optimizer.zero_grad()

    def set_rates(self, step: int, total: int, steps: int) -> None:
        """Of this step, of `total`, `steps` of them an epoch."""
        for one in self.learners:
            warmup = round(steps * one.options.warmup_epochs)
            now = one.options.lr * rate(step, total, warmup, one.learner.schedule)
            for group in one.optimizer.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(now * group["scale"])
                else:
                    group["lr"] = now * group["scale"]

    def last_values(self, rule: int) -> dict[str, float]:
        """Loss, terms and gradient of the rule's learners in their last update, and their rates."""
        line: dict[str, float] = {}
        for one, _ in self._rules[rule]:
            if one.last is None:
                continue
            values = one.named(one.last) | {"lr": float(one.optimizer.param_groups[0]["lr"])}
            del values["updates"]
            line |= self._labelled(one, values)
        return line

    def means(self) -> dict[str, float]:
        """Means over the updates of an epoch, which begins anew: `train_loss`, `train_loss/TERM`, `gradient`."""
        row: dict[str, float] = {}
        losses = []
        for one in self.learners:
            if one.sums is None:
                continue
            values = one.named(one.sums)
            one.sums.zero_()
            if not (updates := values.pop("updates")):
                continue
            means = {name: value / updates for name, value in values.items()}
            losses.append(means["loss"])
            row |= self._labelled(one, {name.replace("loss", "train_loss", 1): value for name, value in means.items()})
        return row if "train_loss" in row else {"train_loss": sum(losses), **row}

    def _labelled(self, one: LearnerState, values: Mapping[str, float]) -> dict[str, float]:
        label = "" if one.learner.name == ONE and len(self.learners) == 1 else f"{one.learner.name}/"
        return {label + name: value for name, value in values.items()}


def terms_of(loss: Terms) -> Mapping[str, Tensor]:
    if isinstance(loss, Tensor):
        return {"": loss}
    if not loss:
        raise TrainingError("a loss has no terms")
    return loss
