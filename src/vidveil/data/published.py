"""What UCF101 and HMDB51 have in common as they are published: lists of splits, videos, and the labels of VP.

VP-UCF101 and VP-HMDB51 (of STPrivacy) are one pickle each beside the videos, {"Class/clip.mp4": array (1, 5)}: whether
each of five attributes can be told from the video. Clips are matched by their names without folder and ending.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.data.arrays_only import load_arrays
from vidveil.data.decoded import decoded
from vidveil.data.small_sets import ATTRIBUTES
from vidveil.data.store import VideoStore
from vidveil.errors import DataError

EVERY, LIMIT = 2, 96  # frames: 7.7 seconds at 12.5 a second, which is all of most clips
MARGIN = 8 / 7  # short side of what is kept over the size of a view: 128 for 112


def thinned(name: str, folder: Path, files: Sequence[str], *, size: int, usual: int = LIMIT) -> VideoStore:
    """Every second frame of each video, 96 frames at most, a little larger than views of `size`.

    Args:
        usual: how many frames are left of most videos, to say at once where there is no room for them.
    """
    short_side = round(size * MARGIN)
    expected = len(files) * usual * 3 * short_side * (short_side * 4 // 3)
    return decoded(name, folder, files, short_side=short_side, every=EVERY, limit=LIMIT, expected_bytes=expected)


def list_lines(path: Path, of: str) -> list[str]:
    """The lines of a list that comes with `of`, without empty ones."""
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: it comes with {of}'s lists of splits") from error
    if not lines:
        raise DataError(f"{path} lists nothing")
    return lines


def find_labels(file: str, *folders: Path) -> Path | None:
    """VP's pickle in the first of these folders that has it."""
    places = [place for folder in folders for place in (folder / file, folder / "labels" / "vp" / file)]
    return next((place for place in places if place.is_file()), None)


def read_labels(path: Path) -> dict[str, NDArray[np.float32]]:
    """Attributes (5,) of a clip by its name without folder and ending. Only arrays are read out of the pickle."""
    found = load_arrays(path)
    if not isinstance(found, dict) or not found:
        raise DataError(
            f"{path} holds no labels by clip: it should be {{'Class/clip.mp4': array (1, {len(ATTRIBUTES)})}}"
        )
    labels = {}
    for name, values in found.items():
        whole = isinstance(name, str) and isinstance(values, np.ndarray) and values.size == len(ATTRIBUTES)
        if not whole or not np.isin(values, (0, 1)).all():
            raise DataError(f"{path}: {name!r} should have an array of {len(ATTRIBUTES)} labels, each 0 or 1")
        labels[Path(name).stem.lower()] = values.reshape(-1).astype(np.float32)
    return labels


def match_labels(labels: dict[str, NDArray[np.float32]], paths: Sequence[str]) -> NDArray[np.float32]:
    """(N, 5), NaN for clips without labels."""
    unknown = np.full(len(ATTRIBUTES), np.nan, np.float32)
    return np.stack([labels.get(Path(path).stem.lower(), unknown) for path in paths])
