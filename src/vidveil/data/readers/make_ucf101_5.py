"""`ucf101_5` made from UCF101 as it is published: five whole classes, small enough for frequent experiments.

    UCF-101/Lunges/v_Lunges_g01_c01.avi   →   ucf101_5/Lunges/v_Lunges_g01_c01.mp4      short side 128, every second
                                                                                        frame, 96 frames at most
    ucfTrainTestlist/, VP-UCF101's labels →   ucf101_5/manifest.csv

The manifest is written last: where it exists, the set is complete. A second run makes only what is missing.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.atomic import new_path
from vidveil.core.errors import DataError, UsageError
from vidveil.core.progress import say
from vidveil.data.decode import decode_all
from vidveil.data.readers.subsampled import EVERY, LIMIT
from vidveil.data.readers.ucf101 import LABELS, Clip, read_classes, read_split
from vidveil.data.readers.ucf101_5 import COLUMNS
from vidveil.data.readers.vp_labels import find_labels, match_labels
from vidveil.data.store.files import FailedVideo

CLASSES = ("BodyWeightSquats", "BoxingPunchingBag", "JugglingBalls", "JumpingJack", "Lunges")
SHORT_SIDE = 128
RATE = Fraction(25, EVERY)
QUALITY = {"crf": "18", "preset": "medium"}
SPLITS = (1, 2, 3)


def make(source: Path, root: Path) -> Path:
    """Make the folder `ucf101_5` in `root` from the official download in `source`; returns it."""
    folder = _official(source)
    made = root / "ucf101_5"
    if (made / "manifest.csv").is_file():
        say(f"{made} is made already; delete its manifest.csv to make what is missing of it")
        return made
    parts = [_listed(folder, number) for number in SPLITS]
    clips = sorted(parts[0], key=lambda clip: clip.path)
    splits = [{clip.path: clip.part for clip in part} for part in parts]
    if unlisted := [clip.path for clip in clips if not all(clip.path in split for split in splits)]:
        raise DataError(f"{unlisted[0]} is in split 1 and not in the others: the lists are not those of UCF101")
    videos = folder / "UCF-101"
    if missing := [clip.path for clip in clips if not (videos / clip.path).is_file()]:
        raise DataError(f"{videos} lacks {missing[0]}: {len(missing):,} of {len(clips):,} videos are missing")
    labels = find_labels(LABELS, folder, folder.parent)
    if labels is None:
        say(f"no {LABELS} in {folder}: attributes stay unknown")
    attributes = None if labels is None else match_labels(labels, [clip.path for clip in clips])
    _write_videos(videos, made, [clip.path for clip in clips])
    write_manifest(made / "manifest.csv", clips, splits, attributes)
    return made


def _official(source: Path) -> Path:
    """The folder that holds UCF-101 and ucfTrainTestlist: this one, one in it, or its parent."""
    places = [source, source / "ucf101", *([source.parent] if source.name == "UCF-101" else [])]
    found = next((place for place in places if (place / "UCF-101").is_dir()), None)
    if found is None:
        raise DataError(f"no UCF-101 in {source}: --from names the folder with UCF-101/ and ucfTrainTestlist/ in it")
    return found


def _listed(folder: Path, number: int) -> list[Clip]:
    lists = folder / "ucfTrainTestlist"
    clips = [clip for clip in read_split(lists, number, read_classes(lists / "classInd.txt")) if clip.action in CLASSES]
    if absent := set(CLASSES) - {clip.action for clip in clips}:
        raise DataError(f"the lists of split {number} in {lists} have no clips of {sorted(absent)[0]}")
    return clips


def _write_videos(source: Path, made: Path, paths: Sequence[str]) -> None:
    wanted = [path for path in paths if not (made / path).with_suffix(".mp4").is_file()]
    frames = decode_all(
        [source / path for path in wanted], short_side=SHORT_SIDE, every=EVERY, limit=LIMIT, title="ucf101_5"
    )
    for path, video in zip(wanted, frames, strict=True):
        if isinstance(video, FailedVideo):
            raise DataError(f"{source / path} cannot be decoded: {video.why}; fetch it again")
        write_video((made / path).with_suffix(".mp4"), video)


def write_video(path: Path, frames: NDArray[np.uint8]) -> None:
    """Write (T, H, W, 3) as H.264, atomically. Odd sides lose their last pixel."""
    try:
        import av
    except ModuleNotFoundError:
        raise UsageError("videos are written by PyAV: pip install av") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width = (side - side % 2 for side in frames.shape[1:3])
    with new_path(path) as part, av.open(str(part), "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate=RATE, options=QUALITY)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for picture in frames:
            whole = np.ascontiguousarray(picture[:height, :width])
            file.mux(stream.encode(av.VideoFrame.from_ndarray(whole, format="rgb24")))
        file.mux(stream.encode())


def write_manifest(
    path: Path, clips: Sequence[Clip], splits: Sequence[Mapping[str, str]], attributes: NDArray[np.float32] | None
) -> None:
    def rows() -> Iterator[list[str]]:
        yield ["path", "class", "group", "clip", *(f"split{number}" for number in SPLITS), *COLUMNS]
        for i, clip in enumerate(clips):
            labels = [""] * len(COLUMNS) if attributes is None else [_label(value) for value in attributes[i]]
            stem = Path(clip.path).with_suffix(".mp4").as_posix()
            number = str(int(clip.path.rpartition("_c")[2].removesuffix(".avi")))
            yield [stem, clip.action, str(clip.group), number, *(split[clip.path] for split in splits), *labels]

    with new_path(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows())


def _label(value: np.float32) -> str:
    return "" if np.isnan(value) else str(int(value))
