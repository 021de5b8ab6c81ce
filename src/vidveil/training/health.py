"""What goes wrong in a training without an error, found in its history after each epoch.

    diverged     the loss of a learner is far above that of its first epoch, and rises
    dead         its gradient has all but vanished, or its loss never came below that of a guess: it learns nothing, and
                 a network that is trained against it learns nothing from it
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
BELOW = 0.98
"""A loss is below that of a guess if it is this share of it."""
SPREAD = "output_spread"
LEAST_SPREAD = 1 / 255

Row = Mapping[str, float]


def problems(history: Sequence[Row], learners: Sequence[Learner]) -> Iterator[str]:
    """One sentence each."""
    for learner in learners:
        alone = learner.name == ONE and len(learners) == 1
        label, whose = ("", "the loss") if alone else (f"{learner.name}/", f"the loss of {learner.name}")
        losses = _column(history, f"{label}train_loss")
        gradients = _column(history, f"{label}gradient")
        if _diverged(losses):
            yield f"{whose} diverged, from {losses[0]:.3g} to {losses[-1]:.3g}: try a lower lr"
        if len(gradients) > PATIENCE and max(gradients[-PATIENCE:]) <= VANISHED * max(gradients):
            yield f"{'training' if alone else learner.name} is dead: its gradient has vanished"
        elif learner.guess is not None and _no_better(losses, learner.guess):
            yield (
                f"{learner.name} is no better than a guess ({losses[-1]:.3g}, a guess has {learner.guess:.3g}): either "
                "nothing is left to learn, or it is dead: restart it to find out"
            )
    spreads = _column(history, SPREAD)
    if spreads and spreads[-1] < LEAST_SPREAD:
        yield f"outputs collapsed: those of different clips differ by {spreads[-1]:.2g} of 1"


def _diverged(losses: Sequence[float]) -> bool:
    recent = losses[-int(DIVERGED) - 1 :]
    rises = len(recent) > DIVERGED and all(later > earlier for earlier, later in pairwise(recent))
    return rises and losses[-1] > losses[0] + (DIVERGED - 1) * abs(losses[0])


def _no_better(losses: Sequence[float], guess: float) -> bool:
    recent = losses[-PATIENCE:]
    return len(recent) == PATIENCE and min(recent) > BELOW * guess


def _column(history: Sequence[Row], name: str) -> list[float]:
    return [row[name] for row in history if name in row]
