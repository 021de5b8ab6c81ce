"""The toy method among those that there are, and a film."""

import pytest
import torch

from tests import media
from tests.methods.learned import blend
from vidveil.core.registry import METHODS, TRAININGS
from vidveil.methods.learned import train as train_method


@pytest.fixture(autouse=True)
def _registered(runs, monkeypatch, data):  # noqa: ARG001
    monkeypatch.setitem(METHODS, "blend", blend.METHOD)
    monkeypatch.setitem(TRAININGS, "blend", blend.RUNNABLE)
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: data)
    torch.set_num_threads(1)


@pytest.fixture
def film(tmp_path):
    return media.Film(frames=20, width=64, height=48).make(tmp_path / "film.mp4")
