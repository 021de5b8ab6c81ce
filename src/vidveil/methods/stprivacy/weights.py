"""Published weights of picture ViTs into STPrivacy, and into those who look at what it draws."""

from collections.abc import Mapping

import torch
from torch import Tensor

from vidveil.methods.stprivacy.model import Backbone
from vidveil.models.recognizers.pretrained import fill_backbone, grown


def load_picture_weights(network: Backbone, tensors: Mapping[str, Tensor]) -> list[str]:
    """Fill the backbone from a picture ViT (timm's names); the names of what had nothing to start from come back.

    Places are the same at all times. There is no CLS token: its own and its place's embedding are left out.
    """
    found = grown(tensors, network.tubelet, network.grid[1], token=False)
    found.pop("cls_token", None)
    found["time_embed"] = torch.zeros_like(network.time_embed)
    return fill_backbone(network, found, network.network.size)
