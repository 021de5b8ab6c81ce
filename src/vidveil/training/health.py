"""What goes wrong in a training without an error, found in its history after each epoch.

    diverged     the loss of a learner is far above that of its first epoch, and rises
    dead         its gradient has all but vanished, or its loss never came below that of a guess: it learns nothing, and
                 a network that is trained against it learns nothing from it
    perfect      an attacker's gradient has vanished since it predicts without an error
    collapsed    a validation metric `output_spread` (how much outputs of different clips differ, 0 to 1) is almost 0

Nothing is stopped: if everything private is hidden, an attacker's loss is that of a guess, too. Restarting the attacker
shows which of the two it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from vidveil.training.learner import ONE, Learner

DIVERGED = 3.0
"""Times the loss of the first epoch, and as many epochs of rising losses."""
VANISHED = 1e-5
"""Of the largest gradient of any epoch."""
PATIENCE = 3
"""Epochs in a row before an attacker counts as dead."""
HALF = 0.5
BELOW = 0.98
"""A loss is below that of a guess if it is this share of it."""
SPREAD = "output_spread"
LEAST_SPREAD = 1 / 255

Row = Mapping[str, float]


def problems(history: Sequence[Row], learners: Sequence[Learner], best_epoch: int = 0) -> Iterator[str]:
    """One sentence each. `best_epoch` is that of the weights that are kept, from 1; 0: not known."""
    for learner in learners:
        alone = learner.name == ONE and len(learners) == 1
        label, whose = ("", "the loss") if alone else (f"{learner.name}/", f"the loss of {learner.name}")
        losses = _column(history, f"{label}train_loss")
        gradients = _column(history, f"{label}gradient")
        if _diverged(losses, _scale(history, f"{label}train_loss")):
            yield f"{whose} diverged, from {losses[0]:.3g} to {losses[-1]:.3g}: try a lower lr"
        if len(gradients) > PATIENCE and max(gradients[-PATIENCE:]) <= VANISHED * max(gradients):
            if learner.guess is not None and losses[-1] < HALF * learner.guess:
                yield f"{learner.name} predicts without an error: what it looks for is not hidden from it"
            else:
                yield f"{'training' if alone else learner.name} is dead: its gradient has vanished"
        elif learner.guess is not None and _no_better(losses, learner.guess):
            yield (
                f"{learner.name} is no better than a guess ({losses[-1]:.3g}, a guess has {learner.guess:.3g}): either "
                "nothing is left to learn, or it is dead: restart it to find out"
            )
    kept = history[best_epoch - 1 : best_epoch] if best_epoch else []
    spreads = [row[SPREAD] for row in (*_with(history, SPREAD)[-1:], *_with(kept, SPREAD))]
    if spreads and min(spreads) < LEAST_SPREAD:
        yield f"outputs collapsed: those of different clips differ by {min(spreads):.2g} of 1"


def _diverged(losses: Sequence[float], scale: float) -> bool:
    recent = losses[-int(DIVERGED) - 1 :]
    rises = len(recent) > DIVERGED and all(later > earlier for earlier, later in pairwise(recent))
    return rises and losses[-1] > losses[0] + (DIVERGED - 1) * scale


def _scale(history: Sequence[Row], name: str) -> float:
    """Size of a loss at first: terms that are added and subtracted may nearly cancel, so it is that of all terms."""
    first = _with(history, name)[:1]
    return sum(abs(row[term]) for row in first for term in _terms(row, name)) or sum(abs(row[name]) for row in first)


def _terms(row: Row, name: str) -> list[str]:
    return [term for term in row if term.startswith(f"{name}/")]


def _with(history: Sequence[Row], name: str) -> list[Row]:
    return [row for row in history if name in row]


def _no_better(losses: Sequence[float], guess: float) -> bool:
    recent = losses[-PATIENCE:]
    return len(recent) == PATIENCE and min(recent) > BELOW * guess


def _column(history: Sequence[Row], name: str) -> list[float]:
    return [row[name] for row in _with(history, name)]
