"""Datasets by name: `load_data("ucf101_5:2", frames=16, size=112)` gives a `ClipSet`.

A dataset is `NAME` or `NAME:ARGUMENT`. Those that are not built in lie under one folder, given by `--data FOLDER` or
`VIDVEIL_DATA`. The table of them is in `catalogue`.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vidveil.core.errors import DataError, UsageError
from vidveil.core.progress import phase, say
from vidveil.core.text import printable
from vidveil.data.catalogue import DATA, Dataset
from vidveil.data.completeness import count_present, summarize

if TYPE_CHECKING:
    from vidveil.data.clips import ClipSet


def load_data(
    spec: str, *, frames: int, size: int, root: Path | None = None, seed: int = 0, strict: bool = False
) -> "ClipSet":
    """The clips of `NAME[:ARGUMENT]`.

    Args:
        frames, size: of the views; built-in worlds are rendered at exactly this size.
        root: the folder with datasets; `VIDVEIL_DATA` if it is not given.
        seed: of built-in worlds: another one gives other people.
        strict: a video that cannot be decoded is an error; otherwise it is left out, with a line on stderr.
    """
    name, colon, argument = spec.partition(":")
    dataset = DATA.lookup(name)
    if colon and not argument:
        raise UsageError(f"something is missing after the colon of {printable(repr(spec))}; usage: {dataset.usage}")
    folder = folder_of(name, root) if dataset.requires else root
    with phase(f"reading {spec}"):
        clips = dataset.load(argument or None, frames=frames, size=size, seed=seed, root=folder)

        from vidveil.data.undecodable import without_failed

        return without_failed(_with_completeness(clips, dataset, folder), strict=strict)


def _with_completeness(clips: "ClipSet", dataset: Dataset, folder: Path | None) -> "ClipSet":
    """The clips, with the number of missing files, which is also reported."""
    if dataset.expected is None or folder is None:
        return clips
    found, official = count_present(dataset.expected, folder), dataset.expected.official
    if found >= official:
        return clips
    what = f"{found:,} of {official:,} {dataset.expected.what}"
    say(f"{clips.name}: {what} are here, so numbers are not those of the whole set")
    return replace(clips, here=(found, official))


def available(name: str, root: Path | None = None) -> str:
    """One line for lists: `built in`; `here`, `part` or `empty`, with numbers; or what is missing."""
    if not DATA.lookup(name).requires:
        return "built in"
    folder = given_folder(root)
    if folder is None:
        return "missing: give --data FOLDER or set VIDVEIL_DATA"
    if missing := _missing(name, folder):
        return f"missing: no {' and no '.join(group[0] for group in missing)} in {folder}"
    return "here" if (expected := DATA[name].expected) is None else summarize(expected, folder)


def _missing(name: str, folder: Path) -> list[tuple[str, ...]]:
    return [group for group in DATA[name].requires if not any(_exists(folder / place) for place in group)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # in a folder without permission to read
        return False


def given_folder(root: Path | None) -> Path | None:
    """The folder with datasets, if one was named."""
    chosen = os.environ.get("VIDVEIL_DATA")
    return root or (Path(chosen).expanduser() if chosen else None)


def folder_of(name: str, root: Path | None) -> Path:
    """The folder with datasets, if this one is in it; otherwise an error."""
    folder = given_folder(root)
    wanted = " or ".join(DATA[name].requires[0])
    layout = f"; a copy holds, for example, {DATA[name].layout} (docs/datasets.md)"
    if folder is None:
        raise DataError(
            f"{name} is not built in: give the folder that holds {wanted} by --data or VIDVEIL_DATA{layout}"
        )
    if not folder.is_dir():
        raise DataError(
            f"{folder} is no folder: --data or VIDVEIL_DATA should name the one that holds {wanted}{layout}"
        )
    if missing := _missing(name, folder):
        wanted = " or ".join(missing[0])
        if below := next((place for place in sorted(folder.glob("*/")) if not _missing(name, place)), None):
            raise DataError(f"no {wanted} in {folder}, but in {below}: give --data {below}, or move what is in it up")
        raise DataError(f"no {wanted} in {folder}: --data or VIDVEIL_DATA should name the folder that holds it{layout}")
    return folder
