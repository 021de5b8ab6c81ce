"""Results are read back as they were written, those of earlier versions too, and other files are refused."""

import json
from pathlib import Path

import pytest

from tests.report.made_up import results
from vidveil.core.errors import DataError
from vidveil.core.recipe_keys import _note
from vidveil.evaluation.results import locate, read

COMMITTED = Path(__file__).parents[2] / "experiments" / "raw_video" / "results" / "raw_puppets.json"


def test_results_are_read_back_as_they_were_written(tmp_path):
    made = read(COMMITTED)
    made.write(tmp_path / "results.json")
    assert read(tmp_path / "results.json") == made
    assert json.loads((tmp_path / "results.json").read_text())["layout"] == 1


def test_old_names_of_recipe_keys_are_read_with_a_note(tmp_path, capsys):
    old = json.loads(COMMITTED.read_text())
    old["recipe"] = {"trunk_lr" if key == "backbone_lr" else key: value for key, value in old["recipe"].items()}
    (tmp_path / "results.json").write_text(json.dumps(old))
    _note.cache_clear()
    assert read(tmp_path / "results.json") == read(COMMITTED)
    assert "`trunk_lr` is now called `backbone_lr`" in capsys.readouterr().err


def test_a_key_under_both_names_is_refused(tmp_path):
    results(recipe={"trunk_lr": 1.0, "backbone_lr": 0.1}).write(tmp_path / "results.json")
    with pytest.raises(DataError, match="trunk_lr is the old name of backbone_lr"):
        read(tmp_path / "results.json")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"layout": 99}', "layout 99"),
        ("[]", "is not a result"),
        ('{"layout": 1}', "raw is missing"),
        (None, "there are no results"),
    ],
)
def test_other_files_are_refused(tmp_path, text, reason):
    if text is not None:
        (tmp_path / "results.json").write_text(text)
    with pytest.raises(DataError, match=reason):
        read(locate(str(tmp_path)))
