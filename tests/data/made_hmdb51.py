"""A small HMDB51 with VP-HMDB51's labels and PA-HMDB51, made for tests."""

import json
import pickle
from pathlib import Path

import numpy as np

from tests.media import Film
from vidveil.data.readers import hmdb51, pa_hmdb51

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
    """The face is visible in every second clip, the other attributes always or never."""
    names = [f"{action}/{clip(title, action)[:-4]}.mp4" for action in ("sit", "wave") for title in TITLES]
    labels = {
        name: np.array([[1, i % 2, 1, 0, 0]]) for i, name in enumerate(names) if not leave_out or leave_out not in name
    }
    (root / hmdb51.LABELS).write_bytes(pickle.dumps(labels, 4))


def pa(root: Path, **changed: object) -> Path:
    """Of each class one video of 12 frames; the face is not annotated in the last two."""
    folder = root / "PA-HMDB51" / "PrivacyAttributes"
    folder.mkdir(parents=True, exist_ok=True)
    for action, nudity in (("sit", 0), ("wave", 2)):
        (folder / f"{action}.json").write_text(pa_json(action, **{"nudity": [[0, 11, nudity]]} | changed))
    return folder


def pa_json(action: str, **changed: object) -> str:
    """The annotations of a class."""
    attributes = {
        "skin_color": [[0, 5, 0], [6, 11, [0, 3]]],
        "face": [[0, 3, 0], [4, 9, 1]],
        "gender": [[0, 11, 2]],
        "nudity": [[0, 11, 0]],
        "relationship": [[0, 11, 0]],
        "review": True,
    }
    return json.dumps({clip("#12_Epsilon", action): attributes | changed})


def published(root: Path, labels: Path) -> Path:
    """The published annotation files, in the folder of `real_labels`, in the layout that the readers expect."""
    (root / "labels").symlink_to(labels / "labels")
    (root / hmdb51.LISTS).symlink_to(labels / "labels" / "hmdb51_splits")
    (root / pa_hmdb51.FOLDER).symlink_to(labels / "labels" / "pa_hmdb51" / "PrivacyAttributes")
    return root
