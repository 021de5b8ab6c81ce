"""The end of every training of a method: metrics on validation, and a checkpoint that `--method` takes."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vidveil.core.recipe import as_values
from vidveil.core.recipe_keys import FREE, with_old_names
from vidveil.core.version import __version__
from vidveil.models import checkpoint
from vidveil.training.plan import NothingTrained, current_dry_run

if TYPE_CHECKING:
    from torch import Tensor, nn

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
    """On validation, of the weights that are kept."""
    floors: Mapping[str, float]
    """Chance levels of these: the largest class, random tubelets."""
    on_features: bool = False
    """Whether it is for stored features, not for video."""
    shows_filmed: bool = True
    """Whether kept parts of a video are shown as they were filmed."""
    problems: tuple[str, ...] = ()
    """What went wrong in training without an error (`training.health`)."""


def training_fingerprint(recipe: "LearningRecipe", **inputs: Any) -> str:
    """Of everything that the trained weights depend on: a run is only resumed with the same."""
    free = (*FREE, "name")
    about = {key: value for key, value in with_old_names(as_values(recipe)).items() if key not in free}
    return hashlib.sha256(json.dumps(about | inputs | {"vidveil": __version__}, sort_keys=True).encode()).hexdigest()


class Describable(Protocol):
    """A network that a checkpoint can hold."""

    def about(self) -> dict[str, Any]:
        """How it is built."""

    def state_dict(self) -> "Mapping[str, Tensor]": ...


@dataclass
class Validation:
    """What `fit` calls after an epoch."""

    measure: Callable[[], dict[str, float]]
    last: dict[str, float] = field(default_factory=dict)

    def __call__(self, _: "nn.Module") -> dict[str, float]:
        self.last = self.measure()
        return self.last

    def metrics(self) -> dict[str, float]:
        """Those of the last call; measured now if there was none, as in a run that was resumed after its last epoch."""
        if current_dry_run() is not None:
            raise NothingTrained
        return self.last or self.measure()


def finish(
    run: "Run",
    recipe: Any,
    network: Describable,
    metrics: Mapping[str, float],
    floors: Mapping[str, float],
    *,
    on_features: bool = False,
    shows_filmed: bool = True,
    problems: Sequence[str] = (),
    **about: Any,
) -> Trained:
    """Write the checkpoint of the network into the folder of its run."""
    folder = run.folder / "checkpoint"
    checkpoint.write(
        folder,
        recipe.method,
        network.about(),
        network.state_dict(),
        recipe=as_values(recipe),
        metrics=metrics,
        floors=floors,
        problems=list(problems),
        **about,
    )
    return Trained(
        method=recipe.method,
        name=recipe.name,
        data=recipe.data,
        folder=folder,
        metrics=metrics,
        floors=floors,
        on_features=on_features,
        shows_filmed=shows_filmed,
        problems=tuple(problems),
    )
