"""The log: lines of JSON, curves for TensorBoard, a progress bar on terminals and a few lines elsewhere."""

import io
import json
import math
import re
import socket

import pytest
from rich.console import Console

from tests.training.toy import Sums, accuracy, loss, network, train
from vidveil.core import progress as reporting
from vidveil.training.events import EventFile
from vidveil.training.log import Log, file_name
from vidveil.training.loop import fit
from vidveil.training.options import Options


def lines(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_each_line_is_an_object_with_its_time_and_event(tmp_path):
    train(tmp_path, log_every=20)
    written = lines(tmp_path)
    assert [line["event"] for line in written] == [
        "started",
        "epoch",
        "step",
        "epoch",
        "epoch",
        "step",
        "epoch",
        "finished",
    ]
    assert all(line["time"] > 1e9 for line in written)
    assert [line["step"] for line in written if line["event"] == "epoch"] == [10, 20, 30, 40]
    assert {"loss", "lr", "gradient"} <= written[2].keys()
    assert {"train_loss", "top1", "seconds"} <= written[1].keys()


def test_numbers_that_are_not_finite_become_null(tmp_path):
    log = Log(tmp_path)
    log.write("odd", a=math.nan, b=[math.inf, 1], c={"d": tmp_path})
    log.close()
    assert lines(tmp_path)[0] | {"time": 0} == {
        "time": 0,
        "event": "odd",
        "a": None,
        "b": [None, 1],
        "c": {"d": str(tmp_path)},
    }


def test_half_a_line_of_a_killed_run_does_not_spoil_the_next(tmp_path):
    (tmp_path / "log.jsonl").write_bytes(b'{"event": "st')
    log = Log(tmp_path)
    log.write("whole")
    log.close()
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[1])["event"] == "whole"


def test_tensorboard_reads_the_curves_and_drops_steps_that_were_repeated(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    first = EventFile(tmp_path)
    for step in (10, 20, 300):
        first.add(step, {"loss": step / 10, "größe/x": 1.0})
    first.close()
    second = EventFile(tmp_path, first_step=300)
    second.add(300, {"loss": 7.5})
    second.close()
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(10, 1.0), (20, 2.0), (300, 7.5)]
    assert events.Scalars("größe/x")[0].value == 1.0


def test_names_of_event_files_do_not_hold_the_name_of_the_machine(tmp_path):
    train(tmp_path)
    (path,) = tmp_path.rglob("events*")
    assert socket.gethostname() not in path.name


def shown_on(console, **options):
    fit(
        network(),
        batches=Sums(),
        loss=loss,
        validate=accuracy,
        options=Options(epochs=4, device="cpu", **options),
        console=console,
        label="toy",
    )
    return console.file.getvalue()


def test_a_terminal_gets_a_bar_with_the_time_left(monkeypatch):
    monkeypatch.setattr(reporting, "TICK", 0.001)
    shown = shown_on(Console(file=io.StringIO(), force_terminal=True, width=120))
    assert "toy: epoch 4/4  train_loss" in shown
    assert "0:00" in shown


def test_elsewhere_there_is_a_line_now_and_then_and_none_from_a_short_run(monkeypatch):
    assert shown_on(Console(file=io.StringIO())) == ""
    monkeypatch.setattr(reporting, "INTERVAL", 0.001)
    lines = shown_on(Console(file=io.StringIO(), width=40)).splitlines()
    assert any(re.fullmatch(r"toy: \d+ of 40 steps, \d+ %, .*; epoch \d/4  train_loss .*", line) for line in lines)


def test_labels_become_names_of_files():
    assert file_name("attacker r3d/x, seed=0") == "attacker_r3d_x_seed=0"
    assert file_name("../..") == "fit"
