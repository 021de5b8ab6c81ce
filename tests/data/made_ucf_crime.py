"""A small UCF-Crime, made for tests."""

from pathlib import Path

from tests.media import Film
from vidveil.data.readers.ucf_crime import RANGES, TRAINING_LIST

TRAIN = [
    *(f"Abuse/Abuse{number:03d}_x264.mp4" for number in (1, 2, 3)),
    "Robbery/Robbery001_x264.mp4",
    *(f"Training_Normal_Videos_Anomaly/Normal_Videos{number:03d}_x264.mp4" for number in (1, 2, 4)),
]
TEST = {
    "Abuse/Abuse028_x264.mp4": "Abuse028_x264.mp4  Abuse  10  20  -1  -1  ",
    "Robbery/Robbery048_x264.mp4": "Robbery048_x264.mp4  Robbery  0  4  31  900  ",
    "Testing_Normal_Videos_Anomaly/Normal_Videos_003_x264.mp4": "Normal_Videos_003_x264.mp4  Normal  -1  -1  -1  -1  ",
}
LISTED = [*TRAIN, *TEST]


def lists(root: Path, place: str = "UCF_Crimes/Anomaly_Detection_splits", ranges: str = RANGES[0]) -> Path:
    folder = root / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TRAINING_LIST).write_text("\n".join(TRAIN) + "\n")
    (folder / ranges).write_text("\n".join(TEST.values()) + "\n")
    return folder


def made(root: Path, *, film: bool = False, below: str = "Videos") -> Path:
    """Training videos: three of abuse, one of robbery, three normal ones. Test: one of each."""
    for i, name in enumerate(LISTED):
        path = root / "UCF_Crimes" / below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if film:
            Film(frames=200 + 20 * i, width=64, height=48).make(path)
        else:
            path.write_bytes(b"video")
    return root
