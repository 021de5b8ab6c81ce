"""Pictures out of features: how much of what was filmed can be reconstructed from a feature.

    pairs (z, picture) of training videos ─► decoder ─► applied to z of test videos ─► compared with what was filmed

A picture is the middle frame of a clip, its middle square, 32 × 32. The decoder is trained anew on whatever the
features are, raw or anonymized. It begins with ridge regression, which for few videos is hard to beat, and adds the
output of convolutions; the ridge and the number of epochs are chosen on validation. A decoder that learns nothing
returns the mean training picture, and that is the floor.

    PSNR     10 log₁₀ 1/MSE in dB           its excess (v − f)/(R − f) is a share of dB beyond the mean picture
    SSIM     7 × 7 windows
    rank-1   linkage of the reconstructed pictures: by cosine, and by discriminants of training people
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import DataError
from vidveil.core.progress import phase
from vidveil.data.clips import Split
from vidveil.data.features.extract import clip_picks
from vidveil.data.features.sets import FeatureSet
from vidveil.data.views import ORDER, cropped
from vidveil.evaluation.evaluators.features import features_by_split
from vidveil.evaluation.evaluators.train import TESTED
from vidveil.evaluation.measures.measure import Measure, SharedSpace
from vidveil.evaluation.measures.measured import mean
from vidveil.evaluation.number import Floats, Number
from vidveil.statistics.projections import lda
from vidveil.statistics.tradeoff import Measurement
from vidveil.tasks import Predictions

SIDE = 32
EPOCHS, RATE, DECAY, DROPOUT = 60, 1e-3, 0.01, 0.2
STEPS, BATCH = 16, 128  # steps an epoch, at least; clips at once, at most
VALIDATIONS, PATIENCE = 20, 5  # at most; and how many of them without an improvement before training ends
STRENGTHS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.001)
"""Ridges; with the strongest the regression is nearly the mean picture."""
CHANNELS = (64, 32, 16)  # at 4, 8 and 16 pixels
WEIGHTS = 1 << 19  # of the first layer, at most: longer features get fewer channels
EDGE = 1 / 512  # half a grey level: a guess of 0 or 1 could never be changed
LEAST_ERROR = (1 / 255) ** 2 / 12
"""Mean square error of rounding to 8 bits: nothing that was filmed can be nearer. PSNR ends at 58.9 dB."""
WINDOW, C1, C2 = 7, 0.01**2, 0.03**2  # of SSIM
DECIMALS = 4  # of a pixel that count in linkage: below is noise of arithmetic, which has directions, too
AT_ONCE = 1024


@phase("reading pictures to reconstruct")
def pictures(data: FeatureSet) -> Tensor:
    """(n, 3, SIDE, SIDE) in [0, 1], of all clips in the order of `data.clips`: 12 kB a clip."""
    return torch.cat([of_video(data, row) for row in range(len(data.labels))]).to(data.clips.all.device)


def of_video(data: FeatureSet, row: int) -> Tensor:
    """(k, 3, SIDE, SIDE) of its clips."""
    if data.pixels is None:
        raise DataError(f"reconstruction needs the videos, and these are features alone: {data.store.folder}")
    about = data.store.about
    frames, stride = int(about["encoder"]["frames"]), int(about["clips"]["stride"])
    video = data.pixels.frames(row)  # (T, H, W, 3)
    middle = clip_picks(len(video), frames, stride)[:, frames // 2]
    if len(middle) != data.clips.count[row]:
        name, count = data.store.ids[row], data.clips.count[row]
        raise DataError(f"{name} has {count} clips of features, but {len(middle)} in its video")
    square = cropped(torch.from_numpy(np.array(video[middle]))[None, None], size=SIDE, crops=1)[0, 0]
    return square.transpose(0, 1)  # colours were first


class Decoder(nn.Module):
    """Features (B, D) → pictures (B, 3, SIDE, SIDE)."""

    mean: Tensor
    deviation: Tensor
    usual: Tensor
    line: Tensor

    def __init__(self, like: Tensor, usual: Tensor) -> None:
        """For features like those (n, D), of pictures whose mean is `usual`, which is its first output for all."""
        super().__init__()
        width = like.shape[1]
        self.register_buffer("mean", like.mean(0))
        self.register_buffer("deviation", like.std(0) + 1e-3 * like.std() + 1e-6)
        self.register_buffer("usual", usual)
        self.register_buffer("line", usual.new_zeros(width, usual.numel()))
        sizes = (max(8, min(CHANNELS[0], WEIGHTS // (16 * width))), *CHANNELS[1:])
        self.coarse = nn.Linear(width, sizes[0] * 16)
        layers: list[nn.Module] = [nn.Unflatten(1, (sizes[0], 4, 4)), nn.SiLU()]
        for a, b in pairwise(sizes):
            layers += [nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(a, b, 3, padding=1), nn.SiLU()]
        last = nn.Conv2d(sizes[-1], 12, 3, padding=1)
        for weights in last.parameters():
            nn.init.zeros_(weights)
        self.finer = nn.Sequential(*layers, last, nn.PixelShuffle(2))

    def forward(self, features: Tensor) -> Tensor:
        x = self.standard(features)
        guess = self.usual + (x @ self.line).view(-1, *self.usual.shape)
        change = self.finer(self.coarse(F.dropout(x, DROPOUT, self.training)))
        return torch.sigmoid(torch.logit(guess, eps=EDGE) + change)

    def standard(self, features: Tensor) -> Tensor:
        return (features - self.mean) / self.deviation

    @torch.inference_mode()
    def decode(self, features: Tensor) -> Tensor:
        self.eval()
        return torch.cat([self(part) for part in torch.split(features, AT_ONCE)])


def decoder(data: FeatureSet, wanted: Tensor, *, seed: int, epochs: int = EPOCHS) -> Decoder:
    """Trained on all clips of training videos, for `wanted` as `pictures` gives them."""
    train, val = (_clips_of(data, split) for split in ("train", "val"))
    given, target = data.clips.all[train], wanted[train]
    batch = max(1, min(BATCH, len(given) // STEPS))
    every = max(1, epochs // VALIDATIONS)

    def error() -> float:
        return F.mse_loss(network.decode(data.clips.all[val]), wanted[val]).item()

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Decoder(given, target.mean(0)).to(given.device)
        best, kept = error(), copy.deepcopy(network.state_dict())
        for line in _lines(network.standard(given), (target - network.usual).flatten(1)):
            network.line.copy_(line)
            if (now := error()) < best:
                best, kept = now, copy.deepcopy(network.state_dict())
        network.load_state_dict(kept)
        optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * -(-len(given) // batch))
        without_gain = 0
        for epoch in range(epochs):
            network.train()
            order = np.random.default_rng((seed, ORDER, epoch)).permutation(len(given))
            for some in torch.split(torch.from_numpy(order).to(given.device), batch):
                optimizer.zero_grad()
                F.mse_loss(network(given[some]), target[some]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
            if (epoch + 1) % every and epoch + 1 < epochs:
                continue
            without_gain += 1
            if (now := error()) < best:
                best, kept, without_gain = now, copy.deepcopy(network.state_dict()), 0
            elif without_gain == PATIENCE:
                break
        network.load_state_dict(kept)
    return network.eval().requires_grad_(False)


def _lines(x: Tensor, y: Tensor) -> Iterator[Tensor]:
    """Ridge regression of y (n, P) on x (n, D), both of mean 0, at each strength: (D, P)."""
    variances, axes = torch.linalg.eigh((x.T @ x / len(x)).double())
    along = axes.T @ (x.T @ y / len(x)).double()
    for strength in STRENGTHS:
        yield (axes @ (along / (variances.clamp(min=0) + strength)[:, None])).to(y.dtype)


def _clips_of(data: FeatureSet, split: Split) -> Tensor:
    """Numbers of all clips of its videos."""
    inside = np.repeat(data.labels.split == split, data.clips.count)
    return torch.from_numpy(np.flatnonzero(inside)).to(data.clips.all.device)


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Reconstructed test videos; each number has one entry a video, the mean over its clips."""

    psnr: Floats
    ssim: Floats
    floor_psnr: Floats
    floor_ssim: Floats
    """(N,) all four; floors are of the mean training picture."""
    val: Mapping[str, float]
    """Means of the first two on validation."""
    pictures: Tensor
    """(N, 3, SIDE, SIDE): the middle clip of each."""
    features: Mapping[str, Predictions]
    """By split, the mean of five pictures of each video as its features: for linkage."""


