"""Features in memory-mapped shards: made once, resumable, and never mixed with those of another encoder.

    NAME/store.json            what it is about: encoder, videos and how clips were cut; the videos' ids. Written first
    NAME/clips-00000.npy       (n, D) float32: all clips of the first videos, one after the other
    NAME/static-00000.npy      (m, D): static clips of the same videos, each one frame of a video that stands still
    NAME/shard-00000.json      how many of both each video has, and the sha256 of both files. Written last
    NAME/labels.csv            labels, if they are known (`labels`)

A shard is whole where its JSON is. A run that was cut off makes what is missing or cut short; whoever asks for it has
what is there compared with its sums, and made anew where it differs.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from vidveil.core.arrays import read_header
from vidveil.core.atomic import is_part, new_file, remove_stale, write_json
from vidveil.core.bounded import is_file, open_regular, read_json_object, reason, regular
from vidveil.core.errors import DataError, OutputError
from vidveil.core.text import printable
from vidveil.core.typed import typed
from vidveil.data.store.files import sha256_of, store_lock

LAYOUT = 1
INDEX_BYTES = 256 << 20
INDEX_VALUES = 4_000_000
"""A video is one id, and ids may hold commas."""
MOST = 1_000_000
"""Numbers per vector, and videos per shard."""
VIDEOS = 256
"""Videos per shard."""
KINDS = ("clips", "static")
Vectors = NDArray[np.float32]
Counts = Mapping[str, Sequence[int]]
"""Of vectors of each video, by kind."""
MakeShard = Callable[[range], tuple[Counts, Mapping[str, Vectors]]]


@dataclass(frozen=True)
class Shard:
    counts: Counts
    sha256: Mapping[str, str]


class FeatureStore:
    """Get one by `open`; `fill` makes one."""

    def __init__(self, folder: Path, about: Mapping[str, Any], ids: Sequence[str], shards: Sequence[Shard]) -> None:
        self.folder, self.about, self.ids, self.shards = folder, about, ids, shards
        self.width = int(about["encoder"]["width"])

    def __len__(self) -> int:
        """Videos."""
        return len(self.ids)

    @property
    def encoder(self) -> str:
        """Fingerprint of the encoder that made it."""
        return str(self.about["encoder"]["fingerprint"])

    @cached_property
    def fingerprint(self) -> str:
        content = [self.about, list(self.ids), [dict(shard.sha256) for shard in self.shards]]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def counts(self, kind: str = "clips") -> NDArray[np.int64]:
        """(V,) how many vectors each video has."""
        return np.array([count for shard in self.shards for count in shard.counts[kind]], np.int64)

    def shard(self, number: int, kind: str = "clips") -> Vectors:
        """(n, D) straight from the file."""
        return _mapped(self.folder / _file(kind, number))

    def all(self, kind: str = "clips") -> Vectors:
        """(n, D) of all videos in memory, one after the other."""
        parts = [self.shard(number, kind) for number in range(len(self.shards))]
        return np.concatenate(parts) if parts else np.zeros((0, self.width), np.float32)

    def check(self, found: Vectors, number: int, kind: str = "clips") -> None:
        """Compare what `shard` found with the sum that was noted while writing."""
        if sha256_of(found) != self.shards[number].sha256[kind]:
            path = self.folder / _file(kind, number)
            raise DataError(f"{path} is damaged: delete it, and `vidveil extract` makes it anew")

    def verify(self) -> None:
        """Read everything and compare."""
        for number, shard in enumerate(self.shards):
            for kind in shard.sha256:
                self.check(self.shard(number, kind), number, kind)

    @classmethod
    def open(cls, folder: Path) -> "FeatureStore":
        about, ids = read_about(folder)
        size = int(about["videos_a_shard"])
        wanted = -(-len(ids) // size)
        shards = []
        for number in range(wanted):
            shard = _read_shard(folder, number, min(size, len(ids) - number * size), int(about["encoder"]["width"]))
            if isinstance(shard, str):
                raise DataError(f"{shard}; {number} of {wanted} shards are whole: `vidveil extract` again goes on")
            shards.append(shard)
        return cls(folder, about, ids, shards)


def is_store(folder: Path) -> bool:
    return is_file(folder / "store.json")


def fill(
    folder: Path,
    about: Mapping[str, Any],
    ids: Sequence[str],
    make: Callable[[range], Iterable[Mapping[str, Vectors]]],
    *,
    videos: int = VIDEOS,
) -> FeatureStore:
    """Make the store, or what is missing of it.

    Args:
        about: has `encoder`, as `Encoder.about` gives it. A store that is about something else is refused, and left
            as it is.
        make: called with the numbers of the videos of a shard; gives each one's vectors by kind, in order.
        videos: per shard.
    """
    width = int(about["encoder"]["width"])
    return fill_shards(folder, about, ids, lambda rows: _gathered(make(rows), rows, width), videos=videos)


def fill_shards(
    folder: Path,
    about: Mapping[str, Any],
    ids: Sequence[str],
    make: MakeShard,
    *,
    videos: int,
    compare: bool = False,
) -> FeatureStore:
    """`fill` from whole shards.

    Args:
        make: gives how many vectors each video has and all of them, by kind.
        compare: read the shards that are there, too, and make those anew whose numbers are not those of their sums.
    """
    folder = Path(folder).absolute()
    plain = json.loads(json.dumps({"layout": LAYOUT, **about, "videos_a_shard": videos}))
    with store_lock(folder):
        if is_store(folder):
            _refuse_other(folder, plain, ids)
        elif folder.exists() and not (folder.is_dir() and all(is_part(file.name) for file in folder.iterdir())):
            raise OutputError(f"{folder} is there and is no store of features: choose another name")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            remove_stale(folder)
            if not is_store(folder):
                write_json(folder / "store.json", {**plain, "ids": list(ids)}, indent=None)
            width = int(about["encoder"]["width"])
            shards = [range(start, min(start + videos, len(ids))) for start in range(0, len(ids), videos)]
            missing = (
                (number, rows)
                for number, rows in enumerate(shards)
                if isinstance(_read_shard(folder, number, len(rows), width, compare), str)
            )
            _fill_missing(folder, missing, make)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise OutputError(f"{folder} cannot be written: {reason}") from error
    return FeatureStore.open(folder)


def _fill_missing(folder: Path, missing: Iterable[tuple[int, range]], make: MakeShard) -> None:
    """A shard is written while the next one is made. Errors are raised as if it were one after the other: that of
    writing first, with that of making the next as its cause."""
    with ThreadPoolExecutor(1) as aside:
        written: Future[None] | None = None
        try:
            for number, rows in missing:
                if written is not None and written.done():
                    written.result()  # on a full disk, nothing more is made
                counts, wholes = make(rows)
                _refuse_infinite(folder, counts, wholes, rows)
                if written is not None:
                    written.result()
                written = aside.submit(_write_shard, folder, number, counts, wholes)
            if written is not None:
                written.result()
        except BaseException as error:
            failed = written.exception() if written is not None else None
            if failed is None or failed is error:
                raise
            if isinstance(error, Exception):
                raise failed from error
            error.add_note(f"{folder} cannot be written: {failed}")  # an interruption goes first
            raise


def _refuse_other(folder: Path, plain: Mapping[str, Any], ids: Sequence[str]) -> None:
    about, there = read_about(folder)
    if about.get("anonymized") and plain.get("anonymized") and about != plain:
        raise DataError(f"{folder} is of another store, or by another adapter: --overwrite replaces it")
    if about["encoder"]["fingerprint"] != plain["encoder"]["fingerprint"]:
        raise DataError(
            f"{folder} was made by another encoder ({about['encoder']['spec']}): features of two must not be mixed; "
            "choose another folder"
        )
    if list(there) != list(ids) or about != plain:
        differ = next((key for key in plain if about.get(key) != plain[key]), "videos")
        raise DataError(f"{folder} is of other {differ}: choose another folder, or delete it")


def read_about(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What `store.json` says, and the videos' ids. Shards may be missing."""
    path = folder / "store.json"
    try:
        about = read_json_object(path, INDEX_BYTES, INDEX_VALUES)
        if about["layout"] != LAYOUT:
            layout = printable(about["layout"])
            raise DataError(f"{folder} has layout {layout}, this vidveil reads {LAYOUT}: extract it anew")
        ids = typed(about.pop("ids"), list[str], "ids")
        encoder = typed(about["encoder"], dict[str, Any], "encoder")
        for value in (encoder["spec"], encoder["fingerprint"]):
            typed(value, str, "the encoder")
        for value in (encoder["width"], about["videos_a_shard"]):
            if not 0 < typed(value, int, "a width or a number of videos") <= MOST:
                raise ValueError(f"{value} is no width, and no number of videos")
        typed(about.get("clips", {}), dict[str, Any], "clips")
    except FileNotFoundError as error:
        raise DataError(f"there is no store of features at {folder}: `vidveil extract` makes one") from error
    except (OSError, ValueError, KeyError) as error:
        why = f"{error.args[0]} is missing" if isinstance(error, KeyError) else reason(error)
        raise DataError(
            f"{path} cannot be read, or makes no sense ({printable(why, 200)}): delete {folder}, and extract it anew"
        ) from error
    return about, ids


