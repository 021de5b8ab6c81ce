"""Outputs of random names: what they are called says nothing, and a private map says which is which."""

import csv
import json
import os
import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests import command
from tests.media import Film
from tests.remembering import Remembering
from tests.whole_frame import WHOLE_FRAME, anonymize
from vidveil.app.jobs import Options, Status
from vidveil.app.renamed import rename_outputs
from vidveil.core.atomic import part_of
from vidveil.core.errors import UsageError
from vidveil.video.sources import find, is_output

RENAME = Options(rename=True)
NAME = re.compile(r"[0-9a-f]{16}_anonymized\.mp4")


@pytest.fixture
def ward(tmp_path):
    for name in ("Jane/b.mp4", "Jane/a.mov", "c.mp4"):
        path = tmp_path / "Ward" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Film(frames=3).make(path)
    return tmp_path / "Ward"


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def rows(path: Path) -> dict[str, str]:
    with path.open(newline="") as file:
        head, *found = csv.reader(file)
    assert head == ["source", "output"]
    return dict(found)  # type: ignore[arg-type]


def test_neither_names_nor_folders_of_the_sources_are_among_the_outputs(ward, tmp_path):
    out = tmp_path / "out"
    outcomes = anonymize(ward, output=out, options=RENAME)
    assert all(outcome.ok for outcome in outcomes)
    found = names(out)
    assert len(found) == 6
    videos = [name for name in found if name.endswith(".mp4")]
    assert all(map(NAME.fullmatch, videos))
    assert all(is_output(out / name) for name in found)
    for name in videos:
        found = json.loads((out / name).with_suffix(".json").read_text())
        assert found["form"] == "share"
        assert found["output"]["name"] == name


def test_the_order_in_which_outputs_are_written_is_not_that_of_the_sources(ward, tmp_path):
    outcomes = anonymize(ward, output=tmp_path / "out", options=RENAME)
    written = [outcome.output.name for outcome in outcomes]
    assert written == sorted(written)


def test_names_are_new_each_time_and_the_same_with_a_map(ward, tmp_path):
    out, map_file = tmp_path / "out", tmp_path / "names.csv"
    first = {o.output.name for o in anonymize(ward, output=out, options=RENAME)}
    assert not first & {o.output.name for o in anonymize(ward, output=out, options=RENAME)}
    mapped = Options(rename_map=map_file)
    second = anonymize(ward, output=out, options=mapped)
    assert {o.status for o in second} == {Status.DONE}
    assert {o.status for o in anonymize(ward, output=out, options=mapped)} == {Status.UP_TO_DATE}
    before = rows(map_file)
    assert set(before) == {str(ward / name) for name in ("Jane/b.mp4", "Jane/a.mov", "c.mp4")}
    assert set(before.values()) == {o.output.name for o in second}
    assert stat.S_IMODE(map_file.stat().st_mode) == 0o600


def test_a_map_grows_and_forgets_nobody(ward, tmp_path):
    out, options = tmp_path / "out", Options(rename_map=tmp_path / "names.csv")
    anonymize(ward / "c.mp4", output=out, options=options)
    (tmp_path / "names.csv").chmod(0o644)
    anonymize(ward / "Jane", output=out, options=options)
    before = rows(tmp_path / "names.csv")
    assert len(before) == 3
    assert stat.S_IMODE((tmp_path / "names.csv").stat().st_mode) == 0o600
    anonymize(ward, output=out, options=options)
    assert rows(tmp_path / "names.csv") == before


def test_the_map_is_whole_before_the_first_output_has_its_name(ward, tmp_path):
    out, map_file = tmp_path / "out", tmp_path / "names.csv"

    class Looking(Remembering):
        def begin(self, name, length):  # noqa: ARG002
            seen.append((len(rows(map_file)), len(list(out.glob("*.mp4")))))

    seen: list[tuple[int, int]] = []
    anonymize(ward, output=out, options=Options(rename_map=map_file), watcher=Looking())
    assert seen == [(3, 0), (3, 1), (3, 2)]


