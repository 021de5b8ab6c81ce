"""Video vision transformer: every tubelet attends to every other, over space and time (the first model of ViViT, Arnab
et al. 2021; blocks and names as in timm's ViT).

    tubelets of t × p × p pixels → linear          (B, C, T, H, W) → (B, N, D),  N = T/t · H/p · W/p
    + a place embedding + a time embedding
    depth ×:   x += attention(norm(x));   x += mlp(norm(x))
    norm → class token, or mean over tubelets      → (B, D)

The embedding of a tubelet is the sum of one for its place and one for its time. With the time part at 0 that is the
place embedding of a picture transformer repeated over time, so 2-D weights load without loss: see `pretrained`.

`vit_mini` cuts its tubelets with convolutions, which also see what changes from frame to frame. From a few thousand
clips a transformer of this size on plain tubelets learns no motion at all.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import UsageError
from vidveil.models.recognizers.recognizer import Recognizer, Standardize, with_changes
from vidveil.models.recognizers.resnet import IMAGENET_DEVIATION, IMAGENET_MEAN


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, N, d)
        out: Tensor = self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))  # (B, N, D)
        return out


class MLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc2(F.gelu(self.fc1(x)))
        return out


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = MLP(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class TubeletEmbedding(nn.Module):
    def __init__(self, channels: int, tubelet: tuple[int, int, int], width: int) -> None:
        super().__init__()
        self.proj = nn.Conv3d(channels, width, tubelet, tubelet)

    def forward(self, clip: Tensor) -> Tensor:
        x: Tensor = self.proj(clip)
        return x.flatten(3).permute(0, 2, 3, 1)  # (B, D, t, h, w) → (B, T', S, D)


class ConvolvedTubelets(nn.Module):
    """The same grid by three convolutions, on frames and their changes."""

    def __init__(self, channels: int, tubelet: tuple[int, int, int], width: int) -> None:
        super().__init__()
        rest = (tubelet[0], tubelet[1] // 4, tubelet[2] // 4)
        self.stem = nn.Sequential(
            nn.Conv3d(2 * channels, 16, (1, 5, 5), (1, 2, 2), (0, 2, 2), bias=False),
            nn.BatchNorm3d(16),
            nn.ReLU(inplace=True),
            nn.Conv3d(16, 32, 3, (1, 2, 2), 1, bias=False),
            nn.BatchNorm3d(32),
            nn.ReLU(inplace=True),
        )
        self.proj = nn.Conv3d(32, width, rest, rest)

    def forward(self, clip: Tensor) -> Tensor:
        x: Tensor = self.proj(self.stem(with_changes(clip)))
        return x.flatten(3).permute(0, 2, 3, 1)  # (B, D, t, h, w) → (B, T', S, D)


class VideoViT(Recognizer):
    def __init__(
        self,
        *,
        frames: int,
        size: int,
        channels: int = 3,
        tubelet: tuple[int, int, int] = (2, 16, 16),
        width: int = 192,
        depth: int = 12,
        heads: int = 3,
        pool: Literal["class", "mean"] = "class",
        convolved: bool = False,
    ) -> None:
        super().__init__()
        if frames % tubelet[0] or size % tubelet[1]:
            shape = " × ".join(map(str, tubelet))
            raise UsageError(f"tubelets of {shape} do not fill {frames} frames of {size} × {size}: choose multiples")
        self.width, self.tubelet, self.pool = width, tubelet, pool
        self.times, self.side = frames // tubelet[0], size // tubelet[1]
        self.standardize = Standardize(IMAGENET_MEAN, IMAGENET_DEVIATION, channels)
        embedding = ConvolvedTubelets if convolved else TubeletEmbedding
        self.patch_embed = embedding(channels, tubelet, width)
        token = 1 if pool == "class" else 0
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width)) if token else None
        self.pos_embed = nn.Parameter(torch.zeros(1, token + self.side**2, width))
        self.time_embed = nn.Parameter(torch.zeros(1, self.times, width))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width, eps=1e-6)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.trunc_normal_(self.time_embed, std=0.02)
        if self.cls_token is not None:
            nn.init.trunc_normal_(self.cls_token, std=0.02)
        for module in self.blocks.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def tokens(self, clip: Tensor) -> Tensor:
        """(B, C, T, H, W) → (B, N, D), the class token first where there is one."""
        expected = (self.times * self.tubelet[0], self.side * self.tubelet[1], self.side * self.tubelet[2])
        if clip.shape[2:] != expected:
            raise UsageError(f"this network was built for clips of {expected}, not {tuple(clip.shape[2:])}")
        x = self.patch_embed(self.standardize(clip))  # (B, T', S, D)
        places = self.pos_embed[:, -(self.side**2) :]  # (1, S, D)
        x = (x + places[:, None] + self.time_embed[:, :, None]).flatten(1, 2)  # (B, T'·S, D)
        if self.cls_token is not None:
            first = (self.cls_token + self.pos_embed[:, :1]).expand(len(x), -1, -1)
            x = torch.cat([first, x], 1)
        out: Tensor = self.norm(self.blocks(x))
        return out

    def features(self, clip: Tensor) -> Tensor:
        x = self.tokens(clip)
        return x[:, 0] if self.pool == "class" else x.mean(1)


def vit_ti(*, frames: int, size: int, channels: int = 3) -> VideoViT:
    return VideoViT(frames=frames, size=size, channels=channels, width=192, heads=3)


def vit_s(*, frames: int, size: int, channels: int = 3) -> VideoViT:
    return VideoViT(frames=frames, size=size, channels=channels, width=384, heads=6)


def vit_b(*, frames: int, size: int, channels: int = 3) -> VideoViT:
    return VideoViT(frames=frames, size=size, channels=channels, width=768, heads=12)


def vit_l(*, frames: int, size: int, channels: int = 3) -> VideoViT:
    return VideoViT(frames=frames, size=size, channels=channels, width=1024, depth=24, heads=16)


def vit_h(*, frames: int, size: int, channels: int = 3) -> VideoViT:
    """Patches of 16 pixels, as video networks of this size have them; that of pictures has 14."""
    return VideoViT(frames=frames, size=size, channels=channels, width=1280, depth=32, heads=16)


def vit_mini(*, frames: int, size: int, channels: int = 3) -> VideoViT:
    """For two CPU cores and clips of 8 × 64 × 64: 256 tubelets of 2 × 8 × 8."""
    return VideoViT(
        frames=frames,
        size=size,
        channels=channels,
        tubelet=(2, 8, 8),
        width=96,
        depth=3,
        heads=3,
        pool="mean",
        convolved=True,
    )
