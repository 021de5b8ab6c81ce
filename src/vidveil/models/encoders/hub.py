"""Frozen video encoders of the library transformers, from its hub or from a folder.

    encoder = load_hub("videomae", "MCG-NJU/videomae-base")      # or a folder: config.json and model.safetensors

    family        the vector of a clip                            without preprocessor_config.json, pixels become
    videomae      mean over tokens                                ImageNet's mean and deviation
    vjepa2        mean over the encoder's tokens                  ImageNet's mean and deviation
    vivit         [CLS] after the last norm, before any pooler    [-1, 1]
    timesformer   [CLS] after the last norm                       mean 0.45, deviation 0.225

A classifier's file serves, too: its head is left out, and so is what belongs to a head, such as VideoMAE's `fc_norm`.
V-JEPA 2's predictor is dropped, since no vector depends on it. If a preprocessor_config.json is next to the weights,
pixels are standardized as it says, as in transformers itself, even where it shifts them twice, as ViViT's for
Kinetics-400 does. It has no influence on the number of frames and their size: clips come in the right shape.

Only V-JEPA 2 takes other frames and sizes than it was trained with, since it has rotary position embeddings. The others
have one position embedding per token, and refuse other clips, even where transformers would interpolate.

Nothing is unpickled, and no code of a repository runs: files are safetensors, and classes are transformers' own. Its
processors are not used, since they need torchvision.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from types import ModuleType
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vidveil.core.bounded import is_folder, read_json_object, reason
from vidveil.core.errors import DeviceError, UsageError, WeightsError
from vidveil.core.text import printable
from vidveil.models.encoders.encoder import Encoder
from vidveil.models.encoders.recognizer import fingerprint
from vidveil.models.recognizers.recognizer import Standardize

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
PIXELS = ("video_preprocessor_config.json", "preprocessor_config.json")
"""Where both are there, the first is for videos."""
FETCHED = ("config.json", *PIXELS, *WEIGHTS, "model-*-of-*.safetensors")
UNSEEN = ("num_attention_heads", "hidden_act", "layer_norm_eps", "patch_size", "tubelet_size", "attention_type")
"""Settings that the output depends on and that tensors do not show."""
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    """Of its classes: `VideoMAE` has VideoMAEModel and VideoMAEConfig."""
    pooled: Literal["[CLS]", "mean"]
    pixels: Mapping[str, Any]
    """The defaults, as in preprocessor_config.json."""
    offset: bool = False
    """Whether 1 is subtracted from rescaled pixels; a preprocessor_config.json need not mention it."""
    frames: str = "num_frames"
    size: str = "image_size"
    any_clip: bool = False
    """Whether it takes other frames and sizes than it was trained with."""
    clips: str = "pixel_values"
    attention: str = "sdpa"
    loading: Mapping[str, Any] = field(default_factory=dict)
    calling: Mapping[str, Any] = field(default_factory=dict)
    dropped: str = ""
    """A part that no vector depends on."""


FAMILIES = {
    "videomae": Family("VideoMAE", "mean", IMAGENET),
    "vjepa2": Family(
        "VJEPA2", "mean", IMAGENET, frames="frames_per_clip", size="crop_size", any_clip=True,
        clips="pixel_values_videos", calling={"skip_predictor": True}, dropped="predictor",
    ),
    "vivit": Family(
        "Vivit", "[CLS]", {**HALF, "rescale_factor": 1 / 127.5, "do_normalize": False}, offset=True,
        loading={"add_pooling_layer": False},
    ),
    "timesformer": Family(
        "Timesformer", "[CLS]", {"image_mean": [0.45] * 3, "image_std": [0.225] * 3}, attention="eager"
    ),
}  # fmt: skip


class HubEncoder(Encoder):
    """Other clips of the batch change nothing but the last bits of a vector.

    Its fingerprint is also of the names that transformers gives to tensors: another version may mean another one.
    """

    def __init__(self, spec: str, family: Family, network: nn.Module, pixels: Standardize, device: str) -> None:
        config: Any = network.config
        self.spec, self.width, self.family = spec, int(config.hidden_size), family
        self.frames, self.size = int(getattr(config, family.frames)), _side(getattr(config, family.size), spec)
        settings = config.to_dict()
        unseen = [settings.get(name) for name in UNSEEN]
        shift = [pixels.mean.flatten().tolist(), pixels.deviation.flatten().tolist()]
        self.fingerprint = fingerprint(network, self.frames, self.size, family.pooled, shift, unseen)
        self.network, self.pixels = network.to(device), pixels.to(device)

    @torch.inference_mode()
    def encode(self, clip: Tensor) -> Tensor:
        wanted = (3, self.frames, self.size, self.size)
        if tuple(clip.shape[1:]) != wanted:
            raise UsageError(f"{self.spec} wants clips of shape {wanted}, not {tuple(clip.shape[1:])}")
        frames = self.pixels(clip).transpose(1, 2)  # (B, T, 3, H, W)
        output = self.network(**{self.family.clips: frames}, **self.family.calling)
        tokens: Tensor = output.last_hidden_state.float()  # (B, N, D), with [CLS] as the first where there is one
        return tokens[:, 0] if self.family.pooled == "[CLS]" else tokens.mean(1)


def load_hub(
    family: str, where: str, *, frames: int | None = None, size: int | None = None, device: str = "cpu"
) -> Encoder:
    """The encoder in a folder, or of that name on the hub: fetched once, then from the hub's cache."""
    if family not in FAMILIES:
        raise UsageError(f"no family of encoders is called {family!r}; there are {', '.join(FAMILIES)}")
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise DeviceError(f"device={device}: there is no CUDA device here")
    kind, spec = FAMILIES[family], f"{family}:{where}"
    transformers, hub = _library("transformers"), _library("huggingface_hub")
    with _quiet(transformers, hub):
        folder = _folder(where, hub)
        _check_files(folder, family, where)
        pixels = _standardize(folder, kind)
        network = _network(transformers, folder, kind, spec, frames, size)
    return HubEncoder(spec, kind, network, pixels, device)


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError("this encoder needs the library transformers: pip install 'vidveil[encoders]'") from error


