"""Whole videos in the training of an adapter: TriDet and MGFN learn next to it (tables 5 to 7).

    ẑ = AAM(z)                              z (n, D): all features of some videos, each for itself; `reference: true`
                                            attends across those of a video
    L = … + ω · TriDet(ẑ in their order)    which action happens from when to when
          + ω · MGFN(ẑ as 32 segments)      in which videos something abnormal happens

Both networks are the ones that evaluate features elsewhere (`tasks.detection`, `tasks.anomaly`), with the published
losses. Features reach them brought to size 1, by the adapter's own scale, as they reach the head of the action: one
rate does for all of them, and gradients that come back to the adapter are of one size. MGFN compares magnitudes by
the published weights here. The firm ones locate events better in time, and begin far above the losses of other tasks:
an adapter that learns by the sum would learn by them alone.

What is drawn depends on (seed, step) alone. Steps are counted over all epochs of clips: a set of whole videos begins
anew, in another order, whenever it has been gone through.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vidveil.core.errors import DataError
from vidveil.methods.splavu.model import AAM
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.tasks import anomaly, detection
from vidveil.tasks.anomaly.segments import all_into_segments

Whole = detection.DetectionVideos | anomaly.AnomalyVideos
Kind = TypeVar("Kind", detection.DetectionVideos, anomaly.AnomalyVideos)
Features = NDArray[np.float32]


class Videos(NamedTuple):
    """Some whole videos."""

    clips: Tensor
    """(n, D) of all of them, one video after the other: what is left, where some is erased."""
    counts: tuple[int, ...]
    """How many each has."""
    events: Tensor | None = None
    """(B, N, 3), of detection."""


class WholeVideoTask(nn.Module, ABC):
    """A network that learns a task on whole videos, with its videos."""

    name: str

    @abstractmethod
    def videos(self, step: int) -> Iterator[Videos]:
        """Batches without end, from that of a step on, the same each time."""

    @abstractmethod
    def loss(self, after: Tensor, videos: Videos) -> Tensor:
        """(n, D) of size 1, behind the adapter → a scalar, whose gradient reaches the adapter."""

    @abstractmethod
    def metrics(self, adapt: Callable[[Tensor], Tensor]) -> dict[str, float]:
        """On validation videos; nothing where there are none."""


class WholeVideoDetection(WholeVideoTask):
    name = "detection"

    def __init__(self, data: detection.DetectionVideos, recipe: SplavuRecipe, adapter: AAM, device: str) -> None:
        super().__init__()
        shape = detection.Shape(data.width, len(data.classes), embed=recipe.detection_width)
        self.network = detection.Detection(data, shape)
        self.data = left_of_videos(data, adapter)
        self.draws = detection.TrainingBatches(self.data, seed=recipe.seed, batch=recipe.videos, device=device)

    def videos(self, step: int) -> Iterator[Videos]:
        epoch, start = divmod(step, len(self.draws))
        while True:
            for batch in self.draws.epoch(epoch, start):
                yield Videos(batch.features[batch.mask], tuple(batch.mask.sum(1).tolist()), batch.events)
            epoch, start = epoch + 1, 0

    def loss(self, after: Tensor, videos: Videos) -> Tensor:
        assert videos.events is not None
        length = torch.tensor(videos.counts, device=after.device)[:, None]
        mask = torch.arange(max(videos.counts), device=after.device) < length  # (B, T)
        features = after.new_zeros(*mask.shape, after.shape[1])
        features[mask] = after
        return self.network.loss(features, mask, videos.events)

    def metrics(self, adapt: Callable[[Tensor], Tensor]) -> dict[str, float]:
        rows = self.data.indices("val")
        if not len(self.data.truth(rows)):
            return {}
        changed = _changed(self.data.features, rows, adapt, next(self.parameters()).device)
        found = detection.detect(self.network, replace(self.data, features=changed), rows)
        return {"detection_map": self.network.score(found, rows)}


class WholeVideoAnomaly(WholeVideoTask):
    name = "anomaly"

    def __init__(self, data: anomaly.AnomalyVideos, recipe: SplavuRecipe, adapter: AAM, device: str) -> None:
        super().__init__()
        self.data, self.device = left_of_videos(data, adapter), device
        self.network = anomaly.Anomaly(anomaly.Shape(width=data.width, widths=recipe.anomaly_widths))
        own = np.mean([np.square(features, dtype=np.float64).mean() for features in self.data.of("train")])
        self.network.network.scale.fill_(float(np.sqrt(own)) / float(adapter.scale) or 1.0)
        self.pairs = anomaly.BalancedBatches(data, batch=recipe.videos, seed=recipe.seed)

    def videos(self, step: int) -> Iterator[Videos]:
        epoch, start = divmod(step, len(self.pairs))
        while True:
            for rows in self.pairs.epoch(epoch, start):
                clips, counts = self.data.clips(rows)
                yield Videos(clips.to(self.device), tuple(counts))
            epoch, start = epoch + 1, 0

    def loss(self, after: Tensor, videos: Videos) -> Tensor:
        segments = all_into_segments(after, videos.counts, self.network.network.shape.segments)  # (2b, T, D)
        normal, abnormal = segments.chunk(2)
        return self.network.loss(normal, abnormal)

    def metrics(self, adapt: Callable[[Tensor], Tensor]) -> dict[str, float]:
        if len(set(self.data.label[self.data.indices("val")].tolist())) < 2:
            return {}
        return {f"anomaly_{name}": value for name, value in self.network.metrics(self.data, "val", adapt).items()}


def whole_video_task(data: Whole, recipe: SplavuRecipe, adapter: AAM, device: str) -> WholeVideoTask:
    """The network that learns on these videos. The adapter's scale and what it erases are known by now."""
    if isinstance(data, detection.DetectionVideos):
        return WholeVideoDetection(data, recipe, adapter, device)
    return WholeVideoAnomaly(data, recipe, adapter, device)


