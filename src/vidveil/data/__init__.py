"""Datasets by name: `load_data("ucf101_5:2", frames=16, size=112)` gives a `ClipSet`.

A dataset is `NAME` or `NAME:ARGUMENT`. Those that are not built in lie under one folder, given by `--data FOLDER` or
`VIDVEIL_DATA`. Nothing heavy is imported before a dataset is loaded.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vidveil.errors import DataError, UsageError

if TYPE_CHECKING:
    from vidveil.data.clips import ClipSet


@dataclass(frozen=True, slots=True)
class Dataset:
    load: Callable[..., "ClipSet"]
    """`load(argument, *, frames, size, seed, root)`; `root` is None for what is built in."""
    usage: str
    summary: str
    needs: tuple[tuple[str, ...], ...] = ()
    """What lies under the data folder: one of each group. None for what is built in."""


def _later(module: str, name: str = "load") -> Callable[..., "ClipSet"]:
    def load(*args: Any, **options: Any) -> "ClipSet":
        found: ClipSet = getattr(import_module(f"vidveil.data.{module}"), name)(*args, **options)
        return found

    return load


_HMDB51 = (("hmdb51",), ("testTrainMulti_7030_splits", "hmdb51/testTrainMulti_7030_splits"))
_VP_HMDB51 = tuple(
    f"{folder}hmdb51_privacy_attribute_label.pickle" for folder in ("", "labels/vp/", "hmdb51/", "hmdb51/labels/vp/")
)

DATA = {
    "puppets": Dataset(
        load=_later("puppets"),
        usage="puppets[:rho=0|0.5|1,gait,null,view=...]",
        summary="drawn people who act in drawn places; everything about them is known",
    ),
    "ucf101_5": Dataset(
        load=_later("small_sets", "load_ucf101_5"),
        usage="ucf101_5[:1|2|3]",
        summary="five classes of UCF101, official split 1, 2 or 3; a person is a (class, group)",
        needs=(("ucf101_5/manifest.csv",),),
    ),
    "weizmann": Dataset(
        load=_later("small_sets", "load_weizmann"),
        usage="weizmann[:people=0|1|2 or actions=0|1|2]",
        summary="10 actions by 9 people; people or actions left out in three folds",
        needs=(("weizmann/manifest.csv",),),
    ),
    "surveillance_fight": Dataset(
        load=_later("surveillance"),
        usage="surveillance_fight",
        summary="fights and ordinary scenes from surveillance cameras; split by camera",
        needs=(("surveillance_fight/manifest.csv",),),
    ),
    "casia_a_gait": Dataset(
        load=_later("gait"),
        usage="casia_a_gait[:people]",
        summary="silhouettes of 20 people walking, 3 views; gallery and probe, or people left out",
        needs=(("casia_a_gait.npz",),),
    ),
    "ucf101": Dataset(
        load=_later("ucf101"),
        usage="ucf101[:1|2|3]",
        summary="UCF101 in its official layout, split 1, 2 or 3; VP-UCF101 labels if they lie beside it",
        needs=(("UCF-101", "ucf101/UCF-101"), ("ucfTrainTestlist", "ucf101/ucfTrainTestlist")),
    ),
    "hmdb51": Dataset(
        load=_later("hmdb51"),
        usage="hmdb51[:1|2|3]",
        summary="HMDB51 in its official layout, split 1, 2 or 3; VP-HMDB51 labels if they lie beside it",
        needs=_HMDB51,
    ),
    "pa_hmdb51": Dataset(
        load=_later("pa_hmdb51"),
        usage="pa_hmdb51",
        summary="PA-HMDB51's 515 videos are tested, the others of HMDB51 trained on, with VP-HMDB51 labels",
        needs=(*_HMDB51, ("PrivacyAttributes", "PA-HMDB51/PrivacyAttributes"), _VP_HMDB51),
    ),
    "ntu60": Dataset(
        load=_later("ntu60"),
        usage="ntu60[:subject|view|bias_f|bias_m]",
        summary="NTU RGB+D 60 in its official layout; by subject, by camera, or with one action by the other gender",
        needs=(("nturgb+d_rgb", "ntu60/nturgb+d_rgb"),),
    ),
    "toyota": Dataset(
        load=_later("toyota"),
        usage="toyota",
        summary="Toyota Smarthome, trimmed: daily life of 18 elderly people; split by subject",
        needs=(("toyota_smarthome/mp4", "mp4"),),
    ),
    "casia_b": Dataset(
        load=_later("casia_b"),
        usage="casia_b",
        summary="silhouettes of 124 people walking, 11 views, with bag and coat; 74 people trained on, 50 tested",
        needs=(("GaitDatasetB-silh",),),
    ),
    "vispr": Dataset(
        load=_later("vispr"),
        usage="vispr[:7|5]",
        summary="VISPR's pictures as clips that stand still, 7 or 5 attributes, official train, val and test",
        needs=tuple((f"vispr/{part}2017", f"vispr/images/{part}2017") for part in ("train", "val", "test")),
    ),
    "kinetics400": Dataset(
        load=_later("kinetics400"),
        usage="kinetics400",
        summary="Kinetics-400, what is there of it; tested on the official validation",
        needs=(("kinetics400/train",), ("kinetics400/val",)),
    ),
}


def load_data(spec: str, *, frames: int, size: int, root: Path | None = None, seed: int = 0) -> "ClipSet":
    """The clips of `NAME[:ARGUMENT]`.

    Args:
        frames, size: of the views that will be taken; what is built in is made at just this size.
        root: the folder with datasets; `VIDVEIL_DATA` if it is not given.
        seed: of what is built in: another one gives people whom nobody has seen.
    """
    name, colon, argument = spec.partition(":")
    dataset = _lookup(name)
    if colon and not argument:
        raise UsageError(f"something is missing after the colon of {spec!r}; usage: {dataset.usage}")
    folder = _folder(name, root) if dataset.needs else root
    return dataset.load(argument or None, frames=frames, size=size, seed=seed, root=folder)


def available(name: str, root: Path | None = None) -> str:
    """`built in`, `here`, or what is missing; for lists."""
    if not _lookup(name).needs:
        return "built in"
    folder = _given(root)
    if folder is None:
        return "missing: give --data FOLDER or set VIDVEIL_DATA"
    missing = _missing(name, folder)
    return f"missing: no {' and no '.join(group[0] for group in missing)} in {folder}" if missing else "here"


def _missing(name: str, folder: Path) -> list[tuple[str, ...]]:
    return [group for group in DATA[name].needs if not any((folder / place).exists() for place in group)]


def _lookup(name: str) -> Dataset:
    if name not in DATA:
        close = get_close_matches(name, DATA, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(DATA)}"
        raise UsageError(f"no data is called {name!r}; {hint}")
    return DATA[name]


def _given(root: Path | None) -> Path | None:
    chosen = os.environ.get("VIDVEIL_DATA")
    return root or (Path(chosen).expanduser() if chosen else None)


def _folder(name: str, root: Path | None) -> Path:
    """The folder with datasets, once it is sure that this one is in it."""
    folder = _given(root)
    wanted = " or ".join(DATA[name].needs[0])
    if folder is None:
        raise DataError(f"{name} is not built in: give the folder that holds {wanted} by --data or VIDVEIL_DATA")
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder: --data or VIDVEIL_DATA should name the one that holds {wanted}")
    if missing := _missing(name, folder):
        wanted = " or ".join(missing[0])
        raise DataError(f"no {wanted} in {folder}: --data or VIDVEIL_DATA should name the folder that holds it")
    return folder
