"""What was done to a file, for whoever is accountable for it. Layout: docs/manifest.md.

A manifest must not leak what the video no longer shows. It holds names of tags, never their values; names of files,
never of folders; no time of day, no user, no machine.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np

from vidveil.app.old_names import manifest_with_current_names
from vidveil.core.bounded import read_json_object
from vidveil.core.typed import from_values
from vidveil.core.version import __version__

LAYOUT = 3
OLD_LAYOUT = 2
"""Of the previous version: still read (old_names.py)."""
OF_A_FILE: dict[str, type] = {"name": str, "sha256": str, "bytes": int}
OF_A_SHARED_ONE: dict[str, type] = {"token": str, "place": str, "order": str}
"""Fields of the input; the first are those of the output, too."""
OF_FRAMES: dict[str, type] = {"written": int, "hidden": int}
OF_A_DETECTION: dict[str, type] = {
    "looked_for": list,
    "moments": list,
    "moments_left_out": int,
    "frames_with_regions": int,
}


@dataclass(slots=True, kw_only=True)
class Order:
    """What was asked for: two runs with the same order on the same input give the same output."""

    method: str
    weights: str | None
    audio: str
    metadata: str
    start: str | None
    end: str | None
    preset: str
    crf: int
    detection: dict[str, Any] | None
    """What was looked for and how it was hidden; None if the method worked on the whole frame."""
    vidveil: str
    knobs: dict[str, Any] | None = None
    """How a learned method was set; None for methods without knobs, and in manifests from before there were any."""
    size: str = "original"
    """`original` or `network`: at which size the output was written."""


@dataclass(slots=True, kw_only=True)
class Manifest:
    input: dict[str, Any]
    output: dict[str, Any]
    order: Order
    device: str
    versions: dict[str, str]
    video: dict[str, Any]
    frames: dict[str, int]
    hidden: list[dict[str, Any]]
    dropped: dict[str, Any]
    kept: dict[str, Any]
    detection: dict[str, Any] | None = None
    """What was looked for and found, and the moments that a person should look at."""
    mask: dict[str, Any] | None = None
    """How much a learned mask left; None if there was none."""
    incomplete: str | None = None
    warnings: list[str] = field(default_factory=list)
    form: str = "full"
    """`full`, or `share`: without what identifies the source (sharing.py)."""

    @property
    def tag_names(self) -> list[Any]:
        """Of all tags that it names; nobody has looked at them since they were read."""
        lists = [of.get("tags") for of in (self.dropped, self.kept)]
        return [name for names in lists if isinstance(names, list) for name in names]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"manifest": LAYOUT, **asdict(self)}, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_manifest(path: Path) -> Manifest | None:
    """The manifest at `path`, or None if there is none that can be read."""
    try:
        return load_manifest(path)
    except (OSError, ValueError):
        return None


def load_manifest(path: Path) -> Manifest:
    """The manifest at `path`. Raises OSError, or ValueError with a reason that goes after the file's name."""
    try:
        found = read_json_object(path)
    except ValueError as error:
        raise ValueError("is not a manifest, or is damaged") from error
    layout = found.pop("manifest", None)
    if type(layout) is not int:
        raise ValueError("is not a manifest, or is damaged")
    if layout == OLD_LAYOUT:
        found = manifest_with_current_names(found)
    elif layout != LAYOUT:
        raise ValueError(f"has layout {layout}, this vidveil writes {LAYOUT}")
    try:
        manifest = from_values(Manifest, found)
    except ValueError as error:
        raise ValueError("is damaged") from error
    if not _is_whole(manifest):
        raise ValueError("is damaged")
    return manifest


def _is_whole(manifest: Manifest) -> bool:
    """Whether all that vidveil reads again is there, and of its type."""
    of_input = {"full": OF_A_FILE, "share": OF_A_SHARED_ONE}.get(manifest.form)
    if of_input is None or not _holds(manifest.input, of_input, empty=True):
        return False
    if not _holds(manifest.output, OF_A_FILE) or not _holds(manifest.frames, OF_FRAMES):
        return False
    if manifest.mask is not None and type(manifest.mask.get("kept_area")) not in (int, float):
        return False
    found = manifest.detection
    return found is None or (
        _holds(found, OF_A_DETECTION)
        and all(isinstance(kind, str) for kind in found["looked_for"])
        and all(isinstance(moment, dict) for moment in found["moments"])
    )


def _holds(values: dict[str, Any], kinds: dict[str, type], *, empty: bool = False) -> bool:
    """Whether all of these are there. Of a camera there is no hash: `empty` allows null."""
    return all(
        type(values.get(name)) is kind or (empty and name in values and values[name] is None)
        for name, kind in kinds.items()
    )


def kept_tags(names: Iterable[str], count: int) -> str | None:
    """A warning of tags that are in the output: how many, and the well-known names among them; None without tags."""
    if not count:
        return None
    many = "1 tag is" if count == 1 else f"{count} tags are"
    listed = f" ({', '.join(names)})" if names else ""
    return f"{many} kept{listed}: they may say who, where and when; --metadata drop leaves them out"


def place(source: Path, folder: Path) -> str:
    """Three digits that show whether a source lies where it lay, as seen from the folder of its output.

    12 bits on purpose: another folder is recognised as another 4095 times of 4096, and yet nobody who guesses the name
    of a folder can check the guess, as a whole hash would allow, salted or not. Seen from the output, so that the tree
    above both (a user's name, a disk) is not in it, and both can be moved together.
    """
    return hashlib.sha256(os.fsencode(way(source, folder))).hexdigest()[:3]


def way(source: Path, folder: Path) -> str:
    """From the folder of an output to the folder of its source."""
    return os.path.relpath(os.path.realpath(source.parent), os.path.realpath(folder))


def versions() -> dict[str, str]:
    return {
        "vidveil": __version__,
        "python": platform.python_version(),
        "av": av.__version__,
        "ffmpeg": av.ffmpeg_version_info,
        "numpy": np.__version__,
        "opencv": cv2.__version__,
    }
