"""PA-HMDB51: labels of frames and of videos."""

import numpy as np
import pytest

from tests.data.made import InMemory
from tests.data.made_hmdb51 import clip, hmdb, pa, published, vp
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import hmdb51, pa_hmdb51, subsampled, vp_labels

pytestmark = pytest.mark.usefixtures("undecoded")


def test_pa_hmdb51_tests_its_own_videos_and_trains_on_all_others(tmp_path):
    vp(hmdb(tmp_path, film=False))
    pa(tmp_path)
    clips = load_data("pa_hmdb51", root=tmp_path, frames=4, size=28)
    assert len(clips) == 14
    tested = clips.indices("test")
    assert [clips.ids[i] for i in tested] == [
        "sit/" + clip("#12_Epsilon", "sit"),
        "wave/" + clip("#12_Epsilon", "wave"),
    ]
    assert clips.attributes[tested].tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]  # in some frame; VP says otherwise
    at = {name: i for i, name in enumerate(clips.ids)}
    assert clips.attributes[at["sit/" + clip("Zeta", "sit")]].tolist() == [1, 0, 1, 0, 0]  # VP's, though in no split
    assert not np.isnan(clips.attributes).any()


def test_frames_of_pa_hmdb51_are_counted_from_0_and_ranges_include_their_last(tmp_path):
    pa(tmp_path)
    frames = pa_hmdb51.read_frame_labels(tmp_path)["wave/" + clip("#12_Epsilon", "wave")]
    assert frames.shape == (12, 5)
    assert frames[:, 0].tolist() == [0] * 6 + [1] * 6
    assert frames[:10, 1].tolist() == [0] * 4 + [1] * 6
    assert np.isnan(frames[10:, 1]).all()  # no range says
    assert frames[:, 2].tolist() == [1] * 12  # any value but 0


def long(_name, _folder, files, **_):
    """In place of `decoded`: 7 frames of each video, or 20 of test videos; the brightness of a frame is its number."""
    return InMemory(
        [np.full((20 if "Epsilon" in file else 7, 2, 2, 3), i, np.uint8) + ramp(file) for i, file in enumerate(files)]
    )


def ramp(file):
    return np.arange(20 if "Epsilon" in file else 7, dtype=np.uint8)[:, None, None, None] * 12


def test_frames_have_labels_of_their_own_in_test_and_those_of_their_video_in_training(tmp_path, monkeypatch):
    monkeypatch.setattr(subsampled, "decoded", long)
    vp(hmdb(tmp_path, film=False))
    pa(tmp_path, face=[[0, 9, 1], [10, 25, 0]])
    whole = load_data("pa_hmdb51", root=tmp_path, frames=1, size=28)
    clips = load_data("pa_hmdb51:frames", root=tmp_path, frames=1, size=28)
    tested = clips.indices("test")
    name = "sit/" + clip("#12_Epsilon", "sit")
    assert [clips.ids[i] for i in tested[:2]] == [f"{name} 8", f"{name} 24"]  # decoded frames 4 and 12: every second
    assert clips.attributes[tested[:2], 1].tolist() == [1, 0]
    assert np.isnan(clips.attributes[tested[1], 0])  # frame 24 has no label
    picture = clips.videos.frames(int(tested[1]))
    assert picture.shape == (1, 2, 2, 3)
    row = whole.ids.index(name)
    assert picture[0, 0, 0, 0] == whole.videos.frames(row)[12, 0, 0, 0]
    train = clips.indices("train")
    of_video = dict(zip(whole.ids, whole.attributes.tolist(), strict=True))
    assert all(clips.attributes[i].tolist() == of_video[clips.ids[i].rpartition(" ")[0]] for i in train)
    assert len(train) == len(whole.indices("train"))  # of 7 frames the fifth alone
    assert set(clips.group[tested]) == set(whole.group[whole.indices("test")])
    assert clips.actions == ("none",)


def test_60_40_divides_the_labelled_videos_and_another_seed_divides_otherwise(labels):
    draws = [pa_hmdb51.load("frames_60_40", root=labels, size=112, seed=seed) for seed in (0, 0, 1)]
    for clips in draws:
        assert len(clips) == 515  # undecoded, each video has one frame
        count = {split: len(clips.indices(split)) for split in SPLITS}
        assert count["test"] == 206
        assert 40 < count["val"] < 100
    assert draws[0].split.tolist() == draws[1].split.tolist() != draws[2].split.tolist()


def test_of_ranges_that_overlap_the_later_one_holds():
    ranges = {name: [[0, 5, 1], [5, 7, 0]] for name in pa_hmdb51.SPELLED}
    assert pa_hmdb51.frame_labels(ranges)[:, 3].tolist() == [1] * 5 + [0] * 3


def test_labels_of_all_videos_and_of_no_others_are_needed(tmp_path):
    hmdb(tmp_path, film=False)
    folder = pa(tmp_path)
    with pytest.raises(DataError, match=f"there is no {tmp_path / hmdb51.LABELS}: .* to train on are VP-HMDB51's"):
        pa_hmdb51.load(None, root=tmp_path, size=28)
    vp(tmp_path)
    (folder / "run.json").write_text((folder / "sit.json").read_text())
    with pytest.raises(DataError, match=r"PrivacyAttributes: HMDB51's lists have no run/#12_Epsilon_sit"):
        pa_hmdb51.load(None, root=tmp_path, size=28)


@pytest.fixture
def labels(tmp_path, real_labels):
    return published(tmp_path, real_labels)


def test_the_real_labels_of_pa_hmdb51_are_read_by_frame_and_by_video(labels):
    frames = pa_hmdb51.read_frame_labels(labels)
    assert len(frames) == 515
    every = np.concatenate(list(frames.values()))
    assert every.shape == (52533, 5)
    assert np.isnan(every).any(axis=1).sum() == 122
    assert round(100 * float(np.nanmean(every, axis=0).mean()), 1) == 69.1  # a random guess of frames
    clips = pa_hmdb51.load(None, root=labels, size=112)
    train, val, test = (clips.indices(split) for split in SPLITS)
    assert (len(train) + len(val), len(test)) == (6251, 515)
    assert not set(clips.tags["film"][train].tolist()) & set(clips.tags["film"][val].tolist())
    np.testing.assert_allclose(clips.attributes[test].mean(axis=0), [0.967, 0.812, 0.983, 0.594, 0.171], atol=5e-4)
    theirs = vp_labels.match_labels(labels / "labels" / "vp" / hmdb51.LABELS, [clips.ids[i] for i in test])
    agree = (theirs == clips.attributes[test]).mean(axis=0)
    np.testing.assert_allclose(agree, [0.95, 0.81, 0.93, 0.71, 0.84], atol=6e-3)
    for column in range(5):  # the order of VP's columns is written nowhere: each goes with PA's of the same name best
        with_each = [abs(np.corrcoef(clips.attributes[test, column], theirs[:, other])[0, 1]) for other in range(5)]
        assert int(np.argmax(with_each)) == column
    known = set(clips.tags["film"][np.r_[train, val]].tolist())
    assert sum(film in known for film in clips.tags["film"][test].tolist()) == 457
