"""UCF101 in its official layout: a small set made for tests, and the real lists and labels."""

import numpy as np
import pytest

from tests.data.made_ucf101 import ucf, vp
from vidveil.data.readers import ucf101, vp_labels


@pytest.mark.parametrize("inside", [".", "ucf101"])
def test_ucf101_is_read_in_its_official_layout(tmp_path, inside):
    root = tmp_path / inside
    root.mkdir(exist_ok=True)
    ucf(root)
    clips = ucf101.load("1", root=tmp_path, size=28)
    assert clips.actions == ["Archery", "Biking"]
    assert sorted(clips.split.tolist()) == ["test"] * 2 + ["train"] * 6 + ["val"] * 2
    assert clips.gallery == "same action"
    first = list(clips.ids).index("Biking/v_Biking_g01_c01.avi")
    assert clips.split[first] == "test"
    assert clips.videos.frames(first).shape == (11, 32, 43, 3)  # every second frame, a little larger than the view
    assert clips.attributes.shape == (10, 0)


@pytest.mark.usefixtures("undecoded")
def test_labels_next_to_ucf101_are_read_and_missing_ones_are_unknown(tmp_path):
    paths = ucf(tmp_path, film=False)
    vp(tmp_path, paths[1:])
    clips = ucf101.load(None, root=tmp_path, size=28)
    at = {name: i for i, name in enumerate(clips.ids)}
    assert clips.attributes[at[paths[2]]].tolist() == [1, 0, 1, 0, 1]
    assert np.isnan(clips.attributes[at[paths[0]]]).all()
    assert len(clips.attribute_names) == 5


def test_the_official_lists_and_labels_of_ucf101_are_read(real_labels):
    lists = real_labels / "labels" / "ucf101_splits"
    actions = ucf101.read_classes(lists / "classInd.txt")
    assert len(actions) == 101
    sizes, splits = [], {}
    for number in (1, 2, 3):
        clips = splits[number] = ucf101.read_split(lists, number, actions)
        sizes.append((sum(clip.part == "train" for clip in clips), sum(clip.part == "test" for clip in clips)))
        together = {(clip.action, clip.group): clip.part for clip in clips}
        assert all(together[clip.action, clip.group] == clip.part for clip in clips)
    assert sizes == [(9537, 3783), (9586, 3734), (9624, 3696)]
    file = real_labels / "labels" / "vp" / ucf101.LABELS
    attributes = vp_labels.match_labels(file, [clip.path for clip in clips])
    assert attributes.shape == (13320, 5)
    assert set(np.unique(attributes).tolist()) == {0, 1}  # and none is missing
    tested = [clip.path for clip in splits[1] if clip.part == "test"]
    prevalence = vp_labels.match_labels(file, tested).mean(axis=0)
    assert prevalence.round(3).tolist() == pytest.approx([0.916, 0.611, 0.898, 0.251, 0.257], abs=6e-4)
    assert round(100 * float(prevalence.mean()), 1) == 58.7  # chance level of cMAP
