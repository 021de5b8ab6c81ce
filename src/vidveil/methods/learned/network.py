"""How the network of a learned method is rebuilt from its checkpoint."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from vidveil.core.errors import RecipeError, WeightsError
from vidveil.core.text import printable
from vidveil.methods.learned.anonymizer import RAW, LearnedNetwork
from vidveil.models.checkpoint import ABOUT, MOST, Checkpoint, does_not_fit, fill
from vidveil.models.recognizers.recognizer import Standardize


class PictureNetwork(nn.Module, LearnedNetwork):
    """A network of a learned method. `about` says how it is built, and is in its checkpoint."""

    def about(self) -> dict[str, Any]:
        raise NotImplementedError


Built = TypeVar("Built", bound=PictureNetwork)


def rebuilt(checkpoint: Checkpoint, build: Callable[[], Built]) -> Built:
    """The network with its weights, in eval mode. No random numbers are drawn."""
    try:
        with torch.device("meta"):
            network = build()
        fill(network, checkpoint.tensors())
        for module in network.modules():
            if isinstance(module, Standardize):  # constants are no part of a checkpoint
                module.restore()
        if lost := [name for name, tensor in (*network.named_parameters(), *network.named_buffers()) if tensor.is_meta]:
            raise ValueError(f"{lost[0]} is not in it")
    except (TypeError, ValueError, RuntimeError, OverflowError, ZeroDivisionError, RecipeError) as error:
        raise does_not_fit(checkpoint, error) from error
    recipe = checkpoint.about["recipe"]
    network.stride = _stride(checkpoint, recipe.get("deploy_stride") or recipe.get("stride") or 1)
    network.preprocess = str(recipe.get("preprocess", RAW))
    network.limits = checkpoint.limits
    return network.eval().requires_grad_(False)


def _stride(checkpoint: Checkpoint, stride: Any) -> int:
    if type(stride) is not int or not 1 <= stride <= MOST:
        raise WeightsError(f"{printable(checkpoint.folder / ABOUT, 300)}: stride is {printable(stride)}")
    return stride
