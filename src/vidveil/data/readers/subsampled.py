"""The videos of published datasets as they are kept: every second frame, 96 at most, little larger than the views."""

from collections.abc import Sequence
from pathlib import Path

from vidveil.data.store.decoded import decoded
from vidveil.data.store.videos import VideoStore

EVERY, LIMIT = 2, 96  # frames: 7.7 seconds at 12.5 a second, which is all of most clips
MARGIN = 8 / 7  # short side of what is kept over the size of a view: 128 for 112


def subsampled(
    name: str,
    folder: Path,
    files: Sequence[str],
    *,
    size: int,
    usual: int = LIMIT,
    aspect: float = 4 / 3,
    spread: bool = False,
) -> VideoStore:
    """Every second frame of each video, 96 frames at most, a little larger than views of `size`.

    Args:
        spread: 96 frames, evenly from the first to the last, of videos that last minutes.
        usual: how many frames are kept of most videos, to say at once where there is no room for them.
        aspect: of the pictures, long side over short side, for the same purpose.
    """
    short_side = round(size * MARGIN)
    expected = len(files) * usual * 3 * short_side * int(short_side * aspect)
    if spread:
        return decoded(name, folder, files, short_side=short_side, spread=LIMIT, expected_bytes=expected)
    return decoded(name, folder, files, short_side=short_side, every=EVERY, limit=LIMIT, expected_bytes=expected)
