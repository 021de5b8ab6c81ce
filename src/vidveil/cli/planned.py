"""A plan of a run, printed: a table on a terminal, plain lines in a pipe."""

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vidveil.core.progress import span
from vidveil.core.text import printable

if TYPE_CHECKING:
    from vidveil.training.plan import Plan, PlannedTraining

UNKNOWN = "?"
TRAININGS = ("training", "task", "network", "how many", "done", "clips", "epochs", "steps each", "time left")
WORK = ("made and cached first", "how many", "disk", "time")


def show_plan(verb: str, recipe: str, overrides: Sequence[str], data: Path | None) -> None:
    """What `vidveil VERB --dry-run` prints."""
    from vidveil.app.run_recipe import planned
    from vidveil.core.recipe import find, read_for

    if data is not None and not data.is_dir():
        from vidveil.core.errors import UsageError

        raise UsageError(f"{printable(data)} is no folder of datasets")
    plan = planned(read_for(verb, find(recipe), overrides), root=data)
    _rows(TRAININGS, [_training(plan, list(each)) for _, each in groupby(_sorted(plan), key=_name)])
    if plan.work:
        _rows(WORK, [_work(plan, number) for number in range(len(plan.work))])
    for line in _summary(plan):
        typer.echo(line)


def _name(one: "PlannedTraining") -> str:
    """Its label without the seed."""
    return one.label.rpartition(" seed ")[0] or one.label


def _sorted(plan: "Plan") -> "list[PlannedTraining]":
    """Seeds of the same training next to each other, in the order of the first of each."""
    first = {name: number for number, name in reversed(list(enumerate(map(_name, plan.trainings))))}
    return sorted(plan.trainings, key=lambda one: first[_name(one)])


def _training(plan: "Plan", each: "list[PlannedTraining]") -> list[str]:
    one, known = each[0], [plan.seconds(training) for training in each]
    left = UNKNOWN if None in known else span(sum(seconds or 0.0 for seconds in known))
    done = sum(training.done for training in each)
    steps = max((training.steps for training in each if training.steps is not None), default=None)
    counts = [str(len(each)), str(done), _number(one.clips), str(one.epochs), _number(steps)]
    return [_name(one), one.task, one.network, *counts, left]


def _work(plan: "Plan", number: int) -> list[str]:
    one = plan.work[number]
    seconds = plan.seconds(one)
    count = "in the cache" if one.count == 0 else f"{_number(one.count)} {one.unit}"
    time = "0 s" if one.count == 0 else UNKNOWN if seconds is None else span(seconds)
    return [one.what, count, _size(one.bytes) if one.bytes else "", time]


def _summary(plan: "Plan") -> list[str]:
    done = sum(one.done for one in plan.trainings)
    lines = [f"{len(plan.trainings)} trainings on {plan.data}, {done} of them done in the run {plan.name}"]
    free = plan.free_bytes
    for name, needed in plan.bytes.items():
        short = "; that is too little" if needed > free[name] else ""
        lines.append(f"disk, {name}: about {_size(needed)} more, {_size(free[name])} free{short}")
    left = plan.unmeasured
    if plan.speeds or not left:
        lines.append(f"time left: about {span(plan.total_seconds)}, by steps that were timed just now on {plan.device}")
    else:
        lines.append("time left: not known")
    if left and plan.speeds:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        lines.append(f"without {', '.join(left[:3])}{more}, which could not be timed")
    return [*lines, *(f"note: {note}" for note in dict.fromkeys(plan.notes))]


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _size(count: int) -> str:
    """`12 MB`"""
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{-(-count // 1000)} kB"


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*head)
        for row in rows:
            table.add_row(*map(_plain, row))
        Console(highlight=False, markup=False).print(table)
        return
    for row in rows:
        named = [f"{name} {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell]
        typer.echo(f"{row[0]}: {', '.join(named)}")


def _plain(cell: str) -> str:
    return cell.replace("[", "\\[")
