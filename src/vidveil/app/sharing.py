"""Manifests that may be given away with their outputs: nothing in them identifies the source.

Of input, order, contents and detection, the fields that are written are listed, not those that are left out: a new
field is in no shared manifest until it is added here. In the place of the source's name and hash stand tokens
(user_key.py), so that the user who made the output can resume, and nobody else can check a guess.
"""

import re
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import repeat
from pathlib import Path
from typing import Any

from vidveil.app.manifest import Manifest, Order, kept_tags, read_manifest, way
from vidveil.app.old_names import order_with_old_names
from vidveil.app.user_key import key_file, read_key, token
from vidveil.core.errors import UsageError
from vidveil.detect.settings import DETECTORS, TRACKS
from vidveil.methods import METHODS, is_learned
from vidveil.weights import WEIGHTS
from vidveil.weights.manual import GIVEN

WITHHELD = "withheld"
BROKE_OFF = "the source broke off"
_SETTINGS = ("shape", "on_lost", "hide_for", "delay", "search_every", "leave_visible")
_KNOBS = ("keep", "privacy_weight", "fill", "stride")
_FOUND = ("tracks", "frames_with_regions", "hidden_area", "moments_left_out")
_MOMENT = ("what", "track", "first", "last", "from", "to", "box")
_PUBLISHED = re.compile(r"(\w+) sha256:[0-9a-f]{16}")


def input_token(key: bytes, sha256: str, source: Path, output: str) -> str:
    """Shows whoever has the key and the file that an output of this name was made from this file."""
    return token(key, "input", sha256, source.name, output)


def place_token(key: bytes, source: Path, folder: Path, output: str) -> str:
    """Shows that an output of this name was made from a file of this name, which lay here as seen from its folder."""
    return token(key, "place", way(source, folder), source.name, output)


def order_token(key: bytes, order: Order, output: str) -> str:
    """Shows whether this is what was asked for, with all that `shareable_order` withholds."""
    return token(key, "order", asdict(order), output)


def old_order_token(key: bytes, order: Order, output: str) -> str:
    """The same as the previous version wrote it."""
    return token(key, "order", order_with_old_names(asdict(order)), output)


def check_key(folders: Iterable[Path], *, below: bool) -> None:
    """Raises UsageError where there are manifests for sharing and their key is gone: a new one knows none of them.

    `below` looks into folders within these as well.
    """
    if read_key() is not None:
        return
    for folder in folders:
        for notes in folder.glob("**/*.json" if below else "*.json"):
            manifest = read_manifest(notes)
            if manifest is not None and manifest.form == "share":
                raise UsageError(
                    f"{folder} holds manifests for sharing, and the key that recognises them is gone: "
                    f"put {key_file()} back, or --overwrite makes a new one"
                )


def shareable(manifest: Manifest, key: bytes, source: Path | None, folder: Path) -> Manifest:
    """The manifest as it may be given away. `source` is the file, None for cameras and streams."""
    sha256, output, order = manifest.input["sha256"], manifest.output["name"], manifest.order
    file = None if source is None or sha256 is None else source
    return replace(
        manifest,
        form="share",
        input={
            "token": file and input_token(key, sha256, file, output),
            "place": file and place_token(key, file, folder, output),
            "order": order_token(key, order, output),
        },
        order=shareable_order(order),
        dropped=_contents(manifest.dropped),
        kept=_contents(manifest.kept) | {"reencoded": [_after(" to ", name) for name in manifest.kept["reencoded"]]},
        detection=None if manifest.detection is None else _found(manifest.detection),
        incomplete=None if manifest.incomplete is None else BROKE_OFF,
        warnings=_without(map(_counted, manifest.warnings, repeat(manifest.kept)), order),
    )


def shareable_order(order: Order) -> Order:
    """The order without positions in the source, and without names and hashes of the user's own files."""
    detection, knobs = order.detection, order.knobs
    return replace(
        order,
        method=_method(order.method),
        weights=None if order.weights is None else " + ".join(map(_weights, order.weights.split(" + "))),
        start=None if order.start is None else WITHHELD,
        end=None if order.end is None else WITHHELD,
        detection=None if detection is None else _settings(detection),
        knobs=None if knobs is None else _knobs(knobs),
    )


def _settings(detection: dict[str, Any]) -> dict[str, Any]:
    return {
        "region": _kind(detection["region"]),
        "also_hide": _kind(detection["also_hide"]),
        "also_hide_with": _method(detection["also_hide_with"]),
        **{name: detection[name] for name in _SETTINGS},
        "tracks_in": None if detection["tracks_in"] is None else WITHHELD,
    }


def _knobs(knobs: dict[str, Any]) -> dict[str, Any]:
    chosen = {name: knobs[name] for name in _KNOBS if name in knobs}
    return chosen | ({"preprocess": _method(knobs["preprocess"])} if "preprocess" in knobs else {})


def _method(spec: str) -> str:
    return " | ".join(map(_stage, _stages(spec)))


def _stages(spec: str) -> list[str]:
    return [stage.strip() for stage in spec.split("|")]


def _stage(stage: str) -> str:
    """A method as it is, without the name of a run or folder: those are the user's."""
    name, colon, _ = stage.partition(":")
    if name not in METHODS:
        return WITHHELD
    return f"{name}:{WITHHELD}" if colon and is_learned(name) else stage


def _weights(weights: str) -> str:
    found = _PUBLISHED.fullmatch(weights)
    return weights if found and found[1] in (*WEIGHTS, *GIVEN) else WITHHELD


def _kind(word: str) -> str:
    return word if word.partition(":")[0] in (*DETECTORS, TRACKS, "frame", "none") else WITHHELD


def _contents(contents: dict[str, Any]) -> dict[str, Any]:
    """Of tags how many, of streams the kinds: which ones a file has shows what it was recorded with."""
    chosen = {"tag_count": len(contents["tags"]) + contents["unknown_tags"]}
    chosen |= {"streams": [name.partition(" ")[0] + _noise(name) for name in contents["streams"]]}
    return chosen | ({"chapters": contents["chapters"]} if "chapters" in contents else {})


def _noise(name: str) -> str:
    return ", " + name.partition(", ")[2] if ", " in name else ""


def _after(mark: str, name: str) -> str:
    return name.rpartition(mark)[2]


def _found(detection: dict[str, Any]) -> dict[str, Any]:
    moments = detection["moments"]
    return {
        "looked_for": list(map(_kind, detection["looked_for"])),
        "weights": list(map(_weights, detection["weights"])),
        **{name: detection[name] for name in _FOUND},
        "moments": [{name: moment[name] for name in _MOMENT} | {"kind": _kind(moment["kind"])} for moment in moments],
    }


def _counted(warning: str, kept: dict[str, Any]) -> str:
    """A warning that names tags counts them."""
    count = len(kept["tags"]) + kept["unknown_tags"]
    return (kept_tags([], count) or warning) if warning == kept_tags(kept["tags"], count) else warning


def _without(warnings: Iterable[str], order: Order) -> list[str]:
    """Warnings without the names of methods that are withheld."""
    lines = list(warnings)
    for stage in sorted(_stages(order.method), key=len, reverse=True):
        if (shown := _stage(stage)) != stage:
            lines = [line.replace(stage, shown) for line in lines]
    return lines
