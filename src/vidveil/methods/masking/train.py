"""`vidveil train` of a method that learns: the last epoch is kept, as a checkpoint that `--method` takes.

Validation is told, and nothing is chosen by it: what a method is worth is for attackers to say, who are trained anew.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn

from vidveil import __version__
from vidveil.core.errors import DataError, RecipeError
from vidveil.core.recipe import as_values
from vidveil.data import load_data
from vidveil.data.clips import ClipSet
from vidveil.data.loader import Loader
from vidveil.data.parts import PARTS, refuse_part
from vidveil.data.puppets import PuppetClips, masks
from vidveil.evaluation.evaluators.train import options
from vidveil.evaluation.measures.ground_truth import ALL_KEPT, of_clips
from vidveil.evaluation.points import about_data, use_of
from vidveil.methods.anonymized_data import Setting, anonymized
from vidveil.methods.dual_cls import train as dual_cls_training
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.dual_cls.train import Look, Timed
from vidveil.methods.masking.baselines import Grid
from vidveil.methods.masking.masker import loaded_unless_raw
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.methods.stprivacy import train as stprivacy_training
from vidveil.methods.stprivacy.recipe import STPrivacyRecipe
from vidveil.methods.trained import Trained
from vidveil.models import checkpoint
from vidveil.models.recognizers.pretrained import read_tensors
from vidveil.statistics.floors import largest_class, prevalence
from vidveil.tasks import Predictions, Task
from vidveil.training.loop import fit
from vidveil.training.options import LAST
from vidveil.training.recipe import LearningRecipe
from vidveil.training.runs import Run
from vidveil.weights import describe, weights

HidingRecipe = DualCLSRecipe | STPrivacyRecipe
Game = dual_cls_training.Game | stprivacy_training.Game
TRAININGS: dict[type[LearningRecipe], ModuleType] = {
    DualCLSRecipe: dual_cls_training,
    STPrivacyRecipe: stprivacy_training,
}
"""Each has `check(recipe)`, which refuses what contradicts itself before clips are drawn; what `published(recipe)`
weights it starts from, and the names of its `trunk(recipe)` that these fill; whether it learns SEVERAL_ACTIONS at once;
its `phases(recipe)`, how many epochs of each; and `prepare(recipe, data, device, pictures)`, which makes its `Game`:
that has the `anonymizer`, gives the loss of a batch when it is called, and takes a `look(video)` for validation."""


def run(
    recipe: LearningRecipe,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Trained:
    if isinstance(recipe, SplavuRecipe):
        from vidveil.methods.splavu import run as train_adapter

        return train_adapter.run(recipe, root=root, resume=resume, strict=strict, console=console)
    if not isinstance(recipe, HidingRecipe):
        raise RecipeError(f"{recipe.name} trains no method that hides")
    training = TRAININGS[type(recipe)]
    training.check(recipe)
    start = ":pretrained" if training.published(recipe) else ""
    chosen = replace(options(recipe, recipe.seed, start), monitor=LAST, trunk=training.trunk(recipe))
    device = chosen.accelerator()
    loaded_unless_raw(recipe.after)
    refuse_part(recipe.part, recipe.data)
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    data = load_data(
        recipe.data, frames=recipe.frames, size=recipe.size, root=root, seed=recipe.data_seed, strict=strict
    )
    _refuse(recipe, data)
    data = PARTS[recipe.part](data)
    data = anonymized(data, Setting(method=recipe.after))
    torch.manual_seed(recipe.seed)
    pictures = read_tensors(weights("vits14")) if recipe.pretrained else None
    game: Game = training.prepare(recipe, data, device, pictures)

    def loader(split: Any, order: Any, augment: Any) -> Loader:
        return Loader(
            data, data.indices(split), frames=recipe.frames, size=recipe.size, stride=recipe.stride, batch=recipe.batch,
            augment=augment, whole=recipe.augment == "squash", seed=recipe.seed, device=device, order=order,
        )  # fmt: skip

    validation = loader("val", "sequential", "none")
    last: dict[str, float] = {}

    def validate(_: nn.Module) -> Mapping[str, float]:
        last.clear()
        last.update(seen_on(game, validation, data))
        return last

    with Run.create(recipe.name, as_values(recipe), resume=resume, accelerator=device, console=console) as made:
        batches, begun = loader("train", "shuffle", recipe.augment), 0
        for phase, epochs in training.phases(recipe).items():
            fit(
                game,
                batches=Timed(batches, recipe.epochs, begun),
                loss=lambda model, moment: model(moment.video, moment.index, moment.progress),
                validate=validate,
                options=replace(chosen, epochs=epochs, seed=chosen.seed + begun),
                folder=made.part(phase),
                fingerprint=_key(recipe, data),
                log=made.log,
                label=recipe.name if phase == "train" else phase,
            )
            begun += epochs
        metrics = dict(last) or seen_on(game, validation, data)  # nothing is left to do of a run that was finished
        guessed = floors(metrics, data)
        folder = made.folder / "checkpoint"
        checkpoint.write(
            folder,
            recipe.method,
            game.anonymizer.about(),
            game.anonymizer.state_dict(),
            recipe=as_values(recipe),
            data=about_data(data),
            metrics=metrics,
            floors=guessed,
        )
    return Trained(recipe.method, folder, metrics, guessed)


def seen_on(game: Game, loader: Loader, data: ClipSet) -> dict[str, float]:
    """At the recipe's keep rate: what the action head and f_T tell, and what the masks hide where that is known."""
    network = game.eval().anonymizer
    looks: list[Look] = []
    rows = []
    with torch.inference_mode(), torch.autocast(loader.device.type, enabled=False):  # as it is deployed
        for batch in loader.views("1x1"):
            looks.append(game.look(batch.video[:, 0]))
            rows.append(batch.index)
    own = [look.action for look in looks if look.action is not None]
    masked = [look.masked for look in looks if look.masked is not None]
    kept = torch.cat([look.kept for look in looks]).view(-1, *network.grid)
    scores = torch.cat([look.scores for look in looks]).view(-1, *network.grid)
    use = use_of(data)
    heads = {use: own, use.replace("action", "masked"): masked}
    found = {name: told(game.action, logits, rows) for name, logits in heads.items() if logits}
    found[ALL_KEPT] = float(kept.float().mean())
    before = loaded_unless_raw(game.recipe.after)
    where_drawn = before is None or not before.elsewhere
    if where_drawn and isinstance(data, PuppetClips) and data.world.view == "all" and loader.stride == 1:
        every = masks(data)
        kinds = [every[row] for row in torch.cat(rows).tolist()]
        found |= of_clips(kinds, kept.cpu().numpy(), scores.cpu().numpy(), Grid(*network.tubelet[:2]))
    return found


