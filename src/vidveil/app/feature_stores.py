"""Every vector of a store through an adapter, a few at a time, into a store of the same layout.

    anonymize_features(Path("features.h5"), "splavu:RUN")       features_anonymized.h5, and a manifest next to it

A store of ours knows its encoder, and one that the adapter does not belong to is refused. Files of others do not say
whose they are: only the length of their vectors can be compared. Labels are not carried over, nor static clips: they
were for training. The new store has a fingerprint of its own, so that it cannot be taken for raw features.
"""

import hashlib
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidveil.core.atomic import new_folder, write_json
from vidveil.core.bounded import read_json_object, reason, regular
from vidveil.core.errors import DataError, OutputError, UsageError
from vidveil.core.file_hash import file_hash
from vidveil.core.text import printable
from vidveil.core.version import __version__
from vidveil.data.store.features import Counts, FeatureStore, Vectors, fill_shards, is_store, read_about
from vidveil.data.store.layouts import open_layout, rewritten
from vidveil.methods.feature_adapter import Change, FeatureAdapter, adapter_of, changing, checkpoint_of
from vidveil.models.checkpoint import Checkpoint
from vidveil.video.sources import MARK

MANIFEST = 2
"""Of what the manifest says. In 1, stores of ours had a `sha256` in the place of their `fingerprint`."""
OWN_FILES = r"store\.json|shard-\d+\.json|(clips|static)-\d+\.npy|\..*"
"""Of a store."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class StoreOutcome:
    output: Path
    manifest: Path
    vectors: int
    knows_encoder: bool
    """Whether the store says which encoder made it."""
    warnings: tuple[str, ...] = ()
    """What whoever shares it should know."""


@dataclass(frozen=True)
class _StorePass:
    """What the manifest reports of a pass over a store."""

    vectors: int
    dropped: tuple[str, ...]
    sums: tuple[str, str]
    """Of input and output: fingerprints of stores of ours, hashes of files of others."""


def anonymize_features(
    source: Path,
    method: str,
    output: Path | None = None,
    *,
    overwrite: bool = False,
    device: str = "cpu",
    progress: Progress | None = None,
) -> StoreOutcome:
    """What `vidveil anonymize STORE --method splavu:RUN` does."""
    checkpoint = checkpoint_of(method)
    adapter = adapter_of(checkpoint).to(device)
    if adapter.across_batch:
        raise UsageError(
            f"what {method} makes of a vector depends on the rest of the batch (as with reference: true), so it can be "
            "evaluated, but not be used on stores"
        )
    target = output or target_of(source)
    if not os.path.exists(source):  # noqa: PTH110 - whatever its name
        raise DataError(f"there is nothing at {source}")
    if not is_store(source) and _is_ours(manifest_of(_named(source))):
        raise UsageError(f"{source} was anonymized already, says {manifest_of(_named(source)).name}")
    here, there = source.resolve(), target.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise OutputError(f"{target} and its source {source} would be in each other: give another name")
    manifest = manifest_of(target)
    if manifest.exists() and not overwrite and not _is_ours(manifest):
        raise OutputError(f"{manifest} is there, and is no manifest of features: give another name")
    change = changing(adapter, device)
    if is_store(source):
        passed = _store(source, target, checkpoint, adapter, change, overwrite, progress)
    else:
        passed = _foreign(source, target, adapter, change, overwrite, progress)
    clips = checkpoint.about.get("data", {}).get("clips")
    videos = clips.get("train") if isinstance(clips, dict) else None
    warnings = adapter.warnings(videos if isinstance(videos, int) else adapter.width)
    _write_manifest(manifest, source, target, checkpoint, passed, warnings)
    return StoreOutcome(target, manifest, passed.vectors, is_store(source), tuple(warnings))


def target_of(source: Path) -> Path:
    """`features.h5` → `features_anonymized.h5`, next to it."""
    source = _named(source)
    return source.with_name(f"{source.stem}{MARK}{source.suffix}" if source.is_file() else f"{source.name}{MARK}")


def _named(source: Path) -> Path:
    """`.` and `..` have no name of their own."""
    return source if source.name not in ("", "..") else source.resolve()


def manifest_of(target: Path) -> Path:
    """`features_anonymized.h5` → `features_anonymized.h5.json`, next to it: `features_anonymized.npy` has another."""
    return target.with_name(f"{target.name}.json")


def _is_ours(manifest: Path) -> bool:
    try:
        return "features_manifest" in read_json_object(manifest)
    except (OSError, ValueError):
        return False


def _foreign(
    source: Path,
    target: Path,
    adapter: FeatureAdapter,
    change: Change,
    overwrite: bool,
    progress: Progress | None,
) -> _StorePass:
    layout = open_layout(source)
    _refuse_width(source, layout.width, adapter)
    vectors = rewritten(layout, target, change, overwrite=overwrite, progress=progress)
    return _StorePass(vectors, layout.dropped, (content_hash(source), content_hash(target)))


def _store(
    source: Path,
    target: Path,
    checkpoint: Checkpoint,
    adapter: FeatureAdapter,
    change: Change,
    overwrite: bool,
    progress: Progress | None,
) -> _StorePass:
    store = FeatureStore.open(source)
    _refuse_width(source, store.width, adapter)
    if store.about.get("anonymized"):
        raise DataError(f"{source} went through an adapter already")
    wanted = (checkpoint.about.get("encoder") or {}).get("fingerprint")
    if store.encoder != wanted:
        raise DataError(f"{source} was made by another encoder than the one that {checkpoint.name} was trained for")
    encoder = dict(store.about["encoder"])
    mixed = hashlib.sha256(f"{store.encoder}{checkpoint.sha256}".encode()).hexdigest()
    encoder |= {"spec": f"{_shown(encoder['spec'])} | {checkpoint.method}:{checkpoint.name}", "fingerprint": mixed}
    about = {
        "encoder": encoder,
        "source": store.fingerprint,  # else what is there of another store would be taken for done
        "clips": dict(store.about.get("clips", {})) | {"static": 0},
        "anonymized": checkpoint.sha256,
    }
    size, total = int(store.about["videos_a_shard"]), int(store.counts().sum())
    done = 0

    def make(rows: range) -> tuple[Counts, Mapping[str, Vectors]]:
        nonlocal done
        number = rows.start // size
        before = store.shard(number)  # mapped here: in two threads at once, numpy.load fails at times (in ast)
        with ThreadPoolExecutor(1) as aside:
            checked = aside.submit(store.check, before, number)
            after = change(np.asarray(before))
            checked.result()
        done += len(after)
        if progress is not None:
            progress(done, total)
        counts = store.shards[number].counts["clips"]
        return {"clips": counts, "static": [0] * len(rows)}, {"clips": after, "static": after[:0]}

    if overwrite and is_store(target):
        made = _replaced(target, lambda place: fill_shards(place, about, store.ids, make, videos=size))
    else:
        made = fill_shards(target, about, store.ids, make, videos=size, compare=True)
    left = [name for name in ("labels.csv",) if (source / name).exists()]
    still = int(store.counts("static").sum())
    return _StorePass(total, (*left, *(["static clips"] if still else [])), (store.fingerprint, made.fingerprint))


def _replaced(target: Path, make: Callable[[Path], FeatureStore]) -> FeatureStore:
    """A new store, made next to the old one, which then takes its place: until it is whole, the old one stays. Raw
    features took hours to make, and are not replaced by mistake; nor are other files that somebody put there."""
    if not read_about(target)[0].get("anonymized"):
        raise OutputError(f"{target} holds features that no adapter made: give another name, or delete it yourself")
    if other := [file.name for file in target.iterdir() if not re.fullmatch(OWN_FILES, file.name)]:
        raise OutputError(f"{target} holds {min(other)}, which is no features: give another name")
    lock = None
    try:
        with new_folder(target) as part:
            lock = part.with_name(f".{part.name}.lock")
            return make(part)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        if lock is not None:
            lock.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{path} cannot be written: {(error.strerror or type(error).__name__).lower()}")


def _shown(spec: str) -> str:
    """An encoder as others may read it: of the folder that it lies in, only the last name."""
    family, colon, where = spec.partition(":")
    on_hub = re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", where)
    return f"{family}{colon}{where if on_hub else Path(where).name}"


def _refuse_width(source: Path, width: int, adapter: FeatureAdapter) -> None:
    if width != adapter.width:
        raise DataError(f"{source} has vectors of {width} numbers, the adapter is for {adapter.width}")


def _write_manifest(
    path: Path,
    source: Path,
    target: Path,
    checkpoint: Checkpoint,
    passed: _StorePass,
    warnings: Sequence[str],
) -> None:
    encoder = dict(checkpoint.about.get("encoder") or {})
    sum_of = "fingerprint" if is_store(source) else "sha256"
    about: dict[str, Any] = {
        "features_manifest": MANIFEST,
        "input": {"name": _named(source).name, sum_of: passed.sums[0]},
        "output": {"name": target.name, sum_of: passed.sums[1]},
        "method": f"{checkpoint.method}:{checkpoint.name}",
        "weights": checkpoint.sha256,
        "encoder": encoder | {"spec": _shown(str(encoder["spec"]))} if "spec" in encoder else encoder or None,
        "encoder_checked": is_store(source),
        "trained": {key: checkpoint.about["recipe"].get(key) for key in ("erase", "budget", "tasks", "latent_weight")},
        "vectors": passed.vectors,
        "names": "keys, ids and file names are kept as they were",
        "warnings": list(warnings),
        "dropped": list(passed.dropped),
        "versions": {"vidveil": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }
    try:
        write_json(path, about, indent=2)
    except OSError as error:
        raise _unwritable(path, error) from error


def content_hash(path: Path) -> str:
    """sha256 of a file; of a folder, of the names and hashes of all its files."""
    try:
        if path.is_file():
            return file_hash(regular(path))
        digest = hashlib.sha256()
        for file in sorted(path.rglob("*")):
            if file.is_file():
                name = file.relative_to(path).as_posix().encode("utf-8", "surrogateescape")
                digest.update(name + f" {file_hash(regular(file))}\n".encode())
        return digest.hexdigest()
    except (OSError, ValueError) as error:
        raise DataError(f"{printable(path, 300)}: a file of it {reason(error)}") from error
