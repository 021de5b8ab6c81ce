"""Runs in a folder of their own, and synthetic people that are quickly drawn."""

import pytest

from tests.evaluation.masked import FRAMES, SIZE, people
from vidveil.data.loader import Loader


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The folder of runs, in an empty working directory."""
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return people(tmp_path_factory.mktemp("drawn"))


@pytest.fixture
def batch(data):
    loader = Loader(data, data.indices("train")[:6], frames=FRAMES, size=SIZE, batch=6)
    (found,) = loader.epoch(0)
    return found
