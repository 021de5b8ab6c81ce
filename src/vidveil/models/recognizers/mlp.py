"""A network on stored features rather than pixels: the attacker, and the utility model, of latent methods.

(B, C) → norm → linear → GELU → linear → (B, D)
"""

from torch import Tensor, nn

from vidveil.models.recognizers.recognizer import Recognizer


class MLP(Recognizer):
    def __init__(self, *, inputs: int, hidden: int = 512, width: int = 256, dropout: float = 0.1) -> None:
        super().__init__()
        self.width = width
        self.layers = nn.Sequential(
            nn.LayerNorm(inputs),  # encoders differ in scale by orders of magnitude
            nn.Linear(inputs, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, width),
        )

    def features(self, clip: Tensor) -> Tensor:
        found: Tensor = self.layers(clip)
        return found


def mlp(*, channels: int) -> MLP:
    """`channels` is the length of the features that come in."""
    return MLP(inputs=channels)
