"""Views of a video: which frames, which part of the picture, at which size.

    video (T, H, W, 3) uint8   →   view (3, frames, size, size) float in [0, 1]

In time, a view has `frames` frames, `stride` apart; a shorter video repeats its last frame. In space, it is a box of
the picture resized to size × size by an antialiased bilinear filter. Both directions of that filter are matrices with a
row per pixel of the result,

    view = Y · picture · Xᵀ          Y (size, H), X (size, W): triangles as wide as the pixels they replace

so different boxes per video, and mirroring, are one batched product on any device. A picture that already has the
requested size is not resized.

    training   a random start; `crop`: a random box of 50-100 % of the area, mirrored half of the time
               `light`: the middle square shifted by up to 1/16, mirrored, with small changes of brightness and
               contrast (for small sets with centred people)
               `squash`: the whole picture, squashed to a square, otherwise like `light`: the input of maskers
               `turn`: the middle square, rotated, mirrored, stretched in each direction, shifted, brighter or darker
    test       `5x1`: five clips evenly spaced, the middle square; `5x3`: three squares along the long side of each

Random numbers depend only on (seed, epoch, row): a resumed run sees the same views as an uninterrupted one.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from vidveil.core.errors import UsageError
from vidveil.training.transfer import to_device

Augment = Literal["none", "light", "crop", "squash", "turn"]
Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Side = int | Whole
"""Of one picture, or of each."""

DRAWS = 8  # random numbers per view: start, area, aspect, left, top, mirror, brightness, contrast
SHIFT = 1 / 16  # of the size, at most, by which `light` moves the picture
ASPECT = 4 / 3  # of a random box, at most
TURN, STRETCH, MOVE, GAIN = 20.0, 0.3, 0.1, 0.3
"""Of `turn`, either way: degrees, logarithm of a side's length, share of half the picture, logarithm of brightness."""
VIEW, ORDER, CONTROL, SETTING = 1, 2, 3, 4  # independent streams of random numbers; 0 would be the seed's own


def draw(seed: int, stream: int, epoch: int, rows: Sequence[int] | NDArray[np.int64], count: int = DRAWS) -> Floats:
    """(B, count) uniform in [0, 1), a function of the arguments alone."""
    places = np.asarray(rows, np.int64)
    upto = 1 << int(places.max(initial=0)).bit_length()  # more rows than requested: one table serves an epoch
    return _table(seed, stream, epoch, upto, count)[places]


@lru_cache(maxsize=4)
def _table(seed: int, stream: int, epoch: int, rows: int, count: int) -> Floats:
    """(rows, count). A longer table begins with any shorter one."""
    return np.random.default_rng((seed, stream, epoch)).random((rows, count))


def training_picks(length: int, frames: int, stride: int, number: float) -> NDArray[np.int64]:
    """(frames,) indices into a video of this length, from a random start."""
    start = int(number * (max(length - _span(frames, stride), 0) + 1))
    return _picks(length, frames, stride, start)


def even_picks(length: int, frames: int, stride: int, clips: int) -> NDArray[np.int64]:
    """(clips, frames): clips evenly spaced from the first frame to the last; a single one is in the middle."""
    last = max(length - _span(frames, stride), 0)
    starts = np.linspace(0, last, clips) if clips > 1 else np.array([last / 2])
    return np.stack([_picks(length, frames, stride, int(start + 0.5)) for start in starts])


def _span(frames: int, stride: int) -> int:
    return (frames - 1) * stride + 1


def _picks(length: int, frames: int, stride: int, start: int) -> NDArray[np.int64]:
    return np.minimum(start + stride * np.arange(frames), length - 1)


def parse_views(spec: str) -> tuple[int, int]:
    """`5x3` → 5 clips, 3 crops."""
    match = re.fullmatch(r"([1-9]\d?)x([13])", spec)
    if not match:
        raise UsageError(f"views are CLIPSxCROPS with 1 or 3 crops, such as 5x1 or 5x3, not {spec!r}")
    return int(match[1]), int(match[2])


