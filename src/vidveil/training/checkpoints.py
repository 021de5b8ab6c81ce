"""Checkpoints that survive `kill -9` at any byte: safetensors for the numbers, JSON for the rest, no pickle.

    FOLDER/000017.safetensors     model, average, optimizer, best weights so far, generators
    FOLDER/000017.json            where training stands, and a SHA-256 over both: the pair counts once this is there

Each file is written under a temporary name, synced to disk, and renamed. The newest two pairs are kept, so that a
damaged pair costs a minute of training and not the run. A pair whose hash does not match is skipped.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from vidveil.core.atomic import remove_stale, write_bytes, write_json
from vidveil.core.bounded import read_bytes, read_json_object, reason
from vidveil.core.errors import OutputError, TrainingError
from vidveil.core.recipe_keys import RENAMED_OPTIONS, with_current_names
from vidveil.core.text import printable

LAYOUT = 2
FINISHED_LAYOUT = 1
"""Of earlier versions, whose finished trainings are read."""
KEPT = 2
TENSORS_BYTES = 64 << 30
COST = 20
"""Saving takes at most 1 / COST of the time, however large the network."""


@dataclass(frozen=True)
class Checkpoint:
    tensors: dict[str, Tensor]
    about: dict[str, Any]
    skipped: str = ""
    """Why a newer one could not be read."""

    def check_fits(self, about: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], folder: Path | None) -> None:
        """Raise TrainingError if this checkpoint is of other data, options or another network."""
        hint = f"the checkpoint in {folder} does not fit"
        stored, ours = self.about.get("options"), about["options"]
        if not isinstance(stored, dict) or not {"fingerprint", "batches", "state"} <= self.about.keys():
            raise TrainingError(f"{hint}: it does not describe the training that it belongs to")
        theirs = with_current_names(stored, note=False, renamed=RENAMED_OPTIONS)
        if self.about["fingerprint"] != about["fingerprint"]:
            raise TrainingError(f"{hint}: it was made with other data or another recipe; start a run of another name")
        if differ := sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name)):
            was = ", ".join(f"{name} was {printable(theirs.get(name))}, is {ours.get(name)}" for name in differ)
            raise TrainingError(f"{hint}: {was}; put that back, or start a run of another name")
        if (others := self.about.get("learners")) is not None and others != about["learners"]:
            raise TrainingError(f"{hint}: it has the learners {printable(', '.join(map(str, others)))}")
        if self.about["batches"] != about["batches"]:
            raise TrainingError(
                f"{hint}: an epoch had {printable(self.about['batches'])} batches, now it has {about['batches']}"
            )
        if {name: tuple(tensor.shape) for name, tensor in self.part("best").items()} != shapes:
            raise TrainingError(f"{hint}: it holds another network; start a run of another name")

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with `prefix/`, without the prefix."""
        start = prefix + "/"
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}


