"""Batches of clips that learned methods take, and what they may return."""

from typing import TYPE_CHECKING

from vidveil.core.anonymizer import Anonymized

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = 1e-3
"""By so much a value may leave [0, 1]: it is the same byte."""


def as_float(clips: "Tensor") -> "Tensor":
    """float32 in [0, 1]."""
    import torch

    return clips.float() / 255 if clips.dtype == torch.uint8 else clips.float()


def check_clips(clips: "Tensor") -> None:
    import torch

    if clips.ndim != 5 or clips.shape[1] != 3 or not (clips.is_floating_point() or clips.dtype == torch.uint8):
        raise ValueError(f"clips are (B, 3, T, H, W), float or uint8, got {clips.dtype} {tuple(clips.shape)}")
    if not clips.numel():
        raise ValueError(f"there is nothing in clips of {tuple(clips.shape)}")


def check_output(found: Anonymized, clips: "Tensor") -> None:
    import torch

    if found.video.shape != clips.shape:
        raise ValueError(f"the network made {tuple(found.video.shape)} of clips of {tuple(clips.shape)}")
    if found.video.dtype == torch.uint8 and clips.dtype != torch.uint8:
        raise ValueError("the network made bytes of clips that are numbers in [0, 1]")
    if found.video.is_floating_point():
        low, high = (float(value) for value in found.video.aminmax())  # NaN if any value is
        if not (low >= -ROUNDING and high <= 1 + ROUNDING):
            raise ValueError(f"the network made values that are not numbers in [0, 1], from {low:g} to {high:g}")
    pixels = (clips.shape[0], *clips.shape[2:])
    if found.mask is not None and (found.mask.dtype != torch.bool or found.mask.shape != pixels):
        raise ValueError(f"a mask is bool {pixels}, got {found.mask.dtype} {tuple(found.mask.shape)}")
    if found.scores is not None and (found.scores.shape != pixels or found.scores.isnan().any()):
        raise ValueError(f"scores are {pixels}, and numbers, got {tuple(found.scores.shape)}")
