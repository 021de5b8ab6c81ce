"""The training loop.

    found = fit(model, batches=loader, loss=loss, validate=validate, options=Options(epochs=20), folder=run.part("one"))

AdamW with warm-up and cosine, gradient clipping, a running average of weights, mixed precision. In the end the model
holds the weights of the epoch with the best validation. The checkpoint holds everything that the next step depends on:
weights, moments, average, best weights, generators, and how many batches of which epoch are done. So a run that was
killed at any moment continues as if it had not been; on a CPU the result is the same to the bit.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from rich.console import Console
from torch import Tensor, nn

from vidveil.core.errors import TrainingError, UsageError
from vidveil.core.typed import from_values
from vidveil.training.average import Average, fill
from vidveil.training.checkpoints import CheckpointManager, fill_optimizer, optimizer_tensors
from vidveil.training.finite import FiniteRecord, explain, find_origin
from vidveil.training.log import Log
from vidveil.training.options import Options
from vidveil.training.schedule import parameter_groups, rate
from vidveil.training.seeds import deterministic, restore, seeded, snapshot
from vidveil.training.state import Fit, TrainingState

if TYPE_CHECKING:
    from lightning.fabric import Fabric

Loss = Callable[[nn.Module, Any], Tensor]
Validate = Callable[[nn.Module], Mapping[str, float]]


class Batches(Protocol):
    """Batches in an order that depends on the epoch alone."""

    def __len__(self) -> int:
        """Batches an epoch."""
        ...

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """The batches of this epoch (from 0) without the first `start`: the same each time, on the training device."""
        ...


@runtime_checkable
class HasFeatures(Protocol):
    """A model whose loss may also call `features`."""

    def features(self, clip: Tensor) -> Tensor: ...


def fit(
    model: nn.Module,
    *,
    batches: Batches,
    loss: Loss,
    validate: Validate | None,
    options: Options,
    folder: Path | None = None,
    fingerprint: str = "",
    console: Console | None = None,
    label: str = "",
    log: Log | None = None,
) -> Fit:
    """Train `model` in place; it ends on the training device, in eval mode, with the weights of the best epoch.

    Args:
        loss, validate: get the model as Fabric wraps it: call it, or its `features`. Without validation the model ends
            with the weights of the last epoch.
        folder: keeps checkpoints. If it holds one, training continues from it.
        fingerprint: of data and recipe; a checkpoint with another one is an error.
        log: is written to, if given; otherwise a log is made in `folder`, with `console`.
    """
    from lightning.fabric import Fabric  # takes seconds to import

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
        try:
            with seeded(options.seed + fabric.global_rank):
                return _fit(fabric, model, batches, loss, validate, options, folder, fingerprint, label, its_log)
        finally:
            if log is None:
                its_log.close()


def _fit(
    fabric: "Fabric",
    model: nn.Module,
    batches: Batches,
    loss: Loss,
    validate: Validate | None,
    options: Options,
    folder: Path | None,
    fingerprint: str,
    label: str,
    log: Log,
) -> Fit:
    world, rank, on_cpu = fabric.world_size, fabric.global_rank, fabric.device.type == "cpu"
    steps = len(batches) // world  # of an epoch; batches that cannot be shared evenly are left out
    if steps == 0:
        raise TrainingError(f"{len(batches)} batches an epoch are too few for {world} processes: use a smaller batch")
    total, warmup = steps * options.epochs, round(steps * options.warmup_epochs)

    model.to(fabric.device)
    if options.channels_last:
        _lay_channels_last(model)
    adamw = torch.optim.AdamW(parameter_groups(model, options), lr=options.lr, betas=options.betas, fused=True)
    compiled: Any = torch.compile(model) if options.compile else model
    net, optimizer = fabric.setup(compiled, adamw)
    if isinstance(model, HasFeatures):
        net.mark_forward_method("features")
    names = {parameter: name for name, parameter in model.named_parameters()}
    weights = dict(model.state_dict())  # the tensors themselves: they change during training
    best = {name: tensor.clone() for name, tensor in weights.items()}
    average = Average(weights, options.ema) if options.ema else None
    validated = average.state if average else weights  # what is validated and returned
    finite = FiniteRecord(model, fabric.device)
    state, loss_sum = TrainingState(), torch.zeros((), device=fabric.device)  # of this epoch

    about = {"fingerprint": fingerprint, "options": options.fixed(), "batches": len(batches)}
    manager = CheckpointManager(folder, options.checkpoint_seconds)
    if saved := manager.load():
        saved.check_fits(about, {name: tuple(tensor.shape) for name, tensor in weights.items()}, folder)
        if saved.skipped:
            log.say(f"note: an older checkpoint is used, since the newest cannot be read: {saved.skipped}")
        try:
            state = from_values(TrainingState, saved.about["state"])
        except ValueError as error:
            raise TrainingError(f"the checkpoint in {folder} is damaged: {error}") from error
        fill(best, saved.part("best"))
        if not state.finished:
            fill(weights, saved.part("model"))
            fill_optimizer(adamw, names, saved.part("optimizer"))
            loss_sum.copy_(saved.tensors["epoch/loss_sum"])
            if average is not None:
                fill(average.state, saved.part("average"))
                average.count = state.averaged
            restore(saved.part("random"))  # last: nothing may draw numbers between here and the loop
            if rank > 0:  # the file is of rank 0, and two ranks must not draw the same numbers
                torch.manual_seed(options.seed + rank + world * state.step)

    def save() -> None:
        state.seconds = monotonic() - began
        state.averaged = average.count if average else 0
        parts: dict[str, Mapping[str, Tensor]] = {"best": best}
        if not state.finished:
            parts |= {"model": weights, "average": average.state if average else {}, "random": snapshot()}
            parts |= {"optimizer": optimizer_tensors(adamw, names), "epoch": {"loss_sum": loss_sum}}
        if rank == 0:
            manager.save(parts, {**about, "state": asdict(state)}, final=state.finished)

    def check() -> None:
        """Raises if any step so far was bad. Called before each checkpoint, so that the last good one stays."""
        if bad := finite.first_bad():
            epoch, batch = divmod(bad[0], steps)
            again = next(batches.epoch(epoch, batch * world + rank))
            with fabric.autocast():
                origin = find_origin(model, lambda: loss(net, again), again)
            raise TrainingError(f"{label}: {explain(bad, origin, steps)}".removeprefix(": "))

    began = monotonic() - state.seconds
    if not state.finished:
        log.write("resumed" if saved else "started", fit=label, step=state.step, steps=total, epochs=options.epochs)
    with log.bar(label, total, state.step) as bar:
        net.train()
        while not state.finished:
            for batch in _share(batches, state, steps, world, rank):
                for group in adamw.param_groups:
                    group["lr"] = options.lr * group["scale"] * rate(state.step, total, warmup)
                with fabric.autocast():
                    value = loss(net, batch)
                fabric.backward(value)
                norm = finite.check(state.step, value)
                if on_cpu:
                    check()  # at once: a CPU has nothing to wait for
                else:
                    adamw.found_inf = finite.bad  # type: ignore[attr-defined]  # where 1, the step changes no weight
                if options.clip_norm:
                    torch.nn.utils.clip_grads_with_norm_(finite.parameters, options.clip_norm, norm)
                optimizer.step()
                optimizer.zero_grad()
                if average is not None:
                    average.update()
                loss_sum += value.detach()
                state.step, state.batch = state.step + 1, state.batch + 1
                bar.done = state.step
                if state.step % options.log_every == 0:
                    check()
                    line = {"loss": value.item(), "lr": adamw.param_groups[0]["lr"], "gradient": norm.item()}
                    log.write("step", fit=label, step=state.step, **line)
                    log.curves(label, state.step, line)
                if manager.due():
                    check()
                    save()
            check()

            row: dict[str, float] = {"epoch": state.epoch + 1, "train_loss": loss_sum.item() / steps}
            loss_sum.zero_()
            if validate is None:
                state.best_epoch = state.epoch + 1
                fill(best, validated)
            elif state.is_time_to_validate(options):
                net.eval()
                with torch.no_grad(), fabric.autocast(), average.in_place() if average else nullcontext():
                    metrics = {name: float(number) for name, number in validate(net).items()}
                net.train()
                metrics = dict(fabric.broadcast(metrics))  # all ranks must decide alike
                if state.update_best(metrics, options):
                    fill(best, validated)
                row |= metrics
            state.end_epoch(row)
            log.write("epoch", fit=label, step=state.step, seconds=round(monotonic() - began, 3), **row)
            log.curves(label, state.step, {name: number for name, number in row.items() if name != "epoch"})
            shown = "  ".join(f"{name} {number:.4g}" for name, number in row.items() if name != "epoch")
            bar.note = f"epoch {state.epoch}/{options.epochs}  {shown}"
            if state.epoch == options.epochs or state.stopped_early:
                state.finished = True
                save()
                log.write("finished", fit=label, step=state.step, best_epoch=state.best_epoch, best=state.best)

    fill(weights, best)
    model.eval()
    return state.fit()


def _share(batches: Batches, state: TrainingState, steps: int, world: int, rank: int) -> Iterator[Any]:
    """This rank's remaining batches of the epoch: every `world`-th one."""
    begun = state.batch
    yield from islice(batches.epoch(state.epoch, begun * world), rank, (steps - begun) * world, world)
    if state.batch < steps:
        raise TrainingError(f"epoch {state.epoch + 1} ended after {state.batch} of {steps} batches")


def _lay_channels_last(model: nn.Module) -> None:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    for parameter in model.parameters():
        if parameter.ndim in formats:
            parameter.data = parameter.data.contiguous(memory_format=formats[parameter.ndim])
