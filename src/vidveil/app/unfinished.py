"""What killed runs left: temporary files, of which previews and tracks show originals. The next run removes them.

They are looked for in the folders that a run reads from and writes to. As a preview may lie anywhere, each job also
keeps a list of what it writes in the user's cache folder, for as long as it works: a locked temporary file itself, so
that a list whose writer is dead can be distinguished from one in use.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from vidveil.core.atomic import is_part, remove_stale, temporary
from vidveil.core.bounded import read_json
from vidveil.core.cache import cache_folder

LIST_BYTES = 1 << 16


@contextmanager
def listed(files: Iterable[Path]) -> Iterator[None]:
    """While these files are written, they are on a list that only this user can read."""
    try:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or not to be written to: then folders alone are looked through
        yield
        return
    with temporary(folder / f"{token_hex(8)}.json") as part:
        part.write_text(json.dumps([str(file.absolute()) for file in files]), "utf-8")
        yield


def remove_unfinished(folders: Iterable[Path]) -> list[Path]:
    """Remove what killed runs left in these folders, and what stands on their lists; which files that were."""
    removed = []
    try:
        lists = [file for file in _folder().iterdir() if is_part(file.name)]
    except (OSError, RuntimeError):
        lists = []
    for file in lists:
        for target in _read(file):
            removed += remove_stale(target.parent, target.name)
    if lists:
        remove_stale(_folder())
    for folder in dict.fromkeys(folders):
        removed += remove_stale(folder)
    return removed


def _folder() -> Path:
    return cache_folder("VIDVEIL_UNFINISHED", "unfinished")


def _read(file: Path) -> list[Path]:
    try:
        found = read_json(file, LIST_BYTES)
    except (OSError, ValueError):  # not written yet
        return []
    return [Path(name) for name in found if isinstance(name, str) and "\0" not in name]
