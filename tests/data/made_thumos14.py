"""A small THUMOS14, made for tests."""

import json
from pathlib import Path
from typing import Any

from tests.media import Film
from vidveil.data.readers import thumos14

TRAINED = [f"video_validation_{number:07d}" for number in (51, 52, 53, 54)]
TESTED = ["video_test_0000004", "video_test_0000006"]
Annotations = dict[str, list[tuple[float, float, str]]]
EVENTS: Annotations = {
    TRAINED[0]: [(1.2, 2, "HighJump"), (0.2, 0.6, "HighJump"), (0.2, 0.6, "LongJump")],
    TRAINED[1]: [(0.4, 1, "HighJump"), (1, 1.5, "LongJump"), (1.4, 1.9, "HighJump")],
    TRAINED[2]: [(0.4, 1.3, "HighJump")],
    TRAINED[3]: [(0.1, 0.3, "CliffDiving"), (0.1, 0.3, "Diving")],
    TESTED[0]: [(0.5, 1.7, "HighJump"), (1.0, 1.2, "CliffDiving"), (1.0, 1.2, "Diving")],
    TESTED[1]: [(0, 2.5, "LongJump")],
}


def database(annotations: Annotations = EVENTS, **about: Any) -> dict[str, dict[str, Any]]:
    """The content of `thumos14.json`."""
    return {
        name: {"annotations": [{"segment": [start, end], "label": label} for start, end, label in events], **about}
        for name, events in annotations.items()
    }


def as_json(
    root: Path, annotations: Annotations = EVENTS, *, place: str = "thumos14/thumos14.json", **about: Any
) -> Path:
    path, content = root / place, database(annotations, **about)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"database": content} if "anno" in place else content))
    return path


def as_lists(root: Path) -> Path:
    """All 42 of them: other classes have an event in the second training video and in the first test video."""
    for part, own in (("val", TRAINED), ("test", TESTED)):
        folder = root / "thumos14" / f"TH14_Temporal_annotations_{part}" / "annotation"
        folder.mkdir(parents=True)
        for name in (*thumos14.CLASSES, "Ambiguous"):
            lines = [f"{video}  {start} {end}" for video in own for start, end, label in EVENTS[video] if label == name]
            lines = lines or [f"{own[part == 'val']}  {0.1 * len(name):.1f} 2.0"]
            (folder / f"{name}_{part}.txt").write_text("\r\n".join(lines) + "\r\n")
    return root / "thumos14"


def videos(root: Path, *, flat: bool = False, film: bool = False) -> Path:
    """Fifty frames each, 25 a second, no two alike."""
    for i, name in enumerate([*TRAINED, *TESTED]):
        folder = root / "thumos14" / ("videos" if flat else "TH14_test_set_mp4" if name in TESTED else "validation")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.mp4"
        if film:
            Film(frames=50, width=64 + 2 * i, height=48, gop=12).make(path)
        else:
            path.write_bytes(b"video")
    return root
