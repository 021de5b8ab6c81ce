"""The interface of recognizers: a clip goes in, a vector of features comes out.

    clip (B, C, T, H, W) in [0, 1]  →  features (B, D)  →  one linear head per task

The same networks serve as utility models and as attackers, so nothing here depends on the task. Each network
standardizes pixels itself, as its published weights need it: callers always pass [0, 1]. A fourth channel, the mask of
a method, is left as it is.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Recognizer(nn.Module):
    """A network without a head."""

    width: int
    """D, the length of a feature vector."""

    @abstractmethod
    def features(self, clip: Tensor) -> Tensor:
        """(B, C, T, H, W) float in [0, 1] → (B, D). For networks on stored features: (B, C) → (B, D)."""

    def forward(self, clip: Tensor) -> Tensor:
        return self.features(clip)


class Classifier(nn.Module):
    """A recognizer and a linear head for each named output: `{"action": 10, "identity": 90}`."""

    def __init__(self, recognizer: Recognizer, outputs: Mapping[str, int], *, dropout: float = 0.0) -> None:
        super().__init__()
        self.recognizer = recognizer
        self.dropout = nn.Dropout(dropout)
        self.heads = nn.ModuleDict({name: nn.Linear(recognizer.width, count) for name, count in outputs.items()})

    def features(self, clip: Tensor) -> Tensor:
        found: Tensor = self.recognizer.features(clip)
        return found

    def forward(self, clip: Tensor) -> dict[str, Tensor]:
        features = self.dropout(self.features(clip))
        return {name: head(features) for name, head in self.heads.items()}


class Standardize(nn.Module):
    """(x - mean) / deviation for each channel, with the colours of a pixel side by side in memory.

    Convolutions follow the layout of their input, and this one is the fastest on CPU and CUDA alike. The constants are
    no part of the saved state: the names of published weights stay as they are.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float], channels: int) -> None:
        super().__init__()
        more = channels - len(mean)  # a mask: 0 and 1 stay 0 and 1
        self.constants = {"mean": [*mean, *[0.0] * more], "deviation": [*deviation, *[1.0] * more]}
        self.restore()

    def restore(self) -> None:
        """Make the constants anew: a network that was built on the meta device has none."""
        for name, values in self.constants.items():
            self.register_buffer(name, torch.tensor(values).view(1, -1, 1, 1, 1), persistent=False)

    def forward(self, clip: Tensor) -> Tensor:
        return (clip.contiguous(memory_format=torch.channels_last_3d) - self.mean) / self.deviation


def with_changes(clip: Tensor) -> Tensor:
    """(B, C, T, H, W) → (B, 2C, T, H, W): next to each frame what changes until the next, 0 next to the last."""
    changes = clip[:, :, 1:] - clip[:, :, :-1]
    return torch.cat([clip, F.pad(changes, (0, 0, 0, 0, 0, 1))], 1)


def frames_of(clip: Tensor) -> Tensor:
    """(B, C, T, H, W) → (B * T, C, H, W), without a copy for clips that come out of `Standardize`."""
    return clip.transpose(1, 2).flatten(0, 1)
