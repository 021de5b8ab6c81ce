"""Features on disk: resumed where they were cut off, repaired where they are damaged, never mixed with others."""

import errno
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest

from tests.data.features.made import ABOUT, ENCODER, D, Maker, hashes, ids, store, vectors
from vidveil.core.errors import DataError, OutputError
from vidveil.data.store import features as store_module
from vidveil.data.store.features import FeatureStore, fill, is_store


def test_vectors_come_back_as_they_were_and_are_mapped_from_their_files(tmp_path):
    store(tmp_path / "set")
    found = FeatureStore.open(tmp_path / "set")
    assert (len(found), found.width, found.encoder, found.ids) == (7, D, "made", ids(7))
    np.testing.assert_array_equal(found.counts(), [1, 2, 3, 1, 2, 3, 1])
    np.testing.assert_array_equal(found.counts("static"), [2] * 7)
    for kind in ("clips", "static"):
        wanted = np.concatenate([Maker.of(row)[kind] for row in range(7)])
        np.testing.assert_array_equal(found.all(kind), wanted)
        for number in range(3):
            part = found.shard(number, kind)
            assert isinstance(part, np.memmap)
            assert part.dtype == np.float32
            with pytest.raises(ValueError, match="read-only"):
                part[0, 0] = 1
    found.verify()
    assert not [name for name in hashes(tmp_path / "set") if name.endswith(".part")]


def test_the_fingerprint_differs_by_contents_encoders_and_names(tmp_path):
    one, same = store(tmp_path / "a"), store(tmp_path / "b")
    assert one.fingerprint == same.fingerprint == FeatureStore.open(tmp_path / "a").fingerprint
    others = [
        store(tmp_path / "c", encoder=ENCODER | {"fingerprint": "other"}),
        store(tmp_path / "d", videos="others"),
        store(tmp_path / "e", count=6),
        fill(tmp_path / "f", ABOUT, ids(7), lambda rows: ({"clips": vectors(1, row)} for row in rows), videos=3),
    ]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 5


def test_a_store_without_static_clips_or_without_clips_of_one_video_is_whole(tmp_path):
    made = fill(tmp_path / "set", ABOUT, ids(2), lambda rows: ({"clips": vectors(row)} for row in rows))
    assert made.counts().tolist() == [0, 1]
    assert made.counts("static").tolist() == [0, 0]
    assert made.all("static").shape == (0, D)
    made.verify()


def test_a_run_that_was_cut_off_makes_only_what_is_missing_and_the_same_store(tmp_path):
    whole = store(tmp_path / "whole")
    first = Maker(fails_at=5)
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "set", ABOUT, ids(7), first, videos=3)
    with pytest.raises(DataError, match=r"shard-00001\.json is missing; 1 of 3 shards are whole"):
        FeatureStore.open(tmp_path / "set")
    second = Maker()
    made = fill(tmp_path / "set", ABOUT, ids(7), second, videos=3)
    assert first.asked == [range(3), range(3, 6)]
    assert second.asked == [range(3, 6), range(6, 7)]
    assert made.fingerprint == whole.fingerprint
    assert hashes(tmp_path / "set") == hashes(tmp_path / "whole")
    third = Maker()
    fill(tmp_path / "set", ABOUT, ids(7), third, videos=3)
    assert third.asked == []


def test_what_the_dead_left_half_written_is_cleared_away(tmp_path):
    whole = store(tmp_path / "whole")
    (tmp_path / "set").mkdir()
    for name in (".store.json.0123abcd.vidveil.part", ".clips-00001.npy.0123abcd.vidveil.part"):
        (tmp_path / "set" / name).write_bytes(b"ha")
    assert fill(tmp_path / "set", ABOUT, ids(7), Maker(), videos=3).fingerprint == whole.fingerprint
    assert hashes(tmp_path / "set") == hashes(tmp_path / "whole")


