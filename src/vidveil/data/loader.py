"""Batches of views, in an order that depends only on (seed, epoch).

    loader = Loader(clips, clips.indices("train"), frames=8, size=64, batch=32, augment="light", seed=0)
    for batch in loader.epoch(3, start=17):       # batches 17, 18, ... of epoch 3, the same as without `start`
        batch.video   (B, 3, T, H, W) float in [0, 1] on the device
        batch.index   (B,) rows of the clip set, which has the labels
    for batch in loader.views("5x1"):             # every clip once, in order
        batch.video   (B, V, 3, T, H, W)

Videos that fit are kept on the device. Otherwise they are read, moved and resized by a thread, a batch or two ahead.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.core.errors import UsageError
from vidveil.data.clips import ClipSet
from vidveil.data.store.resident import Resident
from vidveil.data.temporal_controls import Control
from vidveil.data.views import (
    DRAWS,
    ORDER,
    VIEW,
    Augment,
    augmented,
    cropped,
    draw,
    even_picks,
    parse_views,
    training_picks,
)
from vidveil.training.transfer import to_device

AHEAD = 2  # batches to prefetch
PADDED = 2  # most pixels that are resized for a batch, over the pixels that it has


@dataclass(frozen=True, slots=True)
class Batch:
    video: Tensor
    """(B, 3, T, H, W), or (B, V, 3, T, H, W) where there are several views; float in [0, 1]."""
    index: Tensor
    """(B,) int64: rows of the clip set, on the CPU."""


class Loader:
    """Args:
    indices: rows of the clip set, such as `clips.indices("train")`.
    stride: frames of the video from one frame of a view to the next.
    augment: of the batches of an epoch; `views` are never augmented.
    whole: `views` are of the whole picture, squashed, instead of squares of it.
    order: `shuffle` draws a new order each epoch and leaves out an incomplete last batch, if it is not the only one.
    views_per_clip: of the batches of an epoch, if more than one: each from a random time and augmented by itself.
    transform: applied to every batch, see `temporal_controls`.
    prefetch: number of batches made ahead by a thread; by default only if videos are not kept on the device.
    """

    def __init__(
        self,
        clips: ClipSet,
        indices: Sequence[int] | NDArray[np.int64],
        *,
        frames: int,
        size: int,
        stride: int = 1,
        batch: int = 32,
        augment: Augment = "none",
        scale: tuple[float, float] = (0.5, 1.0),
        flip: bool = True,
        whole: bool = False,
        seed: int = 0,
        device: torch.device | str = "cpu",
        order: Literal["shuffle", "sequential"] = "shuffle",
        views_per_clip: int = 1,
        transform: Control | None = None,
        prefetch: int | None = None,
    ) -> None:
        if min(frames, size, stride, batch, views_per_clip) < 1:
            raise UsageError(
                "frames, size, stride, batch and views_per_clip are 1 or more, "
                f"not {frames}, {size}, {stride}, {batch} and {views_per_clip}"
            )
        self.clips = clips
        self.indices = np.asarray(indices, np.int64)
        self.frames, self.size, self.stride, self.batch = frames, size, stride, batch
        self.augment, self.scale, self.flip, self.seed = augment, scale, flip, seed
        self.whole = whole
        self.order, self.views_per_clip, self.transform = order, views_per_clip, transform
        self.device = torch.device(device)
        self.resident = _shared(clips, self.device)
        self.prefetch = (
            (0 if self.resident.whole or self.device.type == "cpu" else AHEAD) if prefetch is None else prefetch
        )

    def __len__(self) -> int:
        """Batches per epoch."""
        full, rest = divmod(len(self.indices), self.batch)
        return full + bool(rest) if self.order == "sequential" or not full else full

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from number `start` on."""
        rows = self.indices
        if self.order == "shuffle":
            rows = np.random.default_rng((self.seed, ORDER, epoch)).permutation(rows)
        numbers = range(start, len(self))
        return self._run(lambda i: self._training_batch(rows[i * self.batch : (i + 1) * self.batch], epoch), numbers)

    def views(self, spec: str = "1x1") -> Iterator[Batch]:
        """Every clip once, in the order of `indices`.

        Views that would be identical are made once: five clips of videos no longer than one clip, three squares of
        square pictures. The mean over views is the same.
        """
        clips, crops = parse_views(spec)
        shapes = [self.resident.shape(i) for i in self.indices]
        if all(shape[0] <= (self.frames - 1) * self.stride + 1 for shape in shapes):
            clips = 1
        if all(shape[1] == shape[2] for shape in shapes):
            crops = 1
        starts = range(0, len(self.indices), self.batch)
        return self._run(lambda i: self._test_batch(self.indices[i : i + self.batch], clips, crops), starts)

    def _run(self, make: Callable[[int], Batch], numbers: range) -> Iterator[Batch]:
        def exact(number: int) -> Batch:
            with torch.autocast(self.device.type, enabled=False):  # validation may ask for batches inside of one
                return make(number)

        batches = map(exact, numbers)
        return prefetched(batches, self.prefetch) if self.prefetch else batches

    def _training_batch(self, rows: NDArray[np.int64], epoch: int) -> Batch:
        each, count = rows, self.views_per_clip
        numbers = draw(self.seed, VIEW, epoch, rows, count * DRAWS).reshape(-1, DRAWS)
        rows = np.repeat(rows, count)  # (B · V,)
        shapes = [self.resident.shape(int(i)) for i in rows]
        if self.augment == "none":
            picks = [even_picks(shape[0], self.frames, self.stride, 1)[0] for shape in shapes]
        else:
            lengths = [shape[0] for shape in shapes]
            picks = [
                training_picks(length, self.frames, self.stride, number[0])
                for length, number in zip(lengths, numbers, strict=True)
            ]
        video = torch.empty(len(rows), 3, self.frames, self.size, self.size, device=self.device)
        for same in self._at_once(shapes):
            clips = self.resident.clips(rows[same], [picks[i] for i in same])
            views = augmented(
                clips, numbers[same], size=self.size, augment=self.augment, scale=self.scale, flip=self.flip,
                sides=_sides(shapes, same),
            )  # fmt: skip
            if len(same) == len(rows):
                video = views
            else:
                video[to_device(same, self.device)] = views
        if self.transform is not None:
            video = self.transform(video, rows, self.seed, epoch)
        return Batch(video if count == 1 else video.view(len(each), count, *video.shape[1:]), torch.as_tensor(each))

    def _test_batch(self, rows: NDArray[np.int64], clips: int, crops: int) -> Batch:
        shapes = [self.resident.shape(i) for i in rows]
        video = torch.empty(len(rows), clips * crops, 3, self.frames, self.size, self.size, device=self.device)
        for same in self._at_once(shapes):
            picks = [even_picks(shapes[i][0], self.frames, self.stride, clips).reshape(-1) for i in same]
            found = self.resident.clips(rows[same], picks)  # (B, clips * frames, H, W, 3)
            views = cropped(
                found.view(len(same), clips, self.frames, *found.shape[2:]),
                size=self.size,
                crops=crops,
                whole=self.whole,
                sides=_sides(shapes, same),
            )
            video[to_device(same, self.device)] = views
        if self.transform is not None:
            flat = self.transform(video.flatten(0, 1), np.repeat(rows, video.shape[1]), self.seed, None)
            video = flat.view(len(rows), -1, *flat.shape[1:])
        return Batch(video, torch.as_tensor(rows))

    def _at_once(self, shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.int64]]:
        """Positions in a batch that are resized together: on an accelerator all, to save launches, unless most of the
        computation would be padding."""
        if self.device.type == "cpu":
            return _groups(shapes)
        every = np.arange(len(shapes))
        sides = _sides(shapes, every)
        wasteful = len(sides) * sides.max(0).prod() > PADDED * sides.prod(1).sum()
        return _groups(shapes) if wasteful else [every]


