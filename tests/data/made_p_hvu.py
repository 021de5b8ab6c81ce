"""A small P-HVU, made for tests."""

from collections.abc import Callable
from pathlib import Path

from vidveil.data.readers import p_hvu

HEAD = "Tags,youtube_id,time_start,time_end"
TAGS = {
    "action": ["dance", "yoga"],
    "object": ["guitar", "hat", "tree"],
    "scene": ["beach", "hall"],
    "concept": ["fun"],
}
WHOLE = "dance|guitar|beach|fun"


def video(part: str, i: int) -> str:
    return f"-_{part}{i:0{9 - len(part)}d}"


def seconds(part: str, i: int) -> str:
    return f"{video(part, i)}_{i:06d}_{i + 10:06d}.mp4"


def categories(folder: Path, tags: dict[str, list[str]] = TAGS) -> Path:
    path = folder / p_hvu.CATEGORIES
    path.write_text("\n".join(["Tag,Category", *(f"{tag},{kind}" for kind in tags for tag in tags[kind])]) + "\n")
    return path


def listed(folder: Path, part: str, rows: list[str]) -> None:
    (folder / p_hvu.LISTS[part]).write_text("\n".join([HEAD, *rows]) + "\n")


def made(
    root: Path,
    *,
    train: int = 20,
    tags: str = WHOLE,
    name: Callable[[str, int], str] = seconds,
    place: str = "",
    lists: str = "",
) -> Path:
    """`train` training videos and two for test, all with the same tags."""
    folder = root / "hvu"
    (folder / lists).mkdir(parents=True)
    for part, count in (("train", train), ("val", 2)):
        rows = [f"{tags},{video(part, i)},{i},{i + 10}" for i in range(count)]
        listed(folder / lists, part, rows)
        (folder / f"{place}{part}").mkdir()
        for i in range(count):
            (folder / f"{place}{part}" / name(part, i)).write_bytes(b"video")
    categories(folder / lists)
    return folder
