"""A queue of commands: what a failed job stops, what is done, and what is tried again."""

import json
import threading
from concurrent.futures import wait
from types import SimpleNamespace

import pytest

from experiments import job_queue
from experiments.job_queue import Job, run_queue, select
from vidveil.core.recipe import as_values, find, read

EVALUATIONS = tuple(("evaluate", "real_table", f"data=ucf101_5:{split}", f"name=row-u{split}") for split in (1, 2, 3))


def job(name, needs=(), **more):
    return Job(name, (), needs, **more)


def queue(jobs, runs, workers=2, done=()):
    """The failed jobs."""
    return run_queue(jobs, set(done), runs, workers, float("inf"), None)


@pytest.fixture
def started(monkeypatch):
    """Lists of jobs that were started together, all of which succeed, except those in `started.failing`."""

    class Started(list):
        failing = frozenset()

    found = Started()

    def run(jobs, *_):
        found.append([job.name for job in jobs])
        return {job.name for job in jobs} - found.failing

    monkeypatch.setattr(job_queue, "run", run)
    return found


@pytest.mark.parametrize("changed", [None, "row-u1", "row-u2"])
def test_a_run_of_the_same_name_by_another_command_is_noticed(tmp_path, changed):
    several = Job("row-u1", EVALUATIONS[:2])
    for name, (_, recipe, *overrides) in several.runs.items():
        (tmp_path / name).mkdir()
        values = as_values(read(find(recipe), [*overrides, *(["batch=8"] if name == changed else [])]))
        (tmp_path / name / "recipe.json").write_text(json.dumps(values))
    assert job_queue.has_other_recipe(several, tmp_path) is (changed is not None)


def test_a_failure_stops_jobs_that_need_it_and_no_others(tmp_path, started, capsys):
    started.failing = {"b"}
    jobs = [job("a"), job("b"), job("c", ("b",)), job("d", ("a",))]
    assert queue(jobs, tmp_path) == {"b", "c"}
    assert sorted(name for names in started for name in names) == ["a", "b", "d"]
    printed = capsys.readouterr().out
    assert "b: FAILED" in printed
    assert "c: left out, it needs b" in printed


def test_a_job_out_of_memory_next_to_others_waits_for_fewer_of_them(tmp_path, monkeypatch, capsys):
    begun, free = [], threading.Event()

    def run(jobs, _, logs, __):
        (name,) = (job.name for job in jobs)
        begun.append(name)
        short = name == "b" and begun.count("b") == 1
        if short:
            (logs / "b.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.\n")
        elif name == "a":
            free.wait(10)  # it is still running when b fails
        if name == "c":
            free.set()
        return set() if short else {name}

    monkeypatch.setattr(job_queue, "run", run)
    threading.Timer(0.5, free.set).start()
    assert queue([job("a"), job("b"), job("c"), job("d", ("b",))], tmp_path) == set()
    assert sorted(begun) == ["a", "b", "b", "c", "d"]
    assert "b: out of memory, tried again next to 0 others" in capsys.readouterr().out
    assert begun.index("d") > len(begun) - 1 - begun[::-1].index("b")  # d needs b


def test_two_jobs_out_of_memory_at_once_are_both_tried_again(tmp_path, monkeypatch):
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
    assert queue([job("a"), job("b")], tmp_path) == set()
    assert sorted(begun) == ["a", "a", "b", "b"]


def test_missing_memory_in_the_log_of_an_earlier_process_does_not_count(tmp_path, monkeypatch):
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
    assert queue([job("b"), job("a")], tmp_path) == {"a"}
    assert sorted(begun) == ["a", "b"]


def test_a_job_out_of_memory_alone_has_failed(tmp_path, monkeypatch):
    def run(_, __, logs, ___):
        (logs / "a.log").write_text("CUBLAS_STATUS_ALLOC_FAILED\n")
        return set()

    monkeypatch.setattr(job_queue, "run", run)
    assert queue([job("a")], tmp_path, workers=4) == {"a"}


def test_a_finished_job_is_not_run_again_and_counts_for_others(tmp_path, started):
    queue([job("a"), job("d", ("a",))], tmp_path, done={"a"})
    assert started == [["d"]]


def test_commands_of_a_job_run_one_after_the_other_even_if_one_fails_and_finished_ones_are_skipped(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))
    for name in ("row-u1", "row-u2"):
        (tmp_path / name).mkdir()
    (tmp_path / "row-u1" / "results.json").write_text("{}")
    assert not Job("row-u1", EVALUATIONS).done(tmp_path)
    done = []

    def evaluate(recipe, *overrides, resume):
        done.append((recipe, overrides[1], resume))
        if overrides[1] in fails:
            raise RuntimeError("no memory")

    monkeypatch.setattr("vidveil.app.run_recipe.evaluate", evaluate)
    for fails in ([], ["name=row-u2"]):
        done.clear()
        assert job_queue.run_all(EVALUATIONS) == (not fails)
        assert done == [("real_table", "name=row-u2", True), ("real_table", "name=row-u3", False)]
    assert "no memory" in capsys.readouterr().err


def test_jobs_that_share_a_process_start_together_as_far_as_they_can(tmp_path, started):
    needs = {"raw": (), "row": ("raw",), "net": (), "learned": ("raw", "net"), "other": ("raw",)}
    jobs = [job(name, before, together="" if name in ("net", "other") else "t") for name, before in needs.items()]
    assert queue(jobs, tmp_path, workers=1) == set()
    assert started == [["raw", "row"], ["net"], ["learned"], ["other"]]


def test_a_job_that_needs_one_of_several_in_a_process_does_not_wait_for_the_others(tmp_path, monkeypatch):
    begun = threading.Event()

    def run(jobs, *_):
        if jobs[0].name == "row":
            begun.set()
            return {"row"}
        (tmp_path / "raw").mkdir()
        (tmp_path / "raw" / "results.json").write_text("{}")
        return {"raw", "other"} if begun.wait(20) else set()

    monkeypatch.setattr(job_queue, "run", run)
    monkeypatch.setattr(job_queue, "POLL_SECONDS", 0.01)
    raw, other, row = ((("evaluate", "real_table", f"name={name}"),) for name in ("raw", "other", "row"))
    jobs = [Job("raw", raw, together="t"), Job("other", other, together="t"), Job("row", row, ("raw",))]
    assert queue(jobs, tmp_path) == set()


def test_of_jobs_that_share_a_process_those_with_results_are_done(tmp_path):
    (tmp_path / "logs").mkdir()
    jobs = [Job(name, (("evaluate", "no_such_recipe", f"name={name}"),)) for name in ("raw", "row")]
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "results.json").write_text('{"a": 1}')
    assert job_queue.run(jobs, tmp_path, tmp_path / "logs", tmp_path / "into") == {"raw"}
    assert (tmp_path / "into" / "raw.json").read_text() == '{"a": 1}\n'
    assert "no_such_recipe" in (tmp_path / "logs" / "raw.log").read_text()


def test_jobs_are_selected_in_the_order_of_asking_each_after_what_it_needs():
    needs = {"a": (), "b": ("a",), "c": (), "d": ("c", "b")}
    jobs = [job(name, before, row=name) for name, before in needs.items()]
    assert [one.name for one in select(jobs, ["d", "a"])] == ["c", "a", "b", "d"]
    assert [one.name for one in select(jobs, ["c", "b"])] == ["c", "a", "b"]
    with pytest.raises(SystemExit, match="there is no 'e'; there are: a, b, c, d"):
        select(jobs, ["a", "e"])
