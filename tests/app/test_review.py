"""Reviews of manifests: moments to look at, and damaged manifests that must not pass for empty ones."""

import json
import math
import os
import re

import pytest

from tests.app.manifests import moment, write_manifest
from vidveil.app.manifest import read_manifest
from vidveil.app.review import MEANING, UNKNOWN, clock, describe, explain, most_serious, read_review
from vidveil.core.errors import InputError
from vidveil.detect import moments
from vidveil.detect.moments import Moment

FOUND = {"looked_for": ["faces"], "frames_with_regions": 1, "moments": [], "moments_left_out": 0}


@pytest.fixture
def output(tmp_path):
    return tmp_path / "clip_anonymized.mp4"


def test_moments_are_listed_in_order_of_time(output):
    path = write_manifest(output, moment("low score", 200, 200), moment())
    lines = list(describe(read_review(path)))
    assert lines[1:3] == [
        "0:00:04.000-0:00:04.367  gap        track 3 (faces)  frames 120-131",
        "0:00:06.667-0:00:06.667  low score  track 3 (faces)  frame 200",
    ]


def test_the_summary_counts_each_kind_and_what_was_not_written_down(output):
    path = write_manifest(output, moment(), moment(), moment("lost mid-picture"), left_out=4)
    last = list(describe(read_review(path)))[-1]
    assert last == "7 moments to look at: 1 lost mid-picture, 2 gap, 4 not written down"


@pytest.mark.parametrize("box", [None, (1.0, 2.0, 3.0, 4.0)])
def test_a_moment_is_read_as_it_was_written(box):
    written = Moment("gap", 3, "faces", 120, 131, 4.0, 4.367, box)
    assert Moment.from_dict(written.as_dict()) == written


def test_every_kind_of_moment_has_a_meaning():
    listed = re.findall(r"^ +([a-z][a-z -]*?)  +", str(moments.__doc__), re.MULTILINE)
    assert set(listed) == MEANING.keys()


def test_a_moment_without_a_track_is_listed_without_a_number(output):
    path = write_manifest(output, moment("hidden whole", track=None))
    assert "hidden whole  (faces)  frames" in list(describe(read_review(path)))[1]


def test_a_whole_frame_method_has_looked_for_nothing(output):
    review = read_review(write_manifest(output, detected=False))
    (line,) = describe(review)
    assert "nothing was looked for (blur:strong works on the whole frame)" in line
    assert review.count == 0


@pytest.mark.parametrize("detected", [True, False])
def test_black_frames_are_listed_with_their_reason(output, detected):
    path = write_manifest(output, detected=detected, hidden=[{"first": 5, "last": 8, "why": "was damaged"}])
    assert "frames 5-8 black: was damaged" in list(describe(read_review(path)))


def test_a_list_without_moments_does_not_claim_that_everybody_was_found(output):
    last = list(describe(read_review(write_manifest(output))))[-1]
    assert last.startswith("no moments to look at")
    assert "never found" in last


def test_the_legend_explains_what_occurs_and_nothing_else(output):
    reviews = [read_review(write_manifest(output, moment("low score"), moment("a new word")))]
    lines = list(explain(reviews))
    assert lines[0] == f"a new word  {UNKNOWN}"
    assert lines[1] == f"low score   {MEANING['low score']}"
    assert not any(MEANING["gap"] in line for line in lines)
    assert "--tracks-in" in "".join(lines)


def test_without_moments_there_is_nothing_to_explain(output):
    assert not list(explain([read_review(write_manifest(output))]))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00:00.000"), (4.3667, "0:00:04.367"), (59.9996, "0:01:00.000"), (3661.5, "1:01:01.500")],
)
def test_times_are_shown_as_media_players_show_them(seconds, text):
    assert clock(seconds) == text


def test_the_most_serious_are_chosen_and_stay_in_order_of_time():
    def at(what: str, start: float, end: float) -> Moment:
        return Moment(what, 1, "faces", 0, 0, start, end, None)

    short, long_, lost, whole = (
        at("gap", 1, 1.1),
        at("gap", 5, 9),
        at("lost mid-picture", 7, 7),
        at("hidden whole", 2, 8),
    )
    unknown = at("a new word", 0, 0)
    assert most_serious([whole, short, long_, lost], 2) == [long_, lost]
    assert most_serious([whole, short, long_, lost, unknown], 1) == [unknown]
    assert most_serious([whole, short, long_], 9) == [short, whole, long_]


