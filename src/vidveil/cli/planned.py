"""A plan of a run, printed: a table on a terminal, plain lines in a pipe."""

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vidveil.core.progress import span
from vidveil.core.recipe import find, read_for

if TYPE_CHECKING:
    from vidveil.training.plan import Plan, PlannedTraining, PlannedWork

UNKNOWN = "?"
SHOWN = 3
"""Names of what could not be timed, at most; the tables have all."""
COLUMNS = ("how many", "done", "clips", "epochs", "steps", "time left")
"""Of each training; steps are those of one."""
WORK = ("made and cached first", "how many", "disk", "time")


def show_plan(verb: str, recipe: str, overrides: Sequence[str], data: Path | None, *, resume: bool) -> None:
    """What `vidveil VERB --dry-run` prints: the total, then what it is made of."""
    from vidveil.app.run_recipe import folder_of_datasets, planned  # torch loads here

    plan = planned(read_for(verb, find(recipe), overrides), root=folder_of_datasets(data), resume=resume)
    for line in _summary(plan):
        typer.echo(line)
    _show_trainings(plan)
    if plan.work:
        rows = [_work(plan, one) for one in plan.work]
        _show(WORK, [rows])
    for note in dict.fromkeys(plan.notes):
        typer.echo(f"note: {note}")


def _show_trainings(plan: "Plan") -> None:
    """Those of a group next to each other; on a terminal its name stands once, above them."""
    terminal = sys.stdout.isatty()
    rows = [(each[0].group, [_name(each[0]), *_training(plan, each)]) for each in _alike(plan)]
    left_out = set()
    if all(cells[1] == "1" for _, cells in rows):
        left_out.add("how many")
    if all(cells[2] == "0" for _, cells in rows):
        left_out.add("done")
    columns = [number for number, name in enumerate(COLUMNS, 1) if name not in left_out]
    groups = []
    for group, of_group in groupby(rows, key=lambda row: row[0]):
        cells = [[row[0], *(row[number] for number in columns)] for _, row in of_group]
        if group and terminal:
            named = [[f"  {row[0].removeprefix(group).strip() or row[0]}", *row[1:]] for row in cells]
            cells = [[group, *([""] * len(columns))], *named]
        groups.append(cells)
    _show(["training", *(COLUMNS[number - 1] for number in columns)], groups)


def _name(one: "PlannedTraining") -> str:
    """Its label without the seed, with the task and network where it does not say them."""
    label = one.label.rpartition(" seed ")[0] or one.label
    return " ".join([label, *(word for word in (one.task, one.network) if word not in label)])


def _alike(plan: "Plan") -> "list[list[PlannedTraining]]":
    """The seeds of each training. In the order of the first of each group, and of each training in its group."""
    groups = list(dict.fromkeys(one.group for one in plan.trainings))
    names = list(dict.fromkeys(map(_name, plan.trainings)))
    listed = sorted(plan.trainings, key=lambda one: (groups.index(one.group), names.index(_name(one))))
    return [list(each) for _, each in groupby(listed, key=lambda one: (one.group, _name(one)))]


def _training(plan: "Plan", each: "list[PlannedTraining]") -> list[str]:
    one, known = each[0], [plan.seconds(training) for training in each]
    left = UNKNOWN if None in known else span(sum(seconds or 0.0 for seconds in known))
    done = sum(training.done for training in each)
    steps = max((training.steps for training in each if training.steps is not None), default=None)
    return [str(len(each)), str(done), _number(one.clips), str(one.epochs), _number(steps), left]


def _work(plan: "Plan", one: "PlannedWork") -> list[str]:
    seconds = plan.seconds(one)
    count = "in the cache" if one.count == 0 else f"{_number(one.count)} {one.unit}"
    time = "0 s" if one.count == 0 else UNKNOWN if seconds is None else span(seconds)
    return [one.what, count, UNKNOWN if one.bytes is None else _size(one.bytes) if one.bytes else "", time]


def _summary(plan: "Plan") -> list[str]:
    return [f"{_counted(plan)} on {plan.data}{_done(plan)}", *_time(plan), *_disk(plan)]


def _counted(plan: "Plan") -> str:
    count = len(plan.trainings)
    return f"{count} training" + "s" * (count != 1)


def _done(plan: "Plan") -> str:
    runs = [one.run for one in plan.trainings if one.done]
    parts = [f"{runs.count('')} of them done in the run {plan.name}"] if "" in runs else []
    parts += [f"{runs.count(run)} of them taken from run {run}" for run in dict.fromkeys(runs) if run]
    return "".join(f", {part}" for part in parts)


def _time(plan: "Plan") -> list[str]:
    left = plan.unmeasured
    if left and not plan.speeds:
        lines = ["time left: not known"]
    else:
        how = "at least" if left else "about"
        timed = f", by steps that were timed just now on {plan.device}" if plan.speeds else ""
        lines = [f"time left: {how} {span(plan.total_seconds)}{timed}"]
    if left and plan.speeds:
        more = f"; and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
        lines.append(f"without what could not be timed: {'; '.join(left[:SHOWN])}{more}")
    return lines


def _disk(plan: "Plan") -> list[str]:
    """Of the cache as much as is known, of runs at most so much."""
    lines, free = [], plan.free_bytes
    for name, needed in plan.bytes.items():
        whole = plan.whole_bytes[name]
        if not needed and not whole:
            more = "not known"
        elif not needed:
            more = "nothing more"
        elif name == "runs":
            more = f"at most {_size(needed)} more" + ("" if whole else ", without trainings that were not timed")
        else:
            more = f"{'about' if whole else 'at least'} {_size(needed)} more"
        short = "; that is too little" if needed > free[name] else ""
        lines.append(f"disk, {name}: {more}; {_size(free[name])} free{short}")
    return lines


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _size(count: int) -> str:
    """`12 MB`"""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{-(-count // 1000)} kB"


def _show(head: Sequence[str], groups: Sequence[Sequence[Sequence[str]]]) -> None:
    """Groups of rows, apart from each other."""
    if not any(groups):
        return
    if sys.stdout.isatty():
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for number, name in enumerate(head):
            table.add_column(name, justify="right" if number else "left", overflow="fold")
        for rows in groups:
            for row in rows:
                table.add_row(*map(_plain, row))
            table.add_section()
        Console(highlight=False, markup=False).print(table)
        return
    for row in (row for rows in groups for row in rows):
        named = [f"{name} {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell]
        typer.echo(f"{row[0]}: {', '.join(named)}")


def _plain(cell: str) -> str:
    return cell.replace("[", "\\[")
