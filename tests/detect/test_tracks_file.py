"""Tracks on disk: what is written can be read, and nonsense is refused with its line."""

import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.detect.stage import frame_of
from vidveil.core.errors import InputError, UsageError
from vidveil.core.frame import Region
from vidveil.detect import tracks_file
from vidveil.detect.tracks_file import RecordedTracks, TracksWriter, without

HEADER = {"tracks": 1, "width": 64, "height": 48, "frames": 10}
LINE = {"frame": 3, "track": 1, "box": [1, 2, 30, 40]}


def frame(index, *regions):
    made = frame_of([np.zeros(shape, np.uint8) for shape in ((48, 64), (24, 32), (24, 32))], index, index / 25)
    made.regions = tuple(regions)
    return made


def region(track, box=(1.0, 2.0, 30.0, 40.0), **knobs):
    return Region(box=box, **({"kind": "faces", "track": track, "score": 0.5, "source": "detected"} | knobs))


def file(path, *lines):
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "t.jsonl"
    regions = [(), (region(1), region(2, None, source="lost")), (region(2, (-4.5, 0.0, 9.0, 70.5), shape="ellipse"),)]
    writer = TracksWriter(path)
    passed = list(writer.record(frame(i, *r) for i, r in enumerate(regions)))
    writer.finish()
    assert [f.regions for f in passed] == regions
    assert [p.name for p in tmp_path.iterdir()] == ["t.jsonl"]
    recorded = RecordedTracks(path)
    assert (recorded.width, recorded.height, recorded.frames) == (64, 48, 3)
    assert [f.regions for f in recorded.follow(frame(i) for i in range(3))] == regions
    assert recorded.looks_for == ["faces"]


def test_frames_that_nobody_searched_are_written_as_black(tmp_path):
    frames = [frame(i, region(1)) for i in range(3)]
    frames[0].regions = None
    frames[2].picture, frames[2].lost = None, "could not be decoded"
    writer = TracksWriter(tmp_path / "t.jsonl")
    list(writer.record(frames))
    writer.finish()
    read = [f.regions for f in RecordedTracks(tmp_path / "t.jsonl").follow(frame(i) for i in range(3))]
    assert [[r.box is None for r in regions] for regions in read] == [[True], [False], [True]]


def test_tracks_of_more_frames_than_there_are_belong_to_another_video(tmp_path):
    recorded = RecordedTracks(file(tmp_path / "t.jsonl", HEADER, LINE))
    assert len(list(recorded.follow(frame(i) for i in range(10)))) == 10
    with pytest.raises(InputError, match=r"has 9 frames, but t\.jsonl was made for 10"):
        list(recorded.follow(frame(i) for i in range(9)))


def test_an_aborted_writer_leaves_nothing(tmp_path):
    writer = TracksWriter(tmp_path / "t.jsonl")
    list(writer.record([frame(0, region(1))]))
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def test_only_a_frame_a_track_and_a_box_are_needed(tmp_path):
    recorded = RecordedTracks(file(tmp_path / "t.jsonl", HEADER, "", LINE, "  "))
    (region,) = next(f for f in recorded.follow(frame(i) for i in range(10)) if f.regions).regions
    assert (region.box, region.shape, region.kind, region.source) == ((1, 2, 30, 40), "box", "edited", "edited")


def test_a_file_saved_by_an_editor_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(HEADER).encode() + b"\r\n" + json.dumps(LINE).encode() + b"\r\n")
    assert RecordedTracks(path).frames == 10


@pytest.mark.parametrize(
    "header",
    ["", "hello", "[]", "1", "{}"]
    + [HEADER | change for change in ({"tracks": 2}, {"width": 0}, {"frames": "9"}, {"height": 4.5})],
)
def test_what_has_no_header_is_no_tracks_file(tmp_path, header):
    with pytest.raises(UsageError, match="its first line must be"):
        RecordedTracks(file(tmp_path / "t.jsonl", header, LINE))


