"""What a run will do and how long it takes, known before it begins: nothing is trained, and nothing is written.

    plan.trainings     each training of each seed: clips, epochs, steps, whether it is done already
    plan.work          what is made and cached for them: clips after a method, features
    plan.measure()     times a few real steps of each distinct network, and a few clips of each method

`with dry_run(folder)` lets `fit` measure a few steps in the place of a whole training: so trainings are planned whose
code is not known here.
"""

import math
import shutil
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import nn

from vidveil.core.bounded import read_json_object

STEPS = {"cpu": 2, "cuda": 16}
"""That are timed; the first half of them is left out."""
FORWARD = 3
"""A step takes as long as so many predictions of its clips."""
COPIES = 5
"""Of all weights on disk, at most: the network, and a checkpoint of it, its average, the best so far, and moments."""


@dataclass(frozen=True)
class Speed:
    seconds: float
    """Of a step."""
    parameters: int = 0


@dataclass(frozen=True, kw_only=True)
class PlannedTraining:
    label: str
    """By which the run finds it again."""
    task: str
    network: str
    clips: int | None
    """That it is trained on; None if that is not known before they are decoded."""
    epochs: int
    steps: int | None
    """Of all epochs."""
    batch: int = 1
    predicted: int = 0
    """Clips that are only looked at: validations and tests."""
    done: bool = False
    run: str = ""
    """That it is taken from; empty: it belongs to this run."""
    group: str = ""
    """What it is trained on, which its label begins with: raw, a setting of a method, the name of a control."""
    like: Hashable = None
    """Trainings that are alike take as long for a step."""
    speed: Callable[[], Speed] | None = None
    """Takes a few steps; None if they cannot be taken beforehand."""


@dataclass(frozen=True, kw_only=True)
class PlannedWork:
    """Something that is made once and kept in the cache."""

    what: str
    count: int | None
    unit: str
    bytes: int | None = 0
    """On disk; None if that is not known."""
    seconds: Callable[[], float] | None = None
    """Makes a few, without keeping them; seconds of one."""


@dataclass
class Plan:
    name: str
    data: str
    device: str
    trainings: list[PlannedTraining] = field(default_factory=list)
    work: list[PlannedWork] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    folders: dict[str, Path] = field(default_factory=dict)
    """Where caches and runs are."""
    speeds: dict[Hashable, Speed] = field(default_factory=dict)
    """Measured, by `PlannedTraining.like` and by `PlannedWork.what`."""

    def measure(self) -> "Plan":
        """Time what can be timed; a few seconds."""
        for one in self.trainings:
            if not one.done and one.speed is not None and one.like not in self.speeds:
                self.speeds[one.like] = one.speed()
        for work in self.work:
            if work.seconds is not None and work.count and work.what not in self.speeds:
                self.speeds[work.what] = Speed(work.seconds())
        return self

    def seconds(self, one: PlannedTraining | PlannedWork) -> float | None:
        """How long it takes; None if that was not measured."""
        if isinstance(one, PlannedWork):
            speed = self.speeds.get(one.what)
            return None if speed is None or one.count is None else speed.seconds * one.count
        if one.done:
            return 0.0
        speed = self.speeds.get(one.like)
        if speed is None or one.steps is None:
            return None
        return speed.seconds * (one.steps + one.predicted / (FORWARD * one.batch))

    @property
    def total_seconds(self) -> float:
        """Of all that was measured."""
        of_trainings = [self.seconds(one) or 0.0 for one in self.trainings]
        return sum([*of_trainings, *(self.seconds(one) or 0.0 for one in self.work)])

    @property
    def unmeasured(self) -> list[str]:
        """What takes time that is not known."""
        left = [one.label for one in self.trainings if self.seconds(one) is None]
        return left + [one.what for one in self.work if one.count != 0 and self.seconds(one) is None]

    @property
    def bytes(self) -> dict[str, int]:
        """That are needed, as far as that is known, by the name of the folder; of runs at most."""
        left = [one for one in self.trainings if not one.done and one.like in self.speeds]
        weights = [self.speeds[one.like].parameters for one in left]
        return {"cache": sum(one.bytes or 0 for one in self.work), "runs": 4 * COPIES * sum(weights)}

    @property
    def whole_bytes(self) -> dict[str, bool]:
        """Whether `bytes` are all that are needed, by the name of the folder."""
        trained = all(one.done or one.like in self.speeds for one in self.trainings)
        return {"cache": all(one.bytes is not None for one in self.work), "runs": trained}

    @property
    def free_bytes(self) -> dict[str, int]:
        return {name: _free(self.folders[name]) for name in self.folders}


