"""Folders of runs: one name, one run, one process."""

import getpass
import json
import os
import socket
import subprocess
from pathlib import Path
from time import sleep

import pytest

from tests.training.toy import PROCESSES
from vidveil.core import machine
from vidveil.core.errors import OutputError, TrainingError, UsageError
from vidveil.core.machine import commit, describe
from vidveil.training.runs import Run, list_runs


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("RANK", raising=False)
    return tmp_path / "runs"


def test_a_run_records_its_recipe_its_machine_and_how_it_ended(folder):
    with Run.create("first", {"data": "puppets", "seeds": (0, 1)}) as run:
        assert list_runs()[0].state == "running"
        run.log.write("something", value=1)
    files = {path.name for path in (folder / "first").iterdir()}
    assert {"recipe.json", "machine.json", "state.json", "log.jsonl"} <= files
    (info,) = list_runs()
    assert (info.name, info.state, info.recipe) == ("first", "done", {"data": "puppets", "seeds": [0, 1]})
    events = [json.loads(line)["event"] for line in (folder / "first" / "log.jsonl").read_text().splitlines()]
    assert events == ["run started", "something", "run done"]


def test_runs_are_in_the_current_folder_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("VIDVEIL_RUNS")
    monkeypatch.chdir(tmp_path)
    Run.create("here", {}).finish()
    assert (tmp_path / "runs" / "here" / "state.json").exists()


def test_a_second_run_of_a_name_is_refused(folder):
    Run.create("a", {}).finish()
    before = (folder / "a" / "log.jsonl").read_bytes()
    with pytest.raises(UsageError, match=r"run 'a' is done: choose another name by name=…, or delete .*runs/a"):
        Run.create("a", {})
    with pytest.raises(UsageError, match="nothing to resume"):
        Run.create("a", {}, resume=True)
    assert (folder / "a" / "log.jsonl").read_bytes() == before


def test_a_run_that_failed_says_why_and_can_be_resumed():
    with pytest.raises(TrainingError), Run.create("a", {"lr": 1}):
        raise TrainingError("the loss is nan")
    assert (list_runs()[0].state, list_runs()[0].reason) == ("failed", "the loss is nan")
    with pytest.raises(UsageError, match="not finished: continue it with --resume, choose"):
        Run.create("a", {"lr": 1})
    with pytest.raises(UsageError, match="lr was 1, is 2"):
        Run.create("a", {"lr": 2}, resume=True)
    started = list_runs()[0].started
    with Run.create("a", {"lr": 1}, resume=True):
        pass
    assert (list_runs()[0].state, list_runs()[0].started) == ("done", started)


def test_ctrl_c_is_no_failure():
    with pytest.raises(KeyboardInterrupt), Run.create("a", {}):
        raise KeyboardInterrupt
    assert list_runs()[0].state == "interrupted"


def hold(folder, ready):
    os.environ["VIDVEIL_RUNS"] = str(folder)
    run = Run.create("a", {})
    ready.set()
    sleep(300)
    run.finish()


def test_two_processes_do_not_share_a_run_and_a_killed_one_lets_go(folder):
    ready = PROCESSES.Event()
    process = PROCESSES.Process(target=hold, args=(folder, ready), daemon=True)
    process.start()
    assert ready.wait(60)
    assert list_runs()[0].state == "running"
    with pytest.raises(UsageError, match="another process"):
        Run.create("a", {}, resume=True)
    process.kill()
    process.join()
    assert (list_runs()[0].state, list_runs()[0].reason) == ("interrupted", "killed, or the machine went down")
    Run.create("a", {}, resume=True).finish()


def test_resuming_a_mistyped_name_suggests_the_right_one():
    Run.create("raw_puppets", {}).finish()
    with pytest.raises(UsageError, match="did you mean raw_puppets"):
        Run.create("raw_pupets", {}, resume=True)
    assert [info.name for info in list_runs()] == ["raw_puppets"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "/tmp/x", ".hidden", "a b", "x" * 101, "a\n"])
def test_names_stay_in_the_folder(name):
    with pytest.raises(UsageError, match="no name for a run"):
        Run.create(name, {})


def test_a_folder_that_cannot_be_made_is_one_line(folder):
    folder.write_text("a file")
    with pytest.raises(OutputError, match="cannot be written to"):
        Run.create("a", {})


def test_damaged_files_do_not_hide_the_other_runs(folder):
    Run.create("a", {}).finish()
    Run.create("b", {}).finish()
    (folder / "a" / "state.json").write_text("{")
    assert {info.name: info.state for info in list_runs()} == {"a": "unknown", "b": "done"}


def test_other_ranks_write_nothing(folder, monkeypatch):
    with Run.create("a", {}):
        monkeypatch.setenv("RANK", "1")
        with Run.create("a", {}) as other:
            other.log.write("nothing")
        assert list_runs()[0].state == "running"
    monkeypatch.delenv("RANK")
    assert "nothing" not in (folder / "a" / "log.jsonl").read_text()


def test_the_machine_is_described_without_names_of_hosts_users_or_folders(monkeypatch):
    monkeypatch.setenv("VIDVEIL_COMMIT", "abc")
    text = json.dumps(describe())
    assert json.loads(text)["commit"] == "abc"
    assert {"versions", "processor", "cores", "device"} <= json.loads(text).keys()
    for secret in (socket.gethostname(), str(Path.home()), str(Path(__file__).parent)):
        assert secret not in text
    if len(getpass.getuser()) > 4:
        assert getpass.getuser() not in text


def test_an_installation_inside_somebody_elses_repository_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.delenv("VIDVEIL_COMMIT", raising=False)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    inside = tmp_path / "site" / "vidveil" / "training" / "machine.py"
    inside.parent.mkdir(parents=True)
    monkeypatch.setattr(machine, "__file__", str(inside))
    assert commit() is None