def augmented(
    clips: Tensor,
    numbers: Floats,
    *,
    size: int,
    augment: Augment,
    scale: tuple[float, float] = (0.5, 1.0),
    flip: bool = True,
    sides: Whole | None = None,
) -> Tensor:
    """uint8 (B, T, H, W, 3), numbers (B, DRAWS) → (B, 3, T, size, size). `sides`: as of `cropped`."""
    mirror = numbers[:, 5] < 0.5 if flip else np.zeros(len(numbers), bool)
    if augment == "crop":
        height, width = clips.shape[2:4] if sides is None else sides.T
        return _resized(clips, _random_boxes(numbers, height, width, scale), size, mirror)
    views = cropped(clips[:, None], size=size, crops=1, whole=augment == "squash", sides=sides)[:, 0]
    if augment == "turn":
        return turned(views, numbers, mirror)
    return views if augment == "none" else _jittered(views, numbers, mirror)


def cropped(clips: Tensor, *, size: int, crops: int, whole: bool = False, sides: Whole | None = None) -> Tensor:
    """uint8 (B, K, T, H, W, 3) → (B, K * crops, 3, T, size, size): squares along the long side, from left or top.

    `whole`: not squares of it, but the picture itself, squashed. `sides`: (B, 2) height and width of each picture,
    where some are smaller than the tensor; they lie at its left and top.
    """
    b, k, t, most_high, most_wide, _ = clips.shape
    flat = clips.reshape(b * k, t, most_high, most_wide, 3)
    if most_high == most_wide == size and (sides is None or bool((sides == size).all())):
        same = flat.permute(0, 4, 1, 2, 3).float().div_(255).view(b, k, 3, t, size, size)
        return same if crops == 1 else same.repeat_interleave(crops, dim=1)  # without a copy for one crop
    high, wide = np.repeat(np.full((b, 2), (most_high, most_wide)) if sides is None else sides, k, axis=0).T  # (B·K,)
    if whole:
        box = np.stack([0 * wide, 0 * high, wide, high], axis=1)
        squashed = _resized(flat, box, size, np.zeros(b * k, bool)).view(b, k, 3, t, size, size)
        return squashed if crops == 1 else squashed.repeat_interleave(crops, dim=1)
    side = np.minimum(high, wide)
    views = []
    for share in np.linspace(0, 1, crops) if crops > 1 else (0.5,):
        left, top = ((share * (edge - side)).astype(int) for edge in (wide, high))
        views.append(_resized(flat, np.stack([left, top, side, side], axis=1), size, np.zeros(b * k, bool)))
    return torch.stack(views, dim=1).view(b, k * crops, 3, t, size, size)


def _random_boxes(numbers: Floats, height: Side, width: Side, scale: tuple[float, float]) -> Floats:
    """(B, 4) left, top, width, height in whole pixels."""
    area = (scale[0] + numbers[:, 1] * (scale[1] - scale[0])) * height * width
    aspect = ASPECT ** (2 * numbers[:, 2] - 1)
    w = np.clip(np.round(np.sqrt(area * aspect)), 1, width)
    h = np.clip(np.round(np.sqrt(area / aspect)), 1, height)
    left = np.floor(numbers[:, 3] * (width - w + 1))
    top = np.floor(numbers[:, 4] * (height - h + 1))
    return np.stack([left, top, w, h], axis=1)


