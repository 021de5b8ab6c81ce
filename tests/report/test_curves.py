"""What a training did, epoch by epoch, as a picture and a table."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from tests.training.test_learners import ATTACKERS, HIDER, OPTIONS, Networks, train
from vidveil.cli.report import app
from vidveil.core.errors import DataError
from vidveil.report.curves import curves, kind_of, read_curves, text_of
from vidveil.training.learner import Restart


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))
    return tmp_path


@pytest.fixture
def run(runs):
    """A run with one training of two networks, with restarts and a problem."""
    folder = runs / "mine"
    restarted = replace(ATTACKERS, restart=Restart(12, lambda: Networks().attackers), guess=1e-3)
    train(
        folder,
        learners=(HIDER, restarted),
        options=replace(OPTIONS, validate_every=2),
        validate=lambda _: {"top1": 0.5},
    )
    return folder


def test_every_number_of_every_epoch_is_read_and_has_a_panel(run):
    (one,) = read_curves(run)
    assert sorted(one.epochs) == [1, 2, 3, 4]
    assert one.column("hider/train_loss/privacy")[0] == [1, 2, 3, 4]
    assert one.column("top1") == ([2, 4], [0.5, 0.5])
    assert one.restarts == [12, 24, 36]
    assert any("no better than a guess" in problem for problem in one.problems)
    assert {kind_of(name) for name in one.names} == {"loss", "gradient", "validation"}


def test_after_a_resumption_the_later_line_counts_and_half_a_line_is_passed_over(tmp_path):
    lines = [
        {"event": "epoch", "fit": "a", "epoch": e, "train_loss": loss} for e, loss in ((1, 3.0), (2, 2.0), (2, 1.5))
    ]
    text = "\n".join(map(json.dumps, lines))
    (tmp_path / "log.jsonl").write_text(f'{text}\n{{"event": "epo')
    (one,) = read_curves(tmp_path)
    assert one.column("train_loss") == ([1, 2], [3.0, 1.5])


def test_a_folder_without_a_log_is_named(tmp_path):
    with pytest.raises(DataError, match=r"log\.jsonl cannot be read"):
        read_curves(tmp_path)


def test_the_picture_and_the_table_are_made(run, tmp_path):
    trainings = read_curves(run)
    curves(trainings, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    text = text_of(trainings, "c.png")
    assert "| hider/train_loss |" in text
    assert "no better than a guess" in text
    assert "![curves](c.png)" in text


def test_the_command_draws_the_curves_of_a_run_without_results(run, tmp_path):
    page = tmp_path / "page.md"
    for _ in range(2):  # a report may take the place of a report
        done = CliRunner().invoke(app, ["mine", "-o", str(page)])
        assert done.exit_code == 0, done.output
    assert "![curves](page.png)" in page.read_text()
    done = CliRunner().invoke(app, [str(run)])
    assert "hider/train_loss" in done.output


def test_a_training_that_has_just_begun_has_no_curve(runs):
    (runs / "new").mkdir()
    (runs / "new" / "log.jsonl").write_text('{"event": "started", "fit": "a", "steps": 10, "epochs": 2}\n')
    done = CliRunner().invoke(app, ["new"])
    assert done.exit_code != 0
