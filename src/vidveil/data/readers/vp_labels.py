"""VP-UCF101 and VP-HMDB51 (of STPrivacy): whether each of five private attributes is visible in a video.

One pickle each, {"Class/clip.mp4": array (1, 5)}. Clips are matched by their names without folder and ending.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.pickled_arrays import load_arrays
from vidveil.core.progress import say
from vidveil.data.readers.find import first_file

ATTRIBUTES = ("skin_colour", "face", "gender", "nudity", "relationship")
"""Whether each is visible in the video, not its value."""


def find_labels(file: str, *folders: Path) -> Path | None:
    """The pickle in the first of these folders that has it."""
    return first_file(place for folder in folders for place in (folder / file, folder / "labels" / "vp" / file))


def read_labels(path: Path) -> dict[str, NDArray[np.float32]]:
    """Attributes (5,) of each clip, by its name without folder and ending."""
    count = len(ATTRIBUTES)
    labels = read_binary_labels(path, ((1, count), (count,)), "Class/clip.mp4")
    return {Path(name).stem.lower(): values for name, values in labels.items()}


def read_binary_labels(path: Path, shapes: Sequence[tuple[int, ...]], example: str) -> dict[str, NDArray[np.float32]]:
    """(count,) labels of 0 and 1 by name, out of a pickle. Only arrays are unpickled.

    Args:
        shapes: which arrays may have, the usual one first.
        example: a name, for error messages.
    """
    found = load_arrays(path)
    if not isinstance(found, dict) or not found:
        raise DataError(f"{path} holds no labels by name: it should be {{{example!r}: array {shapes[0]}}}")
    for name, values in found.items():
        valid = isinstance(name, str) and isinstance(values, np.ndarray) and values.shape in shapes
        if not valid or not np.isin(values, (0, 1)).all():
            raise DataError(f"{path}: {name!r} should have an array of {shapes[0][-1]} labels, each 0 or 1")
    return {name: values.reshape(-1).astype(np.float32) for name, values in found.items()}


def match_labels(file: Path, paths: Sequence[str]) -> NDArray[np.float32]:
    """(N, 5) of the clips; NaN for clips without labels, which are counted on stderr."""
    labels = read_labels(file)
    unknown = np.full(len(ATTRIBUTES), np.nan, np.float32)
    found = [labels.get(Path(path).stem.lower()) for path in paths]
    count = sum(one is not None for one in found)
    if not count:
        raise DataError(
            f"{file} has labels of none of the {len(paths):,} clips: its clips are called {next(iter(labels))} and so "
            f"on, those of this set {Path(paths[0]).name}; take the pickle of this set, or move it away"
        )
    if count < len(paths):
        say(f"{file.name} has labels of {count:,} of the {len(paths):,} clips")
    return np.stack([unknown if one is None else one for one in found])
