"""The world does not change while its version stays: whoever compares methods compares them on the same people.

After a change on purpose: a new VERSION, then `python -m vidveil.data.puppets.freeze > tests/data/puppets/frozen.json`.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from vidveil.data.puppets import VERSION
from vidveil.data.puppets.freeze import PICTURES, known, thumbnails

FROZEN = json.loads((Path(__file__).parent / "frozen.json").read_text(encoding="utf-8"))
LEVELS = 3


def test_the_frozen_world_is_the_one_of_this_version():
    assert FROZEN["version"] == VERSION


@pytest.mark.parametrize("seed", FROZEN["known"])
def test_labels_and_joints_are_exactly_those_of_the_frozen_world(seed):
    assert known(int(seed)) == FROZEN["known"][seed]


def test_pictures_look_like_those_of_the_frozen_world():
    now = thumbnails(0)
    assert set(now) == set(FROZEN["thumbnails"]) == set(PICTURES)
    for name, pictures in now.items():
        apart = np.abs(np.array(pictures) - np.array(FROZEN["thumbnails"][name]))
        assert apart.max() <= LEVELS, name
