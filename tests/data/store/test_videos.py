"""Decoded videos on disk: whole or not there, whoever writes and whoever is killed meanwhile."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.data.made import noise
from vidveil.core.errors import DataError
from vidveil.data.store.videos import VideoStore, cache_folder

VIDEOS = noise((1, 4, 5), (3, 6, 2), (2, 4, 5))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def run(script: str, *args: object) -> subprocess.Popen[bytes]:
    start = (
        "import sys, time; import numpy as np; from pathlib import Path\n"
        "from vidveil.data.store.videos import VideoStore\n"
    )
    return subprocess.Popen([sys.executable, "-c", start + script, *map(str, args)])


def test_videos_come_back_as_they_were_and_cannot_be_changed(tmp_path):
    store = VideoStore.write(tmp_path / "set", iter(VIDEOS), {"made": "here"})
    assert len(store) == 3
    for i, video in enumerate(VIDEOS):
        np.testing.assert_array_equal(store.frames(i), video)
        assert not store.frames(i).flags.writeable
    assert store.about == {"made": "here"}
    assert names(tmp_path) == ["set"]
    with pytest.raises(IndexError):
        store.frames(3)


def test_side_arrays_travel_with_their_videos(tmp_path):
    pairs = (
        (video, {"masks": video[..., 0] > 128, "angles": np.array([2 * i, 2 * i + 1.0])})
        for i, video in enumerate(VIDEOS)
    )
    store = VideoStore.write(tmp_path / "set", pairs, {})
    assert set(store.sides) == {"masks", "angles"}
    for i, video in enumerate(VIDEOS):
        np.testing.assert_array_equal(store.side("masks", i), video[..., 0] > 128)
        np.testing.assert_array_equal(store.side("angles", i), [2 * i, 2 * i + 1])
    np.testing.assert_array_equal(store.side_stack("angles"), np.arange(6.0).reshape(3, 2))
    with pytest.raises(DataError, match="differ from video to video"):
        store.side_stack("masks")
    with pytest.raises(DataError, match="it has masks, angles"):
        store.side("depth", 0)


def test_the_fingerprint_is_of_the_content_and_not_of_where_it_came_from(tmp_path):
    one = VideoStore.write(tmp_path / "a", VIDEOS, {"from": "a"})
    same = VideoStore.write(tmp_path / "b", VIDEOS, {"from": "b"})
    other = VideoStore.write(tmp_path / "c", noise((1, 4, 5), (3, 6, 2), (2, 4, 5), seed=1), {"from": "a"})
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert one.digest(0) == same.digest(0) != one.digest(1)


def test_equal_bytes_of_another_shape_are_another_content(tmp_path):
    video = noise((2, 4, 6))[0]
    one = VideoStore.write(tmp_path / "a", [video], {})
    other = VideoStore.write(tmp_path / "b", [video.reshape(2, 6, 4, 3)], {})
    assert one.fingerprint != other.fingerprint


def test_a_store_is_sent_to_another_process_by_name(tmp_path):
    store = VideoStore.write(tmp_path / "set", noise((4, 64, 64)), {})
    sent = pickle.dumps(store)
    assert len(sent) < 500
    np.testing.assert_array_equal(pickle.loads(sent).frames(0), store.frames(0))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: os.truncate(folder / "frames.bin", 100), r"frames.bin has 100 of 288 bytes"),
        (lambda folder: (folder / "frames.bin").unlink(), r"frames.bin has 0 of 288 bytes"),
        (lambda folder: (folder / "index.json").unlink(), "there are no decoded videos"),
        (lambda folder: (folder / "index.json").write_text('{"layout": 1, "ab'), "cannot be read"),
        (lambda folder: (folder / "index.json").write_text('{"layout": 2}'), "has layout 2, this vidveil reads 1"),
        (lambda folder: (folder / "index.json").write_text('{"layout": 1, "arrays": {}}'), "makes no sense"),
        (lambda folder: (folder / "index.json").write_text("[]"), "has layout None"),
    ],
    ids=["truncated", "no pixels", "no index", "half an index", "newer", "empty", "no object"],
)
def test_a_damaged_store_says_what_is_wrong_and_is_made_anew(tmp_path, damage, message):
    folder = tmp_path / "set"
    VideoStore.write(folder, VIDEOS, {"v": 1})
    damage(folder)
    with pytest.raises(DataError, match=message):
        VideoStore.open(folder)
    assert len(VideoStore.cached(folder, {"v": 1}, lambda: VIDEOS)) == 3
    assert names(tmp_path) == ["set"]


def test_a_cached_store_is_made_once_and_again_when_it_is_about_something_else(tmp_path):
    calls = []

    def make():
        calls.append(1)
        return VIDEOS

    for about in ({"size": (64, 64)}, {"size": (64, 64)}, {"size": (64, 65)}, {"size": (64, 65)}):
        VideoStore.cached(tmp_path / "set", about, make)
    assert len(calls) == 2


def test_memory_stays_flat_while_writing(tmp_path):
    alive, most = [0], [0]

    class Counted(np.ndarray):
        def __del__(self):
            if getattr(self, "counted", False):
                alive[0] -= 1

    def make():
        for _ in range(50):
            video = np.zeros((1, 2, 2, 3), np.uint8).view(Counted)
            video.counted = True
            alive[0] += 1
            most[0] = max(most[0], alive[0])
            yield video

    VideoStore.write(tmp_path / "set", make(), {})
    assert most[0] <= 3


def test_an_error_while_making_leaves_nothing_and_keeps_what_was_there(tmp_path):
    VideoStore.write(tmp_path / "set", VIDEOS, {"v": 1})

    def fails():
        yield VIDEOS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        VideoStore.write(tmp_path / "set", fails(), {"v": 2})
    assert names(tmp_path) == ["set"]
    assert VideoStore.open(tmp_path / "set").about == {"v": 1}


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "no video to put into"),
        ([np.zeros((2, 4, 4, 3))], "float64"),
        ([np.zeros((4, 4, 3), np.uint8)], r"\(4, 4, 3\)"),
        ([np.zeros((0, 4, 4, 3), np.uint8)], r"\(0, 4, 4, 3\)"),
        ([(VIDEOS[0], {"m": np.zeros(2)}), VIDEOS[1]], "the first had"),
        ([(VIDEOS[0], {"m": np.zeros(2)}), (VIDEOS[1], {"m": np.zeros(2, np.int8)})], "m of video 1 is int8"),
        ([(VIDEOS[0], {"../m": np.zeros(2)})], "no side array can be called"),
        ([(VIDEOS[0], {"m": np.array([None])})], "object"),
    ],
)
def test_what_is_no_video_is_refused(tmp_path, items, message):
    with pytest.raises(DataError, match=message):
        VideoStore.write(tmp_path / "set", items, {})
    assert names(tmp_path) == []


def test_a_writer_killed_half_way_leaves_nothing_that_looks_like_a_store(tmp_path):
    slow = """