class CheckpointManager:
    """Saves and loads the checkpoints of one folder. Without a folder it does nothing."""

    def __init__(self, folder: Path | None, seconds: float = 0.0) -> None:
        self.folder, self.seconds = folder, seconds
        self._cost = 0.0
        self._last = monotonic()

    def due(self) -> bool:
        """Whether enough time has passed since the last checkpoint."""
        wait = max(self.seconds, COST * self._cost) if self.seconds else 0.0
        return self.folder is not None and monotonic() - self._last >= wait

    def save(self, parts: Mapping[str, Mapping[str, Tensor]], about: Mapping[str, Any], *, final: bool = False) -> None:
        """Write `parts` (by prefix) and `about`. A final checkpoint replaces all others."""
        if self.folder is None:
            return
        began = monotonic()
        data = safetensors.torch.save(_on_host(parts))
        number = max(self._numbers(), default=0) + 1
        header = {"layout": LAYOUT, **about, "sha256": _digest(data, about)}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_bytes(self._path(number, "safetensors"), data)
            write_json(self._path(number, "json"), header)
        except OSError as error:
            why = (error.strerror or type(error).__name__).lower()
            raise OutputError(
                f"no checkpoint can be written to {self.folder}: {why}; the last good one is kept"
            ) from error
        self._remove_all_but(1 if final else KEPT)
        self._last = monotonic()
        self._cost = self._last - began

    def load(self) -> Checkpoint | None:
        """The newest readable checkpoint, or None if there are none. TrainingError if none of them can be read."""
        if self.folder is None:
            return None
        problem = ""
        for number in sorted(self._numbers(), reverse=True):
            if not self._path(number, "json").exists():  # killed between the two files
                continue
            try:
                return self._read(number, problem)
            except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
                problem = problem or f"{self._path(number, 'json').name}: {printable(_why(error), 300)}"
        if problem:
            raise TrainingError(
                f"no checkpoint in {self.folder} can be read ({problem}); delete that folder to start anew"
            )
        return None

    def _read(self, number: int, problem: str) -> Checkpoint:
        header = read_json_object(self._path(number, "json"), finite=False)
        if header["layout"] not in (LAYOUT, FINISHED_LAYOUT):
            raise ValueError(f"layout {printable(header['layout'])}, and this version of vidveil reads layout {LAYOUT}")
        data = read_bytes(self._path(number, "safetensors"), TENSORS_BYTES)
        about = {name: value for name, value in header.items() if name not in ("layout", "sha256")}
        if _digest(data, about) != header["sha256"]:
            raise ValueError("it or its file of tensors is damaged")
        if header["layout"] == FINISHED_LAYOUT:
            about["state"] = about.pop("place", about.get("state"))  # as it was called
            if not about["state"]["finished"]:
                raise ValueError("an earlier version of vidveil began it, and draws random numbers in another order")
            about["learners"] = None
        return Checkpoint(safetensors.torch.load(data), about, problem)

    def _remove_all_but(self, count: int) -> None:
        assert self.folder is not None
        complete = sorted(number for number in self._numbers() if self._path(number, "json").exists())
        for number in self._numbers() - set(complete[-count:]):
            for kind in ("json", "safetensors"):  # without the JSON the pair no longer counts
                self._path(number, kind).unlink(missing_ok=True)
        remove_stale(self.folder)

    def _numbers(self) -> set[int]:
        """Numbers of all pairs, complete or not."""
        paths = self.folder.glob("[0-9]*.*") if self.folder is not None else ()
        return {int(path.stem) for path in paths if path.stem.isdigit() and path.suffix in (".json", ".safetensors")}

    def _path(self, number: int, kind: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{number:06}.{kind}"


def _why(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else reason(error)


def _digest(data: bytes, about: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(data)
    digest.update(json.dumps(about, sort_keys=True).encode())
    return digest.hexdigest()


def _on_host(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Plain tensors that share no memory with one another: safetensors refuses shared memory (tied weights)."""
    flat: dict[str, Tensor] = {}
    seen: set[int] = set()
    for prefix, tensors in parts.items():
        for name, tensor in tensors.items():
            plain = tensor.detach().to("cpu").contiguous()
            if plain.untyped_storage().data_ptr() in seen:
                plain = plain.clone()
            seen.add(plain.untyped_storage().data_ptr())
            flat[f"{prefix}/{name}"] = plain
    return flat


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: Mapping[nn.Parameter, str]) -> dict[str, Tensor]:
    """AdamW's moments and counts, by the names of the parameters."""
    return {
        f"{name}/{key}": value
        for parameter, name in names.items()
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def fill_optimizer(
    optimizer: torch.optim.Optimizer, names: Mapping[nn.Parameter, str], saved: Mapping[str, Tensor]
) -> None:
    """Put saved moments back, in the memory layout of their parameter: fused AdamW needs the same layout for both."""
    for parameter, name in names.items():
        if f"{name}/step" not in saved:
            continue
        state: dict[str, Tensor] = {"step": saved[f"{name}/step"].to(parameter.device)}
        for key in ("exp_avg", "exp_avg_sq"):
            state[key] = torch.zeros_like(parameter, memory_format=torch.preserve_format).detach()
            state[key].copy_(saved[f"{name}/{key}"])
        optimizer.state[parameter] = state
