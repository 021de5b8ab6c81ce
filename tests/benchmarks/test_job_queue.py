"""A queue of commands: what failed stops what needs it, what is done is not done again."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import job_queue

from vidveil.recipe import as_values, find, read


def test_a_run_of_the_same_name_by_another_command_is_seen(tmp_path):
    job = job_queue.Job("raw", ("evaluate", "control_puppets", "method=raw", "keep=[]", "name=raw"))
    _, recipe, *overrides = job.words
    (tmp_path / job.name).mkdir()
    for extra, strange in (([], False), (["epochs=1"], True)):
        values = as_values(read(find(recipe), [*overrides, *extra]))
        (tmp_path / job.name / "recipe.json").write_text(json.dumps(values))
        assert job_queue.made_otherwise(job, tmp_path) is strange


def test_a_failure_stops_what_needs_it_and_nothing_else(tmp_path, monkeypatch, capsys):
    done = []

    def run(job, *_):
        done.append(job.name)
        return int(job.name == "b")

    monkeypatch.setattr(job_queue, "run", run)
    needs = {"a": (), "b": (), "c": ("b",), "d": ("a",)}
    queue = [job_queue.Job(name, (), of_others) for name, of_others in needs.items()]
    assert job_queue.work(queue, set(), tmp_path, 2, float("inf"), tmp_path) == {"b", "c"}
    assert sorted(done) == ["a", "b", "d"]
    said = capsys.readouterr().out
    assert "b: FAILED" in said
    assert "c: left out, it needs b" in said


def test_what_is_done_is_not_done_again_and_counts_for_others(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(job_queue, "run", lambda job, *_: done.append(job.name) or 0)
    job_queue.work([job_queue.Job("d", (), ("a",))], {"a"}, tmp_path, 1, float("inf"), tmp_path)
    job_queue.work([job_queue.Job("a", ())], {"a"}, tmp_path, 1, float("inf"), tmp_path)
    assert done == ["d"]


def test_several_evaluations_of_one_job_are_done_in_turn_and_what_is_finished_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))
    commands = [("evaluate", "real_table", f"data=ucf101_5:{split}", f"name=row-u{split}") for split in (1, 2, 3)]
    job = job_queue.Job("row-u1", commands[0], also=tuple(commands[1:]))
    assert list(job.runs) == ["row-u1", "row-u2", "row-u3"]
    for name in ("row-u1", "row-u2"):
        (tmp_path / name).mkdir()
    (tmp_path / "row-u1" / "results.json").write_text("{}")
    assert not job.done(tmp_path)
    done = []

    def evaluate(recipe, *overrides, resume):
        done.append((recipe, overrides[1], resume))
        return SimpleNamespace(points=[])

    monkeypatch.setattr("vidveil.evaluation.engine.evaluate", evaluate)
    job_queue.evaluate_all(commands)
    assert done == [("real_table", "name=row-u2", True), ("real_table", "name=row-u3", False)]


def test_a_run_of_another_command_among_several_is_seen(tmp_path):
    commands = [("evaluate", "real_table", f"data=ucf101_5:{split}", f"name=row-u{split}") for split in (1, 2)]
    job = job_queue.Job("row-u1", commands[0], also=(commands[1],))
    for extra, strange in (([], False), (["batch=8"], True)):
        for name, (_, recipe, *overrides) in job.runs.items():
            (tmp_path / name).mkdir(exist_ok=True)
            values = as_values(read(find(recipe), [*overrides, *(extra if name == "row-u2" else [])]))
            (tmp_path / name / "recipe.json").write_text(json.dumps(values))
        assert job_queue.made_otherwise(job, tmp_path) is strange