@pytest.mark.parametrize("place", ["out", "out/below", "link"])
def test_a_map_among_the_outputs_is_refused(ward, tmp_path, place):
    (tmp_path / "out/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("out")
    with pytest.raises(UsageError, match="among the outputs"):
        anonymize(ward, output=tmp_path / "out", options=Options(rename_map=tmp_path / place / "names.csv"))
    with pytest.raises(UsageError, match="among the outputs"):
        anonymize(ward / "c.mp4", options=Options(rename_map=ward / "names.csv"))
    assert anonymize(ward / "c.mp4", options=Options(rename_map=ward / "Jane/names.csv"))[0].ok
    assert not names(tmp_path / "out")


@pytest.mark.parametrize(
    "text",
    [
        "mine",
        "source,output\na.mp4\n",
        "source,output\na.mp4,../b_anonymized.mp4\n",
        "source,output\na.mp4,{0}_anonymized.mp4\nb.mp4,{0}_anonymized.mp4\n",
        "source,output\na.mp4,{0}_anonymized.mp4\na.mp4,{1}_anonymized.mp4\n",
        'source,output\n"a.mp4',
        "",
    ],
)
def test_a_file_that_is_no_map_is_refused_and_left_alone(ward, tmp_path, text):
    map_file = tmp_path / "names.csv"
    map_file.write_text(text.format("0" * 16, "1" * 16))
    before = map_file.read_text()
    with pytest.raises(
        UsageError, match=r'names.csv, line .*: expected "source","output" in comma-separated UTF-8.*: restore a copy'
    ):
        anonymize(ward, output=tmp_path / "out", options=Options(rename_map=map_file))
    assert map_file.read_text() == before
    assert not (tmp_path / "out").exists()


def test_a_pipe_in_the_place_of_the_map_is_not_waited_for(ward, tmp_path):
    os.mkfifo(tmp_path / "names.csv")
    with pytest.raises(UsageError, match="not a regular file"):
        anonymize(ward, output=tmp_path / "out", options=Options(rename_map=tmp_path / "names.csv"))


@pytest.mark.parametrize(
    ("words", "options", "says"),
    [
        ({"output": "out.mp4"}, RENAME, "give a folder"),
        ({"output": "out"}, Options(rename_map=Path("names.txt")), "must end in .csv"),
    ],
)
def test_what_cannot_be_renamed_is_refused(ward, tmp_path, monkeypatch, words, options, says):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=says):
        anonymize(ward / "c.mp4", options=options, **words)


def test_a_full_manifest_of_a_renamed_output_is_refused():
    with pytest.raises(UsageError, match="holds the name that --rename hides"):
        Options(rename=True, manifest="full")
    assert Options(rename_map=Path("x.csv")).manifest_form == "share"
    assert Options(rename=True, manifest="none").manifest_form == "none"


def test_a_camera_gets_a_random_name_and_no_map():
    sources, _, _ = find(["0"])
    ((_, path),) = rename_outputs(sources, None, None, dry_run=False)
    assert NAME.fullmatch(str(path))
    with pytest.raises(UsageError, match="--rename-map takes files"):
        rename_outputs(sources, None, Path("names.csv"), dry_run=False)


def test_odd_names_come_back_from_the_map(tmp_path):
    odd = [b'a, "b".mp4', b"line\nbreak.mp4", "größe.jpg".encode(), b" =1+1.png", b"cr\r.mp4"]
    (tmp_path / "in").mkdir()
    for name in odd:
        (tmp_path / "in" / os.fsdecode(name)).touch()
    sources, _, _ = find([str(tmp_path / "in")])
    map_file = tmp_path / "names.csv"
    first = rename_outputs(sources, str(tmp_path / "out"), map_file, dry_run=False)
    assert len({path for _, path in first}) == len(odd)
    assert rename_outputs(sources, str(tmp_path / "out"), map_file, dry_run=False) == first


def test_a_dry_run_writes_no_map_and_reads_the_one_there_is(ward, tmp_path):
    map_file = tmp_path / "names.csv"
    options = Options(rename_map=map_file, dry_run=True)
    anonymize(ward, output=tmp_path / "out", options=options)
    assert not map_file.exists()
    anonymize(ward, output=tmp_path / "out", options=replace(options, dry_run=False))
    found = {o.output.name for o in anonymize(ward, output=tmp_path / "out", options=replace(options, overwrite=True))}
    assert found == set(rows(map_file).values())


