"""A small CelebV-HQ, made for tests."""

import json
from pathlib import Path

from vidveil.data.readers import celebv_hq

NAMES = ("Blurry", "Male", "Young", "Rosy_Cheeks", "Pointy Nose", "brown_hair")
STAYS = {"sep_flag": False, "labels": "happy"}


def video(i: int) -> str:
    return f"-_ytb{i:06d}"


def clip(i: int, emotion: object = None, appearance: object = (0, 1, 0, 0, 1, 1)) -> dict[str, object]:
    return {
        "ytb_id": video(i),
        "duration": {"start_sec": 81.62, "end_sec": 86.17},
        "bbox": {"top": 0.0, "bottom": 0.8815, "left": 0.1964, "right": 0.6922},
        "attributes": {"appearance": list(appearance), "action": [0, 1], "emotion": emotion or STAYS},  # type: ignore[call-overload]
        "version": "v0.1",
    }


def info(clips: dict[str, object], names: object = NAMES) -> str:
    """The content of `celebvhq_info.json`."""
    return json.dumps({"meta_info": {"appearance_mapping": names, "action_mapping": ["blow", "chew"]}, "clips": clips})


def made(root: Path, clips: dict[str, object] | None = None, *, place: str = "35666", names: object = NAMES) -> Path:
    """Ten YouTube videos of two clips each, if nothing else is asked for."""
    clips = clips or {f"{video(i)}_{n}": clip(i) for i in range(10) for n in range(2)}
    folder = root / "celebv_hq"
    (folder / place).mkdir(parents=True, exist_ok=True)
    (folder / celebv_hq.INFO).write_text(info(clips, names))
    for name in clips:
        (folder / place / f"{name}.mp4").write_bytes(b"video")
    return folder
