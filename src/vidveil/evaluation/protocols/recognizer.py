"""`vidveil train` of a recognizer: an evaluation of raw video by one network, which is kept as a checkpoint."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from safetensors.numpy import load_file, save_file

from vidveil.core.atomic import new_path, write_json
from vidveil.core.errors import DataError
from vidveil.core.version import __version__
from vidveil.data import load_data
from vidveil.data.clips import ClipSet
from vidveil.evaluation.checks import check_network
from vidveil.evaluation.evaluators.train import learn
from vidveil.evaluation.measures.actions import readable
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.measures.subgroups import subgroups
from vidveil.evaluation.protocols.protocol import Evaluated, Protocol, run_protocol
from vidveil.evaluation.results import Results
from vidveil.statistics.floors import PERMUTATIONS
from vidveil.statistics.intervals import RESAMPLES
from vidveil.training.recipe import TrainRecipe

MEASURED = {"action", "attributes", "identity"}
"""Tasks that are measured on test."""


class RecognizerProtocol(Protocol[ClipSet]):
    """No method is evaluated. The epoch is chosen on validation, test is looked at once."""

    recipe: TrainRecipe
    measure: Measure

    def __init__(self, recipe: TrainRecipe, data: ClipSet) -> None:
        super().__init__(recipe, data, data, Measure(data, permutations=PERMUTATIONS, resamples=RESAMPLES))
        self.seeds = (recipe.seed,)
        if "action" in recipe.tasks and not readable(data):
            raise DataError(
                f"{data.name} has no action to learn: all clips show the same, or those of test are not in training; "
                "other tasks are attributes and identity"
            )

    def evaluate_setting(self, data: Sequence[ClipSet], about: Evaluated) -> Evaluated:
        recipe, network, numbers = self.recipe, self.recipe.recognizer, about.numbers
        learned = learn(
            data[0],
            recipe.tasks,
            network,
            recipe,
            seed=recipe.seed,
            folder=self.run.part("train"),
            log=self.run.log,
            label=recipe.name,
        )
        self.add_cost(network, learned.parameters, [learned.seconds])
        for name in set(recipe.tasks) - MEASURED:
            self.run.log.say(f"{name}: {learned.scores[name]:.3f} on validation; test is not looked at for this task")
        if "action" in recipe.tasks:
            numbers[self.measure.utility] = utility = self.measure.action({network: [learned]})
            numbers |= subgroups(self.measure, utility, [learned])
        if "identity" in recipe.tasks:
            numbers |= self.measure.linkage({network: [learned]})
        if "attributes" in recipe.tasks:
            found, about.constant = self.measure.attributes({network: [learned]})
            numbers |= found
        return about

    def finish(self, results: Results) -> None:
        """`runs/NAME/checkpoint/` holds the weights."""
        _checkpoint(self.run.folder / "checkpoint", self.run.part("train") / "weights.safetensors", results)


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


def load(recipe: TrainRecipe, root: Path | None, strict: bool) -> RecognizerProtocol:
    """The protocol, with the clips of its recipe."""
    check_network(recipe.recognizer)
    data = load_data(
        recipe.data, frames=recipe.frames, size=recipe.size, root=root, seed=recipe.data_seed, strict=strict
    )
    return RecognizerProtocol(recipe, data)


run = partial(run_protocol, load)
"""`vidveil train` of a recognizer."""