def make():
    for i in range(1000):
        yield np.full((1, 64, 64, 3), i % 256, np.uint8)
        Path(sys.argv[2]).write_text(str(i))
        time.sleep(0.01)
VideoStore.write(Path(sys.argv[1]), make(), {})
"""
    writer = run(slow, tmp_path / "set", tmp_path / "step")
    while not (tmp_path / "step").exists() or (tmp_path / "step").read_text() in ("", "0"):
        assert writer.poll() is None
        time.sleep(0.02)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    (tmp_path / "step").unlink()
    assert [name[:5] for name in names(tmp_path)] == [".set."]  # the part is there, under no name that is looked for
    with pytest.raises(DataError, match="no decoded videos"):
        VideoStore.open(tmp_path / "set")
    assert len(VideoStore.cached(tmp_path / "set", {}, lambda: VIDEOS)) == 3
    assert names(tmp_path) == ["set"]


def test_of_several_processes_one_makes_the_store_and_all_get_it(tmp_path):
    script = """
def make():
    with open(sys.argv[2], "a") as log:
        log.write("made\\n")
    for i in range(4):
        time.sleep(0.05)
        yield np.full((1, 8, 8, 3), i, np.uint8)
store = VideoStore.cached(Path(sys.argv[1]), {"v": 1}, make)
assert [int(store.frames(i).max()) for i in range(4)] == [0, 1, 2, 3]
"""
    others = [run(script, tmp_path / "set", tmp_path / "log") for _ in range(3)]
    assert [process.wait() for process in others] == [0, 0, 0]
    assert (tmp_path / "log").read_text() == "made\n"


def test_cleaning_up_after_the_dead_spares_stores_with_a_longer_name(tmp_path):
    (tmp_path / ".set.0123abcd.vidveil.part").mkdir()
    (tmp_path / ".set.two.0123abcd.vidveil.part").mkdir()
    VideoStore.write(tmp_path / "set", VIDEOS, {})
    assert names(tmp_path) == [".set.two.0123abcd.vidveil.part", "set"]


def test_readers_of_a_replaced_store_keep_what_they_opened(tmp_path):
    old = VideoStore.write(tmp_path / "set", VIDEOS, {})
    VideoStore.write(tmp_path / "set", noise((5, 3, 3), seed=3), {})
    np.testing.assert_array_equal(old.frames(1), VIDEOS[1])
    assert len(VideoStore.open(tmp_path / "set")) == 1


def test_a_folder_that_cannot_be_written_is_one_line_with_advice(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot be written: .*; set VIDVEIL_CACHE") as error:
        VideoStore.write(tmp_path / "file" / "set", VIDEOS, {})
    assert "\n" not in str(error.value)


def test_the_index_is_plain_json(tmp_path):
    VideoStore.write(tmp_path / "set", VIDEOS, {"v": 1})
    index = json.loads((tmp_path / "set" / "index.json").read_text())
    assert index["layout"] == 1
    assert index["arrays"]["frames"]["shapes"] == [[1, 4, 5, 3], [3, 6, 2, 3], [2, 4, 5, 3]]


def test_the_cache_lies_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("VIDVEIL_CACHE", raising=False)
    assert cache_folder() == tmp_path / "vidveil" / "data"
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.parametrize(
    "shape", [[1, 2], [2**40, 2**40, 2**40, 3], [-1, -4, 5, 3], [1.0, 4, 5, 3], "1453", [1, 4, 5, True], [1, 4, 15, 1]]
)
def test_an_index_whose_shapes_are_none_is_refused(tmp_path, shape):
    VideoStore.write(tmp_path / "set", iter(VIDEOS), {})
    path = tmp_path / "set/index.json"
    index = json.loads(path.read_text())
    index["arrays"]["frames"]["shapes"][0] = shape
    path.write_text(json.dumps(index))
    with pytest.raises(DataError, match="delete"):
        VideoStore.open(tmp_path / "set")


@pytest.mark.parametrize("name", ["index.json", "frames.bin"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path, name):
    VideoStore.write(tmp_path / "set", iter(VIDEOS), {})
    (tmp_path / "set" / name).unlink()
    os.mkfifo(tmp_path / "set" / name)
    with pytest.raises(DataError):
        VideoStore.open(tmp_path / "set")