@phase("reconstructing pictures")
def reconstructed(data: FeatureSet, wanted: Tensor, *, seed: int, epochs: int = EPOCHS) -> Reconstruction:
    """Train a decoder, and apply it to the test videos."""
    back = decoder(data, wanted, seed=seed, epochs=epochs).decode(data.clips.all)
    usual = wanted[_clips_of(data, "train")].mean(0).expand_as(wanted)
    test, val = (data.labels.indices(split) for split in ("test", "val"))
    near, alike = _by_video(data, psnr(back, wanted)), _by_video(data, ssim(back, wanted))
    as_features = replace(data, clips=replace(data.clips, all=back.flatten(1)))
    return Reconstruction(
        psnr=near[test],
        ssim=alike[test],
        floor_psnr=_by_video(data, psnr(usual, wanted))[test],
        floor_ssim=_by_video(data, ssim(usual, wanted))[test],
        val={"psnr": float(near[val].mean()), "ssim": float(alike[val].mean())},
        pictures=as_features.clips.even(test, 1).view(-1, *wanted.shape[1:]).cpu(),
        features=features_by_split(as_features),
    )


def _by_video(data: FeatureSet, values: Tensor) -> Floats:
    """(n,) of clips → (V,) their means."""
    means: Floats = np.add.reduceat(values.double().cpu().numpy(), data.clips.first) / data.clips.count
    return means