def told(task: Task, logits: list[Tensor], rows: list[Tensor]) -> float:
    """The task's score of what a head says, batch by batch."""
    said = task.probabilities(torch.cat(logits)).cpu().numpy()
    where = torch.cat(rows).cpu().numpy()
    return task.score(Predictions(where, np.empty((len(where), 0), np.float32), {task.name: said}))


def floors(metrics: Mapping[str, float], data: ClipSet) -> dict[str, float]:
    """What guessing gets of each metric that it gets something of."""
    rows = data.indices("val")
    if data.action_labels is None:
        guessed = largest_class(data.action[rows])
    else:
        shares = prevalence(data.action_labels[rows].T)
        guessed = float(shares[(shares > 0) & (shares < 1)].mean())  # of the labels that cMAP is the mean over
    use = use_of(data)
    found = {use: guessed, use.replace("action", "masked"): guessed}
    if (kept := metrics.get(ALL_KEPT)) is not None:
        found |= {"identity_hidden": 1 - kept, "action_kept": kept, "score_auroc": 0.5}
    return {name: value for name, value in found.items() if name in metrics}


def _refuse(recipe: HidingRecipe, data: ClipSet) -> None:
    if data.action_labels is not None and not TRAININGS[type(recipe)].SEVERAL_ACTIONS:
        raise DataError(f"{data.name} shows several actions at once, and {recipe.method} learns one a clip")
    people, attributes = bool((data.person >= 0).any()), bool(len(data.attribute_names))
    if "attributes" in recipe.budget and not attributes:
        instead = "budget: identity" if people else "the file with its labels is missing, see docs/data.md"
        raise RecipeError(f"{data.name} names no attributes: {instead}")
    if "identity" in recipe.budget and not people:
        raise RecipeError(f"{data.name} names no people: budget: attributes")
    if "attributes" in recipe.budget and np.isnan(data.attributes[data.indices("train")]).all():
        raise RecipeError(f"{data.name}: its file of labels knows none of the clips to train on, see docs/data.md")


def _key(recipe: HidingRecipe, data: ClipSet) -> str:
    free = ("device", "checkpoint_seconds", "compile", "name")
    about = {key: value for key, value in as_values(recipe).items() if key not in free}
    about |= {"clips": data.videos.fingerprint, "vidveil": __version__}
    about["published"] = [describe(name) for name in TRAININGS[type(recipe)].published(recipe)]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
