"""The thing that is evaluated, as a black box: pixels in, pixels out, each clip by itself, once.

Besides methods there are controls, which every table needs and nobody should protect anyone with: `raw` does nothing,
`noise` leaves nothing, and those of `pruning_controls` blacken tubelets without having learned which.

A method that hides by a mask leaves next to each video what it kept and by which scores, tubelet by tubelet: where
ground truth is known, `truth` compares them. Where its tubelets lie on no grid of the clip, only the share that it kept
is left: pixel by pixel, mask and scores are larger than the video.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.core.progress import counted, phase
from vidveil.core.version import __version__
from vidveil.data.clips import ClipSet
from vidveil.data.puppets import PuppetClips, masks
from vidveil.data.regions import regions
from vidveil.data.single_frames import SingleFrames
from vidveil.data.store.anonymized import KEPT, SCORES, SHARE, AnonymizedVideos, created
from vidveil.data.store.videos import Item, NotInCacheError, VideoStore, cache_folder, only_from_cache
from vidveil.methods import METHODS, Chain, load
from vidveil.methods.learned.anonymizer import LearnedAnonymizer, learned_in
from vidveil.methods.masking.baselines import (
    CONTROLS,
    PruningControl,
    is_pruning_control,
    is_random_pruning,
    pruning_control,
    with_random_pruning,
)
from vidveil.methods.painting import painted, painted_by_workers, pixels_of, tensor_of, worker_count

if TYPE_CHECKING:
    from vidveil.methods import Anonymized, Anonymizer
    from vidveil.methods.regional import FindRegions

WORKERS = 8  # clips at once, at most, by methods that learned nothing: OpenCV and PyTorch leave Python's lock alone
AT_ONCE = 64
"""Clips that a learned method sees at a time, at most."""
BYTES_AT_ONCE = 256 * 2**20
"""Of their pixels: a whole recorded video may have 100 MB, and four times that as floats."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A method with its knobs: everything but the data that a video after it depends on."""

    method: str
    region: str = "frame"
    keep: float | None = None
    privacy_weight: float | None = None
    fill: str | None = None

    def of_seed(self, seed: int) -> "Setting":
        """`dual-{seed}` names one training of the method for each seed."""
        return Setting(**asdict(self) | {"method": self.method.replace("{seed}", str(seed))})

    @property
    def tag(self) -> str:
        """`METHOD[-KEEP]`: its name among the settings of an evaluation."""
        return self.method if self.keep is None else f"{self.method}-{self.keep:g}"

    def __str__(self) -> str:
        knobs = {"keeping": self.keep, "privacy weight": self.privacy_weight}
        given = [f"{name} {value:g}" for name, value in knobs.items() if value is not None]
        return ", ".join([self.method, *given, *([f"filled by {self.fill}"] if self.fill else [])])


@dataclass(frozen=True)
class Painter:
    """A setting ready for use on a set."""

    paint: Callable[[Sequence[int]], Iterable[Item]]
    """Rows of the set → a video each, with its side arrays."""
    weights: str | None = None
    tubelet: tuple[int, int] | None = None
    """Frames and pixels a side of what `kept` and `scores` have one entry of; None where there are none."""
    paint_all: Callable[[], Iterable[Item]] | None = None
    """All videos of the set at once, where that is faster."""
    at_once: int = 1
    as_filmed: bool = True
    """Whether what a mask keeps is shown as it was filmed."""