def halve(path):
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("damage", "name", "message"),
    [
        (halve, "clips-00001.npy", "is missing or cut off"),
        (lambda path: os.truncate(path, 0), "clips-00001.npy", "is missing or cut off"),
        (lambda path: os.truncate(path, 5), "static-00001.npy", "is missing or cut off"),
        (lambda path: path.unlink(), "static-00001.npy", "is missing or cut off"),
        (lambda path: np.save(path, vectors(5)), "clips-00001.npy", r"has \(5, 8\) numbers"),
        (lambda path: np.save(path, vectors(6).astype(float)), "clips-00001.npy", "of float64 instead of"),
        (halve, "shard-00001.json", "cannot be read"),
        (lambda path: path.write_text('{"counts": [], "sha256": {}}'), "shard-00001.json", "cannot be read"),
        (
            lambda path: path.write_text('{"counts": {"clips": "abc", "static": "abc"}, "sha256": {}}'),
            "shard-00001.json",
            "cannot be read",
        ),
        (
            lambda path: path.write_text('{"counts": {"clips": [1, 2, 3], "static": [2, 2, 2]}, "sha256": {}}'),
            "shard-00001.json",
            "cannot be read",
        ),
    ],
    ids=[
        "half",
        "empty",
        "no header",
        "gone",
        "shorter",
        "float64",
        "half a JSON",
        "no counts",
        "words for counts",
        "no sums",
    ],
)
def test_a_damaged_shard_is_named_on_one_line_and_only_that_one_is_made_anew(tmp_path, damage, name, message):
    whole = store(tmp_path / "set").fingerprint
    before = hashes(tmp_path / "set")
    damage(tmp_path / "set" / name)
    with pytest.raises(DataError, match=f"{name} .*{message}.*1 of 3 shards are whole") as error:
        FeatureStore.open(tmp_path / "set")
    assert "\n" not in str(error.value)
    maker = Maker()
    assert fill(tmp_path / "set", ABOUT, ids(7), maker, videos=3).fingerprint == whole
    assert maker.asked == [range(3, 6)]
    assert hashes(tmp_path / "set") == before


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "makes no sense"), ("[]", "makes no sense"), ('{"layout": 1}', "makes no sense"), ('{"layout": 9}', "9")],
)
def test_a_store_that_does_not_say_what_it_is_about_is_one_line_with_advice(tmp_path, content, message):
    store(tmp_path / "set")
    (tmp_path / "set" / "store.json").write_text(content)
    with pytest.raises(DataError, match=f"{message}.*extract it anew") as error:
        FeatureStore.open(tmp_path / "set")
    assert "\n" not in str(error.value)


def test_where_there_is_no_store_the_command_that_makes_one_is_named(tmp_path):
    with pytest.raises(DataError, match=r"there is no store of features at .*/none: `vidveil extract` makes one"):
        FeatureStore.open(tmp_path / "none")


@pytest.mark.parametrize(
    ("about", "names", "message"),
    [
        ({"encoder": ENCODER | {"fingerprint": "other"}}, ids(7), r"another encoder \(made\).* must not be mixed"),
        ({"videos": "others"}, ids(7), "is of other videos"),
        ({"clips": {"stride": 2, "static": 2}}, ids(7), "is of other clips"),
        ({"cut": 2}, ids(7), "is of other cut"),
        ({}, ids(6), "is of other videos"),
        ({}, ids(7)[::-1], "is of other videos"),
    ],
    ids=["encoder", "videos", "stride", "cut", "fewer ids", "another order"],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_store_about_something_else_is_refused_and_not_a_byte_of_it_changes(tmp_path, about, names, message, whole):
    store(tmp_path / "set")
    if not whole:  # then something would be missing, and must not be filled up by another encoder
        (tmp_path / "set" / "shard-00002.json").unlink()
    before, maker = hashes(tmp_path / "set"), Maker()
    with pytest.raises(DataError, match=message) as error:
        fill(tmp_path / "set", ABOUT | about, names, maker, videos=3)
    assert "\n" not in str(error.value)
    assert maker.asked == []
    assert hashes(tmp_path / "set") == before


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["clips", "static"])
def test_features_that_are_not_finite_are_refused_and_nothing_is_written_of_their_shard(tmp_path, bad, kind):
    def make(rows):
        for row in rows:
            made = Maker.of(row)
            made[kind][-1, 3] = bad if row == 4 else 0
            yield made

    with pytest.raises(DataError, match=f"{kind} of video 4 are not all finite"):
        fill(tmp_path / "set", ABOUT, ids(7), make, videos=3)
    assert sorted(hashes(tmp_path / "set")) == ["clips-00000.npy", "shard-00000.json", "static-00000.npy", "store.json"]


@pytest.mark.parametrize("shape", [(2, D + 1), (D,), (1, 2, D)])
def test_features_of_another_width_are_refused(tmp_path, shape):
    with pytest.raises(DataError, match=r"clips of video 0 are \(.*\), not \(n, 8\)"):
        fill(tmp_path / "set", ABOUT, ids(1), lambda _: [{"clips": np.zeros(shape, np.float32)}])
    assert sorted(hashes(tmp_path / "set")) == ["store.json"]


@pytest.fixture
def full_disk(monkeypatch):
    """There is room for one shard. That the next one fails is known once the event is set that this gives."""
    write, known = store_module._write_shard, threading.Event()

    def full(folder, number, *others):
        if number == 1:
            assert known.wait(20)
            raise OSError(errno.ENOSPC, "No space left on device")
        write(folder, number, *others)

    monkeypatch.setattr(store_module, "_write_shard", full)
    return known


def test_a_full_disk_is_reported_although_shards_are_written_while_the_next_are_made(tmp_path, full_disk):
    full_disk.set()
    with pytest.raises(OutputError, match="set cannot be written: no space left on device"):
        store(tmp_path / "set")
    assert sorted(file.name for file in tmp_path.glob("set/shard-*")) == ["shard-00000.json"]


def test_on_a_disk_that_is_known_to_be_full_no_other_shard_is_made(tmp_path, monkeypatch, full_disk):
    class AtOnce(ThreadPoolExecutor):
        def submit(self, *words):
            written = super().submit(*words)
            wait([written])
            return written

    monkeypatch.setattr(store_module, "ThreadPoolExecutor", AtOnce)
    full_disk.set()
    maker = Maker()
    with pytest.raises(OutputError, match="no space left on device"):
        fill(tmp_path / "set", ABOUT, ids(12), maker, videos=3)
    assert maker.asked == [range(3), range(3, 6)]