def test_what_a_killed_run_with_other_names_left_elsewhere_is_removed(ward, tmp_path, monkeypatch):
    """The next run has another name for the output, and so for its notes."""
    out, left = tmp_path / "out", part_of(tmp_path / "look.mp4")
    out.mkdir()
    left.write_bytes(b"original")
    monkeypatch.setenv("VIDVEIL_UNFINISHED", str(tmp_path / "lists"))
    (tmp_path / "lists").mkdir()
    part_of(tmp_path / "lists" / "0.json").write_text(json.dumps([str(tmp_path / "look.mp4")]))
    anonymize(ward, output=out, options=RENAME)
    assert not left.exists()
    assert not [name for name in names(out) if name.startswith(".")]


def test_the_command_renames_and_refuses_what_would_undo_it(ward, tmp_path):
    words = ["anonymize", ward, "-o", tmp_path / "out", *WHOLE_FRAME]
    refused = command.vidveil(*words, "--rename", "--manifest", "full").exception
    assert "a full manifest holds the name" in str(refused)
    of_features = command.vidveil(*words, "--rename", "--method", "splavu:x").exception
    assert str(of_features).endswith("leave out --region, --rename")
    assert not (tmp_path / "out").exists()
    done = command.vidveil(*words, "--rename-map", tmp_path / "names.csv")
    assert done.exit_code == 0, done.stderr
    assert "Jane/b.mp4 -> " in done.stderr  # the user's own screen
    assert len(rows(tmp_path / "names.csv")) == 3


def test_a_map_in_any_folder_that_holds_outputs_is_refused(ward, tmp_path):
    anonymize(ward / "c.mp4", output=tmp_path / "other", options=RENAME)
    with pytest.raises(UsageError, match="among the outputs"):
        anonymize(ward, output=tmp_path / "out", options=Options(rename_map=tmp_path / "other/names.csv"))
    assert not (tmp_path / "other/names.csv").exists()


def test_a_map_in_a_folder_that_is_not_there_names_the_folder(ward, tmp_path):
    map_file = tmp_path / "private/names.csv"
    with pytest.raises(UsageError) as caught:
        anonymize(ward, output=tmp_path / "out", options=Options(rename_map=map_file))
    assert str(caught.value) == f"--rename-map {map_file}: there is no folder {map_file.parent}; make it first"


def test_a_map_that_a_spreadsheet_wrote_is_read_where_it_is_utf_8_and_refused_in_latin_1(ward, tmp_path):
    Film(frames=3).make(ward / "größe.mp4")
    map_file, out = tmp_path / "names.csv", tmp_path / "out"
    anonymize(ward, output=out, options=Options(rename_map=map_file))
    text = map_file.read_text()
    map_file.write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    again = anonymize(ward, output=out, options=Options(rename_map=map_file))
    assert {outcome.status for outcome in again} == {Status.UP_TO_DATE}
    map_file.write_bytes(text.encode("latin-1"))
    line = next(number for number, row in enumerate(text.splitlines(), 1) if "größe" in row)
    with pytest.raises(UsageError, match=rf"names.csv, line {line}: expected .* UTF-8"):
        anonymize(ward, output=out, options=Options(rename_map=map_file))
    assert map_file.read_bytes() == text.encode("latin-1")


def test_a_source_whose_name_is_no_text_is_in_no_map(tmp_path):
    (tmp_path / os.fsdecode(b"broken \xff.mp4")).touch()
    Film(frames=3).make(tmp_path / "a.mp4")
    (tmp_path / "private").mkdir()
    map_file = tmp_path / "private/names.csv"
    outcomes = anonymize(tmp_path, output=tmp_path / "out", options=Options(rename_map=map_file))
    assert sorted(outcome.ok for outcome in outcomes) == [False, True]
    assert list(rows(map_file)) == [str(tmp_path / "a.mp4")]


def test_a_new_map_says_that_it_knows_none_of_the_outputs_there(ward, tmp_path):
    out, watcher = tmp_path / "out", Remembering()
    anonymize(ward / "c.mp4", output=out, options=RENAME)
    for _ in range(2):
        options = Options(rename_map=tmp_path / "names.csv")
        anonymize(ward / "c.mp4", output=out, options=options, watcher=watcher)
    assert len([note for note in watcher.notes if "names.csv is new" in note]) == 1
