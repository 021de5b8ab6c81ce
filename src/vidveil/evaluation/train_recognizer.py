"""`vidveil train`: one recognizer, kept as a checkpoint, with its test numbers next to their floors."""

from pathlib import Path
from time import monotonic

from rich.console import Console
from safetensors.numpy import load_file, save_file

from vidveil.core.atomic import new_path, write_json
from vidveil.core.errors import DataError
from vidveil.core.machine import describe
from vidveil.core.recipe import as_values
from vidveil.core.version import __version__
from vidveil.data import load_data
from vidveil.data.description import data_description
from vidveil.evaluation.checks import check_network
from vidveil.evaluation.evaluators.train import learn
from vidveil.evaluation.measures.actions import readable
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.measures.subgroups import subgroups
from vidveil.evaluation.number import Number
from vidveil.evaluation.points import point
from vidveil.evaluation.results import Results
from vidveil.statistics.floors import PERMUTATIONS
from vidveil.statistics.intervals import RESAMPLES
from vidveil.training.options import options_of
from vidveil.training.recipe import TrainRecipe
from vidveil.training.runs import Run

MEASURED = {"action", "attributes", "identity"}
"""Tasks that are measured on test."""


def run(
    recipe: TrainRecipe,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Results:
    """Train; the epoch is chosen on validation, test is looked at once. `runs/NAME/checkpoint/` holds the weights."""
    began = monotonic()
    accelerator = options_of(recipe, recipe.seed).accelerator()
    check_network(recipe.recognizer)
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    data = load_data(
        recipe.data, frames=recipe.frames, size=recipe.size, root=root, seed=recipe.data_seed, strict=strict
    )
    if "action" in recipe.tasks and not readable(data):
        raise DataError(
            f"{data.name} has no action to learn: all clips show the same, or those of test are not in training; other "
            "tasks are attributes and identity"
        )
    with Run.create(recipe.name, as_values(recipe), resume=resume, accelerator=accelerator, console=console) as made:
        learned = learn(
            data,
            recipe.tasks,
            recipe.recognizer,
            recipe,
            seed=recipe.seed,
            folder=made.part("train"),
            log=made.log,
            label=recipe.name,
        )
        for name in set(recipe.tasks) - MEASURED:
            made.log.say(f"{name}: {learned.scores[name]:.3f} on validation; test is not looked at for this task")
        measure = Measure(data, permutations=PERMUTATIONS, resamples=RESAMPLES)
        numbers: dict[str, Number] = {}
        constant: list[str] = []
        if "action" in recipe.tasks:
            numbers[measure.utility] = utility = measure.action({recipe.recognizer: [learned]})
            numbers |= subgroups(measure, utility, [learned])
        if "identity" in recipe.tasks:
            numbers |= measure.linkage({recipe.recognizer: [learned]})
        if "attributes" in recipe.tasks:
            found, constant = measure.attributes({recipe.recognizer: [learned]})
            numbers |= found
        results = Results(
            name=recipe.name,
            recipe=as_values(recipe),
            data=data_description(data),
            machine=describe(accelerator),
            seconds=round(monotonic() - began, 1),
            raw=point("raw", None, numbers, constant, numbers),
            points=[],
            cost={recipe.recognizer: {"parameters": learned.parameters, "seconds": learned.seconds}},
        )
        results.write(made.folder / "results.json")
        _checkpoint(made.folder / "checkpoint", learned.folder / "weights.safetensors", results)
    return results


def _checkpoint(folder: Path, weights: Path, results: Results) -> None:
    """safetensors and a JSON: everything to rebuild the network, and nothing that runs."""
    folder.mkdir(exist_ok=True)
    with new_path(folder / "weights.safetensors") as part:
        save_file(load_file(weights), part)
    about = {
        "recipe": results.recipe,
        "data": results.data,
        "vidveil": __version__,
        "metrics": {name: metric.value for name, metric in results.raw.metrics.items()},
    }
    write_json(folder / "checkpoint.json", about)
