"""Manifests for sharing: nothing in them identifies the source, and their maker can resume all the same."""

import hashlib
import json
import os
import re
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from tests.app.manifests import moment, order
from tests.media import Film
from tests.remembering import Remembering
from tests.whole_frame import anonymize, anonymize_one, manifest_of
from vidveil.app.jobs import NAMES_STAY, Options, Status
from vidveil.app.manifest import Manifest
from vidveil.app.review import describe, read_review
from vidveil.app.sharing import WITHHELD, shareable, shareable_order
from vidveil.app.user_key import key_file, make_key, read_key
from vidveil.core.errors import UsageError

SHARE = Options(manifest="share")


@pytest.fixture
def clip(tmp_path):
    folder = tmp_path / "Ward-Seven"
    folder.mkdir()
    return Film(frames=5, tags={"title": "x"}, sound="aac", gps=True).make(folder / "Jane-Doe.mp4")


def run(path, options=SHARE, **words):
    watcher = Remembering()
    outcome = anonymize_one(path, options=options, watcher=watcher, **words)
    return outcome, [note for note in watcher.notes if not note.startswith((NAMES_STAY, "a key"))]


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from leaves(inner)
    if not isinstance(value, dict | list):
        yield value


def test_a_shared_manifest_holds_nothing_that_identifies_the_source(clip, tmp_path):
    data = clip.read_bytes()
    options = replace(SHARE, start=Fraction(1, 25), end=Fraction(4, 25))
    outcome, _ = run(clip, options, output=f"{tmp_path}/out.mp4")
    shared = manifest_of(outcome)
    text = json.dumps(shared)
    for word in ("Jane", "Ward", "title", "handler", "gpmd", "mov,mp4", hashlib.sha256(data).hexdigest(), "1/25"):
        assert word not in text
    assert len(data) not in list(leaves(shared))
    assert shared["form"] == "share"
    assert shared["input"].keys() == {"token", "place", "order"}
    assert shared["order"]["start"] == shared["order"]["end"] == WITHHELD
    assert shared["dropped"]["streams"] == ["audio", "data"]
    assert shared["dropped"]["tag_count"] > 1
    assert shared["output"]["sha256"] == hashlib.sha256(outcome.output.read_bytes()).hexdigest()


def test_without_the_key_nobody_can_check_a_guess(clip):
    """Names and hashes are easily guessed: the tokens of two users who did the same share nothing."""
    first, _ = run(clip)
    before = manifest_of(first)["input"]
    key_file().unlink()
    first.output.unlink()
    second, _ = run(clip, replace(SHARE, overwrite=True))
    after = manifest_of(second)["input"]
    assert not set(before.values()) & set(after.values())


def test_a_run_with_shared_manifests_is_resumed(clip):
    assert run(clip)[0].status is Status.DONE
    again, notes = run(clip)
    assert (again.status, notes) == (Status.UP_TO_DATE, [])


def test_a_source_that_was_moved_is_known_and_one_that_was_edited_is_done_again(clip, tmp_path):
    out = f"{tmp_path}/out/"
    run(clip, output=out)
    moved = tmp_path / "elsewhere" / clip.name
    moved.parent.mkdir()
    clip.rename(moved)
    assert run(moved, output=out)[0].status is Status.UP_TO_DATE
    moved.rename(clip)
    Film(frames=7).make(clip)
    again, notes = run(clip, output=out)
    assert again.status is Status.DONE
    assert notes == ["Jane-Doe_anonymized.mp4 will be replaced when this is done: the source changed"]


def test_another_file_of_the_same_name_is_in_the_way(clip, tmp_path):
    out = f"{tmp_path}/out/"
    run(clip, output=out)
    other = tmp_path / "elsewhere" / clip.name
    other.parent.mkdir()
    refused, _ = run(Film(frames=7).make(other), output=out)
    assert "was made from another file, or with another key" in str(refused.error)


