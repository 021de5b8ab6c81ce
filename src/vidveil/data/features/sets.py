"""A store of features with its labels, on a device: what learns and what attacks on features reads this.

data = load_features("puppets", "run:encoder_puppets", frames=8, size=64)      # extracted once, then from the cache
data = load_features("features:FOLDER", "")                                    # a store, with its labels.csv
"""

import hashlib
import json
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.core.errors import DataError, UsageError
from vidveil.data import load_data
from vidveil.data.catalogue import DATA
from vidveil.data.clips import ClipSet, Videos
from vidveil.data.features.extract import CUT, STATIC, extract, progress_of
from vidveil.data.features.labels import FeatureRows, labelled
from vidveil.data.store.features import FeatureStore, is_store, read_about
from vidveil.data.store.files import store_lock
from vidveil.data.store.videos import NotInCacheError, cache_folder, is_only_from_cache
from vidveil.models.encoders import check_encoder, load_encoder
from vidveil.models.encoders.encoder import Encoder

GIVEN = "features:"
VIEWS = 5
"""Clips of a test video, evenly spaced, whose answers are averaged."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """Of all videos, one after the other."""

    all: Tensor
    """(n, D) float32 on the device."""
    first: NDArray[np.int64]
    """(V,) where each video's begin."""
    count: NDArray[np.int64]
    """(V,) how many it has."""

    def one(self, rows: NDArray[np.int64], numbers: NDArray[np.float64]) -> Tensor:
        """(B, D): of each video the one that a number in [0, 1) points to."""
        return self.all[self._at(self.first[rows] + (numbers * self.count[rows]).astype(np.int64))]

    def two(self, rows: NDArray[np.int64], numbers: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
        """(B, D) twice: two of each video, different ones where there are two; numbers (B, 2)."""
        count = self.count[rows]
        a = (numbers[:, 0] * count).astype(np.int64)
        b = (a + 1 + (numbers[:, 1] * np.maximum(count - 1, 1)).astype(np.int64)) % count
        return self.all[self._at(self.first[rows] + a)], self.all[self._at(self.first[rows] + b)]

    def even(self, rows: NDArray[np.int64], views: int = VIEWS) -> Tensor:
        """(B, views, D): evenly spaced from the first to the last."""
        steps = np.linspace(0, 1, views) if views > 1 else np.array([0.5])
        at = np.floor(steps * (self.count[rows] - 1)[:, None] + 0.5).astype(np.int64)
        return self.all[self._at(self.first[rows][:, None] + at)]

    def of(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """(n, D) all of these videos, and (n,) whose each is, as a place in `rows`."""
        count = self.count[rows]
        whose = np.repeat(np.arange(len(rows)), count)
        within = np.arange(len(whose)) - np.repeat(count.cumsum() - count, count)
        return self.all[self._at(self.first[rows][whose] + within)], self._at(whose)

    def _at(self, places: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(places).to(self.all.device)


@dataclass(frozen=True, eq=False)
class FeatureSet:
    labels: ClipSet
    """Everything but pixels."""
    store: FeatureStore
    clips: Vectors
    static: Vectors | None
    """None where the store has none."""
    pixels: Videos | None = None
    """The videos that they are features of, where these are here."""
    extraction: "Extraction | None" = None
    """How they were made, where the videos are here: features of these videos after a method are made likewise."""

    @property
    def width(self) -> int:
        return self.store.width


@dataclass(frozen=True, eq=False, kw_only=True)
class Extraction:
    """How features were made of videos."""

    clips: ClipSet
    """The videos."""
    encoder: str
    frames: int
    size: int
    half: bool
    stride: int
    static: int
    hop: int = 0
    device: str

    def network(self) -> Encoder:
        """Loaded anew: nothing of it stays in memory while evaluators are trained."""
        return load_encoder(
            self.encoder, frames=self.frames or None, size=self.size or None, half=self.half, device=self.device
        )

    def of(self, clips: ClipSet, network: Encoder | None = None) -> FeatureSet:
        """Features of the same videos, raw or after a method."""
        sees = network or self.network()
        how = {"stride": self.stride, "static": self.static, "hop": self.hop, "device": self.device}
        store = cached(clips, sees, **how)  # type: ignore[arg-type]
        found = on_device(self.clips.with_videos(FeatureRows(store)), store, self.device)
        return replace(found, pixels=self.clips.videos, extraction=self)


def load_features(
    data: str,
    encoder: str,
    *,
    frames: int = 0,
    size: int = 0,
    stride: int = 1,
    half: bool = False,
    static: int = STATIC,
    root: Path | None = None,
    seed: int = 0,
    strict: bool = False,
    device: str = "cpu",
) -> FeatureSet:
    """Features of a dataset by an encoder, or those of `features:FOLDER`.

    Args:
        frames, size: of the encoder's clips; 0 is its own choice.
    """
    if data.startswith(GIVEN):
        store = FeatureStore.open(Path(data.removeprefix(GIVEN)).expanduser())
        return on_device(labelled(store), store, device)
    made, sees = extraction_of(
        data, encoder, frames=frames, size=size, stride=stride, half=half, static=static, root=root, seed=seed,
        strict=strict, device=device,
    )  # fmt: skip
    return made.of(made.clips, sees)


def extraction_of(
    data: str,
    encoder: str,
    *,
    frames: int = 0,
    size: int = 0,
    stride: int = 1,
    half: bool = False,
    static: int = STATIC,
    root: Path | None = None,
    seed: int = 0,
    strict: bool = False,
    device: str = "cpu",
) -> tuple[Extraction, Encoder]:
    """How `load_features` makes features of a dataset, with the encoder; nothing is extracted."""
    if data.partition(":")[0] not in DATA and is_store(Path(data)):
        raise UsageError(f"{data} is a store of features: write data={GIVEN}{data}")
    if not encoder:
        raise UsageError(f"features of {data} need an encoder: encoder=i3d, or data={GIVEN}FOLDER where they are")
    check_encoder(encoder)
    sees = load_encoder(encoder, frames=frames or None, size=size or None, half=half, device=device)
    clips = load_data(data, frames=sees.frames, size=sees.size, root=root, seed=seed, strict=strict)
    made = Extraction(
        clips=clips, encoder=encoder, frames=frames, size=size, half=half, stride=stride, static=static, device=device
    )
    return made, sees


def cached(clips: ClipSet, encoder: Encoder, *, stride: int, static: int, device: str, hop: int = 0) -> FeatureStore:
    """The store of these videos by this encoder, made now if it is not in the cache. Splits of a set share it."""
    folder = store_folder(clips, encoder, stride=stride, static=static, hop=hop)
    with suppress(DataError):  # not there, cut off or damaged: what is missing is made below
        return FeatureStore.open(folder)
    if is_only_from_cache():
        raise NotInCacheError(f"features of {clips.name} by {encoder.spec} are not extracted yet")
    with store_lock(folder):
        _clear_nonsense(folder)
    with progress_of(f"features of {clips.name}", len(clips)) as progress:
        return extract(clips, encoder, folder, stride=stride, static=static, hop=hop, device=device, progress=progress)


def store_folder(clips: ClipSet, encoder: Encoder, *, stride: int, static: int, hop: int = 0) -> Path:
    """Where the store of these videos by this encoder is kept."""
    about = [clips.videos.fingerprint, list(clips.ids), encoder.fingerprint, stride, static, CUT]
    about += [hop] if hop else []  # stores made without it keep their names
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    return cache_folder() / "stores" / f"{re.split('[: ]', clips.name)[0]}-{key}"


def _clear_nonsense(folder: Path) -> None:
    """What does not even say what it is about cannot be gone on with, and nobody looks into a cache to delete it."""
    if is_store(folder):
        try:
            read_about(folder)
        except DataError:
            shutil.rmtree(folder)


def on_device(labels: ClipSet, store: FeatureStore, device: str) -> FeatureSet:
    clips = vectors(store, "clips", device)
    if (empty := np.flatnonzero(clips.count == 0)).size:
        raise DataError(f"{store.folder}: {store.ids[int(empty[0])]} has no clips")
    still = store.counts("static").min(initial=1)
    return FeatureSet(labels, store, clips, vectors(store, "static", device) if still else None)


def vectors(store: FeatureStore, kind: str, device: str) -> Vectors:
    count = store.counts(kind)
    return Vectors(torch.from_numpy(store.all(kind)).to(device), np.cumsum(count) - count, count)
