"""R3D: a ResNet whose every convolution is 3 frames deep (Tran et al. 2018, "A Closer Look at Spatiotemporal
Convolutions for Action Recognition").

    stem  3 × 7 × 7, no striding in time        (B, C, T, H, W) → (B, w1, T, H/2, W/2)
    layer1…4 of basic blocks                    each from the second on halves time, height and width
    mean over time and space                    → (B, w4)

`r3d18` has torchvision's names, so that its official weights load. `r3d_tiny` is made for two CPU cores and clips of
8 × 64 × 64: one block a layer, widths in multiples of 16 (what the vector units take; 24 channels run at a third of the
speed of 16), time at full length up to layer 2, since a movement lasts few frames. It also sees what changes from frame
to frame as channels of their own, so that its stem can be flat and look closely instead (5 × 5, stride 2):

    d_t = x_{t+1} - x_t,   d_T = 0
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.models.recognizers.recognizer import Recognizer, Standardize, with_changes

KINETICS_MEAN, KINETICS_DEVIATION = (0.43216, 0.394666, 0.37645), (0.22803, 0.22145, 0.216989)
PLAIN_MEAN, PLAIN_DEVIATION = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


class Block(nn.Module):
    """x + two convolutions of x. `stride` is (time, space)."""

    def __init__(self, inputs: int, outputs: int, stride: tuple[int, int] = (1, 1)) -> None:
        super().__init__()
        steps = (stride[0], stride[1], stride[1])
        self.conv1 = nn.Sequential(
            nn.Conv3d(inputs, outputs, 3, steps, 1, bias=False), nn.BatchNorm3d(outputs), nn.ReLU(inplace=True)
        )
        self.conv2 = nn.Sequential(nn.Conv3d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm3d(outputs))
        self.downsample = (
            None
            if inputs == outputs and stride == (1, 1)
            else nn.Sequential(nn.Conv3d(inputs, outputs, 1, steps, bias=False), nn.BatchNorm3d(outputs))
        )

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.relu(self.conv2(self.conv1(x)) + shortcut)


class R3D(Recognizer):
    def __init__(
        self,
        *,
        channels: int = 3,
        widths: Sequence[int] = (64, 128, 256, 512),
        depths: Sequence[int] = (2, 2, 2, 2),
        time_strides: Sequence[int] = (1, 2, 2, 2),
        space_strides: Sequence[int] = (1, 2, 2, 2),
        stem: tuple[int, int, int] = (3, 7, 7),
        differences: bool = False,
        mean: Sequence[float] = KINETICS_MEAN,
        deviation: Sequence[float] = KINETICS_DEVIATION,
    ) -> None:
        super().__init__()
        self.width = widths[-1]
        self.differences = differences
        self.standardize = Standardize(mean, deviation, channels)
        seen = 2 * channels if differences else channels
        around = (stem[0] // 2, stem[1] // 2, stem[2] // 2)
        self.stem = nn.Sequential(
            nn.Conv3d(seen, widths[0], stem, (1, 2, 2), around, bias=False),
            nn.BatchNorm3d(widths[0]),
            nn.ReLU(inplace=True),
        )
        strides = list(zip(time_strides, space_strides, strict=True))
        self.layer1 = _layer(widths[0], widths[0], depths[0], strides[0])
        self.layer2 = _layer(widths[0], widths[1], depths[1], strides[1])
        self.layer3 = _layer(widths[1], widths[2], depths[2], strides[2])
        self.layer4 = _layer(widths[2], widths[3], depths[3], strides[3])
        for module in self.modules():
            if isinstance(module, nn.Conv3d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, clip: Tensor) -> Tensor:
        x: Tensor = self.standardize(clip)
        if self.differences:
            x = with_changes(x)  # (B, 2C, T, H, W)
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))  # (B, D, t, h, w)
        return x.mean((2, 3, 4))


def _layer(inputs: int, outputs: int, depth: int, stride: tuple[int, int]) -> nn.Sequential:
    return nn.Sequential(Block(inputs, outputs, stride), *[Block(outputs, outputs) for _ in range(depth - 1)])


def r3d18(*, channels: int = 3) -> R3D:
    return R3D(channels=channels)


def r3d_tiny(*, channels: int = 3) -> R3D:
    return R3D(
        channels=channels,
        widths=(16, 32, 64, 128),
        depths=(1, 1, 1, 1),
        time_strides=(1, 1, 2, 2),
        space_strides=(2, 2, 2, 2),
        stem=(1, 5, 5),
        differences=True,
        mean=PLAIN_MEAN,
        deviation=PLAIN_DEVIATION,
    )
