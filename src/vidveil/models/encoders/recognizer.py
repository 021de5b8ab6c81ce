"""Our own networks as encoders: with published weights, or with those that `vidveil train` gave them.

The vector is the features of the recognizer: I3D's pooled features, a ResNet's mean over frames, a ViT's [CLS] token or
the mean of its tokens.
"""

import hashlib
import json
from typing import Any

import torch
from torch import Tensor

from vidveil.core.bounded import read_json_object
from vidveil.core.errors import UsageError, WeightsError
from vidveil.core.recipe import names
from vidveil.core.text import printable
from vidveil.models.checkpoint import MOST
from vidveil.models.encoders.encoder import Encoder
from vidveil.models.recognizers import RECOGNIZERS, build
from vidveil.models.recognizers.recognizer import Recognizer
from vidveil.training.runs import runs_folder
from vidveil.weights.tensors import read_tensors

FRAMES, SIZE = 16, 224
"""Of networks with published weights, as the papers use them."""


class RecognizerEncoder(Encoder):
    def __init__(self, spec: str, network: Recognizer, frames: int, size: int, half: bool, device: str) -> None:
        self.spec, self.frames, self.size, self.width = spec, frames, size, network.width
        self.fingerprint = fingerprint(network, frames, size, *(["bfloat16"] if half else []))
        self.dtype = torch.bfloat16 if half else torch.float32
        self.network = network.eval().requires_grad_(False).to(device, self.dtype)

    @torch.inference_mode()
    def encode(self, clip: Tensor) -> Tensor:
        found: Tensor = self.network.features(clip.to(self.dtype))
        return found.float()


def load_own(name: str, *, frames: int | None, size: int | None, half: bool, device: str) -> Encoder:
    frames, size = frames or FRAMES, size or SIZE
    return RecognizerEncoder(name, build(name, frames=frames, size=size, pretrained=True), frames, size, half, device)


def load_run(name: str, *, frames: int | None, size: int | None, half: bool, device: str) -> Encoder:
    """The recognizer in `runs/NAME/checkpoint`."""
    folder = runs_folder() / name / "checkpoint"
    try:
        recipe: dict[str, Any] = read_json_object(folder / "checkpoint.json", finite=False)["recipe"]
        network, own = str(recipe["recognizer"]), (int(recipe["frames"]), int(recipe["size"]))
        if network.partition(":")[0] not in RECOGNIZERS or not all(0 < number <= MOST for number in own):
            raise ValueError(f"no network is called {network}, or has clips of {own}")
    except OSError as error:
        makes = f"`vidveil train {name}` makes it" if name in names() else "`vidveil train` makes one"
        raise UsageError(
            f"there is no finished run {printable(repr(name))} in {runs_folder().absolute()}: {makes}"
        ) from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"run {printable(repr(name))} trained no recognizer: an encoder is a recognizer") from error
    frames, size = frames or own[0], size or own[1]
    built = build(network.partition(":")[0], frames=frames, size=size)
    try:
        built.load_state_dict(read_tensors(folder / "weights.safetensors"))
    except RuntimeError as error:
        if (frames, size) != own:
            raise UsageError(f"run {name!r} is for {own[0]} frames of {own[1]} pixels, and no other") from error
        raise WeightsError(f"{folder / 'weights.safetensors'} does not fit {network}: it is damaged") from error
    return RecognizerEncoder(f"run:{name}", built, frames, size, half, device)


def fingerprint(network: torch.nn.Module, *more: Any) -> str:
    """sha256 of all tensors by name, and of everything else that its output depends on."""
    digest = hashlib.sha256(json.dumps([type(network).__name__, *more]).encode())
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
