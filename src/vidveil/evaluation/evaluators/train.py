"""One network trained on one set of clips: the step that utility models, attackers and controls have in common.

The epoch is chosen on validation. Test clips are predicted once, after training, and the predictions are stored: all
numbers are computed from them, and a second run of the same evaluation finds them again.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn

from vidveil.core.atomic import new_path, write_json
from vidveil.core.bounded import read_json, reason, regular
from vidveil.core.errors import DataError, UsageError
from vidveil.core.progress import phase
from vidveil.core.recipe_keys import with_old_names
from vidveil.core.typed import from_values
from vidveil.core.version import __version__
from vidveil.data.clips import ClipSet, Split
from vidveil.data.loader import Batch, Loader
from vidveil.data.temporal_controls import CONTROLS
from vidveil.data.views import Augment
from vidveil.evaluation.evaluators.frozen import embedded, features_of
from vidveil.evaluation.evaluators.mlp import HEADS, with_heads
from vidveil.models.recognizers import RECOGNIZERS, build
from vidveil.models.recognizers.recognizer import Classifier
from vidveil.tasks import Predictions, Task, make_task
from vidveil.tasks.identity import Identity, everybody_is_known
from vidveil.training.log import Log
from vidveil.training.loop import fit
from vidveil.training.options import options_of
from vidveil.training.recipe import LearningRecipe
from vidveil.weights import describe

NEVER_TRAINED = 1_000_000  # the number of an epoch that no training reaches
Order = Literal["shuffle", "sequential"]
TESTED: tuple[Split, ...] = ("val", "test")


@dataclass(frozen=True)
class TrainedNetwork:
    """What came out of one training."""

    predictions: Mapping[str, Predictions]
    """By split: val and test; train too, where the ranking learns from its features."""
    scores: Mapping[str, float]
    """On validation, by task."""
    parameters: int
    seconds: float
    network: str
    folder: Path
    """Where its weights are."""


def learn(
    data: ClipSet,
    tasks: Sequence[str],
    network: str,
    recipe: LearningRecipe,
    *,
    seed: int,
    folder: Path,
    control: str = "",
    start: Path | None = None,
    only_read: bool = False,
    splits: Sequence[Split] = TESTED,
    log: Log | None = None,
    label: str = "",
) -> TrainedNetwork:
    """Train `network` on the training clips for all `tasks` at once.

    Args:
        network: a recognizer's name, `NAME:pretrained`, `NAME:frozen` (heads on its features alone are) or `NAME:raw`.
        folder: keeps checkpoints on the way and predictions at the end; a finished one is read, not computed.
        control: what is taken away from the clips, a name of `CONTROLS`.
        start: weights of the same network trained elsewhere, for `NAME:raw`.
        only_read: a training that is not there is an error.
        splits: which clips are predicted; `train` as well where tasks have identity.
    """
    training = _Training(data, tasks, network, recipe, seed, folder, control, start, splits)
    key = training.key()
    if (found := _read(folder, network, key)) is not None:
        return found
    if only_read:
        raise UsageError(f"the run {folder.parent.parent.name} has no training {folder.name}: leave out raw=")
    began = monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    learned_tasks = [make_task(name, data, training.device, recipe.label_smoothing) for name in tasks]
    if network.endswith(":frozen"):
        predictions, parameters = training.by_frozen(learned_tasks)
    else:
        predictions, parameters = training.whole(learned_tasks, key, log, label)
    if training.device == "cuda":
        torch.cuda.empty_cache()  # for other processes on the same accelerator, while statistics are computed
    scores = {task.name: task.score(predictions["val"]) for task in learned_tasks}
    learned = TrainedNetwork(predictions, scores, parameters, round(monotonic() - began, 1), network, folder)
    _write(learned, key)
    return learned


@dataclass(frozen=True)
class _Training:
    """What `learn` was asked for."""

    data: ClipSet
    tasks: Sequence[str]
    network: str
    recipe: LearningRecipe
    seed: int
    folder: Path
    control: str
    start: Path | None
    splits: Sequence[Split]

    @property
    def device(self) -> str:
        return options_of(self.recipe, self.seed).accelerator()

    def by_frozen(self, tasks: Sequence[Task]) -> tuple[dict[str, Predictions], int]:
        """By a frozen network: only heads are trained, on its features of training clips."""
        data = self.data
        wanted = dict.fromkeys((*(("train",) if tasks else ()), *self.splits))
        rows = np.unique(np.concatenate([data.indices(split) for split in wanted]))
        name = self.network.partition(":")[0]
        features, parameters = features_of(
            data, rows, name, self.recipe, device=self.device, seed=self.seed, control=self.control
        )
        predictions = {
            split: Predictions(data.indices(split), features[np.searchsorted(rows, data.indices(split))])
            for split in wanted
        }
        with_head = [task for task in tasks if not isinstance(task, Identity) or task.all_known]
        return with_heads(predictions, with_head, self.device, self.seed) if with_head else predictions, parameters

    def whole(self, tasks: Sequence[Task], key: str, log: Log | None, label: str) -> tuple[dict[str, Predictions], int]:
        """A whole network."""
        recipe = self.recipe
        model = classifier(self.network, tasks, recipe, self.seed)
        if self.start is not None:
            model.recognizer.load_state_dict(_weights(self.start))
        model.to(self.device)
        self._fit(model, tasks, key, log, label)
        with new_path(self.folder / "weights.safetensors") as part:
            save_file(_arrays(model.recognizer), part)
        with phase(f"predictions of {label or self.network}"):
            predictions: dict[str, Predictions] = {
                split: predict(model, self.loader(split, "sequential", "none"), tasks, recipe.views)
                for split in self.splits
            }
            if any(task.name == "identity" for task in tasks):  # spaces are learned from views unlike those of training
                train = self.loader("train", "sequential", recipe.augment)
                predictions["train"] = predict(model, train, tasks, None)
        return predictions, sum(p.numel() for p in model.parameters())

    def loader(self, split: Split, order: Order, augment: Augment) -> Loader:
        recipe = self.recipe
        return Loader(
            self.data, self.data.indices(split), frames=recipe.frames, size=recipe.size, stride=recipe.stride,
            batch=recipe.batch, augment=augment, seed=self.seed, device=self.device, order=order,
            transform=CONTROLS.get(self.control),
        )  # fmt: skip

    def _fit(self, model: Classifier, tasks: Sequence[Task], key: str, log: Log | None, label: str) -> None:
        validation = self.loader("val", "sequential", "none")

        def loss(model: nn.Module, batch: Batch) -> Tensor:
            outputs = model(batch.video)
            return torch.stack([task.loss(outputs[task.name], batch.index) for task in tasks]).sum()

        def validate(_: nn.Module) -> Mapping[str, float]:  # the model itself: what wraps it has `forward` alone
            predictions = predict(model, validation, tasks, self.recipe.views)  # as at test: one view is noisy
            scores = {task.name: task.score(predictions) for task in tasks}
            known = [score for score in scores.values() if not np.isnan(score)]  # all may be alike among so few people
            return {**scores, "score": float(np.mean(known)) if known else 0.0}

        fit(
            model,
            batches=self.loader("train", "shuffle", self.recipe.augment),
            loss=loss,
            validate=validate,
            options=options_of(self.recipe, self.seed, self.network),
            folder=self.folder / "training",
            fingerprint=key,
            log=log,
            label=label,
        )

    def key(self) -> str:
        """Everything that the outcome depends on: a part of a run is used again only for the same question."""
        data, recipe, network = self.data, self.recipe, self.network
        name, _, begins = network.partition(":")
        published = RECOGNIZERS[name].weights if begins in ("pretrained", "frozen") else None
        about = {
            "vidveil": __version__,
            "control": self.control,
            "gallery": data.gallery,
            "published": describe(published) if published else None,
            "precision": str(options_of(recipe, self.seed).exact_precision()),
            "data": data.videos.fingerprint,
            "labels": _labels(data),
            "tasks": list(self.tasks),
            "network": network,
            "start": None if self.start is None else hashlib.sha256(self.start.read_bytes()).hexdigest(),
            "options": with_old_names(options_of(recipe, self.seed, network).fixed()),
            "clips": [recipe.frames, recipe.size, recipe.stride, recipe.views, recipe.augment, recipe.batch],
            "label_smoothing": recipe.label_smoothing,
            **({"splits": list(self.splits)} if tuple(self.splits) != TESTED else {}),
            **({"heads": HEADS, "train": "as test"} if begins == "frozen" else {}),
            **({"scored by": "naming"} if "identity" in self.tasks and everybody_is_known(data) else {}),
        }
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


@phase("features of clips by networks that were trained on others")
def embed(learned: TrainedNetwork, data: ClipSet, recipe: LearningRecipe) -> dict[str, Predictions]:
    """Features of the validation and test clips of a set, by a network that was trained on another one."""
    device = options_of(recipe, 0).accelerator()
    model = classifier(learned.network.partition(":")[0], [], recipe, 0)
    model.recognizer.load_state_dict(_weights(learned.folder / "weights.safetensors"))
    model.to(device)
    found: dict[str, Predictions] = {}
    for split in TESTED:
        loader = Loader(
            data, data.indices(split), frames=recipe.frames, size=recipe.size, stride=recipe.stride,
            batch=recipe.batch, device=device, order="sequential",
        )  # fmt: skip
        found[split] = predict(model, loader, [], recipe.views)
    return found


def predict(model: Classifier, loader: Loader, tasks: Sequence[Task], views: str | None) -> Predictions:
    """Features and probabilities of every clip, averaged over its views; without `views`, of one augmented view."""
    rows, features = [], []
    probabilities: dict[str, list[Tensor]] = {task.name: [] for task in tasks}
    model.eval()
    with torch.inference_mode(), torch.autocast(loader.device.type, enabled=False):
        for batch in loader.views(views) if views else loader.epoch(NEVER_TRAINED):
            count = batch.video.shape[1] if views else 1
            clips = batch.video.flatten(0, 1) if views else batch.video  # (B, V, 3, T, H, W) → (B·V, 3, T, H, W)
            embeddings = embedded(model.features, clips, loader.batch * count)
            rows.append(batch.index.cpu())
            features.append(embeddings.view(-1, count, embeddings.shape[-1]).mean(1).cpu())
            for task in tasks:
                each = task.probabilities(model.heads[task.name](embeddings))  # (B·V, outputs)
                probabilities[task.name].append(each.view(-1, count, each.shape[-1]).mean(1).cpu())
    return Predictions(
        torch.cat(rows).numpy(),
        torch.cat(features).numpy(),
        {name: torch.cat(parts).numpy() for name, parts in probabilities.items()},
    )


def classifier(network: str, tasks: Sequence[Task], recipe: LearningRecipe, seed: int) -> Classifier:
    """A fresh network with a head for each task; `seed` decides its first weights."""
    name, _, start = network.partition(":")
    torch.manual_seed(seed)
    recognizer = build(name, frames=recipe.frames, size=recipe.size, pretrained=start == "pretrained")
    return Classifier(recognizer, {task.name: task.outputs for task in tasks})


def _arrays(module: nn.Module) -> dict[str, np.ndarray[Any, Any]]:
    return {name: value.detach().cpu().contiguous().numpy() for name, value in module.state_dict().items()}


def _weights(path: Path) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in load_file(regular(path)).items()}


def _labels(data: ClipSet) -> list[Any]:
    columns = (data.action, data.person, data.attributes, data.split)
    if data.action_labels is None:
        return [column.tolist() for column in columns]
    # thousands of tags of each of 260,000 clips, written out, are more than memory holds
    return [hashlib.sha256(column.tobytes()).hexdigest() for column in (*columns, data.action_labels)]


def _write(learned: TrainedNetwork, key: str) -> None:
    arrays: dict[str, Any] = {}
    for split, one in learned.predictions.items():
        arrays |= {f"{split}/rows": one.rows, f"{split}/features": one.features}
        arrays |= {f"{split}/{task}": values for task, values in one.probabilities.items()}
    with new_path(learned.folder / "predictions.safetensors") as part:
        save_file(arrays, part)
    about = {"key": key, "scores": learned.scores, "parameters": learned.parameters, "seconds": learned.seconds}
    write_json(learned.folder / "learned.json", about, indent=None)  # last: where it is, everything is


@dataclass(frozen=True)
class _About:
    """What learned.json holds."""

    key: str
    scores: dict[str, float]
    parameters: int
    seconds: float


def _read(folder: Path, network: str, key: str) -> TrainedNetwork | None:
    try:
        about = from_values(_About, read_json(folder / "learned.json", finite=False))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / 'learned.json'} {reason(error)}; delete {folder.name} to train it anew") from error
    if about.key != key:
        raise UsageError(f"{folder} was trained on other clips or with other settings; choose another run")
    by_split: dict[str, dict[str, Any]] = {}
    try:
        for name, array in load_file(regular(folder / "predictions.safetensors")).items():
            split, _, part = name.partition("/")
            by_split.setdefault(split, {})[part] = array
        predictions = {
            split: Predictions(parts.pop("rows"), parts.pop("features"), parts) for split, parts in by_split.items()
        }
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise DataError(f"{folder / 'predictions.safetensors'} is damaged; delete {folder} to train it anew") from error
    return TrainedNetwork(predictions, about.scores, about.parameters, about.seconds, network, folder)