def boxed(text):
    """A line whose box no JSON writer would write."""
    return f'{{"frame": 0, "track": 1, "box": {text}}}'


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nonsense", "is not JSON"),
        ("[1, 2]", "an object is expected, not a list"),
        ("[" * 100_000, "is nested too deeply"),
        ({"frame": 1, "track": 1}, "box is missing"),
        ({"frame": 1, "box": None}, "track is missing"),
        ({"track": 1, "box": None}, "frame is missing"),
        *((LINE | {"box": box}, "a box is four numbers or null") for box in ([1, 2, 3], [1, 2, 3, 4, 5], "all", 7)),
        (LINE | {"box": [False, 0, True, 10]}, "a box is four numbers or null"),
        (LINE | {"box": [30, 2, 1, 40]}, "no area"),
        (LINE | {"box": [1, 2, 1, 40]}, "no area"),
        (boxed("[NaN, 2, 3, 40]"), "holds NaN"),
        (boxed("[-Infinity, 0, 10, 10]"), "holds -Infinity"),
        (boxed("[0, 0, 1e999, 10]"), "holds 1e999"),
        (boxed("[-1e300, 0, 1e300, 10]"), "reaches further"),
        (boxed(f"[0, 0, {'9' * 400}, 10]"), "holds a number of 400 digits"),
        (boxed(f"[0, 0, {'9' * 5000}, 10]"), "holds a number of 5000 digits"),
        (LINE | {"frame": -1}, "whole numbers"),
        (LINE | {"frame": 1.5}, "whole numbers"),
        (LINE | {"frame": 10}, "counts 10 frames"),
        (LINE | {"track": True}, "whole numbers"),
        (LINE | {"track": 2**63}, "does not fit into 64 bits"),
        (LINE | {"score": True}, "score is a number"),
        (LINE | {"score": "0.5"}, "score is a number"),
        (LINE | {"shape": "star"}, "shape is ellipse or box"),
        (LINE | {"shape": ["box"]}, "shape is ellipse or box"),
        (LINE | {"kind": ["faces"]}, "kind and source are words"),
        (LINE | {"kind": "x" * 201}, "kind and source are words"),
        (LINE | {"kind": "x" * 2_000_000}, "has more than 1,048,576 bytes"),
        (LINE | {"source": 7}, "kind and source are words"),
    ],
)
def test_nonsense_is_one_line_of_an_error_that_names_the_line_of_the_file(tmp_path, line, says):
    with pytest.raises(UsageError, match=says) as caught:
        RecordedTracks(file(tmp_path / "t.jsonl", HEADER, LINE, line))
    assert str(caught.value).startswith("t.jsonl, line 3")
    assert len(str(caught.value)) < 200


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(UsageError, match=r"gone.* cannot be read"):
        RecordedTracks(tmp_path / "gone.jsonl")
    with pytest.raises(UsageError, match="cannot be read"):
        RecordedTracks(tmp_path)
    (tmp_path / "b.jsonl").write_bytes(json.dumps(HEADER).encode() + b"\n\xff\xfe\n")
    with pytest.raises(UsageError, match="UTF-8"):
        RecordedTracks(tmp_path / "b.jsonl")


def test_tracks_left_visible_lose_their_regions_and_black_frames_stay_black():
    frames = [frame(0, region(1), region(2)), frame(1, region(1, None)), frame(2)]
    missing = {1, 7}
    left = [[(r.track, r.box) for r in f.regions] for f in without(frames, {1, 7}, missing)]
    assert left == [[(2, (1.0, 2.0, 30.0, 40.0))], [(1, None)], []]
    assert missing == {7}
    unsearched = frame(0)
    unsearched.regions = None
    assert next(without([unsearched], {1}, set())).regions is None


def test_a_box_far_beyond_the_picture_is_cut_to_the_picture_and_as_much_again_on_each_side(tmp_path):
    lines = [LINE | {"box": [-999_999, -999_999, 999_999, 999_999], "shape": shape} for shape in ("box", "ellipse")]
    recorded = RecordedTracks(file(tmp_path / "t.jsonl", HEADER, *lines))
    width, height = HEADER["width"], HEADER["height"]
    found = [r for f in recorded.follow(frame(i) for i in range(10)) for r in f.regions or ()]
    assert [r.box for r in found] == [(-width, -height, 2 * width, 2 * height)] * 2
    assert [r.shape for r in found] == ["box", "box"]  # an ellipse that were cut would show what it hid


def test_a_box_within_a_picture_of_the_picture_stays_as_it_is(tmp_path):
    box = [-float(HEADER["width"]), 1.0, 1.5 * HEADER["width"], 2.0 * HEADER["height"]]
    recorded = RecordedTracks(file(tmp_path / "t.jsonl", HEADER, LINE | {"box": box, "shape": "ellipse"}))
    (region,) = next(f for f in recorded.follow(frame(i) for i in range(10)) if f.regions).regions
    assert (list(region.box), region.shape) == (box, "ellipse")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path, make):
    make(tmp_path / "t.jsonl")
    with pytest.raises(UsageError, match=r"t\.jsonl cannot be read"):
        RecordedTracks(tmp_path / "t.jsonl")


def test_a_crowd_in_one_frame_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tracks_file, "MOST_A_FRAME", 3)
    RecordedTracks(file(tmp_path / "t.jsonl", HEADER, *[LINE] * 3))
    with pytest.raises(UsageError, match="has more than 3 regions"):
        RecordedTracks(file(tmp_path / "t.jsonl", HEADER, *[LINE] * 4))


def test_more_regions_than_memory_is_for_are_refused_while_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tracks_file, "MOST_REGIONS", 5)
    with pytest.raises(UsageError, match=r"line 7: more than 5 regions"):
        RecordedTracks(file(tmp_path / "t.jsonl", HEADER, *[LINE] * 5, LINE, "nonsense"))


def test_a_region_takes_a_few_bytes_until_its_frame_is_shown(tmp_path):
    path = file(tmp_path / "t.jsonl", HEADER, *(LINE | {"frame": i % 10} for i in range(20_000)))
    tracemalloc.start()
    recorded = RecordedTracks(path)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 130 * 20_000
    assert [len(f.regions or ()) for f in recorded.follow(frame(i) for i in range(10))] == [2000] * 10
