"""Tubelets of a clip as tensors: their pixels, their masks, and a clip without those that are hidden."""

import torch
from torch import Tensor

from vidveil.core.errors import UsageError
from vidveil.core.tubelets import FILLS


def as_mask(kept: Tensor, count: int) -> Tensor:
    """(B, k) numbers of tubelets → (B, count) bool."""
    mask = torch.zeros(len(kept), count, dtype=torch.bool, device=kept.device)
    return mask.scatter_(1, kept, 1)


def cut(clip: Tensor, tubelet: tuple[int, int, int]) -> Tensor:
    """(B, C, T, H, W) → (B, L, h·w, C·t·p·p): each tubelet's pixels in a row, ordered as a convolution's kernel."""
    batch, channels = clip.shape[:2]
    times, height, width = tubelet
    length, rows, columns = clip.shape[2] // times, clip.shape[3] // height, clip.shape[4] // width
    cells = clip.reshape(batch, channels, length, times, rows, height, columns, width)
    return cells.permute(0, 2, 4, 6, 1, 3, 5, 7).reshape(batch, length, rows * columns, -1)


def cut_into_clips(clip: Tensor, tubelet: tuple[int, int, int]) -> Tensor:
    """(B, 3, T, H, W) → (B·M, 3, t, p, p): every tubelet as a separate clip."""
    return cut(clip, tubelet).reshape(-1, clip.shape[1], *tubelet)


def over_pixels(values: Tensor, tubelet: tuple[int, int, int]) -> Tensor:
    """(..., L, h, w) of tubelets → (..., T, H, W) of pixels. Gradients pass."""
    times, height, width = tubelet
    return values.repeat_interleave(times, -3).repeat_interleave(height, -2).repeat_interleave(width, -1)


def paint(video: Tensor, kept: Tensor, fill: str = "black") -> Tensor:
    """The video with every pixel that is not kept painted over.

    Args:
        video: (B, 3, T, H, W).
        kept: (B, T, H, W) bool, or float with gradients (then `fill` must be black).
        fill: `black`; `mean`, the mean colour of what is kept of the clip; `temporal`, what is kept at the same place
            at the nearest time (the earlier of two), black where nothing ever is. `mask` shows the mask alone, white
            where something is kept: for measuring what masks alone reveal, not for videos.
    """
    if fill == "black":
        return video * kept.unsqueeze(1).to(video.dtype)
    if fill == "mask":
        return kept.unsqueeze(1).to(video.dtype).expand_as(video)
    if fill not in FILLS:
        raise UsageError(f"fill is {', '.join(FILLS[:-1])} or {FILLS[-1]}, not {fill!r}")
    shown = kept.unsqueeze(1)  # (B, 1, T, H, W)
    if fill == "mean":
        count = shown.sum((2, 3, 4), keepdim=True).clamp(min=1)
        colour = (video * shown).sum((2, 3, 4), keepdim=True) / count  # (B, 3, 1, 1, 1)
        return torch.where(shown, video, colour)
    source = _nearest_kept(kept)  # (B, T, H, W)
    found = video.gather(2, source.unsqueeze(1).expand_as(video))
    return found * kept.any(1, keepdim=True).unsqueeze(1)


def _nearest_kept(kept: Tensor) -> Tensor:
    """(B, T, H, W): at each pixel the number of the nearest frame that shows it."""
    times = torch.arange(kept.shape[1], device=kept.device).view(1, -1, 1, 1)
    never = 10 * kept.shape[1]
    before = torch.where(kept, times, -never).cummax(1).values
    after = torch.where(kept, times, never).flip(1).cummin(1).values.flip(1)
    nearest = torch.where(times - before <= after - times, before, after)
    return nearest.clamp(0, kept.shape[1] - 1)
