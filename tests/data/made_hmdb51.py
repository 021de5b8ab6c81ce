"""A small HMDB51 with VP-HMDB51's labels and PA-HMDB51, made for tests, and the real annotation files."""

import json
import os
import pickle
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.data.made import InMemory
from tests.media import Film
from vidveil.data.readers import hmdb51, pa_hmdb51

REAL = Path(os.environ.get("VIDVEIL_DATA", "nowhere"))
real = pytest.mark.skipif(not (REAL / "labels.tar.xz").is_file(), reason="VIDVEIL_DATA has no labels.tar.xz")
TITLES = ("Alpha_1", "ALPHA_2", "Beta", "Gamma", "Delta", "#12_Epsilon", "Zeta")  # the first two are one film
FLAGS = (1, 1, 1, 1, 1, 2, 0)


def clip(title: str, action: str) -> str:
    return f"{title}_{action}_u_nm_np1_fr_goo_0.avi"


def hmdb(root: Path, *, film: bool = True, lists: str = hmdb51.LISTS) -> Path:
    """Two classes, in each of them five clips to train on, one to test and one that belongs to no split."""
    (root / lists).mkdir(parents=True)
    for number, action in enumerate(("sit", "wave")):
        folder = root / "hmdb51" / action
        folder.mkdir(parents=True)
        names = [clip(title, action) for title in TITLES]
        for i, name in enumerate(names if film else ()):
            Film(frames=10 + 20 * number + 2 * i, width=64, height=48, codec="mpeg4", bframes=0).make(folder / name)
        lines = [f"{name} {flag} " for name, flag in zip(names, FLAGS, strict=True)]
        (root / lists / f"{action}_test_split1.txt").write_text("\r\n".join(lines) + "\r\n")
    return root


def vp(root: Path, leave_out: str = "") -> None:
    """Face can be told in every second clip, the rest always and never."""
    names = [f"{action}/{clip(title, action)[:-4]}.mp4" for action in ("sit", "wave") for title in TITLES]
    labels = {
        name: np.array([[1, i % 2, 1, 0, 0]]) for i, name in enumerate(names) if not leave_out or leave_out not in name
    }
    (root / hmdb51.LABELS).write_bytes(pickle.dumps(labels, 4))


def pa(root: Path, **changed: object) -> Path:
    """Of each class one video of 12 frames; nobody said anything about the face in the last two."""
    folder = root / "PA-HMDB51" / "PrivacyAttributes"
    folder.mkdir(parents=True, exist_ok=True)
    told = {
        "skin_color": [[0, 5, 0], [6, 11, [0, 3]]],
        "face": [[0, 3, 0], [4, 9, 1]],
        "gender": [[0, 11, 2]],
        "relationship": [[0, 11, 0]],
        "review": True,
    }
    for action, nudity in (("sit", 0), ("wave", 2)):
        video = told | {"nudity": [[0, 11, nudity]]} | changed
        (folder / f"{action}.json").write_text(json.dumps({clip("#12_Epsilon", action): video}))
    return folder


def undecoded(name: str, folder: Path, files: Sequence[str], **_: object) -> InMemory:  # noqa: ARG001
    """In place of `thinned`: labels without pixels."""
    return InMemory([np.zeros((1, 1, 1, 3), np.uint8)] * len(files))


def unpack(root: Path) -> Path:
    """The real annotation files, in the layout that the readers expect."""
    places = {
        "labels/hmdb51_splits/": hmdb51.LISTS,
        "labels/vp/hmdb51": ".",
        "labels/pa_hmdb51/PrivacyAttributes/": pa_hmdb51.FOLDER,
    }
    with tarfile.open(REAL / "labels.tar.xz") as archive:
        for member in archive.getmembers():
            place = next((place for start, place in places.items() if member.name.startswith(start)), None)
            if place is not None and (file := archive.extractfile(member)) is not None:
                target = root / place / Path(member.name).name
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(file.read())
    return root
