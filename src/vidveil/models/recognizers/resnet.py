"""ResNet on each frame by itself (He et al. 2016), features averaged over the frames.

    clip (B, C, T, H, W) → frames (B·T, C, H, W) → (B·T, D) → mean over T → (B, D)

A linear head on the mean of features gives the mean of its logits over frames: this attacker uses pictures and not
their order. Names are torchvision's. Two forms of the bottleneck are in use: v1 strides in the
first 1 × 1 convolution (the original, and the ImageNet weights that vidveil fetches, which also have biases), v1.5 in
the 3 × 3 (torchvision's).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.models.recognizers.recognizer import Recognizer, Standardize, frames_of

IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# The input of Caffe's networks, 0…255 minus a mean without division, for pixels in [0, 1] in the order R, G, B.
CAFFE_MEAN, CAFFE_DEVIATION = (123.68 / 255, 116.779 / 255, 103.939 / 255), (1 / 255, 1 / 255, 1 / 255)


class Basic(nn.Module):
    """Two 3 × 3 convolutions."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(inputs, width, stride, bias=False, eps=1e-5)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + shortcut)


class Bottleneck(nn.Module):
    """1 × 1 down to `width`, 3 × 3, 1 × 1 up to four times `width`."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int, *, v1: bool) -> None:
        super().__init__()
        first, second = (stride, 1) if v1 else (1, stride)
        eps = 1e-3 if v1 else 1e-5
        self.conv1 = nn.Conv2d(inputs, width, 1, first, bias=v1)
        self.bn1 = nn.BatchNorm2d(width, eps=eps)
        self.conv2 = nn.Conv2d(width, width, 3, second, 1, bias=v1)
        self.bn2 = nn.BatchNorm2d(width, eps=eps)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=v1)
        self.bn3 = nn.BatchNorm2d(4 * width, eps=eps)
        self.downsample = _shortcut(inputs, 4 * width, stride, bias=v1, eps=eps)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return F.relu(self.bn3(self.conv3(x)) + shortcut)


def _shortcut(inputs: int, outputs: int, stride: int, *, bias: bool, eps: float) -> nn.Sequential | None:
    if inputs == outputs and stride == 1:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=bias), nn.BatchNorm2d(outputs, eps=eps))


def fold_biases(network: nn.Module) -> None:
    """Move the bias of each convolution into the running mean of the norm after it. In evaluation the features stay the
    same, and each convolution saves a pass over all pixels."""
    for part in network.modules():
        for layer, norm in pairwise(part.children()):
            if isinstance(layer, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d) and layer.bias is not None:
                assert norm.running_mean is not None
                with torch.no_grad():
                    norm.running_mean -= layer.bias
                layer.bias = None


class ResNet(Recognizer):
    def __init__(
        self,
        block: Literal["basic", "bottleneck", "bottleneck v1"],
        *,
        channels: int = 3,
        widths: Sequence[int] = (64, 128, 256, 512),
        depths: Sequence[int] = (2, 2, 2, 2),
        stem: int = 7,
        mean: Sequence[float] = IMAGENET_MEAN,
        deviation: Sequence[float] = IMAGENET_DEVIATION,
    ) -> None:
        super().__init__()
        v1 = block == "bottleneck v1"
        self.block = block
        self.width = widths[-1] * (Basic if block == "basic" else Bottleneck).expansion
        self.standardize = Standardize(mean, deviation, channels)
        self.conv1 = nn.Conv2d(channels, widths[0], stem, 2, stem // 2, bias=v1)
        self.bn1 = nn.BatchNorm2d(widths[0], eps=1e-3 if v1 else 1e-5)
        layers, inputs = [], widths[0]
        for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            blocks: list[Basic | Bottleneck] = []
            for j in range(depth):
                stride = 2 if i > 0 and j == 0 else 1
                one = Basic(inputs, width, stride) if block == "basic" else Bottleneck(inputs, width, stride, v1=v1)
                blocks.append(one)
                inputs = width * one.expansion
            layers.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = layers
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, clip: Tensor) -> Tensor:
        frames = clip.shape[2]
        x: Tensor = frames_of(self.standardize(clip))  # (B·T, C, H, W)
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)  # (B·T, w, H/4, W/4)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))  # (B·T, D, H/32, W/32)
        return x.mean((2, 3)).view(-1, frames, self.width).mean(1)  # (B·T, D) → (B, D)


def resnet18(*, channels: int = 3) -> ResNet:
    return ResNet("basic", channels=channels)


def resnet50(*, channels: int = 3) -> ResNet:
    """The original, v1, with or without the ImageNet weights of `vidveil fetch resnet50`."""
    return ResNet("bottleneck v1", channels=channels, depths=(3, 4, 6, 3), mean=CAFFE_MEAN, deviation=CAFFE_DEVIATION)


def resnet50_v15(*, channels: int = 3) -> ResNet:
    return ResNet("bottleneck", channels=channels, depths=(3, 4, 6, 3))


def resnet_tiny(*, channels: int = 3) -> ResNet:
    """For two CPU cores and frames of 64 × 64."""
    return ResNet(
        "basic",
        channels=channels,
        widths=(16, 32, 64, 128),
        depths=(1, 1, 1, 1),
        stem=5,
        mean=(0.5, 0.5, 0.5),
        deviation=(0.25, 0.25, 0.25),
    )
