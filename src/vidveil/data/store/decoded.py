"""The videos of a dataset, decoded once and kept in the cache.

A cache is found again by what it was made of: the files' names and sizes, how they were decoded and by what. Change any
of it, and another cache is made next to the old one.

A video that cannot be decoded has a row without pixels, and the cache remembers why (`VideoStore.failed`); `load_data`
leaves it out. It is tried again when its file has changed since. More than one in twenty, and more than one, are an
error: such a copy is no longer that set.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape
from itertools import islice
from pathlib import Path

from vidveil.core.errors import DataError
from vidveil.data.decode import decode_all, decoder, part_of
from vidveil.data.frame_readers import Video
from vidveil.data.store.files import FailedVideo
from vidveil.data.store.videos import NotInCacheError, UndecodedVideos, VideoStore, cache_folder

TOLERATED = 0.05  # of all videos may fail
NAMED = 10  # of those that failed


def decoded(
    name: str,
    folder: Path,
    files: Sequence[str],
    *,
    short_side: int | None = None,
    every: int = 1,
    limit: int | None = None,
    spread: int | None = None,
    expected_bytes: int = 0,
) -> VideoStore:
    """The files, relative to `folder`, in their order.

    Args:
        expected_bytes: about how much the cache will take; refused at once where there is no room for it.
    """
    paths = [part_of(folder / file)[0] for file in files]
    if missing := [path for path in dict.fromkeys(paths) if not path.is_file()]:
        more = f", nor are {len(missing) - 1:,} more of {len(files):,}" if missing[1:] else ""
        raise DataError(f"{name}: {missing[0]} is listed but not there{more}; {_where(missing[0], folder)}")
    sizes = [path.stat().st_size for path in paths]
    how = {"short_side": short_side, "every": every, "limit": limit, "decoder": decoder()}
    how |= {"spread": spread} if spread else {}  # caches made without it keep their names
    listing = hashlib.sha256(json.dumps([list(files), sizes]).encode()).hexdigest()
    about = {"data": name, **how, "videos": len(files), "files": listing}
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]

    def read(some: Sequence[str], title: str) -> Iterator[Video | FailedVideo]:
        paths = [folder / file for file in some]
        return decode_all(paths, short_side=short_side, every=every, limit=limit, spread=spread, title=title)

    def make() -> Iterator[Video | FailedVideo]:
        ensure_room(expected_bytes)
        return _few_failed(name, files, read(files, f"decoding {name}"))

    def still_failing(store: VideoStore) -> bool:
        stamps = {row: part_of(folder / files[row])[0].stat().st_ctime_ns for row in store.failed}
        changed = [files[row] for row, failed in store.failed.items() if stamps[row] != failed.stamp]
        return not changed or all(isinstance(video, FailedVideo) for video in read(changed, f"decoding {name} again"))

    try:
        return VideoStore.cached(cache_folder() / f"{name}-{key}", about, make, still_failing)
    except NotInCacheError:
        return UndecodedVideos(cache_folder() / f"{name}-{key}", list(files))


def _where(missing: Path, folder: Path) -> str:
    """What to do about a file that is not where it should be: it may lie deeper, or still be packed."""
    name = escape(missing.name)
    deeper = (found for stars in ("*/*", "*/*/*", "*/*/*/*") for found in folder.glob(f"{stars}/{name}"))
    if found := next(deeper, None):
        return f"it lies in {found.parent}: move the folders of classes to {folder}"
    packed = [path for kind in ("*.rar", "*.zip", "*.tar*", "*.7z") for path in sorted(folder.glob(kind))]
    if archive := next((path for path in packed if path.name.split(".")[0] == missing.parent.name), None):
        return f"{archive} is still packed: unpack it in {folder}"
    if packed:
        return f"if it is in {packed[0]} or another archive there, unpack that in {folder}"
    return f"copy what is missing into {folder}"


def name_failed(failed: Mapping[str, FailedVideo]) -> str:
    """`a.avi (it is empty), b.avi (it is damaged or no video) and 3 more`."""
    named = ", ".join(f"{file} ({one.why})" for file, one in islice(failed.items(), NAMED))
    return named + (f" and {len(failed) - NAMED:,} more" if len(failed) > NAMED else "")


def _few_failed(
    name: str, files: Sequence[str], videos: Iterable[Video | FailedVideo]
) -> Iterator[Video | FailedVideo]:
    """The videos; it ends as soon as too many have failed."""
    failed: dict[str, FailedVideo] = {}
    for file, video in zip(files, videos, strict=True):
        if isinstance(video, FailedVideo):
            failed[file] = video
            if len(failed) > max(1, TOLERATED * len(files)):
                raise DataError(
                    f"{name}: {len(failed):,} of {len(files):,} videos cannot be decoded, perhaps more, which is "
                    f"too many to go without: {name_failed(failed)}; fetch them again"
                )
        yield video


def ensure_room(needed: int) -> None:
    place = cache_folder()
    place.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place).free
    if needed > free:
        raise DataError(
            f"the decoded videos take about {needed / 1e9:.0f} GB and {place} has {free / 1e9:.0f} GB left: "
            "set VIDVEIL_CACHE to a folder with room"
        )
