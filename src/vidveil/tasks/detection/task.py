"""Temporal action detection as a task on features: alone, or together with an adapter that is trained.

    detection, fitted = fit_detection(data)                                # TriDet on its own, as published
    found = detect(detection, data, data.indices("test"))                  # actions with their seconds
    detection.score(found, data.indices("test"))                           # mAP, mean over tIoU 0.3 … 0.7

In a joint training of an adapter, a batch of whole videos adds one term, whose gradient reaches the adapter:

    detection = Detection(data)                                            # a module of the joint one
    for batch in TrainingBatches(data, seed=0, batch=2).epoch(epoch):
        ẑ[batch.mask] = adapter(batch.features[batch.mask])                # (B, T, D)
        loss = … + ω · detection.loss(ẑ, batch.mask, batch.events)

An adapter that was trained without the task is evaluated by `fit_detection` on `data.with_features(adapter)`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn

from vidveil.core.errors import DataError, UsageError
from vidveil.data.views import ORDER, VIEW, draw
from vidveil.tasks.detection.decode import Decoding, Detections, Integers, decode, joined
from vidveil.tasks.detection.losses import Positives, total
from vidveil.tasks.detection.metric import AveragePrecision, detection_map
from vidveil.tasks.detection.network import Shape, TriDet
from vidveil.tasks.detection.targets import NONE, assign, grid
from vidveil.tasks.detection.videos import DetectionVideos
from vidveil.training.log import Log
from vidveil.training.loop import fit
from vidveil.training.options import Options
from vidveil.training.seeds import seeded
from vidveil.training.state import Fit

OPTIONS = Options(
    epochs=40, warmup_epochs=20, lr=1e-4, weight_decay=0.025, clip_norm=1.0, ema=0.999, precision="32-true"
)
"""As published for THUMOS14, with batches of two videos."""
LONGEST = 2304
"""Features of a training video, at most: of a longer one, a random part of this length in each epoch."""
LEFT = 0.5
"""Share of an action that must be in the random part; otherwise it is left out."""


class Batch(NamedTuple):
    features: Tensor
    """(B, T, D), padded with zeros."""
    mask: Tensor
    """(B, T) False where a feature is padding."""
    events: Tensor
    """(B, N, 3) start and end in features, and class; padded with the class NONE."""
    rows: Tensor
    """(B,) numbers of the videos in the set."""


class Detection(nn.Module):
    """TriDet with its loss and its score, for one set of videos."""

    def __init__(self, data: DetectionVideos, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape or Shape(data.width, len(data.classes))
        if (self.shape.width, self.shape.classes) != (data.width, len(data.classes)):
            raise UsageError(
                f"{data.name} has features of {data.width} numbers and {len(data.classes)} classes, and the network is "
                f"for {self.shape.width} and {self.shape.classes}"
            )
        self.data, self.decoding = data, Decoding()
        self.network = TriDet(self.shape)
        self.positives = Positives()

    def forward(self, batch: Batch) -> Tensor:
        """The loss of a batch."""
        return self.loss(batch.features, batch.mask, batch.events)

    def loss(self, features: Tensor, mask: Tensor, events: Tensor) -> Tensor:
        """(B, T, D), (B, T), (B, N, 3) → a scalar."""
        output = self.network(features, mask)
        moments = grid(features.shape[1], self.shape.levels, features.device)
        targets = assign(moments, events, output.mask, self.shape.classes)
        loss: Tensor = total(output, targets) / self.positives(targets.positive)
        return loss

    @torch.no_grad()
    def predict(self, features: Tensor, mask: Tensor, rows: Tensor) -> Detections:
        """(B, T, D), (B, T), and (B,) numbers of the videos in the set."""
        output = self.network(features, mask)
        at = grid(features.shape[1], self.shape.levels).at.double().numpy()[:, None] + 0.5  # (M, 1) middles of features
        scores = output.logits.double().sigmoid().cpu().numpy()
        distances = output.distances.double().cpu().numpy()
        there = output.mask.cpu().numpy()
        parts = []
        for i, row in enumerate(rows.tolist()):
            spans = (at + distances[i] * (-1, 1)) * float(self.data.seconds[row])  # (M, 2) seconds
            until = self.data.duration(row)
            parts.append(decode(scores[i][there[i]], spans[there[i]], until, video=row, settings=self.decoding))
        return joined(parts)

    def evaluate(self, found: Detections, rows: Integers) -> AveragePrecision:
        """Detections in these videos, compared with the true actions."""
        return detection_map(self.data.truth(rows), found, self.shape.classes)

    def score(self, found: Detections, rows: Integers) -> float:
        return self.evaluate(found, rows).mean


class TrainingBatches:
    """Batches of training videos that depend on (seed, epoch) alone."""

    def __init__(
        self, data: DetectionVideos, *, seed: int = 0, batch: int = 2, longest: int = LONGEST, device: str = "cpu"
    ) -> None:
        if batch < 1 or longest < 1:
            raise UsageError(f"batch and longest must be 1 or more, got {batch} and {longest}")
        self.data, self.seed, self.longest, self.device = data, seed, longest, device
        self.rows = data.indices("train")
        if not any(len(data.segments[row]) for row in self.rows):
            raise DataError(f"{data.name}: nothing happens in its {len(self.rows)} training videos")
        self.batch = min(batch, len(self.rows))

    def __len__(self) -> int:
        return len(self.rows) // self.batch

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        order = np.random.default_rng((self.seed, ORDER, epoch)).permutation(self.rows)
        for number in range(start, len(self)):
            rows = order[number * self.batch : (number + 1) * self.batch]
            starts = draw(self.seed, VIEW, epoch, rows, 1)[:, 0]
            yield collate(self.data, rows, self.device, longest=self.longest, starts=starts.tolist())


def collate(
    data: DetectionVideos,
    rows: Integers,
    device: torch.device | str = "cpu",
    *,
    longest: int | None = None,
    starts: list[float] | None = None,
) -> Batch:
    """These videos as one padded batch. Of a video longer than `longest`, a part: its number in `starts`, in [0, 1),
    says where that begins among the possible beginnings."""
    spans = []
    for i, row in enumerate(rows.tolist()):
        length = len(data.features[row])
        kept = min(length, longest or length)
        spans.append((int((starts[i] if starts else 0.0) * (length - kept + 1)), kept))
    events = [_events(data, row, first, kept) for row, (first, kept) in zip(rows.tolist(), spans, strict=True)]
    features = np.zeros((len(rows), max(kept for _, kept in spans), data.width), np.float32)
    mask = np.zeros(features.shape[:2], bool)
    table = np.full((len(rows), max(map(len, events)), 3), NONE, np.float32)
    for i, (row, (first, kept)) in enumerate(zip(rows.tolist(), spans, strict=True)):
        features[i, :kept] = data.features[row][first : first + kept]
        mask[i, :kept] = True
        table[i, : len(events[i])] = events[i]
    return Batch(*(torch.from_numpy(x).to(device) for x in (features, mask, table, np.asarray(rows, np.int64))))


def _events(
    data: DetectionVideos, row: int, first: int, kept: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(n, 3) actions in a part of a video, in features; feature i covers i − ½ to i + ½."""
    table = np.array(data.segments[row], np.float64).reshape(-1, 3)
    table[:, :2] = table[:, :2] / float(data.seconds[row]) - 0.5 - first
    cut = np.clip(table[:, :2], -0.5, kept - 0.5)
    enough = np.diff(cut)[:, 0] >= LEFT * np.diff(table[:, :2])[:, 0]
    return np.concatenate([cut, table[:, 2:]], axis=1)[enough]


