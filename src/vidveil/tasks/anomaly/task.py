"""Anomaly detection on stored features: MGFN on its own, or behind an adapter that is trained with it.

    model, fitted = fit_anomaly(data, weights=FIRM)                            # on its own
    scores = model.predict(data.of("test"))                                    # AnomalyScores: of segments, of videos
    model.metrics(data, "test")                                                # video AUC, frame AUC

    for rows in BalancedBatches(data, batch=32, seed=0).epoch(0):              # behind an adapter, one joint step
        clips, counts = data.clips(rows)                                       # (n, D) of all videos of the batch
        halves = all_into_segments(adapter(clips), counts)                     # (2b, T, D), the first b are normal
        loss = model.loss(*halves.chunk(2)) + …                                # its gradient reaches the adapter

The epoch is chosen by the video AUC of validation, which needs labels of videos only, as training does. The frame AUC
of validation is reported where frames have labels, and is not used to choose.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor, nn

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import Split
from vidveil.tasks.anomaly.losses import LossWeights, anomaly_loss, magnitudes, of_videos, strongest
from vidveil.tasks.anomaly.metric import frame_auc, video_auc
from vidveil.tasks.anomaly.network import MGFN, MGFNOutput, Shape
from vidveil.tasks.anomaly.segments import all_into_segments, to_frames
from vidveil.tasks.anomaly.videos import AnomalyVideos, BalancedBatches
from vidveil.training.log import Log
from vidveil.training.loop import fit
from vidveil.training.options import Options
from vidveil.training.seeds import seeded
from vidveil.training.state import Fit

OPTIONS = Options(epochs=50, lr=1e-3, weight_decay=5e-4, warmup_epochs=0.0, precision="32-true")
"""The published rate and decay. bfloat16 would round the features."""
AT_ONCE = 64
"""Videos that are predicted together."""
Adapter = Callable[[Tensor], Tensor]


class AnomalyScores(NamedTuple):
    """Predictions for some videos."""

    segments: NDArray[np.float64]
    """(V, T) of each segment."""
    videos: NDArray[np.float64]
    """(V,) of each video: the mean over its segments of largest magnitude."""


class Anomaly(nn.Module):
    """The network with its loss; `forward` is the loss, as the training loop calls it."""

    def __init__(self, shape: Shape, weights: LossWeights | None = None) -> None:
        super().__init__()
        self.network = MGFN(shape)
        self.weights = weights or LossWeights()

    def forward(self, normal: Tensor, abnormal: Tensor) -> Tensor:
        return self.loss(normal, abnormal)

    def loss(self, normal: Tensor, abnormal: Tensor) -> Tensor:
        """(b, T, D) or (b, crops, T, D) each → a scalar, whose gradient reaches the features."""
        output = self.network(torch.cat([normal, abnormal]))
        count = len(normal)
        return anomaly_loss(
            MGFNOutput(output.scores[:count], output.features[:count]),
            MGFNOutput(output.scores[count:], output.features[count:]),
            self.weights,
        )

    @torch.no_grad()
    def predict(self, videos: Sequence[NDArray[np.float32]], adapter: Adapter | None = None) -> AnomalyScores:
        """(n_i, D) each → scores. An adapter is applied first, to all clips of a video together."""
        device, training, width = self.network.scale.device, self.training, self.network.shape.width
        if wrong := next((each.shape for each in videos if each.ndim != 2 or not len(each)), None):
            raise UsageError(f"a video is (n, D) features of its clips, at least one: got {wrong}")
        if wrong := next((each.shape for each in videos if each.shape[1] != width), None):
            raise UsageError(f"features have {width} numbers here, these have {wrong[1]}")
        self.eval()
        segments, whole = [], []
        for first in range(0, len(videos), AT_ONCE):
            own = videos[first : first + AT_ONCE]
            counts = [len(each) for each in own]
            clips = torch.from_numpy(np.concatenate(own)).to(device)
            clips = clips if adapter is None else torch.cat([adapter(each) for each in torch.split(clips, counts)])
            output = self.network(all_into_segments(clips, counts, self.network.shape.segments))
            chosen = strongest(magnitudes(output.features), self.weights.top)
            segments.append(output.scores.double().cpu().numpy())
            whole.append(of_videos(output.scores, chosen).double().cpu().numpy())
        self.train(training)
        if not segments:
            return AnomalyScores(np.zeros((0, self.network.shape.segments)), np.zeros(0))
        return AnomalyScores(np.concatenate(segments), np.concatenate(whole))

    def metrics(self, data: AnomalyVideos, split: Split = "test", adapter: Adapter | None = None) -> dict[str, float]:
        """The video AUC, and where frames of all its videos have labels, the frame AUC."""
        videos, labels = data.of(split), data.frame_labels(split)
        scores = self.predict(videos, adapter)
        metrics = {"video_auc": video_auc(data.label[data.indices(split)], scores.videos)}
        if labels is not None:
            metrics["frame_auc"] = frame_auc(labels, scores_of_frames(scores, videos, labels))
        return metrics


def scores_of_frames(
    scores: AnomalyScores, videos: Sequence[NDArray[np.float32]], labels: Sequence[NDArray[np.uint8]]
) -> list[NDArray[np.float64]]:
    """(F_i,) per video, for as many frames as it has labels."""
    rows = zip(scores.segments, videos, labels, strict=True)
    return [to_frames(segments, len(clips), len(frames)) for segments, clips, frames in rows]


class _SegmentBatches:
    """Batches of videos whose segments were computed once."""

    def __init__(self, data: AnomalyVideos, batches: BalancedBatches, segments: int, device: str) -> None:
        self.batches, train = batches, data.indices("train")
        self.index = np.full(len(data.features), -1, np.int64)
        self.index[train] = np.arange(len(train))
        self.all = torch.stack([all_into_segments(*data.clips([row]), segments)[0] for row in train]).to(device)

    def __len__(self) -> int:
        return len(self.batches)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        for rows in self.batches.epoch(epoch, start):
            normal, abnormal = self.all[torch.from_numpy(self.index[rows]).to(self.all.device)].chunk(2)
            yield normal, abnormal


def fit_anomaly(
    data: AnomalyVideos,
    *,
    shape: Shape | None = None,
    weights: LossWeights | None = None,
    options: Options = OPTIONS,
    batch: int = 32,
    folder: Path | None = None,
    console: Console | None = None,
    log: Log | None = None,
    label: str = "anomaly",
) -> tuple[Anomaly, Fit]:
    """Train MGFN on features as they are. If `folder` holds a checkpoint, training continues from it.

    Without validation videos the last epoch is taken.
    """
    shape, weights = shape or Shape(width=data.width), weights or LossWeights()
    if shape.width != data.width:
        raise UsageError(f"the network is made for features of {shape.width} numbers, {data.name} has {data.width}")
    batches = BalancedBatches(data, batch=batch, seed=options.seed)
    has_validation = len(data.indices("val")) > 0
    if has_validation:
        data.check_both_labels("val")
    scale = float(np.sqrt(np.mean([np.square(own, dtype=np.float64).mean() for own in data.of("train")])))
    if not scale > 0:
        raise DataError(f"{data.name}: all features of training videos are 0")
    with seeded(options.seed):
        model = Anomaly(shape, weights)
    model.network.scale.fill_(scale)

    def validate(_: nn.Module) -> Mapping[str, float]:
        return model.metrics(data, "val")

    fitted = fit(
        model,
        batches=_SegmentBatches(data, batches, shape.segments, options.accelerator()),
        loss=lambda net, halves: net(*halves),
        validate=validate if has_validation else None,
        options=options,
        folder=folder,
        fingerprint=_fingerprint(data, shape, weights, batch),
        console=console,
        log=log,
        label=label,
    )
    return model, fitted


def _fingerprint(data: AnomalyVideos, shape: Shape, weights: LossWeights, batch: int) -> str:
    about = [asdict(shape), asdict(weights), batch, data.label.tolist(), data.split.tolist()]
    digest = hashlib.sha256(json.dumps(about).encode())
    for own in data.features:
        digest.update(f"{own.shape}".encode() + np.ascontiguousarray(own).tobytes())
    return digest.hexdigest()
