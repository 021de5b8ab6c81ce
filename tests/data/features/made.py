"""Stores, encoders and adapters made for tests: small, and their outputs show their inputs."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from vidveil.data.store.features import FeatureStore, fill
from vidveil.methods.splavu.model import AAM, Shape
from vidveil.models import checkpoint
from vidveil.models.encoders.encoder import Encoder
from vidveil.models.recognizers import build
from vidveil.models.recognizers.recognizer import Recognizer

D = 8
ENCODER = {"spec": "made", "width": D, "frames": 4, "size": 16, "fingerprint": "made"}
ABOUT: dict[str, Any] = {"encoder": ENCODER, "videos": "these", "clips": {"stride": 1, "static": 2}, "cut": 1}
FRAMES, SIZE = 4, 16
"""Of `run`."""


class Summing(Encoder):
    """A vector is the sum over each frame, in 255ths: whole numbers, so that no order of adding changes it."""

    spec, size, fingerprint = "summing", 4, "summing"

    def __init__(self, frames: int = 4, fingerprint: str = "summing") -> None:
        self.frames = self.width = frames
        self.fingerprint = fingerprint
        self.batches: list[int] = []

    def encode(self, clip: Tensor) -> Tensor:
        self.batches.append(len(clip))
        return (clip * 255).round().sum(dim=(1, 3, 4))


def vectors(count: int, seed: int = 0, width: int = D) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


class Maker:
    """What a store is filled by. Video i has 1 + i % 3 clips and two static ones. Remembers what it was asked for."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.fails_at = fails_at
        self.asked: list[range] = []

    def __call__(self, rows: range) -> Iterator[Mapping[str, NDArray[np.float32]]]:
        self.asked.append(rows)
        for row in rows:
            if row == self.fails_at:
                raise KeyboardInterrupt
            yield self.of(row)

    @staticmethod
    def of(row: int) -> dict[str, NDArray[np.float32]]:
        return {"clips": vectors(1 + row % 3, row), "static": vectors(2, 1000 + row)}


def ids(count: int) -> list[str]:
    return [f"video {i}" for i in range(count)]


def store(folder: Path, count: int = 7, *, a_shard: int = 3, **about: Any) -> FeatureStore:
    return fill(folder, ABOUT | about, ids(count), Maker(), videos=a_shard)


def hashes(path: Path) -> dict[str, str]:
    """Of every file below, hidden ones too."""
    return {
        file.relative_to(path).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def network(seed: int = 0, name: str = "r3d_tiny") -> Recognizer:
    torch.manual_seed(seed)
    return build(name, frames=FRAMES, size=SIZE).eval()


def run(runs: Path, name: str = "mine", seed: int = 0, recognizer: str = "r3d_tiny") -> Recognizer:
    """A finished run of `vidveil train`, by hand; the network that it trained."""
    made = network(seed, recognizer)
    folder = runs / name / "checkpoint"
    folder.mkdir(parents=True)
    save_file({key: tensor.contiguous() for key, tensor in made.state_dict().items()}, folder / "weights.safetensors")
    recipe = {"name": name, "recognizer": recognizer, "frames": FRAMES, "size": SIZE}
    (folder / "checkpoint.json").write_text(json.dumps({"recipe": recipe}))
    return made


def adapter(runs: Path, name: str = "safe", encoder: Mapping[str, Any] = ENCODER, seed: int = 0, **shape: Any) -> AAM:
    """A finished run that trained an adapter, by hand. It has learned nothing, but moves every vector far."""
    torch.manual_seed(seed)
    made = AAM(Shape(**{"width": D, "erase": 0.5} | shape)).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    about = {"recipe": {"name": name, "method": "splavu"}, "encoder": dict(encoder)}
    checkpoint.write(runs / name / "checkpoint", "splavu", made.about(), made.state_dict(), **about)
    return made


@torch.inference_mode()
def one_by_one(adapter: AAM, these: Sequence[Any] | NDArray[Any]) -> NDArray[np.float32]:
    """Every vector through the adapter alone."""
    return np.stack([adapter(torch.tensor(np.asarray(z, np.float32))[None])[0].numpy() for z in these])
