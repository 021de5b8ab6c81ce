"""What the tests of datasets share: a cache of their own, videos without pixels, and the real sets where they are."""

import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.data.made import InMemory
from vidveil.data.readers import subsampled, ucf101_5, weizmann


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of decoded videos: a new one for every test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("VIDVEIL_CACHE", str(folder))
    return folder


@pytest.fixture
def undecoded(monkeypatch):
    """Readers take every file for a black video of one frame, and give labels without decoding anything."""

    def black(_name: str, _folder: Path, files: Sequence[str], **_: object) -> InMemory:
        return InMemory([np.zeros((1, 1, 1, 3), np.uint8)] * len(files))

    for module in (subsampled, ucf101_5, weizmann):
        monkeypatch.setattr(module, "decoded", black)


@pytest.fixture(scope="session")
def real_sets() -> Path:
    """The folder of real datasets; what needs it is skipped elsewhere."""
    folder = Path(os.environ.get("VIDVEIL_DATA", "nowhere"))
    if not (folder / "labels.tar.xz").is_file():
        pytest.skip("VIDVEIL_DATA has no labels.tar.xz")
    return folder


@pytest.fixture(scope="session")
def real_labels(real_sets, tmp_path_factory) -> Path:
    """A folder in which the published lists and annotations of all sets are below `labels`."""
    root = tmp_path_factory.mktemp("published")
    with tarfile.open(real_sets / "labels.tar.xz") as archive:
        for member in archive.getmembers():  # by hand: the first releases of Python 3.11 have no filter
            if (file := archive.extractfile(member)) is not None:
                (root / member.name).parent.mkdir(parents=True, exist_ok=True)
                (root / member.name).write_bytes(file.read())
    return root
