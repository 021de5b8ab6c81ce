"""A small Kinetics-400, made for tests."""

from pathlib import Path

from tests.media import Film

CLASSES = ("air drumming", "tying knot (not on a tie)")


def video(part: str, number: int, i: int) -> str:
    return f"-{part}_{number}{i:0{8 - len(part)}d}"  # eleven letters, and a dash as some have


def file(part: str, number: int, i: int) -> str:
    return f"{video(part, number, i)}_{i:06d}_{i + 10:06d}.mp4"


def folder_of(root: Path, part: str, name: str) -> Path:
    return root / "kinetics400" / part / name.replace(" ", "_")


def made(root: Path, *, film: bool = False, train: int = 4) -> Path:
    """Two classes in folders with underscores, four videos to train on in each of them and one to test."""
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
