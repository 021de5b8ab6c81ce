"""Weizmann: ten actions, each done once by each of nine people, in a folder with a `manifest.csv`.

Each person does each action once, so linkage looks among the other actions. Two questions, in three folds each:

    weizmann:people=F     the action, whoever does it: three people are left out for test, two for validation
    weizmann:actions=F    the person, whatever is done: a third of the actions is left out for test, two for validation;
                          the people are the same in all splits, on purpose, and a group is an action
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import UsageError
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import read_table
from vidveil.data.readers.splits import numbered
from vidveil.data.store.decoded import decoded

FOLDS = 3


def load(argument: str | None, *, root: Path, frames: int = 0, size: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    left_out, fold = _parse(argument)
    folder = root / "weizmann"
    rows = read_table(folder / "manifest.csv", ("path", "action", "subject"))
    action, actions = numbered([row["action"] for row in rows])
    person, _ = numbered([row["subject"] for row in rows])
    group = [row["subject" if left_out == "people" else "action"] for row in rows]
    return ClipSet(
        name=f"weizmann:{left_out}={fold}",
        videos=decoded("weizmann", folder, [row["path"] for row in rows]),
        ids=[row["path"] for row in rows],
        split=_splits(person if left_out == "people" else action, fold),
        group=np.array(group),
        action=action,
        actions=actions,
        person=person,
        gallery="other action",
    )


def _parse(argument: str | None) -> tuple[str, int]:
    """What is left out, and the fold."""
    left_out, _, fold = (argument or "people=0").partition("=")
    if left_out not in ("people", "actions") or (fold or "0") not in ("0", "1", "2"):
        raise UsageError(f"weizmann leaves out people=0, 1, 2 or actions=0, 1, 2, not {argument!r}")
    return left_out, int(fold or 0)


def _splits(values: NDArray[np.int64], fold: int) -> NDArray[np.str_]:
    """(N,) every third value from `fold` on is test, the first two of the next fold are validation."""
    present = np.unique(values)
    test = present[fold::FOLDS]
    val = present[(fold + 1) % FOLDS :: FOLDS][:2]
    return np.where(np.isin(values, test), "test", np.where(np.isin(values, val), "val", "train"))
