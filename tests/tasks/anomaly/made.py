"""Synthetic videos for anomaly detection, and a small network."""

import numpy as np
import torch

from vidveil.data.clips import SPLITS
from vidveil.tasks.anomaly import FIRM, Anomaly, AnomalyVideos, Shape, fit_anomaly
from vidveil.training.options import Options
from vidveil.training.seeds import seeded

WIDTH = 16
SMALL = Shape(width=WIDTH, widths=(16, 16, 32), depths=(1, 1, 1), head=8)
SHARES = (0.6, 0.15, 0.25)
"""Of videos and of features: train, val, test."""
FRAMES = 16
"""Per clip."""


def synthetic(normal, abnormal, *, videos: int, seed: int = 0) -> AnomalyVideos:
    """Videos of 20 to 90 clips out of `normal` (n, D). In every second video, a tenth to two fifths of the clips, in a
    row, are out of `abnormal` (m, D). No feature is in two splits."""
    streams = [_by_split(rows, (seed, number)) for number, rows in enumerate((normal, abnormal), 1)]
    label = np.arange(videos, dtype=np.int64) % 2
    ends = np.round(np.cumsum(SHARES) * (videos // 2)).astype(np.int64)
    part = np.searchsorted(ends, np.arange(videos) // 2, side="right").clip(max=len(SPLITS) - 1)  # of each kind alike
    made, frames = [], []
    for number in range(videos):
        usual, unusual = (rows[part[number]] for rows in streams)
        rng = np.random.default_rng((seed, 3, number))
        count = int(rng.integers(20, 91))
        clips, happens = usual[rng.integers(len(usual), size=count)], np.zeros(count, np.uint8)
        if label[number]:
            lasts = max(1, round(float(rng.uniform(0.1, 0.4)) * count))
            first = int(rng.integers(count - lasts + 1))
            clips[first : first + lasts] = unusual[rng.integers(len(unusual), size=lasts)]
            happens[first : first + lasts] = 1
        made.append(clips)
        frames.append(np.repeat(happens, FRAMES))
    return AnomalyVideos("synthetic", tuple(made), label, np.array(SPLITS)[part], tuple(frames))


def _by_split(rows, seed):
    order = np.random.default_rng(seed).permutation(len(rows))
    val, test = (max(1, round(share * len(rows))) for share in SHARES[1:])
    return [rows[own] for own in np.split(order, [len(rows) - val - test, len(rows) - test])]


def noise(seed: int = 0, kinds: int = 6, each: int = 200, apart: float = 3.0):
    """Clusters of noise around centres of equal length: (kinds · each, D) normal, (each, D) abnormal."""
    rng = np.random.default_rng((seed, 4))
    centres = rng.normal(size=(kinds + 1, WIDTH))
    centres *= apart / np.linalg.norm(centres, axis=1, keepdims=True)
    clusters = centres[:, None] + rng.normal(size=(kinds + 1, each, WIDTH)) * (apart / 6)
    return clusters[:-1].reshape(-1, WIDTH).astype(np.float32), clusters[-1].astype(np.float32)


def easy(seed: int = 0, videos: int = 160) -> AnomalyVideos:
    return synthetic(*noise(seed), videos=videos, seed=seed)


def task(seed: int = 0, **changed) -> Anomaly:
    """As if it had learned: no weight is 0, and magnitudes differ."""
    with seeded(seed):
        made = Anomaly(Shape(**{**SMALL.__dict__, **changed}), FIRM)
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    return made


def train(data: AnomalyVideos, folder=None, *, seed: int = 0, epochs: int = 15, **changed):
    options = Options(epochs=epochs, lr=1e-3, weight_decay=5e-4, warmup_epochs=0.0, seed=seed, device="cpu", **changed)
    return fit_anomaly(data, shape=SMALL, weights=FIRM, options=options, batch=16, folder=folder)


def features(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
