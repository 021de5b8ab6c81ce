"""A queue of commands: what failed stops what needs it, what is done is not done again."""

import json
import sys
import threading
from concurrent.futures import wait
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import job_queue

from vidveil.core.recipe import as_values, find, read


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

    def run(jobs, *_):
        done.extend(job.name for job in jobs)
        return {job.name for job in jobs} - {"b"}

    monkeypatch.setattr(job_queue, "run", run)
    needs = {"a": (), "b": (), "c": ("b",), "d": ("a",)}
    queue = [job_queue.Job(name, (), of_others) for name, of_others in needs.items()]
    assert job_queue.work(queue, set(), tmp_path, 2, float("inf"), tmp_path) == {"b", "c"}
    assert sorted(done) == ["a", "b", "d"]
    said = capsys.readouterr().out
    assert "b: FAILED" in said
    assert "c: left out, it needs b" in said


def test_who_finds_no_memory_beside_others_goes_on_beside_fewer_of_them(tmp_path, monkeypatch, capsys):
    begun, free = [], threading.Event()

    def run(jobs, _, logs, __):
        (name,) = (job.name for job in jobs)
        begun.append(name)
        short = name == "b" and begun.count("b") == 1
        if short:
            (logs / "b.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.\n")
        elif name == "a":
            free.wait(10)  # it is still there when b finds no room
        if name == "c":
            free.set()
        return set() if short else {name}

    monkeypatch.setattr(job_queue, "run", run)
    queue = [job_queue.Job("a", ()), job_queue.Job("b", ()), job_queue.Job("c", ()), job_queue.Job("d", (), ("b",))]
    threading.Timer(0.5, free.set).start()
    assert job_queue.work(queue, set(), tmp_path, 2, float("inf"), None) == set()
    assert sorted(begun) == ["a", "b", "b", "c", "d"]
    assert "b: found no memory, goes on later next to 0 others" in capsys.readouterr().out
    assert begun.index("d") > len(begun) - 1 - begun[::-1].index("b")  # who needs it waits


def test_two_that_find_no_memory_at_once_both_go_on(tmp_path, monkeypatch):
    begun, both = [], threading.Barrier(2, timeout=10)

    def run(jobs, _, logs, __):
        name = jobs[0].name
        begun.append(name)
        if begun.count(name) > 1:
            return {name}
        (logs / f"{name}.log").write_text("CUDA out of memory\n")
        both.wait()
        return set()

    monkeypatch.setattr(job_queue, "run", run)
    monkeypatch.setattr(job_queue, "wait", lambda futures, *_: SimpleNamespace(done=wait(futures).done))
    queue = [job_queue.Job("a", ()), job_queue.Job("b", ())]
    assert job_queue.work(queue, set(), tmp_path, 2, float("inf"), None) == set()
    assert sorted(begun) == ["a", "a", "b", "b"]


def test_what_an_earlier_process_said_of_memory_does_not_count(tmp_path, monkeypatch):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("CUDA out of memory\n")
    begun, there = [], threading.Event()

    def run(jobs, _, logs, __):
        name = jobs[0].name
        begun.append(name)
        if name == "b":
            there.wait(10)
            return {name}
        with (logs / "a.log").open("a") as log:
            log.write("ValueError: of another kind\n")
        threading.Timer(0.5, there.set).start()
        return set()

    monkeypatch.setattr(job_queue, "run", run)
    queue = [job_queue.Job("b", ()), job_queue.Job("a", ())]
    assert job_queue.work(queue, set(), tmp_path, 2, float("inf"), None) == {"a"}
    assert sorted(begun) == ["a", "b"]


def test_who_finds_no_memory_alone_has_failed(tmp_path, monkeypatch):
    def run(_, __, logs, ___):
        (logs / "a.log").write_text("CUBLAS_STATUS_ALLOC_FAILED\n")
        return set()

    monkeypatch.setattr(job_queue, "run", run)
    assert job_queue.work([job_queue.Job("a", ())], set(), tmp_path, 4, float("inf"), None) == {"a"}


def test_what_is_done_is_not_done_again_and_counts_for_others(tmp_path, monkeypatch):
    done = []

    def run(jobs, *_):
        done.extend(job.name for job in jobs)
        return {job.name for job in jobs}

    monkeypatch.setattr(job_queue, "run", run)
    job_queue.work([job_queue.Job("d", (), ("a",))], {"a"}, tmp_path, 1, float("inf"), tmp_path)
    job_queue.work([job_queue.Job("a", ())], {"a"}, tmp_path, 1, float("inf"), tmp_path)
    assert done == ["d"]


