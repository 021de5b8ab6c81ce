"""The training loop.

    found = fit(model, batches=loader, loss=loss, validate=validate, options=Options(epochs=20), folder=run.part("one"))

AdamW with warm-up and cosine, gradient clipping, a running average of weights, mixed precision. In the end the model
holds the weights of the epoch with the best validation. The checkpoint holds everything that the next step depends on:
weights, moments, average, best weights, generators, and how many batches of which epoch are done. So a run that was
killed at any moment continues as if it had not been; on a CPU the result is the same to the bit.

Networks that work against each other are several learners of one model (`learner`), each with an optimizer of its own.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from rich.console import Console
from torch import Tensor, nn

from vidveil.core.errors import TrainingError, UsageError
from vidveil.core.progress import Phase
from vidveil.core.typed import from_values
from vidveil.training import health
from vidveil.training.average import Average, fill
from vidveil.training.batches import Batches
from vidveil.training.checkpoints import Checkpoint, CheckpointManager, fill_optimizer, optimizer_tensors
from vidveil.training.compiling import CompilesParts, Compiling
from vidveil.training.finite import explain, find_origin
from vidveil.training.learner import Learner, Loss, UpdateRule, learners_of
from vidveil.training.learner import check as check_learners
from vidveil.training.log import Log
from vidveil.training.options import Options
from vidveil.training.plan import current_dry_run
from vidveil.training.recorded import RecordedSteps
from vidveil.training.schedule import check_backbone
from vidveil.training.seeds import deterministic, restore, seeded, snapshot
from vidveil.training.state import Fit, TrainingState
from vidveil.training.update import Update, learner_states

if TYPE_CHECKING:
    from lightning.fabric import Fabric

Validate = Callable[[nn.Module], Mapping[str, float]]


@runtime_checkable
class HasFeatures(Protocol):
    """A model whose loss may also call `features`."""

    def features(self, clip: Tensor) -> Tensor: ...


def fit(
    model: nn.Module,
    *,
    batches: Batches,
    loss: Loss | Sequence[Learner],
    validate: Validate | None,
    options: Options,
    update_rules: Sequence[UpdateRule] = (),
    folder: Path | None = None,
    fingerprint: str = "",
    console: Console | None = None,
    label: str = "",
    log: Log | None = None,
) -> Fit:
    """Train `model` in place; it ends on the training device, in eval mode, with the weights of the best epoch.

    Args:
        loss: of the model, as Fabric wraps it (call it, or its `features`), and a batch: a scalar, or terms by name.
            Several learners each have a loss of the model itself. On CUDA a loss whose numbers depend on anything but
            weights, batch and torch's CUDA generator must not be recorded: `graphs=False`.
        validate: gets the model likewise. Without validation the model ends with the weights of the last epoch.
        update_rules: which learners are updated on which batches; by default all on every batch.
        folder: keeps checkpoints. If it holds one, training continues from it.
        fingerprint: of data and recipe; a checkpoint with another one is an error.
        log: is written to, if given; otherwise a log is made in `folder`, with `console`.
    """
    if (dry := current_dry_run()) is not None:
        asked_for = {"batches": batches, "loss": loss, "validate": validate, "options": options, "folder": folder}
        found: Fit = dry.measure(fit, model, **asked_for, update_rules=update_rules, label=label)
        return found
    from lightning.fabric import Fabric  # takes seconds to import

    learners = learners_of(loss)
    rules = tuple(update_rules) or (UpdateRule(*(learner.name for learner in learners)),)
    check_learners(learners, rules, model)
    if options.devices > 1 and len(learners) > 1:
        raise UsageError(f"devices={options.devices}: a training with several learners runs on one device")
    if options.devices > 1 and "RANK" not in os.environ:
        raise UsageError(f"devices={options.devices} needs torchrun --nproc_per_node={options.devices}")
    accelerator = options.accelerator()
    with deterministic(accelerator):
        fabric = Fabric(
            accelerator=accelerator,
            devices=options.devices,
            strategy=options.strategy,
            precision=options.exact_precision(),
        )
        fabric.launch()
        lead = fabric.is_global_zero
        its_log = log or Log(folder if lead else None, console if lead else None)
        asked = _Asked(model, batches, learners, rules, validate, options, folder, fingerprint, label)
        try:
            with seeded(options.seed + fabric.global_rank):
                return _Loop(fabric, asked, its_log).run()
        finally:
            if log is None:
                its_log.close()


@dataclass(frozen=True, eq=False)
class _Asked:
    """The arguments of `fit`."""

    model: nn.Module
    batches: Batches
    learners: Sequence[Learner]
    rules: Sequence[UpdateRule]
    validate: Validate | None
    options: Options
    folder: Path | None
    fingerprint: str
    label: str


class _Loop:
    def __init__(self, fabric: "Fabric", asked: _Asked, log: Log) -> None:
        self.fabric, self.asked, self.log = fabric, asked, log
        model, options = asked.model, asked.options
        self.world, self.rank = fabric.world_size, fabric.global_rank
        on_cpu = fabric.device.type == "cpu"
        self.steps = len(asked.batches) // self.world  # of an epoch; batches that cannot be shared evenly are left out
        if self.steps == 0:
            raise TrainingError(
                f"{len(asked.batches)} batches an epoch are too few for {self.world} processes: use a smaller batch"
            )
        self.total = self.steps * options.epochs
        model.to(fabric.device)
        if options.channels_last:
            _lay_channels_last(model)
        check_backbone(model, options)
        choice = options.compile
        if choice and len(asked.learners) > 1 and not isinstance(model, CompilesParts):
            choice = False
            self._note("compile=true does nothing for networks that are trained against each other")
        self.compiling = Compiling(model, choice, fabric.device)
        self.learners = learner_states(model, asked.learners, options, fabric.device)
        self.net, *optimizers = fabric.setup(self.compiling.begin(), *(one.optimizer for one in self.learners))
        if isinstance(model, HasFeatures):
            self.net.mark_forward_method("features")
        called = self.net if len(self.learners) == 1 else model
        self.update = Update(
            fabric, called, self.learners, optimizers, asked.rules, self.check if on_cpu else None
        )  # a CPU has nothing to wait for, and is checked at once
        graphs = options.graphs and self.world == 1
        self.step = RecordedSteps(
            self.update, fabric.device, enabled=graphs, say=self._note, reset=self.update.clear_gradients
        )
        self.weights = dict(model.state_dict())  # the tensors themselves: they change during training
        self.best = {name: tensor.clone() for name, tensor in self.weights.items()}
        self.average = Average(self.weights, options.ema) if options.ema else None
        self.validated = self.average.state if self.average else self.weights  # what is validated and returned
        self.state = TrainingState()
        self.about = {
            "fingerprint": asked.fingerprint, "options": options.fixed(), "batches": len(asked.batches),
            "learners": [one.name for one in asked.learners],
        }  # fmt: skip
        self.manager = CheckpointManager(asked.folder, options.checkpoint_seconds)
        self.began = monotonic()

    def run(self) -> Fit:
        asked, state = self.asked, self.state
        if saved := self.manager.load():
            self.restore(saved)
            state = self.state
        self.began = monotonic() - state.seconds
        if not state.finished:
            self.log.write(
                "resumed" if saved else "started", fit=asked.label, step=state.step, steps=self.total,
                epochs=asked.options.epochs,
            )  # fmt: skip
        with self.log.bar(asked.label, self.total, state.step) as bar:
            self.net.train()
            while not state.finished:
                for batch in self._share():
                    self.take(batch)
                    bar.done = state.step
                self.end_epoch(bar)
        fill(self.weights, self.best)
        asked.model.eval()
        return state.fit()

    def take(self, batch: Any) -> None:
        """One step."""
        state, options = self.state, self.asked.options
        self.update.set_rates(state.step, self.total, self.steps)
        rule = self.asked.rules[state.rule]
        if self.compiling.before_step(self.total - state.step):
            self.step.forget()
            self.log.write("compiled", fit=self.asked.label, step=state.step)
        self.step(batch, number := state.rule)
        if self.average is not None:
            self.average.update()
        state.step, state.batch = state.step + 1, state.batch + 1
        line: dict[str, float] = {}
        if rule.until is not None or state.step % options.log_every == 0:
            line = self.update.last_values(number)
        state.end_batch(rule.batches, len(self.asked.rules), self._reached(rule, line))
        if state.step % options.log_every == 0:
            self.check()
            self.log.write("step", fit=self.asked.label, step=state.step, **line)
            self.log.curves(self.asked.label, state.step, line)
        self._restart()
        if self.manager.due():
            self.check()
            self.save()

    def _reached(self, rule: UpdateRule, line: Mapping[str, float]) -> bool:
        """Whether the rule's condition holds after its last step."""
        if rule.until is None:
            return False
        term, number = rule.until
        name = term if term == "loss" else f"loss/{term}"
        name = name if len(self.learners) == 1 else f"{rule.learners[0]}/{name}"
        if name not in line:
            raise TrainingError(f"an update rule waits for {term} of {rule.learners[0]}, whose loss has no such term")
        return line[name] < number

    def end_epoch(self, bar: Phase) -> None:
        self.check()
        asked, state, options = self.asked, self.state, self.asked.options
        row: dict[str, float] = {"epoch": state.epoch + 1, **self.update.means()}
        if asked.validate is None:
            state.best_epoch = state.epoch + 1
            fill(self.best, self.validated)
        elif state.is_time_to_validate(options):
            self.net.eval()
            average = self.average.in_place() if self.average else nullcontext()
            with torch.no_grad(), self.fabric.autocast(), average:
                metrics = {name: float(number) for name, number in asked.validate(self.net).items()}
            self.net.train()
            metrics = dict(self.fabric.broadcast(metrics))  # all ranks must decide alike
            if state.update_best(metrics, options):
                fill(self.best, self.validated)
            row |= metrics
        state.end_epoch(row)
        self.log.write("epoch", fit=asked.label, step=state.step, seconds=round(monotonic() - self.began, 3), **row)
        self.log.curves(asked.label, state.step, {name: number for name, number in row.items() if name != "epoch"})
        self._look_for_problems()
        shown = "  ".join(f"{name} {number:.4g}" for name, number in row.items() if _is_shown(name))
        bar.note = f"epoch {state.epoch}/{options.epochs}  {shown}"
        if state.epoch == options.epochs or state.stopped_early:
            state.finished = True
            self.save()
            self.log.write("finished", fit=asked.label, step=state.step, best_epoch=state.best_epoch, best=state.best)

    def _restart(self) -> None:
        """Learners whose time it is start again."""
        step = self.state.step
        for one in self.learners:
            if (again := one.learner.restart) is not None and step % again.every == 0 and step < self.total:
                one.restart(self.weights)
                if self.average is not None:
                    self.average.forget(one.learner.parts)
                self.log.write("restart", fit=self.asked.label, step=step, learner=one.learner.name)

    def _look_for_problems(self) -> None:
        """Each is reported when it comes up."""
        found = list(health.problems(self.state.history, self.asked.learners, self.state.best_epoch))
        kinds = {problem.partition(",")[0].partition("(")[0] for problem in self.state.problems}
        for problem in found:
            if problem.partition(",")[0].partition("(")[0] not in kinds:
                self.log.write("problem", fit=self.asked.label, step=self.state.step, what=problem)
                self.log.say(f"warning: {self.asked.label}: {problem}".replace(": : ", ": "), style="yellow")
        self.state.problems = found

    def save(self) -> None:
        state = self.state
        state.seconds = monotonic() - self.began
        state.averaged = self.average.count if self.average else 0
        state.terms = {one.learner.name: list(one.terms) for one in self.learners if one.terms is not None}
        parts: dict[str, Mapping[str, Tensor]] = {"best": self.best}
        if not state.finished:
            parts |= {"model": self.weights, "average": self.average.state if self.average else {}}
            parts |= {"random": snapshot(), "optimizer": {}, "epoch": {}}
            for one in self.learners:
                names = {parameter: name for name, parameter in one.parameters.items()}
                parts["optimizer"] = {**parts["optimizer"], **optimizer_tensors(one.optimizer, names)}
                if one.sums is not None:
                    parts["epoch"] = {**parts["epoch"], one.learner.name: one.sums}
        if self.rank == 0:
            self.manager.save(parts, {**self.about, "state": asdict(state)}, final=state.finished)

    def restore(self, saved: Checkpoint) -> None:
        asked = self.asked
        shapes = {name: tuple(tensor.shape) for name, tensor in self.weights.items()}
        saved.check_fits(self.about, shapes, asked.folder)
        if saved.skipped:
            self._note(f"an older checkpoint is used, since the newest cannot be read: {saved.skipped}")
        try:
            self.state = from_values(TrainingState, saved.about["state"])
        except ValueError as error:
            raise TrainingError(f"the checkpoint in {asked.folder} is damaged: {error}") from error
        fill(self.best, saved.part("best"))
        if self.state.finished:
            return
        fill(self.weights, saved.part("model"))
        for one in self.learners:
            names = {parameter: name for name, parameter in one.parameters.items()}
            fill_optimizer(one.optimizer, names, saved.part("optimizer"))
            if (sums := saved.part("epoch").get(one.learner.name)) is not None:
                one.sums = sums.to(self.fabric.device)
                one.terms = tuple(self.state.terms[one.learner.name])
        self.learners[0].finite.step.fill_(self.state.step)
        if self.average is not None:
            fill(self.average.state, saved.part("average"))
            self.average.count = self.state.averaged
        restore(saved.part("random"))  # last: nothing may draw numbers between here and the loop
        if self.rank > 0:  # the file is of rank 0, and two ranks must not draw the same numbers
            torch.manual_seed(asked.options.seed + self.rank + self.world * self.state.step)

    def check(self) -> None:
        """Raises if any step so far was bad. Called before each checkpoint, so that the last good one stays."""
        for one in self.learners:
            if bad := one.finite.first_bad():
                raise self._error(one.learner, bad)

    def _error(self, learner: Learner, bad: tuple[int, float, str]) -> TrainingError:
        """Which batch it was, and where in the network it began."""
        asked = self.asked
        epoch, batch = divmod(bad[0], self.steps)
        again = next(asked.batches.epoch(epoch, batch * self.world + self.rank))
        called = self.net if len(self.learners) == 1 else asked.model
        with self.fabric.autocast():
            origin = find_origin(asked.model, lambda: learner.loss(called, again), again)
        label = ": ".join(filter(None, (asked.label, learner.name if len(self.learners) > 1 else "")))
        return TrainingError(f"{label}: {explain(bad, origin, self.steps)}".removeprefix(": "))

    def _share(self) -> Iterator[Any]:
        """This rank's remaining batches of the epoch: every `world`-th one."""
        state, begun = self.state, self.state.batch
        batches = self.asked.batches.epoch(state.epoch, begun * self.world)
        yield from islice(batches, self.rank, (self.steps - begun) * self.world, self.world)
        if state.batch < self.steps:
            raise TrainingError(f"epoch {state.epoch + 1} ended after {state.batch} of {self.steps} batches")

    def _note(self, line: str) -> None:
        self.log.say(f"note: {line}")


def _is_shown(name: str) -> bool:
    """In the progress line: losses and what validation says, no single terms."""
    return name != "epoch" and not name.endswith("gradient") and "train_loss/" not in name


def _lay_channels_last(model: nn.Module) -> None:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    for parameter in model.parameters():
        if parameter.ndim in formats:
            parameter.data = parameter.data.contiguous(memory_format=formats[parameter.ndim])
