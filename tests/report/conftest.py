import numpy as np
import pytest

from tests.report.made_up import CLIPS, PEOPLE, on_disk
from vidveil.report import paired
from vidveil.report.same_clips import open_run
from vidveil.statistics.intervals import Resamples


@pytest.fixture
def method(tmp_path):
    """Makes a method: its name, then settings of (keep, actions of ten clips, linked of ten, excess of attributes)."""
    draws = Resamples(np.repeat(np.arange(PEOPLE), CLIPS))

    def make(name, *settings, **more):
        return paired.method(open_run(*on_disk(tmp_path, name, settings, **more)), draws)

    return make
