"""Recipes, carried out or planned: what `vidveil train` and `vidveil evaluate` do."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from vidveil.core.errors import UsageError, WeightsError
from vidveil.core.recipe import VERBS, as_values, find, read, read_for, runner_of, verb_of
from vidveil.core.registry import resolve
from vidveil.core.text import printable
from vidveil.data import load_data
from vidveil.data.store.videos import NotInCacheError, cache_folder, only_from_cache
from vidveil.evaluation.results import Results
from vidveil.methods.trained import Trained
from vidveil.training.options import options_of
from vidveil.training.plan import NothingTrained, Plan, PlannedTraining, decoding, dry_run, steps_of
from vidveil.training.runs import Run, runs_folder
from vidveil.weights import nothing_fetched


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
        read_for("evaluate", find(recipe), _words(overrides)),
        root=folder_of_datasets(data),
        resume=resume,
        strict=strict,
        console=console,
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
        read_for("train", find(recipe), _words(overrides)),
        root=folder_of_datasets(data),
        resume=resume,
        strict=strict,
        console=console,
    )
    return made


def plan(recipe: str, *overrides: str, data: str | Path | None = None, resume: bool = False) -> Plan:
    """What `evaluate` or `train` with the same words will do, and about how long it takes here. Refused if they would
    be, as where the name of the run is taken.

    A few steps of each network are timed. No run begins, nothing is written or decoded.
    """
    return planned(read(find(recipe), _words(overrides)), root=folder_of_datasets(data), resume=resume)


def planned(recipe: Any, *, root: Path | None = None, resume: bool = False) -> Plan:
    """The plan of a recipe that was read, with speeds of this machine."""
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    key, default, table = VERBS[verb_of(recipe)]
    planner = table[getattr(recipe, key, default)].plan
    with nothing_fetched():
        made: Plan = resolve(planner)(recipe, root) if planner else _by_a_few_steps(recipe, root)
        return made.measure()


def _by_a_few_steps(recipe: Any, root: Path | None) -> Plan:
    """What runs the recipe is called; its trainings take a few steps, and whatever it writes is deleted."""
    found = Plan(recipe.name, recipe.data, options_of(recipe, 0).accelerator())
    found.folders = {"cache": cache_folder(), "runs": runs_folder()}
    with TemporaryDirectory(prefix="vidveil-plan-") as folder, dry_run(Path(folder), runs_folder()) as dry:
        try:
            with only_from_cache():
                runner_of(recipe)(recipe, root=root, resume=False, strict=False, console=None)
        except NothingTrained:
            pass
        except WeightsError as error:
            found.notes.append(f"nothing is timed: {error}")
            _add_by_labels(found, recipe, root)
        except NotInCacheError as error:
            found.notes.append(f"{error}: nothing is timed")
            if not dry.trainings and verb_of(recipe) == "train":
                _add_by_labels(found, recipe, root)
    method = str(getattr(recipe, "method", ""))
    found.trainings += [replace(one, network=method) for one in dry.trainings]
    found.notes.append("validation comes on top")
    return found


def _add_by_labels(found: Plan, recipe: Any, root: Path | None) -> None:
    """Of a set that is not decoded yet, the training as the recipe has it."""
    clips, videos = None, None
    with only_from_cache(), suppress(NotInCacheError):
        data = load_data(recipe.data, frames=recipe.frames, size=recipe.size, root=root, seed=recipe.data_seed)
        clips, videos = len(data.indices("train")), len(data)
    steps = None if clips is None else steps_of(clips, recipe.batch, recipe.epochs)
    network = str(getattr(recipe, "method", ""))
    found.trainings.append(
        PlannedTraining(label=recipe.name, task="", network=network, clips=clips, epochs=recipe.epochs, steps=steps)
    )
    found.work.append(decoding(recipe.data, videos))


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


def _words(overrides: Sequence[object]) -> list[str]:
    if other := next((one for one in overrides if not isinstance(one, str)), None):
        raise UsageError(
            f'overrides are words, such as "seeds=[0,1]", and {printable(repr(other))} is none: write *overrides for a '
            "list"
        )
    return [str(one) for one in overrides]


def folder_of_datasets(data: str | Path | None) -> Path | None:
    if data is not None and not Path(data).is_dir():
        raise UsageError(
            f"{printable(data)} is no folder of datasets; to evaluate another dataset, change the recipe's "
            'key by "data=NAME"'
        )
    return None if data is None else Path(data)
