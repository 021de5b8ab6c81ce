"""Checkpoints of methods: what `vidveil train` leaves in `runs/NAME/checkpoint` and `--method` takes.

    checkpoint.json        which method, how its network is built, recipe, data, version, metrics
    weights.safetensors    its numbers

Nothing in them is ever run: a JSON of plain values and a file of tensors.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vidveil.core.atomic import new_path, write_json
from vidveil.errors import UsageError, WeightsError
from vidveil.training.runs import list_runs, runs_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from vidveil.methods.dual_cls import DualCLS
    from vidveil.methods.stprivacy import STPrivacy

Hiding = TypeVar("Hiding", "DualCLS", "STPrivacy")

ABOUT, WEIGHTS = "checkpoint.json", "weights.safetensors"
LAYOUT = 1
MORE = 0.05
"""So much more than guessing a network must tell of the action, to have learned something."""


@dataclass(frozen=True)
class Checkpoint:
    folder: Path
    about: Mapping[str, Any]

    @property
    def method(self) -> str:
        return str(self.about["method"])

    @property
    def name(self) -> str:
        """Of the run that made it; a folder's name says nothing and may say too much."""
        return Path(str(self.about["recipe"]["name"])).name

    @property
    def sha256(self) -> str:
        """Of the weights and of how the network is built."""
        digest = hashlib.sha256((self.folder / WEIGHTS).read_bytes())
        digest.update(json.dumps(self.about["network"], sort_keys=True).encode())
        return digest.hexdigest()

    @property
    def learned(self) -> bool:
        return tells_more_than_guessing(self.about.get("metrics", {}), self.about.get("floors", {}))

    def tensors(self) -> "dict[str, Tensor]":
        from vidveil.recognizers.pretrained import read_tensors

        return read_tensors(self.folder / WEIGHTS)


def tells_more_than_guessing(metrics: Mapping[str, float], floors: Mapping[str, float]) -> bool:
    """Of the action, by its own head or by a recognizer of what it shows, on validation; True where nobody looked."""
    heads = [name for name in metrics if name in floors and name.startswith(("action_", "masked_"))]
    told = [name for name in heads if name != "action_kept"]  # a share of pixels, which says nothing of the action
    return not told or any(metrics[name] > floors[name] + MORE for name in told)


def rebuilt(checkpoint: Checkpoint, build: "Callable[[], Hiding]") -> "Hiding":
    """The network with its weights, in eval mode. Nothing is drawn at random first."""
    import torch

    from vidveil.recognizers.recognizer import Standardize
    from vidveil.recognizers.resnet import IMAGENET_DEVIATION, IMAGENET_MEAN

    try:
        with torch.device("meta"):
            network = build()
        network.load_state_dict(checkpoint.tensors(), assign=True)
    except (TypeError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise WeightsError(
            f"{checkpoint.folder} does not hold a {checkpoint.method} network of this version: {first}"
        ) from error
    recipe = checkpoint.about["recipe"]
    network.stride = int(recipe.get("deploy_stride") or recipe.get("stride") or 1)
    network.after = str(recipe.get("after", network.after))
    network.learned = checkpoint.learned
    network.drawn = str(recipe.get("data", "")).partition(":")[0] == "puppets"
    network.standardize = Standardize(IMAGENET_MEAN, IMAGENET_DEVIATION, 3)  # constants are no part of a checkpoint
    return network.eval().requires_grad_(False)


def write(folder: Path, method: str, network: Mapping[str, Any], tensors: "Mapping[str, Tensor]", **about: Any) -> None:
    from safetensors.torch import save_file

    from vidveil import __version__

    folder.mkdir(parents=True, exist_ok=True)
    with new_path(folder / WEIGHTS) as part:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, part)
    text = {"layout": LAYOUT, "method": method, "network": dict(network), "vidveil": __version__, **about}
    write_json(folder / ABOUT, text)  # last: where it is, everything is


def locate(name: str) -> Path | None:
    """The folder that `find` would read, if there is one."""
    places = (runs_folder() / name / "checkpoint", Path(name), Path(name) / "checkpoint")
    return next((folder for folder in places if (folder / ABOUT).is_file()), None)


def find(name: str) -> Checkpoint:
    """By the name of a finished run, the folder of a run, or that of a checkpoint."""
    from vidveil.recipe import names

    folder = locate(name)
    if folder is not None:
        return _read(folder)
    if (runs_folder() / name / "recipe.json").is_file():
        raise UsageError(f"run {name!r} has no checkpoint: it is not finished, or trains none; --resume goes on")
    made = [info.name for info in list_runs() if (runs_folder() / info.name / "checkpoint" / ABOUT).is_file()]
    close = get_close_matches(name, made, n=1)
    if name in names():
        hint = f"`vidveil train {name}` makes it"
    elif close:
        hint = f"did you mean {close[0]}?"
    else:
        hint = f"there are {', '.join(made)}" if made else "`vidveil train` makes one"
    raise UsageError(
        f"there is no checkpoint {name!r}, neither a run in {runs_folder().absolute()} nor a folder; {hint}"
    )


def _read(folder: Path) -> Checkpoint:
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"{folder / ABOUT} cannot be read: {error}") from error
    if not isinstance(about, dict) or "network" not in about or "method" not in about:
        raise UsageError(f"{folder} holds a recognizer, which looks; a method's checkpoint is needed, which hides")
    if about.get("layout") != LAYOUT:
        raise WeightsError(f"{folder} has layout {about.get('layout')}; this vidveil reads {LAYOUT}")
    if not isinstance(about.get("recipe"), dict) or "name" not in about["recipe"]:
        raise WeightsError(f"{folder / ABOUT} does not say which recipe made it: it is damaged")
    if not (folder / WEIGHTS).is_file():
        raise WeightsError(f"{folder} lacks {WEIGHTS}: copy the whole folder")
    return Checkpoint(folder, about)
