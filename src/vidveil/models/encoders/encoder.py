"""The interface of frozen video encoders: a clip goes in, one vector comes out.

    clip (B, 3, T, H, W) in [0, 1]  →  z = f_E(clip) (B, D)

The vector is the encoder's [CLS] token where it has one, else the mean over its tokens, or its pooled features. Each
encoder shifts and scales the pixels itself, as its weights need it.
"""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor


class Encoder(ABC):
    """With its weights, on its device, in evaluation: the same clip always has the same vector."""

    spec: str
    """As it was asked for: `i3d`, `run:encoder_puppets`, `videomae:FOLDER`."""
    width: int
    """D, the length of a vector."""
    frames: int
    """T, frames per clip."""
    size: int
    """H = W, side of its square input."""
    fingerprint: str
    """sha256 of its weights and architecture: features of two encoders must not be mixed."""

    @abstractmethod
    def encode(self, clip: Tensor) -> Tensor:
        """(B, 3, T, H, W) float in [0, 1] → (B, D) float32, without gradients."""

    def about(self) -> dict[str, Any]:
        """The description in a store of features."""
        return {
            "spec": self.spec,
            "width": self.width,
            "frames": self.frames,
            "size": self.size,
            "fingerprint": self.fingerprint,
        }
