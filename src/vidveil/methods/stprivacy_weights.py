"""Published weights of picture ViTs into STPrivacy, and into those who look at what it draws."""

from collections.abc import Mapping

import torch
from torch import Tensor

from vidveil.errors import UsageError
from vidveil.methods.stprivacy import Trunk
from vidveil.recognizers.pretrained import resample_kernel, resample_places

LEFT_OUT = ("head.", "fc_norm.", "cls_token")


def load_picture_weights(network: Trunk, tensors: Mapping[str, Tensor]) -> list[str]:
    """Fill the trunk from a picture ViT (timm's names); the names of what had nothing to start from come back.

    Patch kernels are repeated over time and divided by its length, places are resampled and the same at all times.
    There is no CLS token: its own and its place's embedding are left out.
    """
    found = {name: tensor.float() for name, tensor in tensors.items() if not name.startswith(LEFT_OUT)}
    times, *patch = network.tubelet
    kernel = resample_kernel(found["patch_embed.proj.weight"], (patch[0], patch[1]))
    found["patch_embed.proj.weight"] = kernel.unsqueeze(2).expand(-1, -1, times, -1, -1) / times
    found["pos_embed"] = resample_places(found["pos_embed"], network.grid[1], token=False)
    found["time_embed"] = torch.zeros_like(network.time_embed)
    wanted = network.state_dict()
    strange = sorted(name for name in found if name not in wanted or wanted[name].shape != found[name].shape)
    if strange:
        raise UsageError(f"these weights are not of a {network.network.size}: {strange[0]} does not fit")
    network.load_state_dict(found, strict=False)
    return sorted({*wanted} - {*found})
