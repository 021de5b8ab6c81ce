"""Results are read back as they were written, those of earlier versions too, and other files are refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.made_up import results
from vidveil.core.errors import DataError
from vidveil.core.recipe_keys import _note
from vidveil.evaluation.results import locate, read

COMMITTED = Path(__file__).parents[2] / "benchmarks" / "results" / "raw_puppets.json"


def test_results_are_read_back_as_they_were_written(tmp_path):
    made = results(recipe={"privacy_weight": float("inf")})
    made.write(tmp_path / "results.json")
    again = read(tmp_path / "results.json")
    assert again == replace(made, recipe={"privacy_weight": "inf"})
    assert json.loads((tmp_path / "results.json").read_text())["layout"] == 1


def test_old_names_of_recipe_keys_are_read_with_a_note(capsys):
    old = json.loads(COMMITTED.read_text())
    assert "trunk_lr" in old["recipe"]
    _note.cache_clear()
    found = read(COMMITTED)
    assert found.recipe["backbone_lr"] == old["recipe"]["trunk_lr"]
    assert "trunk_lr" not in found.recipe
    assert "`trunk_lr` is now called `backbone_lr`" in capsys.readouterr().err
    assert found.raw.metrics["linkage_rank1"].value == old["raw"]["metrics"]["linkage_rank1"]["value"]


def test_a_key_under_both_names_is_refused(tmp_path):
    results(recipe={"trunk_lr": 1.0, "backbone_lr": 0.1}).write(tmp_path / "results.json")
    with pytest.raises(DataError, match="is not a result of `vidveil evaluate` .*trunk_lr is the old name"):
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