@torch.no_grad()
def detect(detection: Detection, data: DetectionVideos, rows: Integers, batch: int = 1) -> Detections:
    """Detections in whole videos: those of the network's own set, or the same videos with other features."""
    if len(data) != len(detection.data):
        raise UsageError(f"{data.name} has {len(data)} videos, and the network's own set {len(detection.data)}")
    device = next(detection.parameters()).device
    was = detection.training
    detection.eval()
    batches = (collate(data, rows[start : start + batch], device) for start in range(0, len(rows), batch))
    found = joined([detection.predict(one.features, one.mask, one.rows) for one in batches])
    detection.train(was)
    return found


def fit_detection(
    data: DetectionVideos,
    *,
    shape: Shape | None = None,
    options: Options = OPTIONS,
    batch: int = 2,
    longest: int = LONGEST,
    folder: Path | None = None,
    log: Log | None = None,
    console: Console | None = None,
    label: str = "detection",
) -> tuple[Detection, Fit]:
    """Train TriDet on its own. The epoch with the best mAP on validation videos is kept; without any, the last one.

    If `folder` holds a checkpoint, training continues from it.
    """
    batches = TrainingBatches(data, seed=options.seed, batch=batch, longest=longest, device=options.accelerator())
    with seeded(options.seed):
        detection = Detection(data, shape)
    rows = data.indices("val")
    if len(rows) and not len(data.truth(rows)):
        raise DataError(f"{data.name}: nothing happens in its {len(rows)} validation videos: no epoch can be chosen")

    def validate(_: nn.Module) -> Mapping[str, float]:
        precision = detection.evaluate(detect(detection, data, rows), rows)
        return {"map": precision.mean, "map_50": precision.at(0.5)}

    about = {"data": data.fingerprint, "shape": asdict(detection.shape), "batch": batches.batch, "longest": longest}
    about["by"] = asdict(detection.decoding)
    fitted = fit(
        detection,
        batches=batches,
        loss=lambda model, batch: model(batch),
        validate=validate if len(rows) else None,
        options=replace(options, channels_last=False),
        folder=folder,
        fingerprint=hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest(),
        console=console,
        label=label,
        log=log,
    )
    return detection, fitted
