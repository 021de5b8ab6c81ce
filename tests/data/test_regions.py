"""Where somebody is in the clips of a set: looked for once, the same for every split, painted as if searched."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.evaluation.toy import toy
from vidveil.core.frame import Region
from vidveil.data import regions as looking
from vidveil.data.detection_cache import cached_detections
from vidveil.data.regions import regions
from vidveil.methods import load
from vidveil.methods.anonymized_data import Setting, anonymized


@pytest.fixture
def searched(monkeypatch):
    """The clips that were searched; in each somebody walks from the left, and once nobody knows where they are."""
    clips = []

    def look(clip, _watch):
        clips.append(clip)
        found = []
        for t in range(clip.shape[1]):
            box = None if t == 3 else (2.004 + t, 1.0, 9.5 + t, 12.25)
            found.append((Region(box=box, shape="ellipse", kind="faces", track=4, score=0.9, source="detected"),))
        return [*found[:-2], (), found[-1]]

    monkeypatch.setattr(looking, "regions_of", look)
    return clips


def test_what_is_found_is_told_again_without_another_look(searched):
    data = toy()
    first, again = regions(data, "faces"), regions(data, "faces")
    assert len(searched) == len(data)
    assert again(7) == first(7)
    assert [len(frame) for frame in again(7)] == [1, 1, 0, 1]
    assert again(7)[1][0].box == (3.0, 1.0, 10.5, 12.25)  # to a hundredth of a pixel
    assert again(7)[1][0].shape == "ellipse"
    assert again(7)[3][0].box is None


def test_splits_of_a_set_share_what_was_found_and_parts_of_it_and_other_guards_do_not(searched, monkeypatch):
    data = toy()
    for name in ("toy:1", "toy:2", "toy:split=3"):
        regions(replace(data, name=name), "faces")
    assert len(searched) == len(data)
    regions(replace(data, name="toy:1, person crops"), "faces")
    regions(replace(data, name="toy:1"), "people")
    assert len(searched) == 3 * len(data)
    monkeypatch.setattr(looking, "code_of", lambda *_: "another guard")
    regions(replace(data, name="toy:1"), "people")
    assert len(searched) == 4 * len(data)


@pytest.mark.usefixtures("searched")
def test_a_method_paints_the_regions_that_were_found():
    data = toy()
    after = anonymized(data, Setting(method="solid", region="faces"))
    for row in (0, 60):
        clip = torch.from_numpy(np.array(data.videos.frames(row))).movedim(-1, 0).float() / 255
        places = regions(data, "faces")(row)
        expected = load("solid", region="faces", find_regions=lambda _, at=places: at).anonymize(clip).video
        shown = torch.from_numpy(np.array(after.videos.frames(row))).movedim(-1, 0).float() / 255
        torch.testing.assert_close(shown, expected)
        assert not shown[:, 3].any()  # where nobody knows, nothing is shown
        assert shown[:, 2].equal(clip[:, 2])
        assert not shown[:, 1].equal(clip[:, 1])


def test_a_chain_is_searched_as_it_goes_since_a_stage_may_leave_frames_out(searched, monkeypatch):
    monkeypatch.setattr("vidveil.detect.settings.regions_of", lambda clip, **_: [()] * clip.shape[1])
    data = toy()
    after = anonymized(data, Setting(method="stride:2 | solid", region="faces"))
    assert not searched
    np.testing.assert_array_equal(after.videos.frames(0), np.repeat(data.videos.frames(0)[::2], 2, axis=0))


def test_what_was_found_before_is_not_looked_for_and_other_questions_are():
    data, asked = toy(), []

    def look():
        asked.append(1)
        return [[i] for i in range(len(data))]

    for about in ([1], [1], [2]):
        assert cached_detections(data, "places", about, look)[3] == [3]
    assert len(asked) == 2
