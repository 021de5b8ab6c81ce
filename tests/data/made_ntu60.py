"""A small NTU RGB+D 60, made for tests."""

from collections.abc import Sequence
from pathlib import Path

from vidveil.data.readers import ntu60

WOMEN = (8, 15, 16, 17, 28, 37, 39)  # made up, as are those of the test people
MEN = (1, 7, 10, 18, 20, 25, 27)  # P010 is the third, who would usually be held out
TESTED = (2, 5, 6, 11, 12, 13, 14, 22, 23, 24, 26, 29, 30, 31, 32, 33, 34, 35, 36, 38)
HAIR = 4


def name(*, setup: int = 1, camera: int = 1, performer: int = 1, replication: int = 1, action: int = 1) -> str:
    return f"S{setup:03d}C{camera:03d}P{performer:03d}R{replication:03d}A{action:03d}_rgb.avi"


def ntu(
    root: Path,
    *,
    people: Sequence[int] = range(1, 41),
    cameras: Sequence[int] = (1, 2, 3),
    actions: Sequence[int] = (1, HAIR, 50),
) -> Path:
    """Names of files without anything in them."""
    folder = root / ntu60.FOLDER
    folder.mkdir(parents=True)
    for performer in people:
        for camera in cameras:
            for action in actions:
                (folder / name(camera=camera, performer=performer, action=action)).touch()
    return folder


def gender_list(**changed: str | None) -> str:
    """The content of the file of genders."""
    known: dict[str, str | None] = {f"P{p:03d}": "f" for p in WOMEN} | {f"P{p:03d}": "m" for p in MEN}
    known |= {f"P{p:03d}": "fm"[i % 2] for i, p in enumerate(TESTED)} | changed
    return "".join(f"{person} {gender}\n" for person, gender in known.items() if gender)


def genders(root: Path) -> Path:
    (root / ntu60.GENDERS).write_text(gender_list())
    return root
