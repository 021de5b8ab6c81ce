"""Where a training stands, and how it went in the end."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from vidveil.core.errors import TrainingError
from vidveil.training.options import LAST, Options

OURS = ("epoch", "train_loss")
"""Names in a row of the history that are not validation's."""


@dataclass(frozen=True)
class Fit:
    """How it went. Epochs count from 1."""

    best_epoch: int
    best: float
    """The monitored metric at that epoch; NaN where nothing was validated."""
    history: list[dict[str, float]]
    """A row an epoch: epoch, train_loss, and what `validate` gave."""
    steps: int
    seconds: float
    """Of all sittings together."""
    stopped_early: bool


@dataclass
class TrainingState:
    """The JSON of a checkpoint: plain numbers only."""

    epoch: int = 0
    """Epochs that are complete."""
    batch: int = 0
    """Steps of the next one that are done."""
    step: int = 0
    """Steps in all."""
    best: float | None = None
    best_epoch: int = 0
    waited: int = 0
    """Validations since the best."""
    averaged: int = 0
    seconds: float = 0.0
    finished: bool = False
    stopped_early: bool = False
    history: list[dict[str, float]] = field(default_factory=list)

    def fit(self) -> Fit:
        best = math.nan if self.best is None else self.best
        return Fit(self.best_epoch, best, self.history, self.step, self.seconds, self.stopped_early)

    def is_time_to_validate(self, options: Options) -> bool:
        """Of the epoch that just ended."""
        return (self.epoch + 1) % options.validate_every == 0 or self.epoch + 1 == options.epochs

    def judge(self, metrics: Mapping[str, float], options: Options) -> bool:
        """Whether this epoch is the best so far; of equals the later one is, since its rate is lower and it has seen
        more. May call for an early stop: an equal is no better one."""
        if clash := sorted(metrics.keys() & set(OURS)):
            raise TrainingError(
                f"validation may not call a metric {', '.join(clash)}: the history has one of that name"
            )
        if options.monitor == LAST:
            self.best_epoch = self.epoch + 1
            return True
        name = options.monitor or next(iter(metrics), "")
        if name not in metrics:
            given = ", ".join(metrics) or "nothing"
            raise TrainingError(f"validation gives no {name or 'metric'!r} to choose an epoch by; it gives {given}")
        if math.isnan(metrics[name]):
            raise TrainingError(
                f"validation of epoch {self.epoch + 1} says that {name} is not a number: nothing to choose by"
            )
        better = self.best is None or metrics[name] > self.best
        as_good = better or metrics[name] == self.best
        if as_good:
            self.best, self.best_epoch = metrics[name], self.epoch + 1
        self.waited = 0 if better else self.waited + 1
        self.stopped_early = 0 < options.patience <= self.waited and self.epoch + 1 < options.epochs
        return as_good

    def end_epoch(self, row: dict[str, float]) -> None:
        self.history.append(row)
        self.epoch, self.batch = self.epoch + 1, 0
