"""The thing that is judged, as a black box: pixels in, pixels out, each clip by itself, once.

Besides methods there are three controls, which every table needs and nobody should protect anyone with: `raw` does
nothing, `noise` leaves nothing, `random` blackens tubelets drawn at random (with `keep` as its knob).
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil import __version__
from vidveil.data.clips import ClipSet
from vidveil.data.store import VideoStore, cache_folder
from vidveil.errors import DataError, UsageError

Paint = Callable[[NDArray[np.uint8], int], NDArray[np.uint8]]
"""(T, H, W, 3) and the number of the clip → the same shape. Controls draw lots by the number; methods ignore it."""

TUBELET_FRAMES = 2


def anonymized(data: ClipSet, method: str, *, region: str = "frame", keep: float | None = None) -> ClipSet:
    """The set after the method: made once, kept in the cache, found again by what made it."""
    if method == "raw":
        if keep is not None:
            raise UsageError("raw has no knob: leave keep out")
        return data
    paint, weights = _painter(method, region, keep)
    about = {
        "method": method,
        "region": region,
        "keep": keep,
        "weights": weights,
        "of": data.videos.fingerprint,
        "vidveil": __version__,
    }
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    videos = VideoStore.cached(_folder() / key, about, lambda: _all(data, paint))
    for row in {0, len(data) // 2, len(data) - 1}:  # the code of a method may have changed since
        if not np.array_equal(videos.frames(row), paint(data.videos.frames(row), row)):
            videos = VideoStore.write(_folder() / key, _all(data, paint), about)
            break
    return data.with_videos(videos, f"{data.name} after {method}" + ("" if keep is None else f" keeping {keep:g}"))


def check_method(method: str, region: str = "frame", keep: Sequence[float] = ()) -> None:
    """A method that does not exist, or has no such knob, is refused now."""
    for share in keep or (None,):
        if method == "raw" and share is not None:
            raise UsageError("raw has no knob: leave keep out")
        if method != "raw":
            paint, _ = _painter(method, region, share)
            paint(np.zeros((2, 32, 32, 3), np.uint8), 0)  # knobs are refused, and detectors fetched, when they are used


def _folder() -> Path:
    return cache_folder() / "anonymized"


def _all(data: ClipSet, paint: Paint) -> Iterator[NDArray[np.uint8]]:
    for row in range(len(data)):
        yield paint(data.videos.frames(row), row)


def _painter(method: str, region: str, keep: float | None) -> tuple[Paint, str | None]:
    if method == "noise":
        if keep is not None:
            raise UsageError("noise has no knob: leave keep out")
        return _noise, None
    if method == "random":
        share = 1.0 if keep is None else keep
        return lambda frames, row: random_tubelets(frames, share, row), None

    import torch

    from vidveil.methods import load

    anonymizer = load(method, region=region)

    def paint(frames: NDArray[np.uint8], row: int) -> NDArray[np.uint8]:  # noqa: ARG001
        clip = torch.from_numpy(frames.copy()).permute(3, 0, 1, 2).float() / 255  # (3, T, H, W)
        video = anonymizer.anonymize(clip, keep=keep).video
        if video.shape[2:] != clip.shape[2:] or not bool(((video >= 0) & (video <= 1)).all()):
            raise DataError(f"{method} changed the size {tuple(clip.shape)} of a clip, or left [0, 1]")
        return (video * 255).round().to(torch.uint8).permute(1, 2, 3, 0).contiguous().cpu().numpy()

    return paint, anonymizer.weights


def _noise(frames: NDArray[np.uint8], row: int) -> NDArray[np.uint8]:
    return np.random.default_rng([0x015E, row]).integers(0, 256, frames.shape, dtype=np.uint8)


def random_tubelets(frames: NDArray[np.uint8], keep: float, row: int) -> NDArray[np.uint8]:
    """Keep ceil(keep · M) of the M tubelets (2 frames, 8 pixels a side up to 64, else 16); the others are black."""
    steps, height, width, _ = frames.shape
    side = 8 if min(height, width) <= 64 else 16
    grid = (-(-steps // TUBELET_FRAMES), -(-height // side), -(-width // side))
    count = int(np.prod(grid))
    kept = np.zeros(count, dtype=np.uint8)
    kept[np.random.default_rng([0x7B, row]).permutation(count)[: int(np.ceil(keep * count - 1e-9))]] = 1
    mask = kept.reshape(grid).repeat(TUBELET_FRAMES, 0).repeat(side, 1).repeat(side, 2)[:steps, :height, :width]
    return frames * mask[..., None]
