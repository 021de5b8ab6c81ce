"""A dual-CLS checkpoint as an anonymizer: the network decides, a masker hides."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch

from vidveil.core.anonymizer import Anonymized
from vidveil.core.errors import UsageError, WeightsError
from vidveil.core.frame import Frame, SafeFrame
from vidveil.methods.dual_cls.model import DualCLS, Network
from vidveil.methods.learned.anonymizer import RAW
from vidveil.methods.learned.clips import as_float
from vidveil.methods.learned.network import rebuilt
from vidveil.methods.masking.masker import TubeletMasker
from vidveil.models.checkpoint import OLD_LAYOUT, Checkpoint, network_of

if TYPE_CHECKING:
    from torch import Tensor


def load(checkpoint: Checkpoint) -> TubeletMasker:
    if checkpoint.about["layout"] > OLD_LAYOUT and "preprocess" not in checkpoint.about["recipe"]:
        # Fail closed: read as `raw`, it would show the original pixels, whatever it was trained on.
        raise WeightsError(f"{checkpoint.folder} does not say what is applied before its network: it is damaged")
    network = read_network(checkpoint)
    if network.network.output == "decode" and network.preprocess != RAW:
        raise WeightsError(f"{checkpoint.folder} says that it draws pictures after {network.preprocess}: none can")
    kind = Decoder if network.network.output == "decode" else TubeletMasker
    return kind(
        f"dual_cls:{checkpoint.name}",
        network,
        weights=checkpoint.weights,
        fill=network.network.fill,
    )


def read_network(checkpoint: Checkpoint) -> DualCLS:
    return rebuilt(checkpoint, lambda: DualCLS(network_of(checkpoint, Network)))


class Decoder(TubeletMasker):
    """`output: decode`: the network draws what is shown, and pruned tubelets are black.

    It obfuscates: the tokens that it draws from have attended to what was pruned.
    """

    draws = True

    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:  # noqa: ARG002
        raise UsageError(f"{self.spec} draws small clips, not videos: train one with output: mask for those")

    def process(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Anonymized:
        """(B, 3, T, H, W) of the network's own size: it cannot draw larger pictures."""
        network = self.scorer
        assert isinstance(network, DualCLS)
        if clips.shape[2:] != (network.frames, network.size, network.size):
            raise UsageError(
                f"{self.spec} draws clips of {network.frames} × {network.size} × {network.size}, not "
                f"{tuple(clips.shape[2:])}: for other videos train one with output: mask"
            )
        masked = super().process(clips, keep, privacy_weight)
        if self.fill == "mask":  # to evaluate how much masks alone reveal
            return masked
        with torch.inference_mode():
            weight = self.privacy_weight if privacy_weight is None else privacy_weight
            output = network(as_float(clips), self.keep if keep is None else keep, weight)
            return Anonymized(network.decode(output), masked.mask, masked.scores)
