"""Names of the previous version: options, a keyword, and manifests of layout 2."""

import json
from dataclasses import asdict, replace

import pytest

import vidveil
from tests import command
from tests.app.manifests import order
from tests.detect.stage import Discs, Film, Head, Shot, still
from vidveil.app.jobs import Options, Status
from vidveil.app.manifest import load_manifest
from vidveil.app.old_names import OPTIONS, manifest_with_current_names, order_with_old_names
from vidveil.app.review import describe, read_review
from vidveil.app.sharing import old_order_token
from vidveil.app.user_key import read_key
from vidveil.core.errors import UsageError
from vidveil.detect import settings
from vidveil.detect.settings import DetectionSettings


@pytest.fixture
def film(tmp_path, monkeypatch):
    monkeypatch.setitem(settings.DETECTORS, "discs", Discs)
    return Film(shots=[Shot([Head(still(100, 80))], 8)]).make(tmp_path / "film.mp4")


def test_old_options_do_what_the_new_ones_do_with_a_note_and_are_in_no_help(film):
    plain = ("anonymize", film, "--region", "frame", "--dry-run")
    old = command.vidveil(*plain, "--guard", "discs", "--guard-with=pixelate:8", "--except", 7)
    new = command.vidveil(*plain, "--also-hide", "discs", "--also-hide-with=pixelate:8", "--leave-visible", 7)
    assert (old.exit_code, new.exit_code) == (0, 0), old.output
    notes = [f"note: {a} is now called {b}; the next version no longer knows {a}" for a, b in OPTIONS.items()]
    assert old.stderr.splitlines() == notes + new.stderr.splitlines()
    assert "pixelate:8 on discs" in new.stderr
    shown = command.vidveil("anonymize", "--help").output.split()
    assert not OPTIONS.keys() & set(shown)
    assert set(OPTIONS.values()) <= set(shown)


def test_after_two_dashes_nothing_is_an_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command.vidveil("anonymize", "--region", "frame", "--dry-run", "--", "--guard")
    assert "--guard: " in done.stderr
    assert "is now called" not in done.stderr


def test_the_old_keyword_does_what_the_new_one_does_with_a_warning(film):
    with pytest.warns(FutureWarning, match="guard is now called also_hide"):
        (outcome,) = vidveil.anonymize(film, region="frame", guard="discs")
    assert load_manifest(outcome.output.with_suffix(".json")).order.detection["also_hide"] == "discs"
    (again,) = vidveil.anonymize(film, region="frame", also_hide="discs")
    assert again.status is Status.UP_TO_DATE


def test_an_old_and_a_new_name_together_are_refused(film):
    with pytest.raises(UsageError, match="guard is the old name of also_hide: give one of the two"):
        vidveil.anonymize(film, guard="discs", also_hide="people")
    done = command.vidveil("anonymize", film, "--guard", "discs", "--also-hide=people", "--dry-run")
    assert isinstance(done.exception, UsageError)
    assert "--guard is the old name of --also-hide: give one of the two" in str(done.exception)


def in_layout_2(path):
    """Rewrite a manifest as the previous version wrote it."""
    asked = replace(load_manifest(path).order, weights="discs 1")  # withheld in a manifest for sharing
    found = json.loads(path.read_text())
    assert found["manifest"] == 3
    found |= {"manifest": 2, "guard": found.pop("detection")}
    found["order"]["lookout"] = found["order"].pop("detection")
    for new, old in (("also_hide", "guard"), ("also_hide_with", "guard_with"), ("leave_visible", "exceptions")):
        found["order"]["lookout"][old] = found["order"]["lookout"].pop(new)
    found["frames"]["times_mended"] = found["frames"].pop("times_corrected")
    if found["form"] == "share":
        found["input"]["order"] = old_order_token(read_key(), asked, found["output"]["name"])
    path.write_text(json.dumps(found))


@pytest.mark.parametrize("form", ["full", "share"])
def test_an_output_with_an_old_manifest_is_done_reviewed_and_made_again_for_the_same_reasons(film, form):
    options = Options(manifest=form, detection=DetectionSettings(region="discs", leave_visible=(7,)))
    (outcome,) = vidveil.anonymize(film, options=options)
    notes = outcome.output.with_suffix(".json")
    review = list(describe(read_review(notes)))
    in_layout_2(notes)
    assert vidveil.anonymize(film, options=options)[0].status is Status.UP_TO_DATE
    assert list(describe(read_review(outcome.output))) == review
    assert "left visible on purpose: track 7" in review
    whole_frame = replace(options, detection=DetectionSettings(region="frame"))
    (refused,) = vidveil.anonymize(film, options=whole_frame)
    assert "film_anonymized.mp4 hides discs" in str(refused.error)
    assert vidveil.anonymize(film, options=replace(options, crf=30))[0].status is Status.DONE
    assert json.loads(notes.read_text())["manifest"] == 3


KEY = "dd6c4c663ff7424149a9cd8d73f258250120360da5927b7bb24dfa17a1f557a2"
TOKEN = "bd6076cc553aa45c5572f279d4d67891dcebd39f033683c31f19a421844c11d2"
SETTINGS = {
    "region": "faces", "guard": "people", "guard_with": "solid", "shape": None, "on_lost": "hold", "hide_for": 2.0,
    "delay": 1.0, "search_every": 0.2, "tracks_in": None, "exceptions": [7],
}  # fmt: skip


def test_the_token_of_an_order_is_the_one_that_the_previous_version_wrote():
    detection = DetectionSettings(region="faces", also_hide="people", leave_visible=(7,)).as_dict()
    weights = "centerface sha256:09189deaaf8646c5 + yolox_nano sha256:615e266100c341c2"
    asked = order(weights=weights, detection=detection)
    assert order_with_old_names(asdict(asked))["lookout"] == SETTINGS
    assert old_order_token(bytes.fromhex(KEY), asked, "clip_anonymized.mp4") == TOKEN


def test_names_within_an_old_manifest_are_current_ones_when_it_is_read():
    moments = [{"what": "born mid-picture", "track": 1}, {"what": "gap"}, "damaged"]
    old = {
        "manifest": 2,
        "order": {"lookout": None, "knobs": {"keep": 0.8, "after": "figure:14"}},
        "frames": {"written": 3, "times_mended": 2},
        "guard": {"moments": moments},
    }
    current = manifest_with_current_names(old)
    assert current["order"]["knobs"] == {"keep": 0.8, "preprocess": "figure:14"}
    assert current["frames"] == {"written": 3, "times_corrected": 2}
    assert current["detection"]["moments"] == [{"what": "first seen mid-picture", "track": 1}, *moments[1:]]
    written = order_with_old_names(asdict(order(knobs=current["order"]["knobs"])))
    assert written["knobs"] == old["order"]["knobs"]
