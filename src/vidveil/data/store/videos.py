"""Decoded videos in one memory-mapped file: written once, whole or not at all, then read by any number of processes.

    NAME/index.json     layout version, what the store is about; shape and sha256 of every array; which videos could not
                        be decoded, and why: they have a row, but no pixels
    NAME/frames.bin     the pixels of all videos one after the other, (T, H, W, 3) uint8 RGB each
    NAME/side-X.bin     anything else that belongs to each video, e.g. masks (T, H, W)

A store is written under a temporary name (core/atomic.py) and renamed when it is whole, so a reader finds a whole
store or none. Writers of the same store take turns by a lock that dies with its owner: who comes second finds the work
done, and parts left over by a killed writer can be distinguished from those still in use.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core import cache
from vidveil.core.atomic import new_folder
from vidveil.core.bounded import ANNOTATION_VALUES, open_regular, parse_json, regular
from vidveil.core.errors import DataError
from vidveil.core.text import printable
from vidveil.core.typed import from_values
from vidveil.data.store.files import FRAMES, LAYOUT, Arrays, FailedVideo, Writer, file_name, store_lock, writing

INDEX_BYTES = 1 << 30
Item = NDArray[np.uint8] | tuple[NDArray[np.uint8], Mapping[str, NDArray[Any]]]
"""One video, or one video and the side arrays that were made together with it."""


def cache_folder() -> Path:
    """Where decoded and made videos are kept: `VIDVEIL_CACHE`, else the user's folder for caches."""
    try:
        return cache.cache_folder("VIDVEIL_CACHE", "data")
    except RuntimeError as error:
        raise DataError("there is no home folder to keep decoded videos in: set VIDVEIL_CACHE to a folder") from error


class NotInCacheError(DataError):
    """Videos that would have to be decoded or drawn first."""


_ONLY_FROM_CACHE: ContextVar[bool] = ContextVar("only_from_cache", default=False)


@contextmanager
def only_from_cache() -> Iterator[None]:
    """In this context nothing is decoded, drawn or written: NotInCacheError where that is needed."""
    token = _ONLY_FROM_CACHE.set(True)
    try:
        yield
    finally:
        _ONLY_FROM_CACHE.reset(token)


def is_only_from_cache() -> bool:
    return _ONLY_FROM_CACHE.get()


