"""Anomaly detection as a use of stored features: MGFN on its own, or behind an adapter that learns with it.

    model, found = fit_anomaly(data, weights=FIRM)                             # on its own
    said = model.predict(data.of("test"))                                      # Told: scores of segments, of videos
    model.score(data, "test")                                                  # video AUC

    for rows in Pairs(data, batch=32, seed=0).epoch(0):                        # behind an adapter, one joint step
        clips, counts = data.clips(rows)                                       # (n, D) of all videos of the batch
        halves = all_into_segments(adapter(clips), counts)                     # (2b, T, D), first b normal
        loss = model.loss(*halves.chunk(2)) + …                                # its gradient reaches the adapter

The epoch is chosen by the video AUC of validation: that needs labels of videos only, as training does. Frames of
validation are told where they have labels, and choose nothing.
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
from vidveil.tasks.anomaly.losses import Weights, anomaly_loss, magnitudes, of_videos, strongest
from vidveil.tasks.anomaly.metric import frame_auc, video_auc
from vidveil.tasks.anomaly.network import MGFN, Seen, Shape
from vidveil.tasks.anomaly.segments import all_into_segments, to_frames
from vidveil.tasks.anomaly.watched import Pairs, Watched
from vidveil.training.log import Log
from vidveil.training.loop import fit
from vidveil.training.options import Options
from vidveil.training.seeds import seeded
from vidveil.training.state import Fit

OPTIONS = Options(epochs=50, lr=1e-3, weight_decay=5e-4, warmup_epochs=0.0, precision="32-true")
"""The published rate and decay. bfloat16 would round the features themselves."""
AT_ONCE = 64
"""Videos that are predicted together."""


class Told(NamedTuple):
    """Of some videos."""

    segments: NDArray[np.float64]
    """(V, T) the score of each segment."""
    videos: NDArray[np.float64]
    """(V,) of the whole: the mean over the segments of largest magnitude."""


class Anomaly(nn.Module):
    """The network with its loss; `forward` is the loss, as training calls it."""

    name = "anomaly"

    def __init__(self, shape: Shape, weights: Weights | None = None) -> None:
        super().__init__()
        self.network = MGFN(shape)
        self.weights = weights or Weights()

    def forward(self, normal: Tensor, abnormal: Tensor) -> Tensor:
        return self.loss(normal, abnormal)

    def loss(self, normal: Tensor, abnormal: Tensor) -> Tensor:
        """(b, T, D) or (b, crops, T, D) each → a scalar, whose gradient reaches the features."""
        seen = self.network(torch.cat([normal, abnormal]))
        count = len(normal)
        return anomaly_loss(
            Seen(seen.scores[:count], seen.features[:count]),
            Seen(seen.scores[count:], seen.features[count:]),
            self.weights,
        )

    @torch.no_grad()
    def predict(self, videos: Sequence[NDArray[np.float32]], through: Callable[[Tensor], Tensor] | None = None) -> Told:
        """(n_i, D) each → scores. `through` is an adapter that clips go through first, those of a video together."""
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
            clips = clips if through is None else torch.cat([through(each) for each in torch.split(clips, counts)])
            seen = self.network(all_into_segments(clips, counts, self.network.shape.segments))
            chosen = strongest(magnitudes(seen.features), self.weights.top)
            segments.append(seen.scores.double().cpu().numpy())
            whole.append(of_videos(seen.scores, chosen).double().cpu().numpy())
        self.train(training)
        if not segments:
            return Told(np.zeros((0, self.network.shape.segments)), np.zeros(0))
        return Told(np.concatenate(segments), np.concatenate(whole))

    def score(self, data: Watched, split: Split = "val", through: Callable[[Tensor], Tensor] | None = None) -> float:
        """Video AUC, higher is better."""
        return self.metrics(data, split, through)["video_auc"]

    def metrics(
        self, data: Watched, split: Split = "test", through: Callable[[Tensor], Tensor] | None = None
    ) -> dict[str, float]:
        """The video AUC, and where frames of all its videos have labels, the frame AUC."""
        videos, labels = data.of(split), data.frame_labels(split)
        told = self.predict(videos, through)
        found = {"video_auc": video_auc(data.label[data.indices(split)], told.videos)}
        if labels is not None:
            found["frame_auc"] = frame_auc(labels, scores_of_frames(told, videos, labels))
        return found


def scores_of_frames(
    told: Told, videos: Sequence[NDArray[np.float32]], labels: Sequence[NDArray[np.uint8]]
) -> list[NDArray[np.float64]]:
    """(F_i,) a video, for as many frames as it has labels."""
    rows = zip(told.segments, videos, labels, strict=True)
    return [to_frames(segments, len(clips), len(seen)) for segments, clips, seen in rows]


class _Segmented:
    """Batches of videos whose segments were made once: nothing before them learns."""

    def __init__(self, data: Watched, pairs: Pairs, segments: int, device: str) -> None:
        self.pairs, train = pairs, data.indices("train")
        self.place = np.full(len(data.features), -1, np.int64)
        self.place[train] = np.arange(len(train))
        self.all = torch.stack([all_into_segments(*data.clips([row]), segments)[0] for row in train]).to(device)

    def __len__(self) -> int:
        return len(self.pairs)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        for rows in self.pairs.epoch(epoch, start):
            normal, abnormal = self.all[torch.from_numpy(self.place[rows]).to(self.all.device)].chunk(2)
            yield normal, abnormal


def fit_anomaly(
    data: Watched,
    *,
    shape: Shape | None = None,
    weights: Weights | None = None,
    options: Options = OPTIONS,
    batch: int = 32,
    folder: Path | None = None,
    console: Console | None = None,
    log: Log | None = None,
    label: str = "anomaly",
) -> tuple[Anomaly, Fit]:
    """Train MGFN on features as they are. Where a `folder` holds a checkpoint, training goes on from it.

    Without validation videos the last epoch is taken.
    """
    shape, weights = shape or Shape(width=data.width), weights or Weights()
    if shape.width != data.width:
        raise UsageError(f"the network is made for features of {shape.width} numbers, {data.name} has {data.width}")
    pairs = Pairs(data, batch=batch, seed=options.seed)
    judged = len(data.indices("val")) > 0
    if judged:
        data.need_both("val")
    scale = float(np.sqrt(np.mean([np.square(own, dtype=np.float64).mean() for own in data.of("train")])))
    if not scale > 0:
        raise DataError(f"{data.name}: all features of training videos are 0")
    with seeded(options.seed):
        model = Anomaly(shape, weights)
    model.network.scale.fill_(scale)

    def validate(_: nn.Module) -> Mapping[str, float]:
        return model.metrics(data, "val")

    found = fit(
        model,
        batches=_Segmented(data, pairs, shape.segments, options.accelerator()),
        loss=lambda net, halves: net(*halves),
        validate=validate if judged else None,
        options=options,
        folder=folder,
        fingerprint=_fingerprint(data, shape, weights, batch),
        console=console,
        log=log,
        label=label,
    )
    return model, found


def _fingerprint(data: Watched, shape: Shape, weights: Weights, batch: int) -> str:
    about = [asdict(shape), asdict(weights), batch, data.label.tolist(), data.split.tolist()]
    made = hashlib.sha256(json.dumps(about).encode())
    for own in data.features:
        made.update(f"{own.shape}".encode() + np.ascontiguousarray(own).tobytes())
    return made.hexdigest()
