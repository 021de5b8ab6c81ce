"""Kinds of pictures: what they must not show, they do not show."""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from kinds_of_release import FRAMES, KINDS, SIZE, framed, motion


@pytest.fixture
def clip():
    """A square that moves to the right over a grey wall."""
    made = np.full((FRAMES, SIZE, SIZE, 3), 90, np.uint8)
    for i in range(FRAMES):
        made[i, 20:40, 10 + 3 * i : 30 + 3 * i] = (240, 240, 30)
    return made


def test_every_kind_gives_a_picture_for_each_frame(clip):
    for kind in KINDS.values():
        made = np.asarray(kind(clip))
        assert made.shape[:3] == (FRAMES, SIZE, SIZE)
        assert 0 <= made.min() <= made.max() <= 255


@pytest.mark.parametrize("name", [n for n in KINDS if n.startswith("motion") and "held" not in n])
def test_motion_does_not_tell_the_colour_of_what_stands_still(clip, name):
    other = clip.copy()
    other[:, 60:] = (10, 200, 10)  # far from what moves
    np.testing.assert_allclose(KINDS[name](clip), KINDS[name](other), atol=1e-3)


def test_what_moves_comes_to_the_middle_wherever_it_was(clip):
    shifted = np.roll(clip, 50, axis=1)
    one, two = (framed(motion(each), motion(each)) for each in (clip, shifted))
    assert np.abs(one - two).mean() < 0.05 * one.mean()
    assert abs(np.average(np.arange(SIZE), weights=one.sum(axis=(0, 1))) - SIZE / 2) < 3


def test_lots_are_the_same_for_the_same_clip_and_keep_a_quarter(clip):
    kind = KINDS["lots, 0.25 of all tubelets"]
    np.testing.assert_array_equal(kind(clip), kind(clip))
    assert np.mean(kind(clip).sum(axis=-1) > 0) == pytest.approx(0.25, abs=0.02)


def test_a_camera_that_pans_over_a_wall_shows_no_motion_when_it_is_held():
    wall = np.random.default_rng(0).integers(0, 255, (20, 20, 3), np.uint8)
    wide = np.asarray(cv2.resize(wall, (SIZE + 3 * FRAMES, SIZE), interpolation=cv2.INTER_CUBIC))
    panned = np.stack([wide[:, 3 * i : 3 * i + SIZE] for i in range(FRAMES)])
    assert motion(panned, held=True)[:, 8:-8, 8:-8].mean() < 0.2 * motion(panned)[:, 8:-8, 8:-8].mean()


def test_the_page_tells_what_the_results_say():
    root = Path(__file__).parents[2]
    told = json.loads((root / "benchmarks" / "results" / "kinds_of_release.json").read_text())["kinds"]
    page = (root / "docs" / "methods" / "dual_cls.md").read_text(encoding="utf-8")
    assert told.keys() == KINDS.keys()
    for name, found in told.items():
        use, linkage = (f"{found[what]['value']:.2f} [" for what in ("use", "linkage"))
        line = next(
            line for line in page.splitlines() if line.startswith((f"| {name} |", f"| `{name}` |")) and use in line
        )
        assert linkage in line