def psnr(a: Tensor, b: Tensor) -> Tensor:
    """(n, 3, H, W) in [0, 1] twice → (n,) in dB."""
    return -10 * (a - b).square().mean((1, 2, 3)).clamp(min=LEAST_ERROR).log10()


def ssim(a: Tensor, b: Tensor) -> Tensor:
    """(n, 3, H, W) in [0, 1] twice → (n,): Wang et al. (2004), a mean over colours and over all windows inside the
    picture. Windows weigh all pixels alike and covariances are of samples, as is the default of scikit-image."""
    return torch.cat(list(map(_similar, torch.split(a, AT_ONCE), torch.split(b, AT_ONCE))))


def _similar(a: Tensor, b: Tensor) -> Tensor:
    def local(values: Tensor) -> Tensor:
        return F.avg_pool2d(values, WINDOW, 1)

    mean_a, mean_b, sample = local(a), local(b), WINDOW**2 / (WINDOW**2 - 1)
    spread = sample * (local(a * a) + local(b * b) - mean_a**2 - mean_b**2)
    shared = sample * (local(a * b) - mean_a * mean_b)
    light = (2 * mean_a * mean_b + C1) / (mean_a**2 + mean_b**2 + C1)
    return (light * (2 * shared + C2) / (spread + C2)).mean((1, 2, 3))


def numbers_of(measure: Measure, found: Sequence[Reconstruction]) -> dict[str, Number]:
    """PSNR and SSIM; and rank-1, where people are known."""
    ways = {"PSNR": "in dB", "SSIM": f"{WINDOW} x {WINDOW} windows"}
    numbers = {f"reconstruction_{name.lower()}": _number(measure, name, found, how) for name, how in ways.items()}
    if (measure.data.person >= 0).any():
        each = [_spaces(measure, one) for one in found]
        crossings = {name: [SharedSpace(one[name], one[name]) for one in each] for name in each[0]}
        numbers["reconstruction_rank1"] = measure.raw_gallery(crossings)
    return numbers


def _number(measure: Measure, metric: str, found: Sequence[Reconstruction], note: str) -> Number:
    name = metric.lower()
    values = np.stack([getattr(one, name) for one in found])  # (S, N)
    by_mean: Floats = getattr(found[0], f"floor_{name}")  # nothing in it is random: the same for every seed
    floor = measure.resamples.mean(by_mean)
    return Number(
        measured=Measurement(metric, measure.resamples.mean(values), floor.value, floor),
        measured_by="decoder",
        others={"decoder": {"test": float(values.mean()), "val": mean([one.val[name] for one in found])}},
        note=f"{note}, {SIDE} x {SIDE} pixels; its floor is that of the mean training picture",
        per_clip=values,
        chance_per_clip=by_mean,
    )


def _spaces(measure: Measure, found: Reconstruction) -> dict[str, dict[str, Floats]]:
    """Validation and test pictures less the mean training one, and in the discriminants of training people."""
    train = found.features["train"]
    usual = train.features.mean(0)
    maps: dict[str, Callable[[NDArray[np.float32]], Floats]] = {
        "pixels, cosine": lambda these: np.round((these - usual).astype(np.float64), DECIMALS),
        "pixels, LDA": lda(train.features, measure.data.person[train.rows]),
    }
    return {name: {split: to(found.features[split].features) for split in TESTED} for name, to in maps.items()}
