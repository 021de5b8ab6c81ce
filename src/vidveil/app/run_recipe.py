"""Recipes, carried out: what `vidveil train` and `vidveil evaluate` do."""

from pathlib import Path
from typing import Any

from rich.console import Console

from vidveil.core.errors import UsageError
from vidveil.core.recipe import find, read_for, runner_of
from vidveil.core.text import printable
from vidveil.evaluation.results import Results
from vidveil.methods.trained import Trained


def evaluate(
    recipe: str,
    *overrides: str,
    data: str | Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Results:
    """The results of a recipe of any protocol, which are also in `runs/NAME`. Silent without a console.

    `overrides` change keys of the recipe, as on the command line: `evaluate("blur_puppets", "data=puppets:share=0.1")`.
    `data` is the folder of datasets; default: VIDVEIL_DATA.
    """
    results: Results = carry_out(
        read_for("evaluate", find(recipe), overrides), root=_folder(data), resume=resume, strict=strict, console=console
    )
    return results


def train(
    recipe: str,
    *overrides: str,
    data: str | Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Results | Trained:
    """A recognizer is tested at once; what a method is worth is for attackers to say, so it comes as it was trained."""
    made: Results | Trained = carry_out(
        read_for("train", find(recipe), overrides), root=_folder(data), resume=resume, strict=strict, console=console
    )
    return made


def carry_out(
    recipe: Any,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Any:
    """A recipe that was read, by the function that the registry names for it."""
    return runner_of(recipe)(recipe, root=root, resume=resume, strict=strict, console=console)


def _folder(data: str | Path | None) -> Path | None:
    if data is not None and not Path(data).is_dir():
        raise UsageError(
            f"{printable(data)} is no folder of datasets; to evaluate another dataset, change the recipe's "
            'key by "data=NAME"'
        )
    return None if data is None else Path(data)
