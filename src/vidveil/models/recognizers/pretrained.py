"""Published weights into our networks: torchvision's and timm's names, the I3D checkpoints' names.

    load_published(network, tensors)      tensors: name → array, as a safetensors file holds them

What differs between a file and a network, and is converted here:

    heads           `fc`, `head`, `Logits` are left out: a Classifier brings its own
    BGR             the v1 ResNet-50 wants B, G, R. Turning its first kernel round does the same to R, G, B
    extra channels  their weights start at 0: at first the network is the same with and without the mask
    2-D → video     a ViT's patch kernel is resampled from p × p to ours and spread over the t frames of a tubelet,
                        w_video[:, :, τ] = w / t        (the mean over frames of what it gave for pictures)
                    and its place embedding is resampled to our grid; the time embedding stays at 0
                    a ResNet-50's kernels become the middle frame of I3D-ResNet-50's, the others start at 0: at first it
                    is that ResNet-50 on each frame. Spread over the frames, as I3D's authors did it, they would be a
                    third too weak at both ends of a clip, where they are padded, in every layer

Patch kernels are resampled so that the embedding of an enlarged patch stays the same (FlexiViT, Beyer et al. 2023):
with B the matrix that enlarges a patch, w' = pinv(B)ᵀ w gives ⟨B x, w'⟩ = ⟨x, w⟩.
"""

import math
import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import UsageError, WeightsError
from vidveil.models.recognizers.i3d import I3D
from vidveil.models.recognizers.i3d_r50 import I3DResNet
from vidveil.models.recognizers.recognizer import Recognizer
from vidveil.models.recognizers.resnet import ResNet
from vidveil.models.recognizers.vit import VideoViT

HEADS = ("fc.", "head.", "fc_norm.", "Logits.")
PYTORCHVIDEO = {"conv": "conv1", "norm": "bn1", "branch1_conv": "downsample.0", "branch1_norm": "downsample.1"} | {
    f"branch2.{theirs}_{letter}": f"{ours}{i}"
    for i, letter in enumerate("abc", 1)
    for theirs, ours in (("conv", "conv"), ("norm", "bn"))
}
"""Parts of its I3D-ResNet-50 → ours."""
LAYERS = {"1": "layer1", "3": "layer2", "4": "layer3", "5": "layer4"}  # 0 is the stem, 2 a pool, 6 the head


def load_published(network: Recognizer, tensors: Mapping[str, Tensor]) -> None:
    """Fill the network. Every parameter must come out of `tensors`, and nothing but a head may be left over."""
    found = {name: tensor.float() for name, tensor in tensors.items() if not name.startswith(HEADS)}
    if isinstance(network, VideoViT):
        found = _for_video(network, found)
    if isinstance(network, I3DResNet):
        found = _inflated(network, _renamed(found))
    first = _first_kernel(network)
    if first in found:
        if _blue_first(network):
            found[first] = found[first].flip(1)
        more = network.state_dict()[first].shape[1] - found[first].shape[1]
        if more > 0:
            found[first] = F.pad(found[first], (*[0, 0] * (found[first].ndim - 2), 0, more))
    wanted = {name: tensor.shape for name, tensor in network.state_dict().items()}
    for name in [name for name in wanted if name.endswith("num_batches_tracked")]:
        found.setdefault(name, torch.tensor(0))
    _refuse(network, {*wanted} - {*found}, "lacks")
    _refuse(network, {*found} - {*wanted}, "has a strange")
    _refuse(network, {name for name in wanted if found[name].shape != wanted[name]}, "has another shape of")
    network.load_state_dict(found)


def _refuse(network: Recognizer, names: set[str], complaint: str) -> None:
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise WeightsError(
            f"these weights do not fit {type(network).__name__}: the file {complaint} {min(names)}{more}"
        )


def _first_kernel(network: Recognizer) -> str:
    """The one that touches pixels."""
    if isinstance(network, VideoViT):
        return "patch_embed.proj.weight"
    if isinstance(network, I3D):
        return "Conv3d_1a_7x7.conv3d.weight"
    return "conv1.weight" if isinstance(network, ResNet | I3DResNet) else "stem.0.weight"


def _blue_first(network: Recognizer) -> bool:
    """Whether its published weights were trained on B, G, R."""
    if isinstance(network, I3DResNet):
        return network.v1
    return isinstance(network, ResNet) and network.block == "bottleneck v1"


