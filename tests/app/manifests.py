"""Manifests made for tests, without any run."""

import hashlib
from pathlib import Path
from typing import Any

from vidveil.app.manifest import Manifest, Order


def order(**other: Any) -> Order:
    plain = {
        "method": "blur:strong", "weights": None, "audio": "drop", "metadata": "drop", "start": None, "end": None,
        "preset": "veryfast", "crf": 20, "detection": None, "vidveil": "0.1.0",
    }  # fmt: skip
    return Order(**plain | other)


def moment(what: str = "gap", first: int = 120, last: int = 131, *, rate: float = 30, **other: Any) -> dict[str, Any]:
    times = {"from": round(first / rate, 3), "to": round(last / rate, 3)}
    return {"what": what, "track": 3, "kind": "faces", "first": first, "last": last, **times, "box": None, **other}


def write_manifest(
    output: Path, *moments: dict[str, Any], detected: bool = True, left_out: int = 0, **other: Any
) -> Path:
    """Writes a manifest next to an output, which is made of a word if it is not there."""
    if not output.exists():
        output.write_bytes(b"anonymized")
    found = {
        "looked_for": ["faces"], "weights": [], "tracks": 12, "frames_with_regions": 300, "hidden_area": 0.031,
        "moments": list(moments), "moments_left_out": left_out,
    }  # fmt: skip
    manifest = Manifest(
        input={"name": "clip.mov", "sha256": hashlib.sha256(b"original").hexdigest(), "bytes": 8},
        output={"name": output.name, "sha256": hashlib.sha256(output.read_bytes()).hexdigest(), "bytes": 10},
        order=order(),
        device="cpu",
        versions={},
        video=other.pop("video", {}),
        frames={"written": 300, "hidden": 0},
        hidden=other.pop("hidden", []),
        dropped={},
        kept={},
        detection=found | other if detected else None,
    )
    path = output.with_suffix(".json")
    manifest.write(path)
    return path
