"""A small Toyota Smarthome, made for tests."""

from collections.abc import Sequence
from pathlib import Path

from vidveil.data.readers import toyota

TRAINED = (3, 4, 6, 7, 9, 12, 13, 15, 17, 19, 25)
TESTED = (2, 10, 11, 14, 16, 18, 20)


def smarthome(
    root: Path,
    *,
    people: Sequence[int] = (*TRAINED, *TESTED),
    actions: Sequence[str] = ("Cook.Cleandishes", "Walk"),
) -> Path:
    """Names of files without anything in them."""
    folder = root / toyota.FOLDER / "mp4"
    folder.mkdir(parents=True)
    for person in people:
        for action in actions:
            (folder / f"{action}_p{person:02d}_r00_v11_c0{1 + person % 7}.mp4").touch()
    return folder
