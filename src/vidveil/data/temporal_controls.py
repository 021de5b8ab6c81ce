"""Control inputs that remove temporal information, to find what a network uses.

    one_frame   a single frame, repeated over time: a random one in training, the middle one in test
    shuffled    all frames, in random order: no temporal order
    median      the temporal median, repeated: the place, without whoever moves through it

Each takes (B, C, T, H, W) and returns the same shape. Random numbers depend on (seed, epoch, row), as in `views`.
"""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.data.views import CONTROL, draw
from vidveil.training.transfer import to_device

TEST = 0  # used as the epoch in test; epochs of training are shifted by one


class Control(Protocol):
    def __call__(self, video: Tensor, rows: NDArray[np.int64], seed: int, epoch: int | None) -> Tensor:
        """(B, C, T, H, W) and the row of each → the same shape. `epoch` is None in test."""
        ...


def one_frame(video: Tensor, rows: NDArray[np.int64], seed: int, epoch: int | None) -> Tensor:
    frames = video.shape[2]
    if epoch is None:
        return video[:, :, frames // 2, None].expand_as(video).contiguous()
    chosen = (draw(seed, CONTROL, epoch + 1, rows, 1)[:, 0] * frames).astype(np.int64)
    return _ordered(video, np.repeat(chosen[:, None], frames, axis=1))


def shuffled(video: Tensor, rows: NDArray[np.int64], seed: int, epoch: int | None) -> Tensor:
    numbers = draw(seed, CONTROL, TEST if epoch is None else epoch + 1, rows, video.shape[2])
    return _ordered(video, np.argsort(numbers, axis=1, kind="stable"))


def median(video: Tensor, rows: NDArray[np.int64], seed: int, epoch: int | None) -> Tensor:  # noqa: ARG001
    """For an even number of frames the lower of the two middle values, so never a mixture."""
    return video.median(dim=2, keepdim=True).values.expand_as(video).contiguous()


CONTROLS: dict[str, Control] = {"one_frame": one_frame, "shuffled": shuffled, "median": median}


def _ordered(video: Tensor, order: NDArray[np.int64]) -> Tensor:
    """video (B, C, T, H, W), order (B, T): frame order[b, t] at (b, t)."""
    where = to_device(order, video.device)  # (B, T)
    sample = torch.arange(len(video), device=video.device)[:, None]
    return video.transpose(1, 2)[sample, where].transpose(1, 2).contiguous()
