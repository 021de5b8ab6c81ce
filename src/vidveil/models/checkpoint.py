"""Checkpoints of methods: what `vidveil train` leaves in `runs/NAME/checkpoint` and `--method` takes.

    checkpoint.json        which method, how its network is built, recipe, data, version, metrics
    weights.safetensors    its numbers

Nothing in them is ever run: a JSON of plain values and a file of tensors.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vidveil.core.atomic import new_path, write_json
from vidveil.core.bounded import is_file, is_there, open_regular, read_json_object, reason
from vidveil.core.errors import RecipeError, UsageError, WeightsError
from vidveil.core.recipe import names
from vidveil.core.recipe_keys import with_current_names
from vidveil.core.text import printable
from vidveil.core.typed import from_values
from vidveil.core.version import __version__
from vidveil.training.runs import list_runs, runs_folder
from vidveil.weights.tensors import read_tensors

if TYPE_CHECKING:
    from torch import Tensor, nn


Built = TypeVar("Built")

ABOUT, WEIGHTS = "checkpoint.json", "weights.safetensors"
LAYOUT, OLD_LAYOUT = 2, 1
"""The old one has old names in its recipe."""
MOST = 1_000_000
"""The largest number in a description of a network."""
MORE = 0.05
"""A network has learned something if its action accuracy is this much above the chance level."""


@dataclass
class _Entries:
    """Types of the entries of `checkpoint.json`."""

    method: str = ""
    network: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)
    encoder: dict[str, Any] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Checkpoint:
    folder: Path
    about: Mapping[str, Any]

    @property
    def method(self) -> str:
        return str(self.about["method"])

    @property
    def name(self) -> str:
        """Of the run that made it. The folder's name may hold personal data."""
        return Path(str(self.about["recipe"]["name"])).name

    @property
    def sha256(self) -> str:
        """Of the weights and of how the network is built."""
        with open_regular(self.folder / WEIGHTS) as file:
            digest = hashlib.file_digest(file, "sha256")
        digest.update(json.dumps(self.about["network"], sort_keys=True).encode())
        return digest.hexdigest()

    @property
    def weights(self) -> str:
        """Name and hash, for manifests."""
        return f"{self.name} {self.sha256[:16]}"

    @property
    def limits(self) -> tuple[str, ...]:
        """What whoever shares an output of these weights must know: each goes after the name of the method."""
        found = []
        if str(self.about["recipe"].get("data", "")).partition(":")[0] == "puppets":
            found.append("was trained on synthetic people: on other videos it is an experiment")
        if not is_above_chance(self.about.get("metrics", {}), self.about.get("floors", {})):
            found.append("predicted the action no better than chance: train it longer")
        problems = [printable(problem, 300) for problem in self.about.get("problems", [])]
        return (*found, *(f"had a problem in its training: {problem}" for problem in problems))

    def tensors(self) -> "dict[str, Tensor]":
        return read_tensors(self.folder / WEIGHTS)


def is_above_chance(metrics: Mapping[str, float], floors: Mapping[str, float]) -> bool:
    """Whether an action metric of validation is above its chance level: that of the network's own head, or that of a
    recognizer on the anonymized video. True if none was measured."""
    heads = [name for name in metrics if name in floors and name.startswith(("action_", "masked_"))]
    accuracies = [name for name in heads if name != "action_kept"]  # that one is a share of pixels
    return not accuracies or any(metrics[name] > floors[name] + MORE for name in accuracies)


def fill(network: "nn.Module", tensors: "Mapping[str, Tensor]") -> None:
    """Give a network on the meta device its numbers. What does not fit is a ValueError or RuntimeError."""
    wanted = network.state_dict()
    for name, tensor in tensors.items():
        if name in wanted and tensor.dtype != wanted[name].dtype:
            raise ValueError(f"{name} is of {tensor.dtype}, not {wanted[name].dtype}")
    network.load_state_dict(dict(tensors), assign=True)


