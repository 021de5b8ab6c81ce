"""What a person sees of `vidveil review`, and what a script does."""

from functools import partial

import pytest

from tests.app.manifests import moment, write_manifest
from tests.command import vidveil
from tests.media import Film
from vidveil.core.errors import UsageError

review = partial(vidveil, "review")


@pytest.fixture
def output(tmp_path):
    return Film(frames=20).make(tmp_path / "clip_anonymized.mp4")


def test_the_list_comes_first_then_the_sheet_then_what_to_do(output):
    result = review(write_manifest(output, moment(first=2, last=6, rate=25)))
    assert result.exit_code == 0, result.output
    sheet = output.with_name("clip_review.png")
    assert sheet.exists()
    lines = [line.split("  ")[0] for line in result.stdout.splitlines()]
    assert lines[1:5] == ["0:00:00.080-0:00:00.240", "1 moment to look at: 1 gap", f"sheet: {sheet}", "gap"]
    assert "--on-lost hide" in result.stdout.splitlines()[-1]
    assert not result.stderr


def test_the_limit_holds_for_the_sheet_and_not_for_the_list(output):
    result = review(write_manifest(output, *(moment(first=i, last=i, rate=25) for i in range(9))), "--limit", 4)
    assert result.stdout.count("track 3 (faces)") == 9
    assert "the 4 most serious of 9 moments" in result.stdout


def test_a_limit_of_nothing_draws_no_sheet(output):
    assert review(write_manifest(output, moment(first=2, last=6)), "--limit", 0).exit_code == 0
    assert not output.with_name("clip_review.png").exists()


@pytest.mark.parametrize(
    ("moments", "left_out", "strict", "code"),
    [(1, 0, False, 0), (1, 0, True, 1), (0, 1, True, 1), (0, 0, True, 0), (0, 0, False, 0)],
)
def test_moments_fail_a_script_only_where_it_is_strict(output, moments, left_out, strict, code):
    path = write_manifest(output, *[moment(first=2, last=6, rate=25)] * moments, left_out=left_out)
    assert review(path, *["--strict"] * strict).exit_code == code


@pytest.mark.parametrize("change", [lambda output: output.unlink(), lambda output: Film(frames=9).make(output)])
def test_an_output_that_does_not_match_its_manifest_is_a_warning_and_fails_where_strict(output, change):
    path = write_manifest(output)
    change(output)
    result = review(path)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: clip_anonymized.mp4 ")
    assert review(path, "--strict").exit_code == 1


def test_several_are_listed_one_after_the_other_and_explained_once(tmp_path, output):
    other = Film(frames=5).make(tmp_path / "door.mp4")
    paths = (
        write_manifest(output, moment(first=2, last=6, rate=25)),
        write_manifest(other, moment(first=0, last=1, rate=25)),
    )
    (tmp_path / "notes.json").write_text("{}")
    result = review(paths[0], tmp_path / "notes.json", paths[1])
    assert result.exit_code == 1
    assert result.stdout.count("sheet: ") == 2
    assert result.stdout.count("--tracks-in") == 1
    assert result.stderr.count("error: ") == 1
    assert f"error: {tmp_path / 'notes.json'}: is not a manifest, or is damaged\n" in result.stderr


def test_two_manifests_do_not_draw_on_one_sheet(tmp_path, output):
    other = Film(frames=5).make(tmp_path / "clip.mp4")
    result = review(*(write_manifest(file, moment(first=0, last=1, rate=25)) for file in (output, other)))
    assert result.exit_code == 1
    assert "is the sheet of another manifest" in result.stderr


def test_a_sheet_can_have_another_name(tmp_path, output):
    result = review(write_manifest(output, moment(first=2, last=6, rate=25)), "-o", tmp_path / "look.png")
    assert result.exit_code == 0
    assert (tmp_path / "look.png").exists()
    assert not (tmp_path / "clip_review.png").exists()


def test_a_name_that_makes_no_sense_for_a_sheet_is_refused(output):
    path = write_manifest(output, moment(first=2, last=6))
    assert isinstance(review(path, "-o", "look.jpg").exception, UsageError)
    assert isinstance(review(path, path, "-o", "look.png").exception, UsageError)


def test_a_folder_that_is_not_there_is_one_line(tmp_path, output):
    result = review(write_manifest(output, moment(first=2, last=6, rate=25)), "-o", tmp_path / "nowhere" / "look.png")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: ")


def test_a_sheet_from_before_is_not_left_unmentioned(output):
    review(write_manifest(output, moment(first=2, last=6, rate=25)))
    result = review(write_manifest(output))
    assert "no moments to look at" in result.stdout
    assert "clip_review.png is of an earlier review" in result.stderr


def test_a_manifest_cannot_write_commands_to_the_terminal(output):
    result = review(write_manifest(output, moment("gap\x1b[2J", first=2, last=6, rate=25)))
    assert "gap?[2J" in result.stdout
    assert "\x1b" not in result.stdout
