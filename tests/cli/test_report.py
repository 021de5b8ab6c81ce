"""What a person sees of `vidveil report`, and what a script does."""

import json
from functools import partial

import cv2
import pytest

from tests.command import vidveil
from tests.report.made_up import on_disk, results
from vidveil.core.errors import DataError, OutputError, UsageError

report = partial(vidveil, "report")


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    on_disk(tmp_path / "runs", "dual", [(0.9, 9, 5), (0.5, 5, 1)])
    on_disk(tmp_path / "runs", "blur", [(None, 7, 7)])
    return tmp_path / "runs"


def refusal(result, kind):
    """The one line that a person reads."""
    assert isinstance(result.exception, kind), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_runs_are_found_by_name_by_folder_and_by_file(runs):
    by_name = report("dual", "blur")
    assert by_name.exit_code == 0, by_name.output
    assert "## Compared, on the same clips" in by_name.output
    assert report(runs / "dual", runs / "blur" / "results.json").output == by_name.output


def test_the_same_run_by_two_names_is_one(runs):
    assert report("blur", runs / "blur").output == report("blur").output


def test_a_report_is_a_page_and_a_picture_in_a_folder_that_is_made(tmp_path):
    page = tmp_path / "new" / "place" / "compared.md"
    result = report("dual", "blur", "-o", page)
    assert result.exit_code == 0, result.output
    assert result.output.strip() == f"wrote {page} and {page.with_suffix('.png')}"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("## Compared\n")
    assert text.endswith("![utility](compared.png)\n")  # these made-up results have no excess
    assert cv2.imread(str(page.with_suffix(".png"))).shape[0] > 400


def test_a_name_that_is_no_markdown_file_is_refused_before_anything_is_read(tmp_path):
    assert "name a file in it" in refusal(report("nobody", "-o", tmp_path), UsageError)
    assert "report.md" in refusal(report("nobody", "-o", "report.png"), UsageError)


def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    assert "cannot be written" in refusal(report("blur", "-o", tmp_path / "file" / "report.md"), OutputError)


def test_a_slip_in_the_name_is_answered_with_a_name(runs):
    (runs / "blur" / "recipe.json").write_text("{}")
    assert refusal(report("blurr"), DataError).endswith("did you mean blur?")
    assert refusal(report("something"), DataError).endswith("`vidveil ls runs` shows which there are")


def test_a_run_without_results_says_how_it_stands(runs):
    (runs / "late").mkdir()
    (runs / "late" / "recipe.json").write_text("{}")
    (runs / "late" / "state.json").write_text(json.dumps({"state": "failed", "reason": "out of memory"}))
    for name in ("late", runs / "late"):
        assert refusal(report(name), DataError) == "run 'late' has no results yet: it is failed (out of memory)"


def test_a_run_that_trained_is_measured_by_another_command(runs):
    (runs / "made").mkdir()
    (runs / "made" / "recipe.json").write_text("{}")
    (runs / "made" / "state.json").write_text(json.dumps({"state": "done"}))
    assert "vidveil evaluate measures" in refusal(report("made"), DataError)


def test_a_report_takes_the_place_of_a_report_and_of_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    assert report("blur", "-o", page).exit_code == 0
    assert report("blur", "-o", page).exit_code == 0
    for mine in (tmp_path / "notes.md", tmp_path / "graph.png"):
        mine.write_text("mine")
        assert "is no report" in refusal(report("blur", "-o", mine.with_suffix(".md")), OutputError)
        assert mine.read_text() == "mine"


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff\xfe", b'{"layout": 99}'])
def test_a_file_that_holds_no_results_is_one_line(tmp_path, content):
    (tmp_path / "other.json").write_bytes(content)
    assert "other.json" in refusal(report(tmp_path / "other.json"), DataError)


def test_raw_video_alone_can_be_reported(tmp_path):
    results().write(tmp_path / "raw.json")
    assert "## raw_puppets" in report(tmp_path / "raw.json").output
