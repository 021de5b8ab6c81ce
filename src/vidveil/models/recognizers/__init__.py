"""Recognizers by name. The same networks serve as utility models and as attackers.

    network = build("r3d_tiny", frames=8, size=64)
    model = Classifier(network, {"action": 10})         # from vidveil.models.recognizers.recognizer

Listing the names imports no network: torch loads when one is built.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vidveil.core.errors import UsageError
from vidveil.core.registry import Registry, resolve

if TYPE_CHECKING:
    from vidveil.models.recognizers.recognizer import Recognizer

__all__ = ["RECOGNIZERS", "RecognizerEntry", "build"]


@dataclass(frozen=True, slots=True)
class RecognizerEntry:
    module: str
    """A file in this folder, or a module of another package. Its function of the same name builds the network."""
    summary: str
    weights: str | None = None
    """Name of its published weights in `vidveil ls weights`."""
    sized: bool = False
    """Whether it is built for one number of frames and one size."""


RECOGNIZERS = Registry(
    "recognizer",
    {
        "r3d_tiny": RecognizerEntry("r3d", "3-D CNN for two CPU cores, sees changes between frames"),
        "resnet_tiny": RecognizerEntry("resnet", "per frame, for two CPU cores"),
        "vit_mini": RecognizerEntry("vit", "video transformer for two CPU cores, 2 × 8 × 8 tubelets", sized=True),
        "r3d18": RecognizerEntry("r3d", "3-D ResNet-18"),
        "i3d": RecognizerEntry("i3d", "Inception I3D; weights of Kinetics-400", weights="i3d"),
        "i3d_r50": RecognizerEntry(
            "i3d_r50", "I3D-ResNet-50; weights of Kinetics-400 that you bring", weights="i3d_r50"
        ),
        "i3d_r50_v1": RecognizerEntry("i3d_r50", "the same, inflated from weights of ImageNet", weights="resnet50"),
        "resnet18": RecognizerEntry("resnet", "ResNet-18 per frame"),
        "resnet50": RecognizerEntry("resnet", "ResNet-50 per frame; weights of ImageNet", weights="resnet50"),
        "resnet50_v15": RecognizerEntry("resnet", "ResNet-50 per frame as torchvision builds it"),
        "vit_ti": RecognizerEntry("vit", "video ViT-Ti, 2 × 16 × 16 tubelets", sized=True),
        "vit_s": RecognizerEntry(
            "vit", "video ViT-S, 2 × 16 × 16 tubelets; weights of pictures", weights="vits14", sized=True
        ),
        "vit_b": RecognizerEntry("vit", "video ViT-B, 2 × 16 × 16 tubelets", sized=True),
        "vit_l": RecognizerEntry("vit", "video ViT-L, 2 × 16 × 16 tubelets", sized=True),
        "vit_h": RecognizerEntry("vit", "video ViT-H, 2 × 16 × 16 tubelets", sized=True),
        "mlp": RecognizerEntry("mlp", "on stored features: `channels` is their length"),
    },
)


def build(name: str, *, frames: int, size: int, channels: int = 3, pretrained: bool = False) -> "Recognizer":
    """The network called `name`, for clips of `channels` × `frames` × `size` × `size`.

    `mlp` takes feature vectors of length `channels` instead. With `pretrained` it starts from published weights; a
    fourth channel then starts at weight 0, so that the network is at first the same with and without it.
    """
    entry = RECOGNIZERS.lookup(name)
    if pretrained and entry.weights is None:
        having = ", ".join(name for name, entry in RECOGNIZERS.items() if entry.weights)
        raise UsageError(
            f"{name} has no published weights to start from: leave out pretrained, or take one of {having}"
        )
    module = entry.module if "." in entry.module else f"vidveil.models.recognizers.{entry.module}"
    make: Callable[..., Recognizer] = resolve(f"{module}:{name}")
    shape = {"frames": frames, "size": size} if entry.sized else {}
    network = make(channels=channels, **shape)
    if pretrained and entry.weights:
        from vidveil.models.recognizers.pretrained import load_published
        from vidveil.weights import weights
        from vidveil.weights.tensors import read_tensors

        load_published(network, read_tensors(weights(entry.weights)))
    return network