def _read_shard(folder: Path, number: int, videos: int, width: int, compare: bool = False) -> Shard | str:
    """The shard, or what is wrong with it; its numbers are looked at only to `compare` them with their sums."""
    index = folder / f"shard-{number:05d}.json"
    try:
        values = read_json_object(index)
        counts = typed(values["counts"], dict[str, list[int]], "counts")
        shard = Shard(counts, typed(values["sha256"], dict[str, str], "sha256"))
        if any(len(shard.counts[kind]) != videos or len(shard.sha256[kind]) != 64 for kind in KINDS):
            raise ValueError
        if any(count < 0 for kind in KINDS for count in counts[kind]):
            raise ValueError
        wanted = {kind: (sum(counts[kind]), width) for kind in KINDS}
    except FileNotFoundError:
        return f"{index} is missing"
    except (OSError, ValueError, KeyError):
        return f"{index} cannot be read"
    for kind in KINDS:
        path = folder / _file(kind, number)
        try:
            found = _mapped(path)
        except (OSError, ValueError, EOFError):  # the last is what numpy says of an empty file
            return f"{path} is missing or cut off"
        if found.shape != wanted[kind] or found.dtype != np.float32:
            return f"{path} has {found.shape} numbers of {found.dtype} instead of {wanted[kind]} of float32"
        if compare and sha256_of(found) != shard.sha256[kind]:
            return f"{path} is damaged"
    return shard


