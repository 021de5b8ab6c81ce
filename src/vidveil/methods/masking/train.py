"""What trainings of tubelet maskers share: the published weights of pictures that they may start from."""

from collections.abc import Mapping

from torch import Tensor

from vidveil.methods.masking.recipe import MaskerRecipe
from vidveil.weights import weights
from vidveil.weights.tensors import read_tensors


def picture_weights(recipe: MaskerRecipe) -> Mapping[str, Tensor] | None:
    """The tensors of a picture ViT, if the recipe starts from them."""
    return read_tensors(weights("vits14")) if recipe.pretrained else None
