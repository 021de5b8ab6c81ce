"""The videos of a dataset, decoded once and kept in the cache.

A cache is found again by what it was made of: the files' names and sizes, how they were decoded and by what. Change any
of it, and another cache is made beside the old one.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from vidveil.data.decode import Video, decode_all, decoder
from vidveil.data.store import VideoStore, cache_folder
from vidveil.errors import DataError


def decoded(
    name: str,
    folder: Path,
    files: Sequence[str],
    *,
    short_side: int | None = None,
    every: int = 1,
    limit: int | None = None,
    expected_bytes: int = 0,
) -> VideoStore:
    """The files, relative to `folder`, in their order.

    Args:
        expected_bytes: about how much the cache will take; refused at once where there is no room for it.
    """
    sizes = []
    for file in files:
        path = folder / file
        if not path.is_file():
            raise DataError(f"{name}: {path} is listed but not there")
        sizes.append(path.stat().st_size)
    how = {"short_side": short_side, "every": every, "limit": limit, "decoder": decoder()}
    listing = hashlib.sha256(json.dumps([list(files), sizes]).encode()).hexdigest()
    about = {"data": name, **how, "videos": len(files), "files": listing}
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]

    def make() -> Iterator[Video]:
        ensure_room(expected_bytes)
        paths = [folder / file for file in files]
        return decode_all(paths, short_side=short_side, every=every, limit=limit, title=f"decoding {name}")

    return VideoStore.cached(cache_folder() / f"{name}-{key}", about, make)


def ensure_room(needed: int) -> None:
    place = cache_folder()
    place.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place).free
    if needed > free:
        raise DataError(
            f"the decoded videos take about {needed / 1e9:.0f} GB and {place} has {free / 1e9:.0f} GB left: "
            "set VIDVEIL_CACHE to a folder with room"
        )
