"""Ordinary videos with people, where somebody has some: VIDVEIL_DATA names the folder, `videos/` in it holds them."""

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.media import lumas, times
from tests.whole_frame import anonymize
from vidveil.app.jobs import Options

FOLDER = Path(os.environ.get("VIDVEIL_DATA", "nowhere")) / "videos"
VIDEOS = sorted(FOLDER.glob("*.mp4")) if FOLDER.is_dir() else []


@pytest.mark.skipif(not VIDEOS, reason="VIDVEIL_DATA names no folder with videos/ in it")
@pytest.mark.parametrize("path", VIDEOS or [None], ids=lambda path: path.stem if path else "none")
def test_a_real_video_keeps_its_times_and_loses_its_detail(tmp_path, path):
    (outcome,) = anonymize(path, output=tmp_path, options=Options(end=Fraction(2)))
    assert outcome.error is None
    assert outcome.hidden == 0
    assert times(outcome.output) == [t for t in times(path) if t < 2]

    def sharpness(pictures):
        return np.abs(np.diff(pictures[:20].astype(np.int16), axis=-1)).mean()

    assert sharpness(lumas(outcome.output)) < 0.35 * sharpness(lumas(path)[:20])
