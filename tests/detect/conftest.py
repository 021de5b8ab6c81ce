import pytest

from tests.detect.stage import Discs
from vidveil.detect.settings import DETECTORS


@pytest.fixture(autouse=True)
def _discs(monkeypatch):
    """`discs` can be looked for, as faces can."""
    monkeypatch.setitem(DETECTORS, "discs", Discs)