def test_several_evaluations_of_one_job_are_done_in_turn_whatever_fails_and_what_is_finished_is_left_alone(
    tmp_path, monkeypatch, capsys
):
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
        if overrides[1] in fails:
            raise RuntimeError("no memory")
        return SimpleNamespace(points=[])

    monkeypatch.setattr("vidveil.app.run_recipe.evaluate", evaluate)
    for fails in ([], ["name=row-u2"]):
        done.clear()
        assert job_queue.evaluate_all(commands) == (not fails)
        assert done == [("real_table", "name=row-u2", True), ("real_table", "name=row-u3", False)]
    assert "no memory" in capsys.readouterr().err


def test_a_run_of_another_command_among_several_is_seen(tmp_path):
    commands = [("evaluate", "real_table", f"data=ucf101_5:{split}", f"name=row-u{split}") for split in (1, 2)]
    job = job_queue.Job("row-u1", commands[0], also=(commands[1],))
    for extra, strange in (([], False), (["batch=8"], True)):
        for name, (_, recipe, *overrides) in job.runs.items():
            (tmp_path / name).mkdir(exist_ok=True)
            values = as_values(read(find(recipe), [*overrides, *(extra if name == "row-u2" else [])]))
            (tmp_path / name / "recipe.json").write_text(json.dumps(values))
        assert job_queue.made_otherwise(job, tmp_path) is strange


def test_jobs_that_share_a_process_begin_together_as_far_as_they_can(tmp_path, monkeypatch):
    begun = []

    def run(jobs, *_):
        begun.append([job.name for job in jobs])
        return {job.name for job in jobs}

    monkeypatch.setattr(job_queue, "run", run)
    needs = {"raw": (), "row": ("raw",), "net": (), "learned": ("raw", "net"), "other": ("raw",)}
    queue = [
        job_queue.Job(name, (), before, together="" if name in ("net", "other") else "t")
        for name, before in needs.items()
    ]
    assert job_queue.work(queue, set(), tmp_path, 1, float("inf"), None) == set()
    assert begun == [["raw", "row"], ["net"], ["learned"], ["other"]]


def test_who_waits_for_one_of_several_jobs_of_a_process_does_not_wait_for_the_others(tmp_path, monkeypatch):
    begun = threading.Event()

    def run(jobs, *_):
        if jobs[0].name == "row":
            begun.set()
            return {"row"}
        (tmp_path / "raw").mkdir()
        (tmp_path / "raw" / "results.json").write_text("{}")
        return {"raw", "other"} if begun.wait(20) else set()

    monkeypatch.setattr(job_queue, "run", run)
    monkeypatch.setattr(job_queue, "POLL", 0.01)
    words = ("evaluate", "real_table")
    queue = [job_queue.Job(name, (*words, f"name={name}"), together="t") for name in ("raw", "other")]
    queue.append(job_queue.Job("row", (*words, "name=row"), ("raw",)))
    assert job_queue.work(queue, set(), tmp_path, 2, float("inf"), None) == set()


def test_of_jobs_that_share_a_process_those_that_left_results_are_done(tmp_path):
    (tmp_path / "logs").mkdir()
    jobs = [job_queue.Job(name, ("evaluate", "no_such_recipe", f"name={name}")) for name in ("raw", "row")]
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "results.json").write_text('{"a": 1}')
    assert job_queue.run(jobs, tmp_path, tmp_path / "logs", tmp_path / "into") == {"raw"}
    assert (tmp_path / "into" / "raw.json").read_text() == '{"a": 1}\n'
    assert "no_such_recipe" in (tmp_path / "logs" / "raw.log").read_text()


def test_jobs_come_in_the_order_of_asking_behind_what_they_need():
    needs = {"a": (), "b": ("a",), "c": (), "d": ("c", "b")}
    queue = [job_queue.Job(name, (), before, of=name) for name, before in needs.items()]
    assert [job.name for job in job_queue.wanted(queue, ["d", "a"])] == ["c", "a", "b", "d"]
    assert [job.name for job in job_queue.wanted(queue, ["c", "b"])] == ["c", "a", "b"]
