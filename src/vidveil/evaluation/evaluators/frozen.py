"""Features of clips by a frozen network: computed once for all seeds, splits and tasks.

A frozen network learns nothing, so the same views of the same clips have the same features, whoever is in which split.
They are kept in the cache, under the hash of all that they depend on: the pixels, the weights, the views, and the code
that computes them.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.core.arrays import read_archive
from vidveil.core.atomic import new_file
from vidveil.core.cache import code_of
from vidveil.core.progress import counted
from vidveil.data.clips import ClipSet
from vidveil.data.loader import Loader
from vidveil.data.store.files import store_lock, unwritable
from vidveil.data.store.videos import cache_folder
from vidveil.data.temporal_controls import CONTROLS
from vidveil.models.recognizers import RECOGNIZERS, build
from vidveil.models.recognizers.recognizer import Recognizer
from vidveil.models.recognizers.resnet import fold_biases
from vidveil.training.recipe import LearningRecipe
from vidveil.weights import describe

CODE = (
    "models/recognizers/*.py",
    "data/views.py",
    "data/loader.py",
    "data/temporal_controls.py",
    "evaluation/evaluators/frozen.py",
)


def features_of(
    data: ClipSet,
    rows: NDArray[np.int64],
    name: str,
    recipe: LearningRecipe,
    *,
    device: torch.device | str,
    seed: int,
    control: str = "",
) -> tuple[NDArray[np.float32], int]:
    """(n, D) of these clips, the mean over the recipe's views; and how many parameters the network has."""
    published = RECOGNIZERS[name].weights
    about = {
        "network": name,
        "weights": describe(published) if published else f"those of seed {seed}",
        "videos": data.videos.fingerprint,
        "rows": rows.tolist(),
        "clips": [recipe.frames, recipe.size, recipe.stride, recipe.views, recipe.batch],
        "control": [control, seed] if control else None,  # chance of a control is the seed's
        "device": torch.device(device).type,
        "code": code_of(*CODE),
    }
    path = cache_folder() / "features" / f"{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:24]}.npz"
    with store_lock(path):  # another process that needs the same waits, and finds it
        with suppress(
            OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile
        ):  # not there, or damaged: computed again
            kept = read_archive(path)
            return kept["features"], int(kept["parameters"])
        network = _network(name, recipe, seed)
        parameters = sum(p.numel() for p in network.parameters())
        fold_biases(network.to(device))
        loader = Loader(
            data, rows, frames=recipe.frames, size=recipe.size, stride=recipe.stride, batch=recipe.batch, seed=seed,
            device=device, order="sequential", transform=CONTROLS.get(control),
        )  # fmt: skip
        features = _mean_over_views(network, loader, recipe.views, name)
        try:
            with new_file(path) as file:
                np.savez(file, features=features, parameters=parameters)
        except OSError as error:
            raise unwritable(path.parent, error) from error
        return features, parameters


def embedded(network: Callable[[Tensor], Tensor], clips: Tensor, full: int) -> Tensor:
    """(n, 3, T, H, W) → (n, D), by a batch of `full` clips always: so the same clip has the same features."""
    missing = full - len(clips)
    padded = torch.cat([clips, clips[:1].expand(missing, *clips.shape[1:])]) if missing else clips
    with torch.autocast("cuda", torch.bfloat16, enabled=clips.is_cuda):
        return network(padded)[: len(clips)].float()


def _network(name: str, recipe: LearningRecipe, seed: int) -> Recognizer:
    """With its published weights; without any, with those that a seed draws."""
    torch.manual_seed(seed)
    pretrained = RECOGNIZERS[name].weights is not None
    return build(name, frames=recipe.frames, size=recipe.size, pretrained=pretrained).eval()


def _mean_over_views(network: Recognizer, loader: Loader, views: str, name: str) -> NDArray[np.float32]:
    found = []
    with torch.inference_mode():
        for batch in counted(loader.views(views), f"features by {name}", len(loader), "batches"):
            count = batch.video.shape[1]
            each = embedded(network.features, batch.video.flatten(0, 1), loader.batch * count)
            found.append(each.view(-1, count, each.shape[-1]).mean(1).cpu())

    features: NDArray[np.float32] = torch.cat(found).numpy()
    return features
