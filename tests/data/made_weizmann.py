"""Weizmann, made for tests: ten actions by nine people, no two videos the same, and three ways to spoil some."""

import csv
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.media import Film

NAMES = [(f"action{a}", f"person{p}") for a in range(10) for p in range(9)]
PATHS = [f"{action}/{person}.mp4" for action, person in NAMES]


def length(path: str) -> int:
    """Frames of a video: together with its width they identify it."""
    return 1 + PATHS.index(path) % 9


def weizmann(root: Path, *, film: bool = True) -> Path:
    """The folder, in `root`."""
    folder = root / "weizmann"
    folder.mkdir(parents=True)
    for path in PATHS if film else ():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(_film(PATHS.index(path)))
    with (folder / "manifest.csv").open("w", newline="") as file:
        rows = [(path, *names) for path, names in zip(PATHS, NAMES, strict=True)]
        csv.writer(file).writerows([("path", "action", "subject"), *rows])
    return folder


def spoil(folder: Path) -> list[str]:
    """A truncated video, an empty file and a text that is called a video; their names."""
    truncated, empty, text = names = [PATHS[4], PATHS[30], PATHS[88]]
    whole = (folder / truncated).read_bytes()
    (folder / truncated).write_bytes(whole[: len(whole) // 2])  # its index is at the end
    (folder / empty).write_bytes(b"")
    (folder / text).write_text("404: this video is no longer available\n" * 40)
    return names


@cache
def _film(number: int) -> bytes:
    with TemporaryDirectory() as place:
        film = Film(frames=1 + number % 9, width=16 + 2 * (number // 9), height=16)
        return film.make(Path(place) / "film.mp4").read_bytes()
