"""Short films for tests, no two of them alike: a set refuses the same video in two splits."""

from collections.abc import Iterable
from pathlib import Path

from tests.media import Film


def fill(paths: Iterable[Path]) -> None:
    """A film at each path, AVI or MP4 by its ending."""
    for i, path in enumerate(paths):
        codec = {"codec": "mpeg4", "bframes": 0} if path.suffix == ".avi" else {}
        Film(frames=10 + 4 * (i % 6), width=48 + 8 * (i // 6), height=36, **codec).make(path)
