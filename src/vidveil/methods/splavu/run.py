"""`vidveil train` of an adapter of features: the last epoch is kept, as a checkpoint that `--method` takes.

Nothing is chosen by validation: attackers that are trained anew evaluate an adapter.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console

from vidveil.core.recipe import as_values
from vidveil.data.description import data_description, utility_metric
from vidveil.data.features.sets import FeatureSet, load_features
from vidveil.methods.splavu.long_videos import Whole, fingerprint
from vidveil.methods.splavu.model import too_few
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.methods.splavu.train import IdentityPretraining, SeededBatches, SplavuNetworks, refuse
from vidveil.methods.trained import Trained, Validation, finish, training_fingerprint
from vidveil.statistics.floors import largest_class
from vidveil.tasks import Predictions
from vidveil.tasks.long_videos import load_anomaly_videos, load_detection_videos
from vidveil.training.loop import fit
from vidveil.training.options import LAST, options_of
from vidveil.training.runs import Run


def run(
    recipe: SplavuRecipe,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Trained:
    chosen = replace(options_of(recipe, recipe.seed), monitor=LAST, channels_last=False)
    if chosen.precision == "auto":  # an adapter is small, and bfloat16 would round the features themselves
        chosen = replace(chosen, precision="32-true")
    device = chosen.accelerator()
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    data = features_for(recipe, root=root, strict=strict, device=device)
    whole = videos_for(recipe, root=root, strict=strict, device=device)
    refuse(recipe, data, whole)
    torch.manual_seed(recipe.seed)
    joint = SplavuNetworks(recipe, data, device, whole).to(device)
    validation = Validation(lambda: validation_metrics(joint, data))
    with Run.create(recipe.name, as_values(recipe), resume=resume, accelerator=device, console=console) as made:
        key = training_fingerprint(
            recipe,
            features=data.store.fingerprint,
            **({"videos": [fingerprint(one) for one in whole]} if whole else {}),
        )
        if caution := too_few(joint.adapter.shape, len(data.labels.indices("train"))):
            made.log.say(f"warning: {caution}", style="yellow")
        if recipe.adapter == "mlp" and recipe.reference and recipe.identity_epochs:
            fit(
                IdentityPretraining(joint.adapter),
                batches=SeededBatches(data, recipe, joint.adapter, static=False),
                loss=lambda model, moment: model(moment),
                validate=None,
                options=replace(chosen, epochs=recipe.identity_epochs, lr=IDENTITY_RATE),
                folder=made.part("identity"),
                fingerprint=key,
                log=made.log,
                label="identity",
            )
        found = fit(
            joint,
            batches=SeededBatches(data, recipe, joint.adapter, static=recipe.budget == "static", others=joint.others),
            loss=lambda model, moment: model(moment),
            validate=validation,
            options=chosen,
            folder=made.part("train"),
            fingerprint=key,
            log=made.log,
            label=recipe.name,
        )
        metrics = validation.metrics()
        return finish(
            made,
            recipe,
            joint.adapter,
            metrics,
            floors(metrics, data),
            data=data_description(data.labels),
            encoder=dict(data.store.about["encoder"]),
            on_features=True,
            problems=found.problems,
        )


IDENTITY_RATE = 2e-5


def features_for(recipe: SplavuRecipe, *, root: Path | None, strict: bool, device: str) -> FeatureSet:
    return load_features(
        recipe.data, recipe.encoder, frames=recipe.frames, size=recipe.size, stride=recipe.stride, half=recipe.half,
        root=root, seed=recipe.data_seed, strict=strict, device=device,
    )  # fmt: skip


def videos_for(recipe: SplavuRecipe, *, root: Path | None, strict: bool, device: str) -> list[Whole]:
    """Those of each task on whole videos, in the order of tasks."""
    loads: dict[str, Callable[..., Whole]] = {"detection": load_detection_videos, "anomaly": load_anomaly_videos}
    return [
        loads[task](
            data, recipe.encoder, frames=recipe.frames, size=recipe.size,
            stride=recipe.stride, half=recipe.half, root=root, seed=recipe.data_seed, strict=strict, device=device,
        )
        for task, data in recipe.whole_videos.items()
    ]  # fmt: skip


@torch.inference_mode()
def validation_metrics(joint: SplavuNetworks, data: FeatureSet) -> dict[str, float]:
    """On validation videos: how well the tasks still work, and how far features were moved."""
    joint.eval()
    rows, scale = data.labels.indices("val"), joint.adapter.scale
    found = {}
    if len(rows):
        before = data.clips.even(rows)  # (n, V, D)
        moved = joint.adapter(before.flatten(0, 1)).view(before.shape)
        after = moved / scale
        found["moved"] = float((moved - before).pow(2).mean() / before.pow(2).mean())
        for task in joint.tasks:
            probabilities = task.probabilities(joint.heads[task.name](after)).mean(1).float().cpu().numpy()
            found[utility_metric(data.labels)] = task.score(
                Predictions(rows, after.mean(1).cpu().numpy(), {task.name: probabilities})
            )
    for one in joint.others:
        found |= one.metrics(lambda left: joint.adapter.adapt(left / scale))
    return found


def floors(metrics: Mapping[str, float], data: FeatureSet) -> dict[str, float]:
    found = {name: 0.5 for name in ("anomaly_video_auc", "anomaly_frame_auc") if name in metrics}
    if "action_top1" in metrics:
        found["action_top1"] = largest_class(data.labels.action[data.labels.indices("val")])
    return found
