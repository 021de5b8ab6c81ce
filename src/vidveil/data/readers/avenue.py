"""CUHK Avenue: one walkway; who runs, throws something or walks where nobody does is abnormal (Lu et al. 2013).

    Avenue Dataset/training_videos/01.avi ... 16.avi                  normal all the time; also under avenue/
    Avenue Dataset/testing_videos/01.avi ... 21.avi
    ground_truth_demo/testing_label_mask/1_label.mat ... 21_label.mat        next to Avenue Dataset, or in it: volLabel,
                                                                      a cell with the mask of each frame
    ground_truth_demo/testing_label_mask/1_label.npy ...              used instead, where present: (T,) of 0 or 1

    for video in read_videos(root):
        decode(video.path)                                 # (T, H, W, 3), whole and in order
        untrimmed.frame_labels(video, video.frames)        # (T,) 0 or 1, of the tested ones

A frame is abnormal if its mask is not empty. Videos are 640 × 360 at 25 frames a second, 15,328 frames to train on
and 15,324 to test; all frames are kept, a little larger than the views. The .mat files in training_vol and testing_vol
are the same videos in grey and are not read. A few training frames are not normal; they stay, as in other work.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.arrays import read_array
from vidveil.core.errors import DataError
from vidveil.data.catalogue import AVENUE
from vidveil.data.clips import ClipSet
from vidveil.data.decode import decode, decoder
from vidveil.data.readers.annotations import no_argument
from vidveil.data.readers.find import first_folder, parse_file_names, require_numbers
from vidveil.data.readers.matlab import nonzero_cells
from vidveil.data.readers.one_class import files_hash, test_video, training_videos, window_set
from vidveil.data.readers.subsampled import MARGIN
from vidveil.data.untrimmed import Untrimmed

LABELS = Path("ground_truth_demo/testing_label_mask")
FRAMES = 30_652  # of all videos


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    no_argument("avenue", argument)
    videos = read_videos(root)
    short_side = round(size * MARGIN)
    return window_set(
        "avenue",
        videos,
        lambda video: decode(video.path, short_side=short_side),
        {"files": files_hash([video.path for video in videos]), "short_side": short_side, "decoder": decoder()},
        expected_bytes=FRAMES * 3 * short_side * short_side * 16 // 9,
    )


def read_videos(root: Path) -> list[Untrimmed]:
    """All videos, training first."""
    folder = first_folder(root, AVENUE)
    train, test = (_numbered(folder / part) for part in ("training_videos", "testing_videos"))
    labels = first_folder(folder, (str(LABELS), str(Path("..") / LABELS))).resolve()
    return training_videos(train) + [
        test_video(name, path, read_labels(labels, int(path.stem))) for name, path in test.items()
    ]


def _numbered(folder: Path) -> dict[str, Path]:
    """01.avi, 02.avi and so on by name, without a gap."""
    names = [name for name, _ in parse_file_names(folder, r"\d\d\.avi", "01.avi")]
    require_numbers(folder, names, "{:02d}.avi", "unpack the set again")
    return {f"{folder.name}/{name}": folder / name for name in names}


def read_labels(folder: Path, number: int) -> NDArray[np.bool_]:
    """(T,) of a test video."""
    masks, array = folder / f"{number}_label.mat", folder / f"{number}_label.npy"
    if not array.is_file():
        if not masks.is_file():
            raise DataError(
                f"no {masks.name} in {folder}: unpack Avenue's ground_truth_demo.zip next to Avenue Dataset"
            )
        return nonzero_cells(masks, "volLabel")
    try:
        labels: NDArray[np.generic] = read_array(array)
    except (OSError, ValueError) as error:
        raise DataError(f"{array} cannot be read: it should hold an array (T,) of 0 and 1, by numpy.save") from error
    if labels.ndim != 1 or not len(labels) or not np.isin(labels, (0, 1)).all():
        raise DataError(f"{array} holds {labels.shape} of {labels.dtype}: an array (T,) of 0 and 1 is wanted")
    return labels.astype(bool)
