"""I3D-ResNet-50: a ResNet-50 with kernels over time in the first convolution of every block or every other one.

    stem    5 × 7 × 7 / (1, 2, 2) → max pool 1 × 3 × 3 / (1, 2, 2)      (B, C, T, H, W) → (B, 64, T, H/4, W/4)
    layer1  3 blocks, a a a        → max pool 2 × 1 × 1 / (2, 1, 1)     → (B, 256, T/2, H/4, W/4)
    layer2  4 blocks, a - a -                                           → (B, 512, T/2, H/8, W/8)
    layer3  6 blocks, a - a - a -                                       → (B, 1024, T/2, H/16, W/16)
    layer4  3 blocks, - a -                                             → (B, 2048, T/2, H/32, W/32)
    mean over time and space                                            → (B, 2048)

In a block, 1 × 1 × 1 down, 1 × 3 × 3, 1 × 1 × 1 up; where an `a` stands the first of them is 3 × 1 × 1. "I3D-ResNet-50"
is several networks in the literature (Wang et al. 2018, "Non-local Neural Networks", have 3 × 3 × 3 and 3 × 1 × 1
forms). This is the one that SlowFast's model zoo and pytorchvideo's hub call `i3d_r50`, 28.04 M parameters with 400
classes, whose Kinetics-400 weights are public: I3D_8x8_R50. The papers do not say which they took.

Two forms, as of `resnet50`: `i3d_r50` strides in the 3 × 3 (v1.5) and is the published one. `i3d_r50_v1` strides in the
first convolution and has biases, as the ImageNet weights that vidveil fetches, which are inflated into it.

Names are torchvision's of the ResNet-50, so that weights of pictures are found; `pretrained` knows pytorchvideo's. A
pair of frames that is left over at an odd T is a pool of one.
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.models.recognizers.recognizer import Recognizer, Standardize
from vidveil.models.recognizers.resnet import CAFFE_DEVIATION, CAFFE_MEAN

MEAN, DEVIATION = (0.45, 0.45, 0.45), (0.225, 0.225, 0.225)  # of pytorchvideo's checkpoint
DEPTHS = (3, 4, 6, 3)
TIMES = ((3,), (3, 1), (3, 1), (1, 3))
"""Frames that the first convolutions of a layer's blocks see, in turn."""


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int, times: int, *, v1: bool) -> None:
        super().__init__()
        first, second = (stride, 1) if v1 else (1, stride)
        eps = 1e-3 if v1 else 1e-5
        self.conv1 = nn.Conv3d(inputs, width, (times, 1, 1), (1, first, first), (times // 2, 0, 0), bias=v1)
        self.bn1 = nn.BatchNorm3d(width, eps=eps)
        self.conv2 = nn.Conv3d(width, width, (1, 3, 3), (1, second, second), (0, 1, 1), bias=v1)
        self.bn2 = nn.BatchNorm3d(width, eps=eps)
        self.conv3 = nn.Conv3d(width, 4 * width, 1, bias=v1)
        self.bn3 = nn.BatchNorm3d(4 * width, eps=eps)
        self.downsample = None
        if inputs != 4 * width or stride != 1:
            shortcut = nn.Conv3d(inputs, 4 * width, 1, (1, stride, stride), bias=v1)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm3d(4 * width, eps=eps))

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return F.relu(self.bn3(self.conv3(x)) + shortcut)


class I3DResNet(Recognizer):
    def __init__(
        self,
        *,
        channels: int = 3,
        widths: Sequence[int] = (64, 128, 256, 512),
        depths: Sequence[int] = DEPTHS,
        v1: bool = False,
    ) -> None:
        super().__init__()
        self.v1, self.width = v1, 4 * widths[-1]
        mean, deviation = (CAFFE_MEAN, CAFFE_DEVIATION) if v1 else (MEAN, DEVIATION)
        self.standardize = Standardize(mean, deviation, channels)
        self.conv1 = nn.Conv3d(channels, widths[0], (5, 7, 7), (1, 2, 2), (2, 3, 3), bias=v1)
        self.bn1 = nn.BatchNorm3d(widths[0], eps=1e-3 if v1 else 1e-5)
        layers, inputs = [], widths[0]
        for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            blocks = []
            for j in range(depth):
                stride = 2 if i > 0 and j == 0 else 1
                blocks.append(Bottleneck(inputs, width, stride, TIMES[i][j % len(TIMES[i])], v1=v1))
                inputs = 4 * width
            layers.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = layers
        for module in self.modules():
            if isinstance(module, nn.Conv3d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, clip: Tensor) -> Tensor:
        x: Tensor = F.relu(self.bn1(self.conv1(self.standardize(clip))))
        x = F.max_pool3d(x, (1, 3, 3), (1, 2, 2), (0, 1, 1))  # (B, 64, T, H/4, W/4)
        x = F.max_pool3d(self.layer1(x), (2, 1, 1), ceil_mode=True)  # (B, 256, T/2, H/4, W/4)
        x = self.layer4(self.layer3(self.layer2(x)))  # (B, 2048, T/2, H/32, W/32)
        return x.mean((2, 3, 4))


def i3d_r50(*, channels: int = 3) -> I3DResNet:
    return I3DResNet(channels=channels)


def i3d_r50_v1(*, channels: int = 3) -> I3DResNet:
    return I3DResNet(channels=channels, v1=True)
