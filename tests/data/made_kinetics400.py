"""A small Kinetics-400, made for tests."""

from pathlib import Path

from tests.media import Film

HEAD = "label,youtube_id,time_start,time_end,split"
CLASSES = ("air drumming", "tying knot (not on a tie)")


def video(part: str, number: int, i: int) -> str:
    return f"-{part}_{number}{i:0{8 - len(part)}d}"  # eleven letters, and a dash as some have


def file(part: str, number: int, i: int) -> str:
    return f"{video(part, number, i)}_{i:06d}_{i + 10:06d}.mp4"


def folder_of(root: Path, part: str, name: str) -> Path:
    return root / "kinetics400" / part / name.replace(" ", "_")


def lists(root: Path, part: str, *, gone: int = 0, place: str = "", name: str | None = None) -> Path:
    """The list of a part, with `gone` videos of each class that are missing."""
    count = 4 if part == "train" else 1
    rows = [
        f"{label},{video(part, number, i)},{i},{i + 10},{'validate' if part == 'val' else part}"
        for number, label in enumerate(CLASSES)
        for i in range(count + gone)
    ]
    path = root / "kinetics400" / place / (name or f"{part}.csv")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([HEAD, *rows]))
    return path


def made(root: Path, *, film: bool = False, train: int = 4) -> Path:
    """Two classes in folders with underscores, four training videos in each of them and one for test."""
    for part, count in (("train", train), ("val", 1)):
        for number, name in enumerate(CLASSES):
            folder_of(root, part, name).mkdir(parents=True)
            for i in range(count):
                path = folder_of(root, part, name) / file(part, number, i)
                if film:
                    Film(frames=12 + 4 * i + 2 * number + 20 * (part == "val"), width=64, height=48).make(path)
                else:
                    path.write_bytes(b"video")
    return root
