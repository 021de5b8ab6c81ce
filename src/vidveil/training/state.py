"""The progress of a training, and its outcome."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from vidveil.core.errors import TrainingError
from vidveil.training.options import LAST, Options

OWN_METRICS = ("epoch", "train_loss", "gradient")
"""Names in a row of the history that are not those of validation; likewise what begins with one of them and a slash."""


@dataclass(frozen=True)
class Fit:
    """The outcome of a training. Epochs count from 1."""

    best_epoch: int
    best: float
    """The monitored metric at that epoch; NaN where nothing was validated."""
    history: list[dict[str, float]]
    """One row per epoch: epoch, train_loss, gradient, terms of the loss, and what `validate` returned. Of several
    learners, the last three come with a name before a slash."""
    steps: int
    seconds: float
    """Of training, over all resumptions."""
    stopped_early: bool
    problems: list[str]
    """What went wrong without an error: a loss that diverged, an attacker that does not learn (`health`)."""


@dataclass
class TrainingState:
    """The JSON of a checkpoint: plain numbers only."""

    epoch: int = 0
    """Complete epochs."""
    batch: int = 0
    """Steps done in the next epoch."""
    step: int = 0
    """Steps done in all."""
    best: float | None = None
    best_epoch: int = 0
    waited: int = 0
    """Validations since the best one."""
    averaged: int = 0
    rule: int = 0
    """The number of the update rule that is on."""
    rule_batches: int = 0
    """Batches that this rule has had."""
    terms: dict[str, list[str]] = field(default_factory=dict)
    """Names of the terms of each learner's loss."""
    seconds: float = 0.0
    finished: bool = False
    stopped_early: bool = False
    history: list[dict[str, float]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def fit(self) -> Fit:
        best = math.nan if self.best is None else self.best
        return Fit(self.best_epoch, best, self.history, self.step, self.seconds, self.stopped_early, self.problems)

    def is_time_to_validate(self, options: Options) -> bool:
        """Whether the epoch that just ended is validated."""
        return (self.epoch + 1) % options.validate_every == 0 or self.epoch + 1 == options.epochs

    def update_best(self, metrics: Mapping[str, float], options: Options) -> bool:
        """Record this epoch if it is the best so far, and return whether it is. Of equal epochs the later one counts,
        as it has trained for longer; for early stopping an equal epoch is no improvement."""
        if clash := sorted(name for name in metrics if name.partition("/")[0] in OWN_METRICS):
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
                f"validation of epoch {self.epoch + 1} returns NaN for {name}: no epoch can be chosen by it"
            )
        better = self.best is None or metrics[name] > self.best
        as_good = better or metrics[name] == self.best
        if as_good:
            self.best, self.best_epoch = metrics[name], self.epoch + 1
        self.waited = 0 if better else self.waited + 1
        self.stopped_early = 0 < options.patience <= self.waited and self.epoch + 1 < options.epochs
        return as_good

    def end_batch(self, batches: int, rules: int, reached: bool) -> None:
        """After a batch: go on to the next of `rules` if this one had all of its `batches`, or its condition holds."""
        self.rule_batches += 1
        if self.rule_batches >= batches or reached:
            self.rule, self.rule_batches = (self.rule + 1) % rules, 0

    def end_epoch(self, row: dict[str, float]) -> None:
        self.history.append(row)
        self.epoch, self.batch = self.epoch + 1, 0