def _sides(shapes: Sequence[tuple[int, ...]], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, 2) heights and widths."""
    return np.array([shapes[i][1:3] for i in places], np.int64)


def _groups(shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.int64]]:
    """Positions in a batch whose pictures have the same height and width."""
    found: dict[tuple[int, ...], list[int]] = {}
    for i, shape in enumerate(shapes):
        found.setdefault(shape[1:3], []).append(i)
    return [np.asarray(same) for same in found.values()]


_residents: WeakValueDictionary[tuple[int, torch.device], Resident] = WeakValueDictionary()


def _shared(clips: ClipSet, device: torch.device) -> Resident:
    """Loaders of the same videos share the copy on the device, as long as one of them exists."""
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())  # the same key as the explicit index
    key = (id(clips.videos), device)  # a resident keeps its videos alive, so the id is unique
    resident = _residents.get(key)
    if resident is None:
        resident = _residents[key] = Resident(clips.videos, device)
    return resident


def prefetched(batches: Iterator[Batch], count: int) -> Iterator[Batch]:
    """The same batches, made up to `count` ahead by a thread, which ends with the returned iterator."""
    ready: queue.Queue[Batch | BaseException | None] = queue.Queue(count)
    stopped = threading.Event()

    def put(item: Batch | BaseException | None) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for batch in batches:
                if not put(batch):
                    return
            put(None)
        except BaseException as error:  # raised again in the consumer
            put(error)

    thread = threading.Thread(target=work, name="vidveil-loader", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()