def _gathered(made: Iterable[Mapping[str, Vectors]], rows: range, width: int) -> tuple[Counts, dict[str, Vectors]]:
    none = np.zeros((0, width), np.float32)
    parts: dict[str, list[Vectors]] = {kind: [] for kind in KINDS}
    for row, vectors in zip(rows, made, strict=True):
        for kind in KINDS:
            array = np.asarray(vectors.get(kind, none), np.float32)
            if array.ndim != 2 or array.shape[1] != width:
                raise DataError(f"{kind} of video {row} are {array.shape}, not (n, {width})")
            parts[kind].append(array)
    counts = {kind: [len(array) for array in arrays] for kind, arrays in parts.items()}
    return counts, {kind: np.concatenate([none, *arrays]) for kind, arrays in parts.items()}


def _refuse_infinite(folder: Path, counts: Counts, wholes: Mapping[str, Vectors], rows: range) -> None:
    """Looks at all at once: a call per video would take longer than looking at its numbers."""
    for kind, whole in wholes.items():
        if not np.isfinite(whole).all():
            first = np.flatnonzero(~np.isfinite(whole).all(axis=1))[0]
            row = rows[int(np.searchsorted(np.cumsum(counts[kind]), first, side="right"))]
            raise DataError(f"{folder}: {kind} of video {row} are not all finite: nothing was written of its shard")


def _write_shard(folder: Path, number: int, counts: Counts, wholes: Mapping[str, Vectors]) -> None:
    sums = {}
    for kind, whole in wholes.items():
        sums[kind] = sha256_of(whole)
        with new_file(folder / _file(kind, number)) as file:
            np.save(file, whole)
    write_json(folder / f"shard-{number:05d}.json", {"counts": counts, "sha256": sums}, indent=None)


def _mapped(path: Path) -> Vectors:
    with open_regular(regular(path)) as file:
        read_header(file, path.stat().st_size)
    found: Vectors = npy.open_memmap(path, mode="r")
    return found


def _file(kind: str, number: int) -> str:
    return f"{kind}-{number:05d}.npy"