def _resized(clips: Tensor, boxes: Floats | Whole, size: int, mirror: NDArray[np.bool_]) -> Tensor:
    """uint8 (B, T, H, W, 3), boxes (B, 4) → (B, 3, T, size, size)."""
    b, t, height, width, _ = clips.shape
    box = to_device(boxes, clips.device, torch.float32)
    x = _filter(box[:, 0], box[:, 2], width, size)  # (B, size, W)
    y = _filter(box[:, 1], box[:, 3], height, size)  # (B, size, H)
    back = to_device(mirror, clips.device)[:, None, None]
    x = torch.where(back, x.flip(1), x)
    out = clips.permute(0, 4, 1, 2, 3).float().reshape(b, 3 * t * height, width)
    out = torch.bmm(out, x.mT)  # (B, 3TH, size)
    out = out.view(b, 3 * t, height, size).mT.reshape(b, 3 * t * size, height)
    out = torch.bmm(out, y.mT).view(b, 3, t, size, size).mT
    return out.div(255).clamp_(0, 1).contiguous()


def _filter(start: Tensor, length: Tensor, pixels: int, size: int) -> Tensor:
    """(B, size, pixels): the weight of each pixel of a row in each pixel of the resized box."""
    step = (length / size)[:, None, None]
    at = start[:, None, None] + (torch.arange(size, device=start.device)[:, None] + 0.5) * step
    pixel = torch.arange(pixels, device=start.device) + 0.5
    weight = (1 - (pixel - at).abs() / step.clamp(min=1)).clamp_(min=0)
    inside = (pixel > start[:, None, None]) & (pixel < (start + length)[:, None, None])  # nothing from outside the box
    weight = weight * inside
    return weight / weight.sum(-1, keepdim=True)


def _jittered(views: Tensor, numbers: Floats, mirror: NDArray[np.bool_]) -> Tensor:
    """(B, 3, T, S, S): shifted with the edge repeated, mirrored, brightness and contrast changed by up to a tenth."""
    size = views.shape[-1]
    reach = int(size * SHIFT)
    shifts = (numbers[:, 3:5] * (2 * reach + 1)).astype(int) - reach  # to the left, up
    x, y = np.clip(shifts.T[:, :, None] + np.arange(size), 0, size - 1)  # each (B, S): the pixel that comes here
    x = np.where(mirror[:, None], x[:, ::-1], x)
    pixels = to_device(y[:, :, None] * size + x[:, None, :], views.device).flatten(1)  # (B, S · S)
    moved = views.flatten(3).gather(3, pixels[:, None, None].expand(*views.shape[:3], -1)).view(views.shape)
    brighter = _column(0.2 * numbers[:, 6] - 0.1, views)
    contrast = _column(0.8 + 0.4 * numbers[:, 7], views)
    mean = moved.mean(dim=(1, 2, 3, 4), keepdim=True)
    return moved.mul_(contrast).add_(mean * (1 - contrast) + brighter).clamp_(0, 1)


def turned(views: Tensor, numbers: Floats, mirror: NDArray[np.bool_]) -> Tensor:
    """(B, 3, T, S, S), numbers (B, DRAWS): all frames of a view alike. What comes from outside the picture is black."""
    either_way = 2 * numbers - 1
    angle = np.deg2rad(TURN) * either_way[:, 7]
    wide, tall = np.exp(STRETCH * either_way[:, 1:3]).T
    wide = np.where(mirror, -wide, wide)
    left, top = MOVE * either_way[:, 3:5].T
    rows = [[np.cos(angle) * wide, -np.sin(angle) * tall, left], [np.sin(angle) * wide, np.cos(angle) * tall, top]]
    comes_from = to_device(np.array(rows), views.device, views.dtype).permute(2, 0, 1)  # (B, 2, 3)
    flat = views.flatten(1, 2)  # (B, 3·T, S, S)
    grid = F.affine_grid(comes_from, list(flat.shape), align_corners=False)
    seen = F.grid_sample(flat, grid, align_corners=False).view(views.shape)
    return (seen * _column(np.exp(GAIN * either_way[:, 6]), views)).clamp_(max=1)


def _column(values: Floats, like: Tensor) -> Tensor:
    return to_device(values, like.device, like.dtype).view(-1, 1, 1, 1, 1)
