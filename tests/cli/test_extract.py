"""`vidveil extract`: a dataset becomes a folder of features with its labels, once."""

from functools import partial

import numpy as np
import pytest
import torch

from tests import media
from tests.command import vidveil
from tests.data.features import made
from tests.data.features.made import FRAMES, hashes
from tests.data.made_weizmann import PATHS, length, spoil, weizmann
from vidveil.core.errors import DataError, UsageError
from vidveil.data import load_data
from vidveil.data.features.labels import labelled
from vidveil.data.features.sets import load_features
from vidveil.data.store.features import FeatureStore
from vidveil.models.encoders.recognizer import RecognizerEncoder

extract = partial(vidveil, "extract")
WORDS = ("weizmann:people=0", "--encoder", "run:mine", "--device", "cpu")
FOLDER = "weizmann_people_0_run_mine"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Ninety small videos, decoded once for all tests here, and a trained network."""
    place = tmp_path_factory.mktemp("extract")
    weizmann(place / "sets")
    network = made.run(place / "runs")
    return place, network


@pytest.fixture
def place(prepared, tmp_path, monkeypatch):
    shared, _ = prepared
    for name, folder in (("VIDVEIL_DATA", "sets"), ("VIDVEIL_RUNS", "runs"), ("VIDVEIL_CACHE", "cache")):
        monkeypatch.setenv(name, str(shared / folder))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def calls(monkeypatch):
    """How many clips went into the encoder, call by call."""
    seen, encode = [], RecognizerEncoder.encode
    monkeypatch.setattr(RecognizerEncoder, "encode", lambda self, clip: seen.append(len(clip)) or encode(self, clip))
    return seen


def test_a_folder_of_videos_becomes_features_without_labels(place, tmp_path):
    (tmp_path / "my videos" / "deep").mkdir(parents=True)
    for name in ("a.mp4", "deep/b.AVI", "deep/.hidden.mp4"):
        media.Film(frames=9, width=80, height=48).make(tmp_path / "my videos" / name)
    (tmp_path / "my videos" / "notes.txt").write_text("no video")
    result = extract("my videos/", "--encoder", "run:mine", "--device", "cpu", "--static", "2")
    assert result.exit_code == 0, result.output
    found = FeatureStore.open(place / "my_videos_run_mine")
    assert list(found.ids) == ["a.mp4", "deep/b.AVI"]
    assert result.stdout == f"my_videos_run_mine: {found.counts().sum()} clips and 4 static clips of 2 videos\n"
    assert "who and what is seen" in result.stderr
    assert not (place / "my_videos_run_mine" / "labels.csv").exists()
    (tmp_path / "empty").mkdir()
    refused = extract("empty", "--encoder", "run:mine", "--device", "cpu")
    assert isinstance(refused.exception, DataError)
    assert str(refused.exception) == "there are no videos in empty"


def test_a_dataset_becomes_a_folder_with_features_and_labels(place, prepared):
    result = extract(*WORDS, "--static", "2")
    assert result.exit_code == 0, result.output
    clips = sum(max(1, length(path) // FRAMES) for path in PATHS)
    assert result.stdout == f"{FOLDER}: {clips} clips and 180 static clips of 90 videos\n"
    store = FeatureStore.open(place / FOLDER)
    assert store.ids == PATHS
    assert store.about["clips"] == {"stride": 1, "static": 2}
    data = load_data("weizmann:people=0", frames=FRAMES, size=16)
    row = next(row for row, path in enumerate(PATHS) if length(path) == 8)
    video = torch.from_numpy(data.videos.frames(row).copy()).permute(3, 0, 1, 2)[None].float() / 255
    assert video.shape[-2:] == (16, 16)  # the encoder's own size: nothing is to be resized
    at = int(store.counts()[:row].sum())
    for number, start in enumerate((0, FRAMES)):
        with torch.inference_mode():
            wanted = prepared[1].features(video[:, :, start : start + FRAMES])[0]
        np.testing.assert_allclose(store.all()[at + number], wanted, rtol=1e-4, atol=1e-5)
    found = labelled(store)
    for name in ("split", "group", "action", "person"):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name))
    assert found.gallery == "other action"
    assert load_features(f"features:{FOLDER}", "").clips.all.shape == (clips, prepared[1].width)


def test_labels_are_left_out_when_asked_and_half_precision_is_another_store(place):
    assert extract(*WORDS, "--no-labels", "--static", "0").exit_code == 0
    assert not (place / FOLDER / "labels.csv").exists()
    assert FeatureStore.open(place / FOLDER).counts("static").sum() == 0
    before = hashes(place / FOLDER)
    for more, message in ((["--half"], "another encoder"), (["--stride", "2"], "other clips"), ([], "other clips")):
        refused = extract(*WORDS, *more)
        assert isinstance(refused.exception, DataError)
        assert message in str(refused.exception)
    assert hashes(place / FOLDER) == before


@pytest.mark.usefixtures("place")
def test_a_mistake_is_reported_before_any_video_is_read(calls, monkeypatch):
    monkeypatch.setattr("vidveil.cli.extract.load_data", lambda *_, **__: pytest.fail("not yet"))
    for encoder, message in (("run:none", "no finished run"), ("i3", "did you mean i3d?"), ("run", "behind a colon")):
        refused = extract("weizmann", "--encoder", encoder)
        assert isinstance(refused.exception, UsageError)
        assert message in str(refused.exception)
    assert calls == []


def test_videos_that_cannot_be_decoded_are_left_out_unless_it_is_strict(tmp_path, place, monkeypatch):
    names = spoil(weizmann(tmp_path / "spoiled"))
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    words = (*WORDS, "--data", str(tmp_path / "spoiled"), "-o", "some")
    assert isinstance(extract(*words, "--strict").exception, DataError)
    assert not (place / "some").exists()
    done = extract(*words)
    assert done.exit_code == 0
    assert "3 of 90 videos cannot be decoded and are left out" in done.stderr
    assert set(PATHS) - set(FeatureStore.open(place / "some").ids) == set(names)
