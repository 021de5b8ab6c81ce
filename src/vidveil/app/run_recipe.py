"""Recipes, carried out: what `vidveil train` and `vidveil evaluate` do."""

from pathlib import Path
from typing import Any

from rich.console import Console

from vidveil.core.recipe import find, read_for, runner_of
from vidveil.evaluation.results import Results
from vidveil.methods.trained import Trained


def evaluate(
    recipe: str,
    *overrides: str,
    data: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Results:
    """The results of a recipe of any protocol, which are also in `runs/NAME`. Silent without a console."""
    results: Results = _run("evaluate", recipe, overrides, data, resume, strict, console)
    return results


def train(
    recipe: str,
    *overrides: str,
    data: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Results | Trained:
    """A recognizer is tested at once; what a method is worth is for attackers to say, so it comes as it was trained."""
    made: Results | Trained = _run("train", recipe, overrides, data, resume, strict, console)
    return made


def _run(
    verb: str,
    recipe: str,
    overrides: tuple[str, ...],
    data: Path | None,
    resume: bool,
    strict: bool,
    console: Console | None,
) -> Any:
    wanted = read_for(verb, find(recipe), overrides)
    return runner_of(wanted)(wanted, root=data, resume=resume, strict=strict, console=console)
