"""Videos of a set through a method that has learned nothing: by threads, or by a worker process per core.

Threads wait for each other wherever a method runs Python code, as those that follow what moves do for every frame. So
large sets are given to workers, each of which maps the set's file and loads the method anew.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.registry import METHODS
from vidveil.core.workers import cores, receive, workers
from vidveil.data.clips import Videos
from vidveil.data.store.videos import VideoStore

if TYPE_CHECKING:
    from torch import Tensor

    from vidveil.core.anonymizer import Anonymizer

MANY_BYTES = 256 * 2**20
"""Of pixels: below that, threads are done before workers have started."""
MOST = 32
"""Workers: each takes some hundred megabytes."""


def worker_count(videos: Videos, spec: str) -> int:
    """How many workers this method on these videos is worth; 0 where threads do."""
    if not isinstance(videos, VideoStore) or not _is_built_in(spec):
        return 0  # workers find neither pixels in memory nor methods that only this process knows
    count = min(cores(), MOST, len(videos))
    size = sum(int(np.prod(shape)) for shape in videos.shapes)
    return count if count > 2 and size >= MANY_BYTES else 0


def _is_built_in(spec: str) -> bool:
    names = [part.partition(":")[0].strip() for part in spec.split("|")]
    return all(name in METHODS and str(METHODS[name].where).startswith("vidveil.") for name in names)


def painted_by_workers(videos: VideoStore, spec: str, method: "Anonymizer", count: int) -> Iterator[NDArray[np.uint8]]:
    """Every video as the method leaves it, in order. What a worker could not do is done here, with its error."""
    task = {"folder": str(videos.folder), "method": spec, "without_failed": videos.rows_dropped}
    with workers("vidveil.methods.painting_worker", task, count) as pipes:
        for row, shape in enumerate(videos.shapes):
            try:
                data = receive(pipes[row % count], int(np.prod(shape)))
            except EOFError:
                yield painted(method, videos.frames(row))
            else:
                yield np.frombuffer(data, np.uint8).reshape(shape)


def painted(method: "Anonymizer", frames: NDArray[np.uint8], **knobs: float | None) -> NDArray[np.uint8]:
    """(T, H, W, 3) bytes → the same, as the method leaves them."""
    video = method.anonymize(tensor_of(frames), **knobs).video[None]
    found: NDArray[np.uint8] = pixels_of(video, frames.shape, method.spec)[0]
    return found


def tensor_of(frames: NDArray[np.uint8], device: str = "cpu") -> "Tensor":
    """(..., T, H, W, 3) bytes → (..., 3, T, H, W) in [0, 1]."""
    import torch

    return torch.from_numpy(np.array(frames)).to(device).movedim(-1, -4).float() / 255  # bytes travel, not floats


def pixels_of(video: "Tensor", shape: tuple[int, ...], method: str) -> NDArray[np.uint8]:
    """(B, 3, T, H, W) in [0, 1] → (B, T, H, W, 3) bytes."""
    import torch

    if video.shape[3:] != shape[1:3] or not bool(((video >= 0) & (video <= 1)).all()):
        raise DataError(f"{method} changed the size {tuple(shape)} of a clip, or left [0, 1]")
    found: NDArray[np.uint8] = (video * 255).round().to(torch.uint8).movedim(1, -1).contiguous().cpu().numpy()
    return found
