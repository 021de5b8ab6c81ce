"""Published weights of picture ViTs into a dual-CLS network."""

from collections.abc import Mapping

import torch
from torch import Tensor

from vidveil.methods.dual_cls.model import DualCLS
from vidveil.models.recognizers.pretrained import fill_backbone, grown


def load_picture_weights(network: DualCLS, tensors: Mapping[str, Tensor]) -> list[str]:
    """Fill the backbone from a picture ViT (timm's names); the names of what had nothing to start from come back.

    Patch kernels are repeated over time and divided by its length, places are resampled and the same at all times, the
    CLS token and its place serve both tokens, the privacy token with noise on it (two equal tokens would have equal
    maps); a detector's query, output and MLP start as the backbone's own.
    """
    found = grown(tensors, network.tubelet, network.grid[1], token=True)
    token = found["cls_token"]  # (1, 1, D)
    found["cls_token"] = torch.cat([token, token + token.std() * torch.randn_like(token)], 1)
    found["time_embed"] = torch.zeros_like(network.time_embed)
    found |= {f"priv_{name}": tensor for name, tensor in found.items() if name.startswith("norm.")}
    for name in [name for name in network.state_dict() if ".reader." in name]:
        block, _, part = name.partition(".reader.")
        if part.startswith("query."):
            found[name] = found[f"{block}.attn.qkv.{part[6:]}"].chunk(3)[0]
        else:
            found[name] = found[f"{block}.{'attn.' if part.startswith('proj.') else ''}{part}"]
    return fill_backbone(network, found, network.network.size)
