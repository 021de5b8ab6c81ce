"""Videos that cannot be decoded: left out and named, unless too much of the set goes with them."""

import dataclasses
import pickle
from dataclasses import replace

import numpy as np
import pytest

from tests.data.made import InMemory, clip_set, noise
from tests.data.made_hmdb51 import TITLES, clip, hmdb, pa, vp
from tests.data.made_weizmann import PATHS, length, spoil, weizmann
from tests.media import Film
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import ClipSet
from vidveil.data.description import data_description
from vidveil.data.store import decoded as cache
from vidveil.data.store.decoded import name_failed
from vidveil.data.store.files import FailedVideo
from vidveil.data.store.resident import Resident
from vidveil.data.store.videos import VideoStore
from vidveil.data.undecodable import without_failed

DAMAGED = "it is damaged or no video"


def load(root, name="weizmann", **options) -> ClipSet:
    return load_data(name, root=root, frames=4, size=16, **options)


def test_what_cannot_be_decoded_is_left_out_and_named_each_time(tmp_path, capsys):
    folder = weizmann(tmp_path)
    whole = load(tmp_path)
    truncated, empty, text = spoil(folder)
    for _ in range(2):  # decoded, then found in the cache
        clips = load(tmp_path)
        assert capsys.readouterr().err == (
            "weizmann:people=0: 3 of 90 videos cannot be decoded and are left out: "
            f"{truncated} ({DAMAGED}), {empty} (it is empty), {text} ({DAMAGED})\n"
        )
        assert len(clips) == len(clips.videos) == 87
        assert clips.left_out == (truncated, empty, text)
        assert clips.ids == [path for path in PATHS if path not in clips.left_out]
        assert [len(clips.videos.frames(i)) for i in range(87)] == [length(path) for path in clips.ids]
    rows = [PATHS.index(path) for path in clips.ids]
    for column in ("split", "group", "action", "person"):
        np.testing.assert_array_equal(getattr(clips, column), getattr(whole, column)[rows])
    assert clips.actions == whole.actions
    assert clips.videos.fingerprint != whole.videos.fingerprint
    assert data_description(clips)["left_out"] == 3
    assert "left_out" not in data_description(whole)


@pytest.mark.parametrize("decoder", ["av", "opencv"])
def test_strict_allows_none(tmp_path, monkeypatch, decoder):
    monkeypatch.setenv("VIDVEIL_DECODER", decoder)
    truncated, empty, _ = spoil(weizmann(tmp_path))
    with pytest.raises(DataError, match=rf"3 of 90 videos .*--strict allows none: {truncated} \(.*{empty} \(it"):
        load(tmp_path, strict=True)
    assert len(load(tmp_path)) == 87


def test_single_frames_are_as_strict_as_whole_videos(tmp_path, capsys):
    vp(hmdb(tmp_path))
    pa(tmp_path)
    gone = clip(TITLES[0], "sit")
    assert (tmp_path / "hmdb51" / "sit" / gone).is_file()
    (tmp_path / "hmdb51" / "sit" / gone).write_bytes(b"")
    for name in ("pa_hmdb51", "pa_hmdb51:frames"):
        with pytest.raises(DataError, match=rf"--strict allows none: sit/{gone}"):
            load(tmp_path, name, strict=True)
        assert load(tmp_path, name).left_out == (f"sit/{gone}",)
        assert "left out" in capsys.readouterr().err


def test_more_than_one_in_twenty_is_too_many(tmp_path):
    folder = weizmann(tmp_path)
    for path in PATHS[5:40:9]:
        (folder / path).write_bytes(b"")
    assert len(load(tmp_path)) == 86
    (folder / PATHS[60]).write_bytes(b"")
    with pytest.raises(DataError, match=rf"5 of 90 videos cannot be decoded, .* too many.*{PATHS[60]} \(it is empty\)"):
        load(tmp_path)
    (folder / PATHS[60]).unlink()
    with pytest.raises(DataError, match="is listed but not there"):
        load(tmp_path)


def test_at_most_ten_are_named():
    failed = {f"{i}.avi": FailedVideo("it is empty", 0) for i in range(13)}
    named = name_failed(failed)
    assert named.startswith("0.avi (it is empty), 1.avi (it is empty), ")
    assert named.endswith(", 9.avi (it is empty) and 3 more")
    assert name_failed({"0.avi": FailedVideo("it is empty", 0)}) == "0.avi (it is empty)"


def test_a_set_without_one_of_its_actions_is_another_set(tmp_path, capsys):
    hmdb(tmp_path)
    (tmp_path / "hmdb51" / "sit" / clip("Beta", "sit")).write_bytes(b"")
    assert len(load(tmp_path, "hmdb51")) == 11
    assert "1 of 12 videos" in capsys.readouterr().err
    (tmp_path / "hmdb51" / "sit" / clip("Beta", "sit")).write_bytes(
        (tmp_path / "hmdb51" / "sit" / clip("Zeta", "sit")).read_bytes()
    )
    tested = tmp_path / "hmdb51" / "sit" / clip("#12_Epsilon", "sit")
    tested.write_bytes(b"")
    with pytest.raises(DataError, match=r"hmdb51:1: 1 of 12 videos .* none of sit is left in test: .*Epsilon"):
        load(tmp_path, "hmdb51")