def anonymized(data: ClipSet, setting: Setting, *, device: str = "cpu") -> ClipSet:
    """The set after the method: made once, kept in the cache, found again by what made it."""
    _refuse_knobs_of_controls(setting)
    if setting.method == "raw":
        return data
    if isinstance(data.videos, SingleFrames):  # a method sees whole videos, also where single frames are evaluated
        after = data.videos.of(anonymized(data.videos.whole, setting, device=device))
        return data.with_videos(after, f"{data.name} after {setting}")
    painter = _painter(data, setting, device)
    folder, about = _cached_as(data, setting, painter)
    chunks = _chunks(data, painter.at_once)
    made_now = []

    def make() -> Iterator[Item]:
        made_now.append(True)
        each = chain.from_iterable(map(painter.paint, chunks)) if painter.paint_all is None else painter.paint_all()
        yield from counted(each, f"painting {data.name} after {setting}", len(data), "clips")

    videos = AnonymizedVideos.cached(folder, about, make)
    if not made_now:  # the code of a method may have changed since: look at some
        some = dict.fromkeys((chunks[0], chunks[len(chunks) // 2], chunks[-1]))
        pairs = (pair for chunk in some for pair in zip(chunk, painter.paint(chunk), strict=True))
        with phase(f"comparing {data.name} after {setting} with the cache"):
            same = all(_same(videos, row, item) for row, item in pairs)
        if not same:
            videos = AnonymizedVideos.write(folder, make(), about)
    if made_now and isinstance(videos, AnonymizedVideos):
        videos.made = created(videos.folder)
    return data.with_videos(videos, f"{data.name} after {setting}")


def _cached_as(data: ClipSet, setting: Setting, painter: Painter) -> tuple[Path, dict[str, Any]]:
    """Where the set after the method is kept, and what is recorded of it."""
    about: dict[str, Any] = {
        **{key: as_json(value) for key, value in asdict(setting).items()},
        "weights": painter.weights,
        "tubelet": list(painter.tubelet) if painter.tubelet else None,
        "of": data.videos.fingerprint,
        "vidveil": __version__,
        **({} if painter.as_filmed else {"as_filmed": False}),
    }
    return _folder() / hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16], about


def cached_anonymized(data: ClipSet, setting: Setting, *, device: str = "cpu") -> VideoStore | None:
    """What is in the cache of the set after the method; nothing is made, and nobody is looked for."""
    if setting.region != "frame" or isinstance(data.videos, SingleFrames):
        return None
    with only_from_cache(), suppress(DataError):
        folder, about = _cached_as(data, setting, _painter(data, setting, device))
        return AnonymizedVideos.cached(folder, about, list)
    return None


def some_anonymized(data: ClipSet, setting: Setting, rows: Sequence[int], *, device: str = "cpu") -> int:
    """Apply the method to these clips, and keep nothing: to measure how long it takes. How many clips it were."""
    if setting.region == "frame" and not isinstance(data.videos, SingleFrames):
        with only_from_cache(), suppress(NotInCacheError):
            return len(list(_painter(data, setting, device).paint(rows)))
    method = load_setting(setting)
    for row in rows:
        clip = tensor_of(data.videos.frames(row), device)
        method.anonymize(clip, keep=setting.keep, privacy_weight=setting.privacy_weight)
    return len(rows)


def check_method(setting: Setting, keep: Sequence[float] = ()) -> None:
    """A method that does not exist, or has no such knob, is refused now."""
    for share in keep or (None,):
        tried = Setting(**asdict(setting) | {"keep": share})
        _refuse_knobs_of_controls(tried)
        if tried.method in ("raw", "noise") or pruning_control(tried.method, share):
            continue
        method = load_setting(tried, find_regions=lambda clip: [()] * clip.shape[1])  # nobody has to be looked for
        learned = learned_in(method)
        frames, size = (learned.network.frames, learned.network.size) if learned else (2, 32)
        empty = np.zeros((frames, size, size, 3), np.uint8)
        # knobs are refused when they are used
        method.anonymize(tensor_of(empty), keep=share, privacy_weight=tried.privacy_weight)


def _refuse_knobs_of_controls(setting: Setting) -> None:
    plain = setting.method in ("raw", "noise")
    if plain and setting.keep is not None:
        raise UsageError(f"{setting.method} has no keep: leave it out")
    if plain and setting.fill is not None:
        raise UsageError(f"{setting.method} hides no tubelets: leave fill out")
    unlearned = plain or is_random_pruning(setting.method) or is_pruning_control(setting.method)
    if unlearned and setting.privacy_weight is not None:
        raise UsageError(f"{setting.method} has no privacy attention: leave privacy_weight out")


def _folder() -> Path:
    return cache_folder() / "anonymized"


def _chunks(data: ClipSet, at_once: int) -> list[range]:
    """Rows that are in memory together: so many clips, fewer where they are large, one at least."""
    starts, held = [0], 0
    for row in range(len(data)):
        size = data.videos.frames(row).nbytes
        if row - starts[-1] == at_once or (row > starts[-1] and held + size > BYTES_AT_ONCE):
            starts.append(row)
            held = 0
        held += size
    return [range(start, stop) for start, stop in pairwise([*starts, len(data)])]


def _same(videos: VideoStore, row: int, item: Item) -> bool:
    """Whether the cache holds the very pixels that the method makes today."""
    frames, sides = item if isinstance(item, tuple) else (item, {})
    mask = all(np.array_equal(videos.side(name, row), sides[name]) for name in (KEPT, SHARE) if name in sides)
    return mask and np.array_equal(videos.frames(row), frames)


def as_json(value: Any) -> Any:
    """JSON has no infinity."""
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _painter(data: ClipSet, setting: Setting, device: str) -> Painter:
    if setting.method == "noise":
        return Painter(lambda rows: [_noise(data.videos.frames(row), row) for row in rows])
    if control := pruning_control(setting.method, setting.keep):
        return _pruned(data, control, setting.fill or "black")
    method = load_setting(setting)
    if isinstance(method, LearnedAnonymizer):
        return _learned(data, method, setting, device)
    knobs = {"keep": setting.keep, "privacy_weight": setting.privacy_weight}
    known = setting.region != "frame" and not isinstance(method, Chain)  # a stage of a chain may leave frames out
    where = regions(data, setting.region) if known else None

    def for_row(row: int) -> "Anonymizer":
        if where is None:
            return method
        return load(setting.method, region=setting.region, find_regions=lambda _: where(row))

    def one(row: int) -> NDArray[np.uint8]:
        frames = data.videos.frames(row)
        return painted(for_row(row), frames, **knobs)

    alone = where is None and method.weights is not None  # networks, and who follows people, go in order
    videos, paint_all = data.videos, None
    count = 0 if alone or where is not None else worker_count(videos, setting.method)
    if count and isinstance(videos, VideoStore):
        paint_all = partial(painted_by_workers, videos, setting.method, method, count)
    workers = 1 if alone else min(WORKERS, os.cpu_count() or 1)

    def paint(rows: Sequence[int]) -> list[Item]:
        with one_thread_each(workers), ThreadPoolExecutor(workers, thread_name_prefix="vidveil-paint") as pool:
            return list(pool.map(one, rows))

    return Painter(paint, method.weights, paint_all=paint_all, at_once=2 * workers)


@contextmanager
def one_thread_each(workers: int) -> Iterator[None]:
    """OpenCV has threads of its own for each who asks: many cores would wait for each other most of the time."""
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(1 if workers > 1 else before)
    try:
        yield
    finally:
        cv2.setNumThreads(before)


def load_setting(setting: Setting, find_regions: "FindRegions | None" = None) -> "Anonymizer":
    """The method with its region and fill; `keep` and `privacy_weight` are given with each clip."""
    try:
        method = load(setting.method.removeprefix("random:"), region=setting.region, find_regions=find_regions)
    except UsageError as error:
        if setting.method.partition(":")[0].strip() in METHODS:
            raise
        # a run may be called nearly like a control: only what does not exist is misspelt
        close = get_close_matches(setting.method, (*CONTROLS, "raw", "noise"), n=1, cutoff=0.75)
        if not close:
            raise UsageError(f"{error}; controls are raw, noise, {', '.join(CONTROLS)}") from error
        raise UsageError(f"no method or control is called {setting.method!r}; did you mean {close[0]}?") from error
    if is_random_pruning(setting.method):
        method = with_random_pruning(method, setting.method)
    if setting.fill is not None:
        if not isinstance(method, LearnedAnonymizer) or method.tubelet is None:
            raise UsageError(f"{setting.method} hides no tubelets: leave fill out")
        if method.draws and setting.fill != "mask":
            raise UsageError(f"{setting.method} draws what it shows, whatever the fill: leave it out, or take mask")
        method.fill = setting.fill
    return method


def _pruned(data: ClipSet, control: PruningControl, fill: str) -> Painter:
    """A control of tubelets; all clips of a set have the tubelets that suit its first one."""
    import torch

    from vidveil.models.layers.tubelets import paint as filled

    grid = control.grid(*data.videos.frames(0).shape[1:3])
    control = PruningControl(control.name, grid.side, control.keep)
    truth = masks(data) if control.needs_truth else None

    def paint(rows: Sequence[int]) -> Iterator[Item]:
        for row in rows:
            frames = data.videos.frames(row)
            kept, scores = control.choose(frames, row, None if truth is None else truth[row])
            shown = grid.pixels(kept, frames.shape)  # (T, H, W)
            if fill == "black":
                video = frames * shown[..., None]
            else:
                made = filled(tensor_of(frames)[None], torch.from_numpy(shown.copy())[None], fill)
                (video,) = pixels_of(made, frames.shape, control.name)
            yield video, {KEPT: kept.astype(np.uint8), SCORES: scores.astype(np.float32)}

    return Painter(paint, tubelet=(grid.frames, grid.side), as_filmed=fill != "mask")


def _learned(data: ClipSet, method: LearnedAnonymizer, setting: Setting, device: str) -> Painter:
    """A learned method, many clips at a time, with its mask if it has one."""
    network = method.network
    own_shape = (network.frames, network.size, network.size, 3)
    tubelet: tuple[int, int] | None = None  # the mask is laid over clips of another size: no grid fits it
    mask = None if method.elsewhere else method.tubelet  # elsewhere, it says nothing about what was filmed there
    if mask is not None and all(data.videos.frames(row).shape == own_shape for row in range(len(data))):
        tubelet = mask[:2]
    elif mask is not None and isinstance(data, PuppetClips):  # small, and their ground truth is known for each pixel
        tubelet = (1, 1)
    changed = method.draws or method.preprocess is not None or method.fill == "mask"
    if method.preprocess is not None:  # what masks lie over is made once for all of them, as for training
        data, method = anonymized(data, Setting(method=method.preprocess.spec)), method.alone()

    def paint(rows: Sequence[int]) -> Iterator[Item]:
        videos = [data.videos.frames(row) for row in rows]
        made: dict[int, Item] = {}
        for shape in dict.fromkeys(video.shape for video in videos):
            alike = [i for i, video in enumerate(videos) if video.shape == shape]
            clips = tensor_of(np.stack([videos[i] for i in alike]), device)  # (B, 3, T, H, W)
            found = method.anonymize_batch(clips, keep=setting.keep, privacy_weight=setting.privacy_weight)
            shown = pixels_of(found.video, shape, setting.method)
            items = shown if found.mask is None else zip(shown, _sides(found, tubelet), strict=True)
            made |= dict(zip(alike, items, strict=True))
        for i in range(len(rows)):
            yield made[i]

    return Painter(paint, method.weights, tubelet, at_once=AT_ONCE, as_filmed=not changed)


def _sides(found: "Anonymized", tubelet: tuple[int, int] | None) -> list[dict[str, NDArray[Any]]]:
    """One entry a tubelet of what is there for each pixel; without a grid the share of pixels that are kept."""
    assert found.mask is not None
    if tubelet is None:
        pixels = found.mask.flatten(1)  # (B, T·H·W)
        return [{SHARE: np.array([count / pixels.shape[1]])} for count in pixels.sum(1).tolist()]
    step, side = tubelet
    corner = (slice(None), slice(None, None, step), slice(None, None, side), slice(None, None, side))
    kept = found.mask[corner].cpu().numpy().astype(np.uint8)  # (B, L, h, w)
    if found.scores is None:
        return [{KEPT: each} for each in kept]
    scores = found.scores[corner].float().cpu().numpy().astype(np.float32)
    return [{KEPT: each, SCORES: score} for each, score in zip(kept, scores, strict=True)]


def _noise(frames: NDArray[np.uint8], row: int) -> NDArray[np.uint8]:
    return np.random.default_rng([0x015E, row]).integers(0, 256, frames.shape, dtype=np.uint8)
