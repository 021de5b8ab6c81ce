"""UCSD's two walkways, Ped1 and Ped2: pedestrians are normal; bikes, carts and skaters are not (Mahadevan et al. 2010).

    UCSD_Anomaly_Dataset.v1p2/UCSDped1/Train/Train001/001.tif ...     normal all the time; also under ucsd/
                              UCSDped1/Test/Test001/001.tif ...
                              UCSDped1/Test/UCSDped1.m                TestVideoFile{end+1}.gt_frame = [5:90, 140:200];
                              UCSDped1/Test/Test003_gt/001.bmp ...    masks of some: not read

    ucsd:ped1    34 training and 36 test videos, 200 pictures each, 238 × 158
    ucsd:ped2    16 and 12, of 120 to 200 pictures, 360 × 240

    for video in read_videos(root, "ped2"):
        read_frames(video)                                 # (T, H, W, 3), whole and in order
        untrimmed.frame_labels(video, video.frames)        # (T,) 0 or 1

Line n of the .m is of the n-th test video; frames count from 1, and the last one of a range is included. Files of macOS
(._001.tif, .DS_Store) are skipped. The pictures are grey, and kept at their size and rate.
A video is some seconds of one camera's recording, so neighbours may show the same people minutes apart.
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import ClipSet
from vidveil.data.decode import read_grey
from vidveil.data.readers.annotations import read_lines
from vidveil.data.readers.find import first_folder, require_numbers
from vidveil.data.readers.one_class import files_hash, test_video, training_videos, window_set
from vidveil.data.untrimmed import Untrimmed

FOLDER = "UCSD_Anomaly_Dataset.v1p2"
SETS = {"ped1": "UCSDped1", "ped2": "UCSDped2"}
RANGES = re.compile(r"TestVideoFile\{end\+1\}\.gt_frame\s*=\s*\[([^\]]*)\]\s*;?")


def load(argument: str | None, *, root: Path, frames: int = 0, size: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    which = argument or "ped2"
    videos = read_videos(root, which)
    every = [path for video in videos for path in pictures_in(video.path)]
    return window_set(
        f"ucsd:{which}",
        videos,
        read_frames,
        {"files": files_hash(every)},
        expected_bytes=len(every) * 3 * 360 * 240,
    )


def folder_of(root: Path, which: str) -> Path:
    if which not in SETS:
        raise UsageError(f"ucsd has ped1 and ped2, not {which!r}; write ucsd:ped1")
    return first_folder(root, (FOLDER, f"ucsd/{FOLDER}")) / SETS[which]


def read_videos(root: Path, which: str) -> list[Untrimmed]:
    """All videos of `ped1` or `ped2`, training first. A path is a folder of pictures."""
    folder = folder_of(root, which)
    train = {f"Train/{path.name}": path for path in _parts(folder / "Train", "Train")}
    test = _parts(folder / "Test", "Test")
    annotation = folder / "Test" / f"{SETS[which]}.m"
    ranges = read_ranges(annotation)
    if len(ranges) != len(test):
        raise DataError(
            f"{annotation} names {len(ranges)} videos and {folder / 'Test'} holds {len(test)}, "
            f"{test[0].name} to {test[-1].name}: unpack the set again"
        )
    labels = [_labels(annotation, path, found) for path, found in zip(test, ranges, strict=True)]
    frames = {name: len(pictures_in(path)) for name, path in train.items()}
    return training_videos(train, frames) + [
        test_video(f"Test/{path.name}", path, of) for path, of in zip(test, labels, strict=True)
    ]


def _parts(folder: Path, word: str) -> list[Path]:
    """Train001, Train002 and so on, without a gap; masks are skipped."""
    try:
        found = sorted(path for path in folder.iterdir() if re.fullmatch(rf"{word}\d{{3}}", path.name))
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: it should hold folders {word}001, {word}002 and so on") from error
    require_numbers(folder, [path.name for path in found if path.is_dir()], f"{word}{{:03d}}", "unpack the set again")
    return found


def read_ranges(path: Path) -> list[list[tuple[int, int]]]:
    """Of each test video the first and last abnormal frames, counted from 1."""
    found = []
    for number, line in enumerate(read_lines(path, "UCSD's test videos, in its folder Test"), 1):
        if "gt_frame" not in line or line.lstrip().startswith("%"):
            continue
        match = RANGES.search(line)
        pieces = re.split(r"[,\s]+", match[1].strip()) if match else []
        if not pieces or not all(re.fullmatch(r"\d+(:\d+)?", piece) for piece in pieces):
            raise DataError(
                f"{path}, line {number}: TestVideoFile{{end+1}}.gt_frame = [5:90, 140:200]; is wanted, "
                f"not {line.strip()!r}"
            )
        found.append([(int(piece.split(":")[0]), int(piece.split(":")[-1])) for piece in pieces])
    if not found:
        raise DataError(f"{path} names no abnormal frames: a line is TestVideoFile{{end+1}}.gt_frame = [60:152];")
    return found


def _labels(annotation: Path, video: Path, ranges: list[tuple[int, int]]) -> NDArray[np.int64]:
    """(T,)"""
    labels = np.zeros(len(pictures_in(video)), np.int64)
    for first, last in ranges:
        if not 1 <= first <= last <= len(labels):
            raise DataError(
                f"{annotation} has {first}:{last} for {video.name}, which has frames 1 to {len(labels)}: "
                "unpack the set again"
            )
        labels[first - 1 : last] = 1
    return labels


def pictures_in(folder: Path) -> list[Path]:
    """001.tif to the last one, without a gap."""
    found = sorted(path for path in folder.glob("*.tif") if not path.name.startswith("."))
    advice = "pictures are numbered from 001.tif on; unpack that video again"
    require_numbers(folder, [path.name for path in found], "{:03d}.tif", advice)
    return found


def read_frames(video: Untrimmed) -> NDArray[np.uint8]:
    """All of a video, (T, H, W, 3)."""
    frames = [read_grey(path, "unpack that video again") for path in pictures_in(video.path)]
    if len({frame.shape for frame in frames}) > 1:
        raise DataError(f"{video.path} has pictures of several sizes: unpack that video again")
    return np.repeat(np.stack(frames)[..., None], 3, axis=3)