def test_a_set_without_one_of_its_splits_is_another_set(tmp_path):
    clips = clip_set(VideoStore.write(tmp_path / "set", [*noise((2, 4, 4), (3, 4, 4)), FailedVideo("odd", 1)], {}))
    clips = replace(clips, split=np.array(["train", "test", "val"]))
    with pytest.raises(DataError, match="none is left in val"):
        without_failed(clips)


def test_of_several_actions_at_once_one_may_go_with_its_only_clip(tmp_path):
    """Hundreds of them are rare, and videos are gone for good; numbers say over how many actions they are."""
    videos = [*noise(*[(2, 4, 4)] * 4), FailedVideo("odd", 1)]
    clips = replace(
        clip_set(VideoStore.write(tmp_path / "set", videos, {})),
        split=np.array(["train", "val", "test", "test", "test"]),
        action=np.full(5, -1),
        actions=("dance", "yoga"),
        action_labels=np.array([[1, 0], [1, 0], [1, 0], [0, 0], [1, 1]], np.float32),
    )
    assert without_failed(clips).left_out == ("clip 4",)


def test_a_file_that_was_fixed_without_changing_its_size_is_found(tmp_path, capsys, monkeypatch):
    path = weizmann(tmp_path) / PATHS[7]
    good = path.read_bytes()
    path.write_bytes(bytes(len(good)))
    assert len(load(tmp_path)) == 89
    path.write_bytes(b"x" * len(good))  # another file, but no better
    tries = []
    decode_all = cache.decode_all
    monkeypatch.setattr(cache, "decode_all", lambda paths, **how: tries.append(len(paths)) or decode_all(paths, **how))
    assert len(load(tmp_path)) == 89
    assert tries == [1]
    capsys.readouterr()
    path.write_bytes(good)
    clips = load(tmp_path)
    assert len(clips) == 90
    assert clips.left_out == ()
    assert capsys.readouterr().err == ""
    assert tries[-1] == 90
    made = len(tries)
    load(tmp_path)
    assert len(tries) == made


def test_a_split_that_is_made_of_the_pixels_does_without_those_that_are_not_there(tmp_path):
    folder = tmp_path / "surveillance_fight"
    folder.mkdir()
    rows = [f"{i}.mp4,{i % 2}" for i in range(24)]
    (folder / "manifest.csv").write_text("\n".join(["path,label", *rows]))
    for i in range(24):
        Film(frames=2 + i, width=32 + 2 * (i % 12), height=32).make(folder / f"{i}.mp4")
    (folder / "11.mp4").write_bytes(b"")
    clips = load(tmp_path, "surveillance_fight")
    assert clips.left_out == ("11.mp4",)
    assert len(clips.tags["scene"]) == len(clips) == 23


def test_rows_without_pixels_are_kept_apart_in_the_store(tmp_path):
    one, other = noise((2, 4, 4), (3, 6, 2))
    store = VideoStore.write(tmp_path / "set", [FailedVideo("odd", 1), one, FailedVideo("odd", 2), other], {})
    assert (len(store), store.failed) == (4, {0: FailedVideo("odd", 1), 2: FailedVideo("odd", 2)})
    assert [len(store.frames(i)) for i in range(4)] == [0, 2, 0, 3]
    assert len({store.digest(i) for i in range(4)}) == 4
    left = store.without_failed()
    same = pickle.loads(pickle.dumps(left))
    plain = VideoStore.write(tmp_path / "plain", [one, other], {})
    for videos in (left, same, Resident(left, "cpu")):
        assert len(videos) == 2
        np.testing.assert_array_equal(np.asarray(videos.frames(0)), one)
        np.testing.assert_array_equal(np.asarray(videos.frames(1)), other)
    assert left.fingerprint == same.fingerprint == plain.fingerprint != store.fingerprint


def test_a_video_with_side_arrays_cannot_fail(tmp_path):
    items = [(noise((1, 2, 2))[0], {"masks": np.zeros(2)}), FailedVideo("odd", 1)]
    with pytest.raises(DataError, match=r"video 1 cannot be decoded \(odd\), but others have \['masks'\]"):
        VideoStore.write(tmp_path / "set", items, {})


def test_every_column_of_a_set_loses_the_rows():
    videos = InMemory(noise(*[(1, 2, 2)] * 5))
    numbers = np.arange(5)
    clips = replace(
        clip_set(videos),
        attributes=numbers[:, None].astype(np.float32),
        attribute_names=("number",),
        tags={"camera": numbers},
        action_labels=numbers[:, None].astype(np.float32),
    )
    left = clips.without({3, 1}, InMemory(noise(*[(1, 2, 2)] * 3)))
    for field in dataclasses.fields(ClipSet):
        before, after = getattr(clips, field.name), getattr(left, field.name)
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(after, before[[0, 2, 4]])
    assert left.tags["camera"].tolist() == [0, 2, 4]
    assert left.ids == ["clip 0", "clip 2", "clip 4"]
    assert left.left_out == ("clip 1", "clip 3")
