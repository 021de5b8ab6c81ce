"""I3D: the Inception network with its 2-D kernels grown into time (Carreira & Zisserman 2017, "Quo Vadis, Action
Recognition?").

    Conv3d_1a 7×7×7/2 → pool → 2b, 2c → pool → Mixed_3b, 3c → pool → Mixed_4b … 4f → pool → Mixed_5b, 5c
    (B, C, T, H, W) → (B, 1024, T/8, H/32, W/32) → mean over time and space → (B, 1024)

Its weights were trained in TensorFlow, whose 'SAME' padding adds the odd pixel at the end:

    total = max((⌈n/s⌉ - 1)·s + k - n, 0),   before = ⌊total/2⌋,   after = total - before

With torch's even padding, the windows of every strided layer would be shifted by one pixel. Names are those of
the published checkpoint. The original averages windows of 2 × 7 × 7 before its last layer; for 16 frames of 224 × 224
that is the mean taken here.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.models.recognizers.recognizer import Recognizer, Standardize

# block: inputs, 1×1, (1×1 → 3×3), (1×1 → 3×3), 1×1 after the pool
MIXED = {
    "3b": (192, 64, (96, 128), (16, 32), 32),
    "3c": (256, 128, (128, 192), (32, 96), 64),
    "4b": (480, 192, (96, 208), (16, 48), 64),
    "4c": (512, 160, (112, 224), (24, 64), 64),
    "4d": (512, 128, (128, 256), (24, 64), 64),
    "4e": (512, 112, (144, 288), (32, 64), 64),
    "4f": (528, 256, (160, 320), (32, 128), 128),
    "5b": (832, 256, (160, 320), (32, 128), 128),
    "5c": (832, 384, (192, 384), (48, 128), 128),
}
Triple = tuple[int, int, int]


def same_padding(n: int, kernel: int, stride: int) -> tuple[int, int]:
    """Before and after one axis of length n."""
    total = max((-(-n // stride) - 1) * stride + kernel - n, 0)
    return total // 2, total - total // 2


def pad_same(x: Tensor, kernel: Triple, stride: Triple) -> Tensor:
    pads: list[int] = []
    for n, k, s in zip(reversed(x.shape[2:]), reversed(kernel), reversed(stride), strict=True):
        pads += same_padding(n, k, s)  # F.pad counts axes from the last
    return F.pad(x, pads) if any(pads) else x


def max_pool_same(x: Tensor, kernel: tuple[int, int], stride: tuple[int, int]) -> Tensor:
    """(B, C, H, W) → (B, C, ⌈H/s⌉, ⌈W/s⌉). What is padded never wins."""
    (top, bottom), (left, right) = (same_padding(n, k, s) for n, k, s in zip(x.shape[2:], kernel, stride, strict=True))
    if bottom > top or right > left:
        x = F.pad(x, (0, right - left, 0, bottom - top), value=-torch.inf)
    return F.max_pool2d(x, kernel, stride, (top, left))


class Unit(nn.Module):
    """Convolution, normalisation, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.kernel, self.stride = (kernel,) * 3, (stride,) * 3
        inside = kernel // 2 if stride == 1 else 0  # without a stride both ways of padding are the same
        self.conv3d = nn.Conv3d(inputs, outputs, kernel, stride, inside, bias=False)
        self.bn = nn.BatchNorm3d(outputs, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        if self.stride != (1, 1, 1):
            x = pad_same(x, self.kernel, self.stride)
        return F.relu(self.bn(self.conv3d(x)))


class Stem(Unit):
    """7 × 7 × 7, by steps of two.

    Accelerators are slow at three channels. There the two pixels of a step, along each axis, become channels of one:
    4 × 4 × 4 over 24 channels, by steps of one, is the same sum, since 2o + k = 2(o + a) + b where k = 2a + b.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 7, 2)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(folded_convolution(x, self.conv3d.weight))) if x.is_cuda else super().forward(x)


def folded_convolution(x: Tensor, weight: Tensor) -> Tensor:
    """What `weight` (O, C, 7, 7, 7) gives of x (B, C, T, H, W), padded as 'SAME', by steps of two."""
    pads: list[int] = []
    for n in reversed(x.shape[2:]):
        before, _ = same_padding(n, 7, 2)
        pads += before, 2 * (-(-n // 2) + 3) - n - before
    folded = _pairs_as_channels(F.pad(x, pads))
    return F.conv3d(folded, _pairs_as_channels(F.pad(weight, (0, 1) * 3)))  # an eighth weight is 0


def _pairs_as_channels(x: Tensor) -> Tensor:
    """(B, C, 2t, 2h, 2w) → (B, 8C, t, h, w), channels last."""
    b, _, t, h, w = x.shape
    pairs = x.view(b, -1, t // 2, 2, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 7, 2, 4, 6)
    return pairs.flatten(1, 4).contiguous(memory_format=torch.channels_last_3d)


class Pool(nn.Module):
    """Maximum over a window: over space, then over time. The result is the same, and accelerators are faster in 2-D."""

    def __init__(self, kernel: Triple, stride: Triple) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        (times, *space), (step, *steps) = self.kernel, self.stride
        batch, channels, length = x.shape[:3]
        flat = x.transpose(1, 2).flatten(0, 1)  # (B·T, C, H, W): where channels lie last, nothing is copied
        pooled = max_pool_same(flat, (space[0], space[1]), (steps[0], steps[1]))
        height, width = pooled.shape[2:]
        pooled = pooled.view(batch, length, channels, height, width).transpose(1, 2)
        if times == 1:
            return pooled
        rows = max_pool_same(pooled.flatten(3), (times, 1), (step, 1))  # (B, C, t, h·w)
        return rows.view(batch, channels, -1, height, width)


class Mixed(nn.Module):
    """Four views of the same input, side by side."""

    def __init__(self, inputs: int, one: int, middle: tuple[int, int], small: tuple[int, int], pooled: int) -> None:
        super().__init__()
        self.Branch_0 = _chain(Conv3d_0a_1x1=Unit(inputs, one, 1))
        self.Branch_1 = _chain(Conv3d_0a_1x1=Unit(inputs, middle[0], 1), Conv3d_0b_3x3=Unit(*middle, 3))
        self.Branch_2 = _chain(Conv3d_0a_1x1=Unit(inputs, small[0], 1), Conv3d_0b_3x3=Unit(*small, 3))
        self.Branch_3 = _chain(MaxPool3d_0a_3x3=Pool((3, 3, 3), (1, 1, 1)), Conv3d_0b_1x1=Unit(inputs, pooled, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.Branch_0(x), self.Branch_1(x), self.Branch_2(x), self.Branch_3(x)], 1)


def _chain(**parts: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(parts))


class I3D(Recognizer):
    width = 1024

    def __init__(self, *, channels: int = 3) -> None:
        super().__init__()
        self.standardize = Standardize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), channels)  # to [-1, 1]
        self.Conv3d_1a_7x7 = Stem(channels, 64)
        self.MaxPool3d_2a_3x3 = Pool((1, 3, 3), (1, 2, 2))
        self.Conv3d_2b_1x1 = Unit(64, 64, 1)
        self.Conv3d_2c_3x3 = Unit(64, 192, 3)
        self.MaxPool3d_3a_3x3 = Pool((1, 3, 3), (1, 2, 2))
        self.Mixed_3b, self.Mixed_3c = _mixed("3b"), _mixed("3c")
        self.MaxPool3d_4a_3x3 = Pool((3, 3, 3), (2, 2, 2))
        self.Mixed_4b, self.Mixed_4c, self.Mixed_4d = _mixed("4b"), _mixed("4c"), _mixed("4d")
        self.Mixed_4e, self.Mixed_4f = _mixed("4e"), _mixed("4f")
        self.MaxPool3d_5a_2x2 = Pool((2, 2, 2), (2, 2, 2))
        self.Mixed_5b, self.Mixed_5c = _mixed("5b"), _mixed("5c")
        for module in self.modules():
            if isinstance(module, nn.Conv3d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, clip: Tensor) -> Tensor:
        x: Tensor = self.standardize(clip)
        for name, part in self.named_children():  # in the order in which they were made
            if name != "standardize":
                x = part(x)
        return x.mean((2, 3, 4))  # (B, 1024, T/8, H/32, W/32) → (B, 1024)


def _mixed(block: str) -> Mixed:
    return Mixed(*MIXED[block])


def i3d(*, channels: int = 3) -> I3D:
    return I3D(channels=channels)