def does_not_fit(checkpoint: Checkpoint, error: Exception) -> WeightsError:
    first = printable(next(iter(str(error).splitlines()), type(error).__name__), 300)
    return WeightsError(
        f"{printable(checkpoint.folder, 300)} does not hold a {printable(checkpoint.method, 40)} network of this "
        f"version: {first}"
    )


def network_of(checkpoint: Checkpoint, kind: type[Built]) -> Built:
    """How the network is built, as the checkpoint says. ValueError if no network can be built so."""
    found = from_values(kind, checkpoint.about["network"])
    for name, value in vars(found).items():
        numbers = value.values() if isinstance(value, dict) else [value]
        if any(type(number) is int and not 1 <= number <= MOST for number in numbers):
            raise ValueError(f"its {name} is {printable(value)}")
    return found


def write(folder: Path, method: str, network: Mapping[str, Any], tensors: "Mapping[str, Tensor]", **about: Any) -> None:
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    with new_path(folder / WEIGHTS) as part:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, part)
    text = {"layout": LAYOUT, "method": method, "network": dict(network), "vidveil": __version__, **about}
    write_json(folder / ABOUT, text)  # last: where it is, everything is


def locate(name: str) -> Path | None:
    """The folder that `find` would read, if there is one."""
    places = (runs_folder() / name / "checkpoint", Path(name), Path(name) / "checkpoint")
    return next((folder for folder in places if is_file(folder / ABOUT)), None)


def find(name: str) -> Checkpoint:
    """By the name of a finished run, the folder of a run, or that of a checkpoint."""
    folder = locate(name)
    if folder is not None:
        return _read(folder)
    if is_file(runs_folder() / name / "recipe.json"):
        raise UsageError(
            f"run {printable(repr(name))} has no checkpoint: it is not finished, or trains none; --resume goes on"
        )
    made = [info.name for info in list_runs() if (runs_folder() / info.name / "checkpoint" / ABOUT).is_file()]
    close = get_close_matches(name[:100], made, n=1)
    if name in names():
        hint = f"`vidveil train {name}` makes it"
    elif close:
        hint = f"did you mean {close[0]}?"
    else:
        hint = f"there are {', '.join(made)}" if made else "`vidveil train` makes one"
    raise UsageError(
        f"there is no checkpoint {printable(repr(name))}, neither a run in {runs_folder().absolute()} nor a folder; "
        f"{hint}"
    )


def _read(folder: Path) -> Checkpoint:
    try:
        about = read_json_object(folder / ABOUT, finite=False)
    except (OSError, ValueError) as error:
        raise WeightsError(f"{printable(folder / ABOUT, 300)} {reason(error)}") from error
    if "network" not in about or "method" not in about:
        raise UsageError(f"{folder} holds a recognizer; here a checkpoint of a method is needed")
    if about.get("layout") not in (LAYOUT, OLD_LAYOUT):
        raise WeightsError(
            f"{folder} has layout {printable(about.get('layout'))}; this vidveil reads {OLD_LAYOUT} and {LAYOUT}"
        )
    recipe = about.get("recipe")
    if not isinstance(recipe, dict) or not isinstance(recipe.get("name"), str) or not Path(recipe["name"]).name:
        raise WeightsError(f"{folder / ABOUT} does not say which recipe made it: it is damaged")
    try:
        from_values(_Entries, {name: about[name] for name in vars(_Entries()) if name in about})
        if about["layout"] == OLD_LAYOUT:
            about["recipe"] = with_current_names(recipe, note=False)  # who uses it cannot change it
    except (ValueError, RecipeError) as error:
        raise WeightsError(f"{folder / ABOUT} is damaged: {error}") from error
    if not is_there(folder / WEIGHTS):
        raise WeightsError(f"{folder} lacks {WEIGHTS}: copy the whole folder")
    return Checkpoint(folder, about)