@contextmanager
def _quiet(transformers: ModuleType, hub: ModuleType) -> Iterator[None]:
    """No bars, no reports of what was loaded, no telemetry. Afterwards all is as it was."""
    logs = (transformers.utils.logging, hub.utils.logging)
    levels, bars = [log.get_verbosity() for log in logs], logs[0].is_progress_bar_enabled()
    no_telemetry = hub.constants.HF_HUB_DISABLE_TELEMETRY
    try:
        for log in logs:
            log.set_verbosity_error()
        logs[0].disable_progress_bar()
        hub.constants.HF_HUB_DISABLE_TELEMETRY = True
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.set_verbosity(level)
        if bars:
            logs[0].enable_progress_bar()
        hub.constants.HF_HUB_DISABLE_TELEMETRY = no_telemetry


def _folder(where: str, hub: ModuleType) -> Path:
    """What comes from the hub is a folder first: so transformers itself never has a reason to go out."""
    folder = Path(where).expanduser()
    if is_folder(folder):
        return folder
    if not re.fullmatch(r"\w[\w.-]*/[\w.-]+", where):
        raise WeightsError(
            f"there is no folder {printable(where)}, and no name on the hub looks like that (OWNER/NAME)"
        )
    offline = os.environ.get("VIDVEIL_OFFLINE", "0") not in ("", "0")
    try:
        return Path(hub.snapshot_download(where, allow_patterns=list(FETCHED), local_files_only=offline))
    except Exception as error:  # of the hub, of HTTP, of the disk
        why = "VIDVEIL_OFFLINE forbids fetching" if offline else _line(error)
        raise WeightsError(f"{where} is no folder here, and the hub does not give it: {why}") from error


def _check_files(folder: Path, family: str, where: str) -> None:
    found = str(_json(folder / "config.json").get("model_type") or "")
    if found != family:
        hint = f": ask for {found}:{where}" if found in FAMILIES else ""
        raise UsageError(f"{where} holds {found or 'a network of no known family'}, not {family}{hint}")
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise WeightsError(f"{where} has no model.safetensors; weights in other formats are not loaded")


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_json_object(path)
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path} is not there, or no readable JSON object: {reason(error)}") from error