def _renamed(found: dict[str, Tensor]) -> dict[str, Tensor]:
    """pytorchvideo's names of an I3D-ResNet-50 → ours, without its head. What is not called so keeps its name."""
    renamed = {}
    for name, tensor in found.items():
        match = re.fullmatch(r"blocks\.(?:0|(\d)\.res_blocks\.(\d))\.(.+)\.(\w+)", name)
        if match and match[3] in PYTORCHVIDEO and (match[1] is None or match[1] in LAYERS):
            block = f"{LAYERS[match[1]]}.{match[2]}." if match[1] else ""
            renamed[f"{block}{PYTORCHVIDEO[match[3]]}.{match[4]}"] = tensor
        elif not name.startswith("blocks.6."):
            renamed[name] = tensor
    return renamed


def _inflated(network: I3DResNet, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """Kernels of pictures → the middle frame of ours. Those of video stay as they are."""
    wanted = network.state_dict()
    inflated = dict(found)
    for name, kernel in found.items():
        if kernel.ndim == 4 and name in wanted and wanted[name].ndim == 5:
            times = wanted[name].shape[2]
            inflated[name] = F.pad(kernel.unsqueeze(2), (0, 0, 0, 0, times // 2, times // 2))  # (O, I, t, h, w)
    return inflated


def _for_video(network: VideoViT, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """A picture transformer's tensors → those of a video transformer. One of videos stays as it is."""
    found = dict(found)
    kernel, places = found.get("patch_embed.proj.weight"), found.get("pos_embed")
    if kernel is not None and kernel.ndim == 4:
        found["patch_embed.proj.weight"] = tubelet_kernel(kernel, network.tubelet)
    if places is not None:
        found["pos_embed"] = resample_places(places, network.side, token=network.cls_token is not None)
    if network.cls_token is None:
        found.pop("cls_token", None)
    found.setdefault("time_embed", torch.zeros_like(network.time_embed))
    return found


def tubelet_kernel(kernel: Tensor, tubelet: tuple[int, int, int]) -> Tensor:
    """(D, C, p, p) of pictures → (D, C, *tubelet), repeated over time and divided by its length."""
    times, *patch = tubelet
    resampled = resample_kernel(kernel, (patch[0], patch[1]))
    return resampled.unsqueeze(2).expand(-1, -1, times, -1, -1) / times


def resample_kernel(kernel: Tensor, size: tuple[int, int]) -> Tensor:
    """(D, C, p, p) → (D, C, *size), giving for an enlarged patch what it gave for the patch."""
    height, width = kernel.shape[2:]
    if (height, width) == size:
        return kernel
    pixels = torch.eye(height * width).view(-1, 1, height, width)  # each pixel of a patch by itself
    enlarge = F.interpolate(pixels, size, mode="bicubic", antialias=True).flatten(1).T  # B: (p'², p²)
    resampled: Tensor = kernel.flatten(2) @ torch.linalg.pinv(enlarge)  # (D, C, p'²)
    return resampled.view(*kernel.shape[:2], *size)


def grown(tensors: Mapping[str, Tensor], tubelet: tuple[int, int, int], side: int, *, token: bool) -> dict[str, Tensor]:
    """A picture ViT's backbone for tubelets: its kernel for tubelets, its places resampled."""
    found = {name: tensor.float() for name, tensor in tensors.items() if not name.startswith(("head.", "fc_norm."))}
    found["patch_embed.proj.weight"] = tubelet_kernel(found["patch_embed.proj.weight"], tubelet)
    found["pos_embed"] = resample_places(found["pos_embed"], side, token=token)
    return found


def fill_backbone(network: nn.Module, found: Mapping[str, Tensor], size: str) -> list[str]:
    """Load the tensors that there are. Returns the names of parameters that were not among them."""
    wanted = network.state_dict()
    strange = sorted(name for name in found if name not in wanted or wanted[name].shape != found[name].shape)
    if strange:
        raise UsageError(f"these weights are not of a {size}: {strange[0]} does not fit")
    network.load_state_dict(dict(found), strict=False)
    return sorted({*wanted} - {*found})


def resample_places(places: Tensor, side: int, *, token: bool) -> Tensor:
    """(1, 1 + n², D), or without the 1 → (1, [1 +] side², D)."""
    old = math.isqrt(places.shape[1])
    first, grid = places[:, : places.shape[1] - old**2], places[:, places.shape[1] - old**2 :]
    if old != side:
        square = grid.reshape(1, old, old, -1).permute(0, 3, 1, 2)  # (1, D, n, n)
        square = F.interpolate(square, (side, side), mode="bicubic", antialias=False)
        grid = square.flatten(2).transpose(1, 2)  # (1, side², D)
    if not token:
        return grid
    return torch.cat([first if first.shape[1] else torch.zeros_like(grid[:, :1]), grid], 1)