def test_where_the_key_is_gone_the_error_says_what_to_do(clip):
    run(clip)
    before = key_file().read_bytes()
    key_file().unlink()
    other = Film(frames=3).make(clip.with_name("other.mp4"))
    for source in (clip, other):
        with pytest.raises(UsageError, match=f"is gone: put {key_file()} back, or --overwrite"):
            run(source)
    assert not key_file().exists()
    assert not other.with_name("other_anonymized.mp4").exists()
    key_file().write_bytes(before)
    key_file().chmod(0o600)
    assert run(clip)[0].status is Status.UP_TO_DATE


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (replace(SHARE, crf=30), "--crf was 20, is 30"),
        (replace(SHARE, start=Fraction(2, 25)), "other options, which a manifest for sharing does not name"),
        (Options(), "--manifest was share, is full"),
    ],
)
def test_what_was_asked_for_in_another_way_is_done_again(clip, options, why):
    run(clip, replace(SHARE, start=Fraction(1, 25)))
    again, notes = run(clip, options if options.start else replace(options, start=Fraction(1, 25)))
    assert again.status is Status.DONE
    assert notes == [f"Jane-Doe_anonymized.mp4 will be replaced when this is done: {why}"]


def test_an_output_that_was_edited_is_done_again(clip):
    output = run(clip)[0].output
    data = output.read_bytes()
    output.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))  # as large as before
    assert run(clip)[1] == ["Jane-Doe_anonymized.mp4 will be replaced when this is done: was changed since it was made"]


def test_names_of_the_users_own_files_are_withheld():
    detection = {
        "region": "jane.onnx", "also_hide": "faces:2", "also_hide_with": "blur:8", "shape": None, "on_lost": "hold",
        "hide_for": 2.0, "delay": 1.0, "search_every": 0.2, "tracks_in": "0" * 64, "leave_visible": [3], "new": "jane",
    }  # fmt: skip
    shared = shareable_order(
        order(
            method="dual_cls:jane | stride:5 | jane_run",
            weights=f"centerface sha256:{'0' * 16} + jane.onnx sha256:{'1' * 16} as {'2' * 8}",
            detection=detection,
            knobs={"keep": 0.8, "fill": "black", "stride": 2, "preprocess": "dual_cls:jane", "new": "jane"},
        )
    )
    assert "jane" not in str(shared)
    assert shared.method == f"dual_cls:{WITHHELD} | stride:5 | {WITHHELD}"
    assert shared.weights == f"centerface sha256:{'0' * 16} + {WITHHELD}"
    assert (shared.detection or {})["region"] == (shared.detection or {})["tracks_in"] == WITHHELD
    assert (shared.detection or {})["also_hide"] == "faces:2"
    assert (shared.detection or {})["leave_visible"] == [3]


def test_names_in_moments_and_warnings_are_withheld_and_cameras_have_no_token(tmp_path):
    full = Manifest(
        input={"name": "camera0", "sha256": None, "place": None, "bytes": None, "format": "v4l2", "codec": "mjpeg"},
        output={"name": "x.mp4", "sha256": "0" * 64, "bytes": 1},
        order=order(method="dual_cls:jane"),
        device="cpu",
        versions={},
        video={},
        frames={},
        hidden=[],
        dropped={"tags": ["title"], "unknown_tags": 1, "streams": ["audio pcm_s16le"], "chapters": 0},
        kept={"tags": [], "unknown_tags": 0, "streams": ["audio aac, replaced by noise"], "reencoded": ["aac to aac"]},
        detection={
            "looked_for": ["faces", "jane"], "weights": ["jane.onnx sha256:0"], "tracks": 1, "frames_with_regions": 1,
            "hidden_area": 0.1, "moments": [moment() | {"kind": "jane"}], "moments_left_out": 0,
        },
        incomplete="ends at 4 s of 3601 s",
        warnings=["dual_cls:jane leaves what it keeps as it is"],
    )  # fmt: skip
    shared = shareable(full, b"k" * 32, None, tmp_path)
    assert "jane" not in str(shared)
    assert "3601" not in str(shared)
    assert shared.input["token"] is shared.input["place"] is None
    assert shared.kept["streams"] == ["audio, replaced by noise"]
    assert shared.kept["reencoded"] == ["aac"]