def _standardize(folder: Path, family: Family) -> Standardize:
    """Rescaling r, offset o, mean m and deviation s of 8-bit pixels, as one step on [0, 1]:

    (255 r x - o - m) / s = (x - (o + m) / 255 r) / (s / 255 r)
    """
    path = next((folder / name for name in PIXELS if (folder / name).is_file()), None)
    settings = {**family.pixels, **(_json(path) if path else {})}
    try:
        scale = 255 * float(settings.get("rescale_factor", 1 / 255)) if settings.get("do_rescale", True) else 255.0
        offset = float(family.offset and settings.get("offset", True) and settings.get("do_rescale", True))
        normal = settings.get("do_normalize", True)
        mean = [(offset + float(m)) / scale for m in (settings["image_mean"] if normal else [0.0] * 3)]
        deviation = [float(s) / scale for s in (settings["image_std"] if normal else [1.0] * 3)]
        if len(mean) != 3 or len(deviation) != 3 or not all(map(math.isfinite, mean)) or not min(deviation) > 0:
            raise ValueError("no three numbers")
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise WeightsError(f"{path}: mean, deviation or factor of the pixels makes no sense") from error
    return Standardize(mean, deviation, 3)


def _network(
    transformers: ModuleType, folder: Path, family: Family, spec: str, frames: int | None, size: int | None
) -> nn.Module:
    """In float32, in evaluation, and with every parameter out of the file."""
    try:
        config: Any = getattr(transformers, f"{family.name}Config").from_pretrained(folder, local_files_only=True)
        config.return_dict = True
        _set_clip(config, family, spec, frames, size)
        network, report = getattr(transformers, f"{family.name}Model").from_pretrained(
            folder, config=config, attn_implementation=family.attention, use_safetensors=True, local_files_only=True,
            output_loading_info=True, **family.loading,
        )  # fmt: skip
    except UsageError:
        raise
    except Exception as error:  # transformers stumbles over a file in many ways
        raise WeightsError(f"{spec} cannot be loaded: {_line(error)}") from error
    lacks = [name for name in report["missing_keys"] if not name.startswith(f"{family.dropped}.")]
    if lacks:  # transformers would fill them at random
        raise WeightsError(f"{spec}: the file lacks {min(lacks)}")
    strange = [name for name in report["unexpected_keys"] if re.match(r"(\w+\.)?(encoder|layers)\.", name)]
    if strange:  # more than a head: it would be left out silently
        raise WeightsError(f"{spec}: the config knows no {min(strange)}")
    if family.dropped:
        setattr(network, family.dropped, None)
    loaded: nn.Module = network.float().eval().requires_grad_(False)
    return loaded


def _set_clip(config: Any, family: Family, spec: str, frames: int | None, size: int | None) -> None:
    """Frames and size that were asked for, into the config. UsageError if this network cannot."""
    for what, name, asked in (("frames", family.frames, frames), ("size", family.size, size)):
        own = _side(getattr(config, name), spec)
        if asked is None or asked == own:
            continue
        if not family.any_clip:
            raise UsageError(f"{spec} takes {what}={own} and no other, not {asked}")
        step = int(config.tubelet_size if what == "frames" else config.patch_size)
        if asked < 1 or asked % step:
            raise UsageError(f"{spec} takes multiples of {step} as {what}, not {asked}")
        setattr(config, name, asked)


def _side(size: Any, spec: str) -> int:
    """224 or [224, 224] → 224."""
    sides = {*size} if isinstance(size, list | tuple) else {size}
    if len(sides) != 1:
        raise UsageError(f"{spec} takes pictures of {size}, not squares; clips here are squares")
    return int(sides.pop())


def _line(error: Exception) -> str:
    """What it says first, on one line."""
    return shorten(next(iter(str(error).strip().splitlines()), type(error).__name__), 160, placeholder=" …")