def _free(folder: Path) -> int:
    """Where the folder is, or will be."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    return shutil.disk_usage(there).free


def decoding(data: str, count: int | None) -> PlannedWork:
    """Of a set that is not in the cache: neither its time nor its size is known before."""
    return PlannedWork(what=f"{data} decoded", count=count, unit="videos", bytes=None)


def steps_of(clips: int, batch: int, epochs: int) -> int:
    """Steps of a training whose last batch of an epoch is left out where it is not full."""
    return epochs * max(clips // batch, 1)


def predicted_clips(epochs: int, every: int, val: int, others: int) -> int:
    """Clips that a training looks at without learning: validation each time, the others once."""
    return math.ceil(epochs / every) * val + val + others


def is_finished(folder: Path) -> bool:
    """Whether a training in this folder, of `fit`, is done."""
    for path in sorted(folder.glob("[0-9]*.json"), reverse=True):
        try:
            about = read_json_object(path, finite=False)
            state = about.get("state", about.get("place"))
            return isinstance(state, dict) and bool(state.get("finished"))
        except (OSError, ValueError):
            continue
    return False


# ---- timing


class _Few:
    """A few batches of many, and when each was asked for."""

    def __init__(self, batches: Any, device: str) -> None:
        self.batches, self.device, self.times = batches, device, list[float]()

    def __len__(self) -> int:
        return STEPS[self.device]

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        number, batches = start, iter(self.batches.epoch(epoch))
        while number < len(self):
            batch = next(batches, None)
            if batch is None:
                batches = iter(self.batches.epoch(epoch))
                continue
            self._note()
            yield batch
            number += 1
        self._note()

    def _note(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()
        self.times.append(perf_counter())


class Repeated:
    """The same batch again and again: of contents that are made up."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:  # noqa: ARG002
        while True:
            yield self.batch


def fit_speed(fit: Callable[..., Any], model: nn.Module, batches: Any, options: Any, **how: Any) -> Speed:
    """The speed of a training by `fit`, from a few of its steps; `how` has the loss."""
    few = _Few(batches, options.accelerator())
    how = {"validate": None, **how}
    fit(model, batches=few, options=_few_steps(options), **how)
    return Speed(timed(few.times), sum(p.numel() for p in model.parameters()))


def _few_steps(options: Any) -> Any:
    return replace(options, epochs=1, warmup_epochs=0.0, compile=False, monitor="")


def timed(times: Sequence[float]) -> float:
    """Seconds of a step, from the moments between steps. The first ones take longer."""
    steps = [later - sooner for sooner, later in pairwise(times)]
    return median(steps[len(steps) // 2 :]) if steps else 0.0


def speed_of(step: Callable[[], object], device: str, parameters: int = 0) -> Speed:
    """The speed of anything that can be done several times."""
    times = [perf_counter()]
    for _ in range(STEPS[device]):
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(perf_counter())
    return Speed(timed(times), parameters)


# ---- trainings whose code is not known here


class DryRun:
    """What `fit` was asked for, one entry per training."""

    def __init__(self, folder: Path, runs: Path) -> None:
        self.folder, self.runs, self.trainings = folder, runs, list[PlannedTraining]()

    def measure(self, fit: Callable[..., Any], model: nn.Module, **asked: Any) -> Any:
        """In the place of a training: a few steps of it."""
        options, batches, folder = asked["options"], asked["batches"], asked.get("folder")
        label = asked.get("label") or (folder.name if folder is not None else "train")
        done = folder is not None and is_finished(self.runs / folder.relative_to(self.folder))
        token = _DRY_RUN.set(None)
        try:
            few = _Few(batches, options.accelerator())
            changed = {"batches": few, "options": _few_steps(options), "folder": None, "validate": None}
            made = fit(model, **asked | changed)
        finally:
            _DRY_RUN.reset(token)
        speed = Speed(timed(few.times), sum(p.numel() for p in model.parameters()))
        self.trainings.append(
            PlannedTraining(
                label=label, task="", network="", clips=_clips_of(batches), epochs=options.epochs,
                steps=options.epochs * len(batches), done=done, like=label, speed=lambda: speed,
            )
        )  # fmt: skip
        return made


def _clips_of(batches: Any) -> int | None:
    """Of an epoch, by the loader below all that batches go through; None if there is none."""
    while batches is not None:
        if (rows := getattr(batches, "indices", getattr(batches, "rows", None))) is not None:
            return len(rows)
        batches = getattr(batches, "loader", getattr(batches, "batches", None))
    return None


class NothingTrained(Exception):
    """A dry run ends where results of a training would be measured."""


_DRY_RUN: ContextVar[DryRun | None] = ContextVar("dry_run", default=None)


def current_dry_run() -> DryRun | None:
    return _DRY_RUN.get()


@contextmanager
def dry_run(folder: Path, runs: Path) -> Iterator[DryRun]:
    """Trainings in this context are measured, and what they would write goes to `folder` in place of `runs`."""
    one = DryRun(folder, runs)
    token = _DRY_RUN.set(one)
    try:
        yield one
    finally:
        _DRY_RUN.reset(token)