def test_the_key_is_its_owners_alone_and_stays(keys):
    assert read_key() is None
    key = make_key()
    assert make_key() == read_key() == key
    assert len(key) == 32
    assert stat.S_IMODE(key_file().stat().st_mode) == 0o600
    assert [path.name for path in keys.iterdir()] == [key_file().name]


def test_of_several_that_make_a_key_at_once_all_get_the_same():
    keys: list[bytes] = []
    threads = [threading.Thread(target=lambda: keys.append(make_key())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1


@pytest.mark.parametrize("spoil", ["open", "short", "pipe", "link"])
def test_a_key_that_others_may_have_read_or_written_is_refused(clip, spoil, tmp_path):
    make_key()
    if spoil == "open":
        key_file().chmod(0o644)
    elif spoil == "short":
        key_file().write_bytes(b"short")
    else:
        key_file().rename(tmp_path / "key")
        os.mkfifo(key_file()) if spoil == "pipe" else key_file().symlink_to(tmp_path / "key")
    with pytest.raises(UsageError, match="key"):
        run(clip)
    assert not clip.with_name("Jane-Doe_anonymized.mp4").exists()


def test_without_a_manifest_there_is_none_and_nothing_is_resumed(clip):
    none = Options(manifest="none")
    outcome, _ = run(clip, none)
    assert {path.name for path in clip.parent.iterdir()} == {clip.name, outcome.output.name}
    refused, _ = run(clip, none)
    assert "--manifest none cannot resume; --overwrite" in str(refused.error)
    assert run(clip, replace(none, overwrite=True))[0].status is Status.DONE


def test_a_manifest_of_the_output_that_is_replaced_does_not_stay(clip):
    output = run(clip, Options())[0].output
    run(clip, Options(manifest="none", overwrite=True))
    assert output.exists()
    assert not output.with_suffix(".json").exists()


def test_a_file_that_is_no_manifest_stays(clip):
    notes = clip.with_name("Jane-Doe_anonymized.json")
    notes.write_text("mine")
    assert run(clip, Options(manifest="none"))[0].status is Status.FAILED
    run(clip, Options(manifest="none", overwrite=True))
    assert notes.read_text() == "mine"


def test_a_shared_manifest_is_reviewed_like_any_other(clip):
    output = run(clip)[0].output
    review = read_review(output)
    assert (review.trouble, review.drawable) == (None, True)
    assert "nothing was looked for" in next(describe(review))


def test_what_may_be_the_original_is_not_drawn(clip):
    output = run(clip)[0].output
    output.write_bytes(clip.read_bytes())
    review = read_review(output)
    assert not review.drawable
    assert "is not the output that this manifest for sharing is of" in str(review.trouble)


def test_a_run_says_once_that_names_stay_and_where_the_new_key_is(clip):
    Film(frames=3).make(clip.with_name("other.mp4"))
    watcher = Remembering()
    anonymize(clip.parent, options=SHARE, watcher=watcher)
    assert watcher.notes.count(NAMES_STAY) == 1
    (note,) = [note for note in watcher.notes if note.startswith("a key")]
    assert str(key_file()) in note
    assert "keep a copy, and give it to nobody" in note
    again = Remembering()
    anonymize(clip.parent, options=replace(SHARE, overwrite=True), watcher=again)
    assert not [note for note in again.notes if note.startswith("a key")]


def test_tags_that_are_kept_are_warned_of_and_only_counted_in_a_manifest_for_sharing(clip):
    outcome, _ = run(clip, replace(SHARE, metadata="keep"))
    (message,) = [line for line in outcome.warnings if "kept" in line]
    assert re.fullmatch(r"\d+ tags? (is|are) kept \(.*title.*\): they may say who, where and when; .*", message)
    (written,) = [line for line in manifest_of(outcome)["warnings"] if "kept" in line]
    assert written == re.sub(r" \(.*\)", "", message)
    full, _ = run(clip, Options(metadata="keep", overwrite=True))
    assert message in manifest_of(full)["warnings"]
    assert not [line for line in run(clip, Options(overwrite=True))[0].warnings if "kept" in line]
    with pytest.raises(UsageError, match="--metadata keep"):
        Options(rename=True, metadata="keep")