@pytest.mark.parametrize(
    "damage",
    [
        {"moments": None},
        {"moments": [{"what": "gap"}]},
        {"moments": [moment(box=[1, 2, 3])]},
        {"moments": [moment(box=[1, 2, 3, math.nan])]},
        {"moments": [moment() | {"from": "soon"}]},
        {"moments": [moment() | {"to": math.inf}]},
        {"moments": [moment() | {"to": 1e300}]},
        {"moments": [moment() | {"first": "9" * 400}]},
        {"moments_left_out": "some"},
        {"looked_for": 3},
    ],
)
def test_moments_that_cannot_be_read_are_an_error_and_not_an_empty_list(output, damage):
    path = write_manifest(output, **damage)
    with pytest.raises(InputError, match="is damaged"):
        read_review(path)


def test_a_manifest_cannot_point_out_of_its_folder(output):
    path = write_manifest(output)
    manifest = json.loads(path.read_text())
    manifest["output"]["name"] = "../clip.mov"
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="is damaged"):
        read_review(path)


def test_the_output_stands_for_its_manifest(output):
    path = write_manifest(output, moment())
    assert read_review(output) == read_review(path)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("nothing.json", "no such file"),
        ("nothing.mp4", "no manifest nothing.json next to it"),
        ("notes.json", "^has layout 1, this vidveil writes 3$"),
        ("clip_anonymized.jpg", "clip_anonymized.json belongs to clip_anonymized.mp4"),
        (".", "is a folder"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_reason(output, word, why):
    write_manifest(output)
    (output.parent / "notes.json").write_text('{"manifest": 1}')
    with pytest.raises(InputError, match=why):
        read_review(output.parent / word)


def test_an_output_as_it_was_made_is_no_trouble(output):
    review = read_review(write_manifest(output))
    assert (review.trouble, review.drawable) == (None, True)


def test_a_changed_output_is_shown_with_a_warning(output):
    path = write_manifest(output)
    output.write_bytes(b"something else")
    review = read_review(path)
    assert "was changed since" in str(review.trouble)
    assert review.drawable


def test_without_its_output_the_list_is_still_there(output):
    path = write_manifest(output, moment())
    output.unlink()
    review = read_review(path)
    assert "is not next to its manifest" in str(review.trouble)
    assert not review.drawable
    assert len(review.moments) == 1


def test_the_original_is_never_drawn_even_under_the_name_of_the_output(output):
    path = write_manifest(output, moment())
    output.write_bytes(b"original")
    review = read_review(path)
    assert "is the original" in str(review.trouble)
    assert not review.drawable


@pytest.mark.parametrize(
    ("name", "sheet"), [("clip_anonymized.mp4", "clip_review.png"), ("door.mp4", "door_review.png")]
)
def test_the_sheet_is_named_after_the_source(tmp_path, name, sheet):
    assert read_review(write_manifest(tmp_path / name)).sheet == tmp_path / sheet


@pytest.mark.parametrize(
    "change",
    [
        {"frames": "x"},
        {"hidden": [["x"]]},
        {"hidden": {}},
        {"order": []},
        {"order": {"method": 3}},
        {"device": None},
        {"warnings": [3]},
        {"detection": "none"},
        {"input": {"name": 3, "sha256": "", "bytes": 1}},
        {"output": {"name": ["x"], "sha256": "", "bytes": 1}},
        {"versions": {"a": 1}},
        {"frames": {}},
        {"frames": {"written": 1.5, "hidden": 0}},
        {"detection": {}},
        {"detection": {"looked_for": 5}},
        {"detection": FOUND | {"looked_for": 5}},
        {"detection": FOUND | {"looked_for": [5]}},
        {"detection": FOUND | {"moments": [5]}},
        {"detection": FOUND | {"moments_left_out": "x"}},
        {"mask": {}},
        {"mask": {"kept_area": "x"}},
    ],
)
def test_a_manifest_with_values_of_the_wrong_kinds_is_none(output, change):
    path = write_manifest(output)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert read_manifest(path) is None
    with pytest.raises(InputError, match=r"^is damaged$"):
        read_review(path)
    with pytest.raises(InputError, match=f"^its manifest {path.name} is damaged$"):
        read_review(output)


@pytest.mark.parametrize("text", ["[]", "[" * 100_000, "9" * 5000, '"x"', "{}", "\0"])
def test_what_is_no_manifest_is_none(output, text):
    output.with_suffix(".json").write_text(text)
    assert read_manifest(output.with_suffix(".json")) is None


def test_a_pipe_is_no_manifest_and_is_not_waited_for(output):
    os.mkfifo(output.with_suffix(".json"))
    assert read_manifest(output.with_suffix(".json")) is None
