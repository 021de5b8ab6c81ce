"""The set as others load it."""

import sys

import numpy as np
import pytest

from vidveil.core.errors import DataError, UsageError
from vidveil.data import load_data, puppets
from vidveil.data.puppets import build
from vidveil.data.puppets.plan import rows
from vidveil.data.puppets.world import World

FEW = "share=0.02"


@pytest.fixture
def small(monkeypatch):
    """Two clips a person, so that six people are made in no time."""
    for module in ("world", "plan"):
        monkeypatch.setattr(f"vidveil.data.puppets.{module}.CLIPS", {"train": 3, "val": 2, "test": 4})
    rows.cache_clear()
    yield
    rows.cache_clear()


@pytest.mark.usefixtures("small")
def test_a_set_has_all_its_labels_and_is_made_once(cache, monkeypatch):
    clips = puppets.load(FEW, frames=4, size=32)
    assert len(clips) == 2 * 3 + 2 * 2 + 2 * 4
    assert clips.videos.frames(0).shape == (4, 32, 32, 3)
    assert clips.attribute_names == ("skin_colour", "face", "gender", "nudity", "relationship")
    assert set(clips.tags) >= {"outfit", "place", "camera", "scene", "distractors", "object_lamp"}
    assert clips.action.max() < len(clips.actions) == 19
    assert clips.gallery == "any"
    np.testing.assert_array_equal(np.unique(clips.person[clips.split == "test"]), [4, 5])
    monkeypatch.setattr(build, "render", lambda *_: pytest.fail("it is made again"))
    again = puppets.load(FEW, frames=4, size=32)
    assert again.videos.fingerprint == clips.videos.fingerprint
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1


@pytest.mark.usefixtures("small")
def test_masks_and_frame_labels_stay_with_a_set_whose_videos_a_method_has_changed():
    clips = puppets.load(FEW, frames=4, size=32)
    changed = clips.with_videos(clips.videos, name="the same")
    assert puppets.masks(changed).shape == (len(clips), 4, 32, 32)
    assert set(np.unique(puppets.masks(changed))) == {0, 1, 2, 3}
    per_frame = puppets.attributes_per_frame(changed)
    assert per_frame.shape == (len(clips), 4, 5)
    np.testing.assert_array_equal(per_frame.mean(axis=1) >= 0.5, clips.attributes == 1)


@pytest.mark.usefixtures("small")
def test_worlds_for_gaits_and_biases_have_further_tags_and_the_usual_one_does_not(monkeypatch):
    monkeypatch.setattr("vidveil.data.puppets.plan.EVERYTHING", 1)
    monkeypatch.setattr(build, "FEW", 100)  # workers would know nothing of that
    walks, biased = (puppets.load(f"{kind},{FEW}", frames=1, size=32) for kind in ("gait", "bias_m"))
    assert {"gallery", "view"} <= set(walks.tags)
    np.testing.assert_array_equal(walks.tags["gallery"][walks.split == "test"], [1, 1, 0, 0] * 2)
    np.testing.assert_array_equal(biased.tags["shortcut"] == 1, biased.action == 0)
    np.testing.assert_array_equal(biased.tags["subgroup"], 1 - biased.attributes[:, 2])  # men are not women
    np.testing.assert_array_equal(np.bincount(biased.action[biased.split == "test"]), np.full(19, 2))
    assert puppets.masks(biased).shape == (len(biased), 1, 32, 32)
    assert not {"gallery", "view", "subgroup", "shortcut"} & set(puppets.load(FEW, frames=1, size=32).tags)


@pytest.mark.usefixtures("small")
def test_a_view_has_the_same_labels_and_no_masks():
    clips, view = (puppets.load(argument, frames=4, size=32) for argument in (FEW, f"{FEW},view=motion"))
    np.testing.assert_array_equal(clips.action, view.action)
    np.testing.assert_array_equal(clips.attributes, view.attributes)
    assert clips.ids == view.ids
    assert clips.videos.fingerprint != view.videos.fingerprint
    with pytest.raises(UsageError, match="no ground-truth masks"):
        puppets.masks(view)


@pytest.mark.usefixtures("small")
def test_it_is_found_by_its_name():
    assert load_data(f"puppets:{FEW}", frames=2, size=32).name == f"puppets:{FEW}"


def test_any_number_of_processes_makes_the_same_clips(monkeypatch):
    monkeypatch.setattr(build, "FEW", 0)
    world = World(share=0.02, frames=1, size=32)
    made = []
    for workers in (1, 2, 3):
        clips = build.clips(world, workers)
        made.append([next(clips) for _ in range(7)])
        clips.close()
    for one, two, three in zip(*made, strict=True):
        for name in ("frames", "masks", "attributes", "facts"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
            np.testing.assert_array_equal(getattr(one, name), getattr(three, name))


def test_a_worker_that_dies_is_an_error_and_leaves_nothing_behind(monkeypatch, cache, capfd):
    monkeypatch.setattr(build, "FEW", 0)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(DataError, match="worker process ended early"):
        build.store(World(share=0.02, frames=1, size=32), processes=2)
    assert not [path for path in cache.iterdir() if path.is_dir()]
    capfd.readouterr()
