"""An output is replaced only with a line that says so, and why."""

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

from tests.media import Film
from tests.remembering import Remembering
from tests.whole_frame import anonymize
from vidveil.app.earlier import _different
from vidveil.app.jobs import Options, Status
from vidveil.app.manifest import Order
from vidveil.core.errors import UsageError


def run(path, *, options=None, **words):
    """The outcome, and the notes on outputs that are replaced."""
    watcher = Remembering()
    (outcome,) = anonymize(path, options=options or Options(), watcher=watcher, **words)
    return outcome, [note for note in watcher.notes if "replaced" in note]


@pytest.fixture
def clip(tmp_path):
    path = Film(frames=5, sound="aac").make(tmp_path / "a.mp4")
    assert run(path, method="blur:weak")[1] == []
    return path


WILL_BE, OVERWRITE = "a_anonymized.mp4 will be replaced when this is done: ", Options(overwrite=True)


@pytest.mark.parametrize(
    ("method", "options", "why"),
    [
        ("solid", {}, "method was blur:weak, is solid"),
        ("blur:weak", {"crf": 30}, "--crf was 20, is 30"),
        ("solid", {"crf": 30}, "method was blur:weak, is solid; --crf was 20, is 30"),
        ("blur:weak", {"audio": "distort"}, "--audio was drop, is distort"),
        ("blur:weak", {"metadata": "keep"}, "--metadata was drop, is keep"),
        ("blur:weak", {"end": Fraction(1, 10)}, "--end was not given, is 1/10"),
        ("solid", {"overwrite": True}, "method was blur:weak, is solid"),
        ("blur:weak", {"overwrite": True}, "--overwrite"),
        ("blur:weak", {"manifest": "share"}, "--manifest was full, is share"),
        ("blur:weak", {"preview": Path("look.mp4")}, "look.mp4 is to be made with it"),
    ],
)
def test_other_options_are_named(clip, method, options, why, tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.chdir(tmp_path)
    outcome, notes = run(clip, method=method, options=Options(**options))
    assert outcome.status is Status.DONE
    assert notes == [WILL_BE + why]


def test_other_settings_of_detection_are_named():
    def order(detection):
        return Order(
            method="solid", weights=None, audio="drop", metadata="drop", start=None, end=None, preset="veryfast",
            crf=20, detection=detection, vidveil="1",
        )  # fmt: skip

    faces = {"region": "faces", "also_hide": "none", "delay": 1.0, "leave_visible": [], "tracks_in": None}
    people = {**faces, "region": "people", "delay": 2.0, "leave_visible": [3], "tracks_in": "0" * 64}
    assert list(_different(order(faces), order(people))) == [
        "--region was faces, is people",
        "--delay was 1.0, is 2.0",
        "--leave-visible was not given, is 3",
        "--tracks-in is new",
    ]
    assert list(_different(order(None), order(faces))) == ["--region was frame, is faces"]
    assert list(_different(order(faces), order(None))) == ["--region was faces, is frame"]


def test_another_version_is_named(clip):
    written = clip.with_name("a_anonymized.json")
    manifest = json.loads(written.read_text())
    now = manifest["order"]["vidveil"]
    manifest["order"]["vidveil"] = "0.0.9"
    written.write_text(json.dumps(manifest))
    assert run(clip, method="blur:weak")[1] == [f"{WILL_BE}made by vidveil 0.0.9, this is {now}"]


def test_a_source_that_changed_and_an_output_that_did_are_named(clip):
    output = clip.with_name("a_anonymized.mp4")
    output.write_bytes(output.read_bytes() + b"x")
    assert run(clip, method="blur:weak")[1] == [f"{WILL_BE}was changed since it was made"]
    Film(frames=7).make(clip)
    assert run(clip, method="blur:weak")[1] == [f"{WILL_BE}the source changed"]


def test_what_has_no_manifest_is_named_when_it_is_overwritten(clip):
    clip.with_name("a_anonymized.json").unlink()
    _, notes = run(clip, method="blur:weak", options=OVERWRITE)
    assert notes == [f"{WILL_BE}--overwrite, and no manifest says where it is from"]


def test_a_dry_run_says_what_would_be_replaced(clip):
    _, notes = run(clip, method="solid", options=Options(dry_run=True))
    assert notes == ["a_anonymized.mp4 would be replaced: method was blur:weak, is solid"]


def test_nothing_is_reported_where_nothing_is_replaced(clip):
    outcome, notes = run(clip, method="blur:weak")
    assert (outcome.status, notes) == (Status.UP_TO_DATE, [])
    clip.with_name("a_anonymized.mp4").unlink()
    assert run(clip, method="solid")[1] == []


@pytest.mark.parametrize(("audio", "warned"), [("keep", True), ("distort", False), ("drop", False)])
def test_sound_that_is_kept_is_reported_to_identify(clip, audio, warned):
    outcome, _ = run(clip, method="solid", options=Options(audio=audio))
    written = json.loads(outcome.output.with_suffix(".json").read_text())["warnings"]
    assert any("voices identify" in line for line in outcome.warnings) is warned
    assert list(outcome.warnings) == written


def test_where_there_is_no_sound_nobody_is_warned_of_it(tmp_path):
    outcome, _ = run(Film(frames=5).make(tmp_path / "a.mp4"), options=Options(audio="keep"))
    assert outcome.warnings == ()


@pytest.mark.parametrize(
    "change",
    [
        {"frames": {}},
        {"detection": {}},
        {"detection": {"looked_for": 5}},
        {"mask": {"kept_area": "x"}},
        {"detection": {"looked_for": [], "moments": [], "moments_left_out": "x", "frames_with_regions": 0}},
    ],
)
def test_an_edited_manifest_is_called_damaged(clip, change):
    notes = clip.with_name("a_anonymized.json")
    notes.write_text(json.dumps(json.loads(notes.read_text()) | change))
    outcome, _ = run(clip, method="blur:weak")
    assert str(outcome.error) == "a_anonymized.json is damaged; --overwrite replaces it"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"manifest": 3, "inp', "is not a manifest, or is damaged"),
        ('{"manifest": 99}', "has layout 99, this vidveil writes 3"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_named(clip, text, says):
    clip.with_name("a_anonymized.json").write_text(text)
    assert str(run(clip)[0].error) == f"a_anonymized.json {says}; --overwrite replaces it"
    assert run(clip, options=OVERWRITE)[1] == [f"{WILL_BE}--overwrite, and a_anonymized.json {says}"]


@pytest.mark.parametrize("hides", [{"region": "faces"}, {"region": "frame", "also_hide": "people"}])
@pytest.mark.parametrize("form", ["full", "share"])
def test_hidden_people_are_not_replaced_by_an_order_that_looks_for_nobody(clip, tmp_path, monkeypatch, hides, form):
    monkeypatch.setenv("VIDVEIL_KEYS", str(tmp_path / "keys"))
    kind = hides.get("also_hide", "faces")
    options = Options(manifest=form, overwrite=True)
    done, _ = run(clip, method="blur:strong", options=options, **hides)
    before = done.output.read_bytes()
    for method in ("stride:5", "solid"):
        outcome, _ = run(clip, method=method, options=Options(manifest=form))
        assert str(outcome.error) == (
            f"a_anonymized.mp4 hides {kind}, this would not look for them; "
            f"--also-hide {kind} keeps them hidden, --overwrite replaces it"
        )
        assert done.output.read_bytes() == before
    assert run(clip, method="stride:5", also_hide=kind, options=Options(manifest=form))[0].status is Status.DONE
    assert run(clip, method="stride:5", options=Options(overwrite=True))[0].status is Status.DONE


def test_a_missing_folder_of_a_preview_is_named_before_anything_is_made(clip, tmp_path):
    with pytest.raises(UsageError, match=r"--preview .*look.mp4: there is no folder .*gone; make it first"):
        run(clip, output=tmp_path / "out", options=Options(preview=tmp_path / "gone/look.mp4"))
    assert not (tmp_path / "out").exists()


def test_a_name_of_an_output_that_is_no_text_is_refused_before_work(clip, tmp_path):
    with pytest.raises(UsageError, match="-o is not valid UTF-8"):
        run(clip, output=os.fsdecode(os.fsencode(tmp_path) + b"/x\xff.mp4"))


def test_a_name_that_is_too_long_is_refused(clip, tmp_path):
    outcome, _ = run(clip, output=tmp_path / f"{'x' * 252}.mp4")
    assert "the name of the output or of its manifest is too long" in str(outcome.error)