class VideoStore:
    """Implements `Videos`. Get one by `open`, `write` or `cached`."""

    def __init__(
        self,
        folder: Path,
        about: dict[str, Any],
        arrays: dict[str, Arrays],
        failed: Mapping[int, FailedVideo] | None = None,
    ) -> None:
        self.folder = folder
        self.about = about
        self.failed = dict(failed or {})
        """Rows of videos that could not be decoded: `frames` has none of them."""
        self.rows_dropped = False
        """Whether rows that could not be decoded are left out."""
        self._arrays = arrays
        self._starts = {name: np.cumsum([0, *these.sizes()]) for name, these in arrays.items()}
        self._maps = {name: _map(folder / file_name(name)) for name in arrays}

    def __reduce__(self) -> tuple[Callable[[Path], "VideoStore"], tuple[Path]]:
        opened = _open_without_failed if self.rows_dropped else VideoStore.open
        return opened, (self.folder,)  # to another process by name: it maps the same pages

    def __len__(self) -> int:
        return len(self._arrays[FRAMES].shapes)

    @property
    def fingerprint(self) -> str:
        """sha256 over all pixels and side arrays, by way of theirs. Where they came from does not count."""
        content = {name: asdict(arrays) for name, arrays in sorted(self._arrays.items())}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def sides(self) -> tuple[str, ...]:
        return tuple(name for name in self._arrays if name != FRAMES)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """(T, H, W, 3) of every video."""
        return [tuple(shape) for shape in self._arrays[FRAMES].shapes]

    def frames(self, i: int) -> NDArray[np.uint8]:
        """(T, H, W, 3) RGB, read-only, straight from the file."""
        return self._get(FRAMES, i)

    def digest(self, i: int) -> str:
        return self._arrays[FRAMES].sha256[i]

    def without_failed(self) -> "VideoStore":
        """The same file without the rows that could not be decoded. They have no bytes, so the others stay in place."""
        rows = [i for i in range(len(self)) if i not in self.failed]
        arrays = {
            name: Arrays(these.dtype, [these.shapes[i] for i in rows], [these.sha256[i] for i in rows])
            for name, these in self._arrays.items()
        }
        left = VideoStore(self.folder, self.about, arrays)
        left.rows_dropped = True
        return left

    def side(self, name: str, i: int) -> NDArray[Any]:
        """What was written next to video `i`, read-only."""
        if name not in self.sides:
            raise DataError(
                f"{self.folder} has no {name!r} next to its videos; it has {', '.join(self.sides) or 'none'}"
            )
        return self._get(name, i)

    def side_stack(self, name: str) -> NDArray[Any]:
        """(N, ...) of all videos at once, still in the file; their shapes must agree."""
        first = self.side(name, 0)
        if any(shape != list(first.shape) for shape in self._arrays[name].shapes):
            raise DataError(f"{self.folder}: the shapes of {name!r} differ from video to video")
        return self._maps[name].view(first.dtype).reshape(len(self), *first.shape)

    def _get(self, name: str, i: int) -> NDArray[Any]:
        i = range(len(self))[i]  # negative ones count from the end, others raise
        start, stop = self._starts[name][i : i + 2]
        raw = self._maps[name][start:stop]
        return raw.view(self._arrays[name].dtype).reshape(self._arrays[name].shapes[i])

    @classmethod
    def open(cls, folder: Path) -> "VideoStore":
        folder = Path(folder)
        try:
            with open_regular(folder / "index.json", INDEX_BYTES) as file:
                index = parse_json(file.read().decode("utf-8"), ANNOTATION_VALUES)
                created = os.fstat(file.fileno()).st_ino
        except FileNotFoundError as error:
            raise DataError(f"there are no decoded videos in {folder}") from error
        except (OSError, ValueError) as error:
            raise DataError(f"{folder / 'index.json'} cannot be read: delete the folder to make it anew") from error
        layout = index.get("layout") if isinstance(index, dict) else None
        if layout != LAYOUT:
            raise DataError(
                f"{folder} has layout {printable(layout)}, this vidveil reads {LAYOUT}: delete it to make it anew"
            )
        try:
            arrays = {name: from_values(Arrays, these) for name, these in index["arrays"].items()}
            about = dict(index["about"])
            failed = {int(row): from_values(FailedVideo, values) for row, values in index.get("failed", {}).items()}
            expected = {name: sum(these.sizes()) for name, these in arrays.items()}
            counts = {len(these.shapes) for these in arrays.values()} | {len(these.sha256) for these in arrays.values()}
            typed = not any(np.dtype(these.dtype).hasobject for these in arrays.values())
            if arrays[FRAMES].dtype != "|u1" or any(len(s) != 4 or s[3] != 3 for s in arrays[FRAMES].shapes):
                raise ValueError
            if any(number < 0 for these in arrays.values() for shape in these.shapes for number in shape):
                raise ValueError
            if len(counts) != 1 or not typed or not all(map(str.isidentifier, arrays)):
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{folder / 'index.json'} makes no sense: delete the folder to make it anew") from error
        for name, size in expected.items():
            path = folder / file_name(name)
            found = path.stat().st_size if path.is_file() else 0
            if found != size:
                raise DataError(f"{path} has {found} of {size} bytes: delete the folder to make it anew")
        try:
            store = cls(folder, about, arrays, failed)
            same = (folder / "index.json").stat().st_ino == created
        except ValueError as error:
            raise DataError(f"{folder}: its file {error}: delete the folder to make it anew") from error
        except OSError as error:
            raise DataError(f"{folder} went away while it was opened") from error
        return store if same else cls.open(folder)  # another took its place meanwhile: its pixels under our index

    @classmethod
    def write(cls, folder: Path, items: Iterable[Item | FailedVideo], about: Mapping[str, Any]) -> "VideoStore":
        """A new store in the place of whatever was there. Items are taken one at a time."""
        folder = Path(folder).absolute()
        with store_lock(folder):
            return cls._write(folder, items, about)

    @classmethod
    def cached(
        cls,
        folder: Path,
        about: Mapping[str, Any],
        make: Callable[[], Iterable[Item | FailedVideo]],
        good: Callable[["VideoStore"], bool] = lambda _: True,
    ) -> "VideoStore":
        """The store if it is whole and about the same, else made now. Of several processes one makes it, all get it.

        Args:
            good: asked of a store that was found, if there is more to know; it is made anew where this is False.
        """
        folder = Path(folder).absolute()
        if is_only_from_cache():
            if (found := cls._whole(folder, about)) is None:
                raise NotInCacheError(f"{folder.name} is not in the cache yet")
            return found
        if (found := cls._whole(folder, about)) and good(found):
            return found
        with store_lock(folder):
            if (found := cls._whole(folder, about)) and good(found):
                return found
            return cls._write(folder, make(), about)

    @classmethod
    def _whole(cls, folder: Path, about: Mapping[str, Any]) -> "VideoStore | None":
        with suppress(DataError):
            store = cls.open(folder)
            if store.about == json.loads(json.dumps(about)):
                return store
        return None

    @classmethod
    def _write(cls, folder: Path, items: Iterable[Item | FailedVideo], about: Mapping[str, Any]) -> "VideoStore":
        with ExitStack() as stack:
            with writing(folder):
                part = stack.enter_context(new_folder(folder))
            written = Writer(part, folder)
            try:
                for item in items:
                    if isinstance(item, FailedVideo):
                        written.add_failed(item)
                    else:
                        written.add(*(item if isinstance(item, tuple) else (item, {})))
            finally:
                written.close()
            written.finish(dict(about))
            with writing(folder):
                stack.close()
        return cls.open(folder)


class UndecodedVideos(VideoStore):
    """In the place of videos that only a plan is made for (`only_from_cache`): their number is known, no pixels."""

    def __init__(self, folder: Path, names: Sequence[str], shape: tuple[int, int, int, int] | None = None) -> None:
        """`shape` of each, (T, H, W, 3), if it is known."""
        super().__init__(folder, {}, {})
        self.names, self.shape = list(names), shape

    def __len__(self) -> int:
        return len(self.names)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(self.names).encode()).hexdigest()

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        raise NotInCacheError(f"{self.folder.name} is not decoded yet")

    def digest(self, i: int) -> str:
        return f"row {i}"

    def without_failed(self) -> VideoStore:
        return self

    def _get(self, name: str, i: int) -> NDArray[Any]:  # noqa: ARG002
        raise NotInCacheError(f"{self.folder.name} is not decoded yet")


def _open_without_failed(folder: Path) -> VideoStore:
    return VideoStore.open(folder).without_failed()


def _map(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file, read-only."""
    regular(path)
    if path.stat().st_size == 0:  # which cannot be mapped
        return np.frombuffer(b"", np.uint8)
    return np.asarray(np.memmap(path, np.uint8, mode="r"))
