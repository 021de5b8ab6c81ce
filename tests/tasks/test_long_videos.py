"""Features of long videos: in the order of time, as long as the video, with events at the right time."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.data import made_thumos14, made_ucf_crime
from tests.data.features import made
from vidveil.core.errors import UsageError
from vidveil.data.puppets import long
from vidveil.tasks import long_videos
from vidveil.tasks.long_videos import load_anomaly_videos, load_detection_videos, long_features

REAL = Path(os.environ.get("VIDVEIL_DATA", "nowhere"))
PART = ":share=0.02"


@pytest.fixture(scope="module", autouse=True)
def _place(tmp_path_factory):
    """A small encoder that has learned nothing."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIDVEIL_CACHE", str(folder / "cache"))
        patch.setenv("VIDVEIL_RUNS", str(folder / "runs"))
        patch.setattr(made, "SIZE", 32)
        made.run(folder / "runs")
        yield


def test_a_feature_stands_for_a_quarter_of_a_clip_where_actions_are_detected():
    data = load_detection_videos("puppets_untrimmed" + PART, "run:mine")
    assert data.classes == long.THINGS
    assert {len(own) for own in data.features} == {80}  # clips of 4 frames, so each frame has a feature
    assert set(data.seconds) == {1 / 2.5}
    assert data.duration(0) == pytest.approx(32)
    films = long.load_untrimmed("share=0.02", frames=4, size=32)
    for row, video in enumerate(films.annotations):
        wanted = [(event.label, (event.start - 1) / 2.5, event.end / 2.5) for event in video.events]
        assert [(data.classes[label], start, end) for start, end, label in data.segments[row]] == wanted


def test_a_feature_stands_for_half_a_clip_where_something_may_be_abnormal():
    data = load_anomaly_videos("puppets_anomalies" + PART, "run:mine")
    assert {len(own) for own in data.features} == {40}
    assert data.frames is not None
    assert {len(own) for own in data.frames} == {80}
    assert data.label.sum() * 2 == len(data.label)


def test_features_are_in_the_order_of_time_and_centred_on_what_they_stand_for():
    found = long_features("puppets_untrimmed" + PART, "run:mine", "detection")
    films, network = long.load_untrimmed("share=0.02", frames=4, size=32), made.network()
    video = np.array(films.videos.frames(3))[[18, 19, 20, 21]]  # frame 20 in the middle, as near as may be
    clip = torch.from_numpy(video).permute(3, 0, 1, 2)[None].float() / 255
    with torch.inference_mode():
        vector = network.features(clip)[0].numpy()
    np.testing.assert_allclose(found.features[3][20], vector, rtol=1e-4, atol=1e-5)
    assert found.data.static is not None
    assert (found.data.static.count == 4).all()


def test_a_hop_of_ones_own_is_another_store():
    found = long_features("puppets_untrimmed" + PART, "run:mine", "detection", hop=5)
    assert {len(own) for own in found.features} == {16}
    assert found.detection_videos().duration(0) == pytest.approx(32)


@pytest.mark.parametrize(
    ("load", "data", "hint"),
    [
        (load_detection_videos, "puppets", "puppets_untrimmed, thumos14"),
        (load_detection_videos, "puppets_anomalies", "puppets_untrimmed, thumos14"),
        (load_anomaly_videos, "thumos14", "surveillance_fight:0 to :4"),
        (load_anomaly_videos, "surveillance_fight:5", "5 folds"),
        (load_anomaly_videos, "ucf_crime:1", "nothing after a colon"),
    ],
)
def test_other_sets_are_refused_with_those_that_there_are(load, data, hint):
    with pytest.raises(UsageError, match=hint):
        load(data, "run:mine")


def test_features_without_an_encoder_are_refused():
    with pytest.raises(UsageError, match="encoder=i3d"):
        load_detection_videos("puppets_untrimmed", "")


def test_thumos14_is_read_out_of_its_files(tmp_path):
    made_thumos14.as_json(made_thumos14.videos(tmp_path, film=True))
    data = load_detection_videos("thumos14", "run:mine", root=tmp_path, hop=5)
    assert len(data) == 6
    assert {len(own) for own in data.features} == {10}  # 50 frames
    assert data.seconds[0] == pytest.approx(5 / 25, rel=0.02)
    trained = [data.segments[row] for row in data.indices("train")]
    assert (1.2, pytest.approx(2, abs=0.05), data.classes.index("HighJump")) in [one for own in trained for one in own]
    (late,) = [own for own in data.segments if len(own) == 1 and own[0][0] == 0]
    assert late[0][1] == pytest.approx(2, abs=0.1)  # annotated until 2.5, but the video is over


def test_of_ucf_crime_only_test_videos_have_labels_of_frames(tmp_path):
    made_ucf_crime.lists(made_ucf_crime.made(tmp_path, film=True))
    data = load_anomaly_videos("ucf_crime", "run:mine", root=tmp_path, hop=16)
    assert data.frame_labels("test") is not None
    assert data.frame_labels("train") is None
    abuse = data.frames[data.indices("test")[0]]
    assert np.flatnonzero(abuse).tolist() == list(range(9, 20))
    for own, seen in zip(data.of("test"), data.frame_labels("test"), strict=True):
        assert len(own) == -(-len(seen) // 16)


@pytest.mark.skipif(not (REAL / "surveillance_fight").is_dir(), reason="VIDVEIL_DATA has no surveillance_fight")
def test_each_fold_of_surveillance_fight_tests_other_scenes():
    tested = []
    for fold in range(long_videos.FOLDS):
        clips, annotations = long_videos._decoded(f"surveillance_fight:{fold}", 8, 32, REAL, 0, False)
        tested.append(clips.indices("test"))
        assert len(annotations) == len(clips) == 300
        assert {video.split for video in annotations} == {"train", "val", "test"}
    assert sorted(np.concatenate(tested).tolist()) == list(range(300))
