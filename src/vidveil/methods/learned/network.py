"""What every network that masks tubelets has in common, and how it is rebuilt from its checkpoint."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from vidveil.core.errors import RecipeError, WeightsError
from vidveil.core.text import printable
from vidveil.methods.masking.masker import RAW, Scorer
from vidveil.models.checkpoint import ABOUT, MOST, Checkpoint, does_not_fit, fill
from vidveil.models.recognizers.recognizer import Standardize
from vidveil.models.recognizers.resnet import IMAGENET_DEVIATION, IMAGENET_MEAN


class MaskingNetwork(nn.Module, Scorer):
    standardize: Standardize


Built = TypeVar("Built", bound=MaskingNetwork)


def rebuilt(checkpoint: Checkpoint, build: Callable[[], Built]) -> Built:
    """The network with its weights, in eval mode. No random numbers are drawn."""
    try:
        with torch.device("meta"):
            network = build()
        fill(network, checkpoint.tensors())
    except (TypeError, ValueError, RuntimeError, OverflowError, ZeroDivisionError, RecipeError) as error:
        raise does_not_fit(checkpoint, error) from error
    recipe = checkpoint.about["recipe"]
    network.stride = _stride(checkpoint, recipe.get("deploy_stride") or recipe.get("stride") or 1)
    network.preprocess = str(recipe.get("preprocess", RAW))
    network.learned = checkpoint.learned
    network.trained_on_puppets = str(recipe.get("data", "")).partition(":")[0] == "puppets"
    network.standardize = Standardize(IMAGENET_MEAN, IMAGENET_DEVIATION, 3)  # constants are no part of a checkpoint
    return network.eval().requires_grad_(False)


def _stride(checkpoint: Checkpoint, stride: Any) -> int:
    if type(stride) is not int or not 1 <= stride <= MOST:
        raise WeightsError(f"{printable(checkpoint.folder / ABOUT, 300)}: stride is {printable(stride)}")
    return stride
