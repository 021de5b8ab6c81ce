"""The first layer of a video transformer: each tubelet of pixels becomes a token, by one matrix product.

    token = W · pixels + b          W (D, 3·t·p·p), held as a 3-D convolution's kernel so that published weights load

A convolution whose stride is its kernel size computes the same. With three channels that is the slowest kernel of the
whole network on an accelerator, and a matrix product the fastest.
"""

from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.models.layers.tubelets import cut


class TubeletProjection(nn.Module):
    def __init__(self, channels: int, tubelet: tuple[int, int, int], width: int) -> None:
        super().__init__()
        self.tubelet = tubelet
        self.proj = nn.Conv3d(channels, width, tubelet, tubelet)

    def forward(self, clip: Tensor) -> Tensor:
        """(B, C, T, H, W) → (B, L, S, D)."""
        pixels = cut(clip, self.tubelet).to(self.proj.weight.dtype)  # (B, L, S, C·t·p·p)
        return F.linear(pixels, self.proj.weight.flatten(1), self.proj.bias)
