"""What training a method leaves: a checkpoint that `--method` takes, and its metrics on validation."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vidveil.core.recipe import as_values
from vidveil.core.recipe_keys import with_old_names
from vidveil.core.version import __version__

if TYPE_CHECKING:
    from torch import nn

    from vidveil.training.recipe import LearningRecipe
    from vidveil.training.runs import Run


@dataclass(frozen=True, kw_only=True)
class Trained:
    method: str
    name: str
    """Of the run."""
    data: str
    """As the recipe names it."""
    folder: Path
    """Of the checkpoint."""
    metrics: Mapping[str, float]
    """On validation, after the last epoch."""
    floors: Mapping[str, float]
    """Chance levels of these: the largest class, random tubelets."""
    on_features: bool = False
    """Whether it is for stored features, not for video."""
    shows_filmed: bool = True
    """Whether kept parts of a video are shown as they were filmed."""


def training_fingerprint(recipe: "LearningRecipe", **inputs: Any) -> str:
    """Of everything that the trained weights depend on: a run is only resumed with the same."""
    free = ("device", "checkpoint_seconds", "compile", "name")
    about = {key: value for key, value in with_old_names(as_values(recipe)).items() if key not in free}
    return hashlib.sha256(json.dumps(about | inputs | {"vidveil": __version__}, sort_keys=True).encode()).hexdigest()


def write_checkpoint(
    run: "Run",
    recipe: Any,
    network: "nn.Module",
    metrics: Mapping[str, float],
    floors: Mapping[str, float],
    **about: Any,
) -> Path:
    """Write the network into the folder of the run, which is returned. `network.about()` says how to build it."""
    from vidveil.models import checkpoint

    folder = run.folder / "checkpoint"
    checkpoint.write(
        folder,
        recipe.method,
        network.about(),  # type: ignore[operator]
        network.state_dict(),
        recipe=as_values(recipe),
        metrics=metrics,
        floors=floors,
        **about,
    )
    return folder