def failing(error, full_disk):
    """Makes two shards. The disk turns out to be full while the third fails."""

    def make(rows):
        for row in rows:
            if row == 7:
                full_disk.set()
                raise error
            yield Maker.of(row)

    return make


def test_where_writing_fails_and_then_making_the_first_is_raised_and_the_second_is_its_cause(tmp_path, full_disk):
    error = DataError("video 7 cannot be decoded")
    with pytest.raises(OutputError, match="set cannot be written: no space left on device") as failed:
        fill(tmp_path / "set", ABOUT, ids(9), failing(error, full_disk), videos=3)
    assert failed.value.__cause__.errno == errno.ENOSPC
    assert failed.value.__cause__.__cause__ is error


def test_who_interrupts_while_the_disk_is_full_is_obeyed_and_reads_of_it(tmp_path, full_disk):
    with pytest.raises(KeyboardInterrupt) as stopped:
        fill(tmp_path / "set", ABOUT, ids(9), failing(KeyboardInterrupt(), full_disk), videos=3)
    assert stopped.value.__notes__ == [f"{tmp_path / 'set'} cannot be written: [Errno 28] No space left on device"]


def test_a_flipped_byte_is_found_by_verifying_and_made_anew_as_the_message_says(tmp_path):
    whole = hashes(tmp_path / "set") if store(tmp_path / "set") else {}
    path = tmp_path / "set" / "static-00001.npy"
    data = bytearray(path.read_bytes())
    data[-7] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"static-00001\.npy is damaged: delete it, and `vidveil extract`"):
        FeatureStore.open(tmp_path / "set").verify()
    path.unlink()
    store(tmp_path / "set").verify()
    assert hashes(tmp_path / "set") == whole


def test_a_folder_or_file_that_is_something_else_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.jpg").write_bytes(b"me")
    (tmp_path / "file").write_bytes(b"mine")
    for name in ("photos", "file"):
        assert not is_store(tmp_path / name)
        with pytest.raises(OutputError, match=f"{name} is there and is no store of features"):
            store(tmp_path / name)
    assert {name: digest for name, digest in hashes(tmp_path).items() if not name.endswith(".lock")}.keys() == {
        "photos/me.jpg",
        "file",
    }
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "set").mkdir()
    assert len(store(tmp_path / "set")) == 7


def test_of_two_processes_one_makes_each_shard_and_both_get_the_store(tmp_path):
    script = """
import sys, time
import numpy as np
from pathlib import Path
from vidveil.data.store.features import fill
def make(rows):
    with open(sys.argv[2], "a") as log:
        log.write(f"{rows.start}\\n")
    time.sleep(0.1)
    return [{"clips": np.full((1, 2), row)} for row in rows]
about = {"encoder": {"spec": "made", "width": 2, "fingerprint": "made"}}
print(fill(Path(sys.argv[1]), about, [str(i) for i in range(7)], make, videos=3).fingerprint)
"""
    words = [sys.executable, "-c", script, str(tmp_path / "set"), str(tmp_path / "log")]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {process.communicate(timeout=100)[0].strip() for process in both}
    assert printed == {FeatureStore.open(tmp_path / "set").fingerprint}
    assert (tmp_path / "log").read_text().split() == ["0", "3", "6"]


def test_what_a_store_is_about_is_plain_json(tmp_path):
    store(tmp_path / "set")
    about = json.loads((tmp_path / "set" / "store.json").read_text())
    assert about == {"layout": 1, **ABOUT, "videos_a_shard": 3, "ids": ids(7)}


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"ids": 3}, "ids is a number, not a list"),
        ({"ids": [1]}, "an entry of ids is a number, not text"),
        ({"encoder": "i3d"}, "encoder is text, not an object"),
        ({"encoder": ENCODER | {"width": -1}}, "-1 is no width"),
        ({"encoder": ENCODER | {"width": 10**12}}, "1000000000000 is no width"),
        ({"videos_a_shard": 0}, "0 is no width, and no number of videos"),
        ({"videos_a_shard": True}, "true or false"),
        ({"clips": []}, "clips is a list, not an object"),
    ],
)
def test_an_edited_store_is_one_line_that_names_it(tmp_path, entries, says):
    store(tmp_path / "set")
    about = tmp_path / "set/store.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | entries))
    with pytest.raises(DataError, match=says) as caught:
        FeatureStore.open(tmp_path / "set")
    assert "store.json" in str(caught.value)


@pytest.mark.parametrize("name", ["store.json", "shard-00000.json", "clips-00000.npy"])
def test_a_pipe_in_the_place_of_a_file_of_a_store_is_not_waited_for(tmp_path, name):
    store(tmp_path / "set")
    (tmp_path / "set" / name).unlink()
    os.mkfifo(tmp_path / "set" / name)
    with pytest.raises(DataError):
        FeatureStore.open(tmp_path / "set")