@torch.no_grad()
def left_of_videos(data: Kind, adapter: AAM) -> Kind:
    """What the adapter's projection leaves of their features."""
    if not adapter.shape.erase:
        return data
    device = adapter.scale.device
    return replace(data, features=_changed(data.features, np.arange(len(data.features)), adapter.erased, device))


@torch.no_grad()
def _changed(
    features: Sequence[Features], rows: NDArray[np.int64], change: Callable[[Tensor], Tensor], device: torch.device
) -> tuple[Features, ...]:
    """Those of all videos, of which these are changed."""
    found = list(features)
    for row in rows.tolist():
        found[row] = change(torch.from_numpy(features[row]).to(device)).float().cpu().numpy()
    return tuple(found)


def means_of_classes(data: Whole) -> Tensor:
    """(C, D) of training videos, to be kept apart where directions are erased: of each action's features and of those
    in which none goes on; or of abnormal videos and of normal ones, since nobody says when."""
    classes = len(data.classes) + 1 if isinstance(data, detection.DetectionVideos) else 2
    sums, counts = np.zeros((classes, data.width)), np.zeros(classes)
    for row in data.indices("train").tolist():
        label = classes_of(data, row)
        np.add.at(sums, label, data.features[row])
        counts += np.bincount(label, minlength=classes)
    there = counts > 0
    return torch.from_numpy(sums[there] / counts[there, None])


def classes_of(data: Whole, row: int) -> NDArray[np.int64]:
    """(T,) of the features of a video: what goes on in the middle of each, or whether its video is abnormal."""
    count = len(data.features[row])
    if isinstance(data, anomaly.AnomalyVideos):
        return np.full(count, data.label[row])
    middle = (np.arange(count) + 0.5) * float(data.seconds[row])
    label = np.full(count, len(data.classes))
    for start, end, number in data.segments[row]:
        label[(start <= middle) & (middle < end)] = number
    return label


def fingerprint(data: Whole) -> str:
    if isinstance(data, detection.DetectionVideos):
        return data.fingerprint
    digest = hashlib.sha256(repr((data.label.tolist(), data.split.tolist())).encode())
    for features in data.features:
        digest.update(f"{features.shape}".encode() + np.ascontiguousarray(features).tobytes())
    return digest.hexdigest()


def refuse_videos(data: Whole, recipe: SplavuRecipe, width: int) -> None:
    """What cannot be learned next to clips whose features have `width` numbers."""
    if data.width != width:
        raise DataError(
            f"{data.name} has features of {data.width} numbers, {recipe.data} of {width}: one encoder has to make both"
        )
    if isinstance(data, detection.DetectionVideos):
        detection.TrainingBatches(data, batch=recipe.videos)
    else:
        anomaly.BalancedBatches(data, batch=recipe.videos, seed=recipe.seed)
