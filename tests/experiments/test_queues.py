"""Queues of all studies: every command is one that vidveil accepts, and comes after what it needs."""

import pytest

from experiments.dual_cls import table as dual_cls
from experiments.real_video import figure_table
from experiments.real_video import table as real_video
from experiments.splavu import gait_bias, tasks
from experiments.splavu import table as splavu
from experiments.stprivacy import figure4
from vidveil.core.recipe import find, read, read_for

QUEUES = {
    "dual_cls": dual_cls.jobs("0", 0),
    "dual_cls, another world": dual_cls.jobs("0.5", 3),
    "figure4": figure4.jobs("0.5"),
    "real_video": real_video.jobs(),
    "figure_table": figure_table.jobs(),
    "splavu": splavu.jobs(),
    "tasks": tasks.jobs(),
    "gait_bias": gait_bias.jobs(),
}
every_queue = pytest.mark.parametrize("jobs", QUEUES.values(), ids=QUEUES)
SAME_DATA = [name for name in QUEUES if name not in ("tasks", "gait_bias")]
"""Studies whose networks are evaluated on the data that they were trained on."""


def commands(jobs):
    return {name: words for job in jobs for name, words in job.runs.items()}


@every_queue
def test_every_command_is_a_recipe_with_fields_that_exist_and_a_name_of_its_own(jobs):
    assert len(commands(jobs)) == sum(len(job.commands) for job in jobs)
    for name, (verb, recipe, *overrides) in commands(jobs).items():
        assert read_for(verb, find(recipe), overrides).name == name


@every_queue
def test_a_job_comes_after_what_it_needs(jobs):
    before = set()
    for job in jobs:
        assert before >= set(job.needs)
        before.add(job.name)


@every_queue
def test_what_a_command_reads_is_made_by_the_jobs_that_its_job_needs(jobs):
    made = {job.name: set(job.runs) for job in jobs}
    for job in jobs:
        available = set().union(*(made[name] for name in job.needs))
        for _, _, *words in job.commands:
            for word in words:
                key, _, value = word.partition("=")
                runs = {value} if key == "raw" else set()
                if key == "method" and value.rpartition(":")[0].endswith(("dual_cls", "stprivacy", "splavu")):
                    network = value.rpartition(":")[2]
                    runs = {network.replace("{seed}", str(seed)) for seed in (0, 1, 2)}
                assert runs <= available, (job.name, word)


@every_queue
def test_raw_video_that_a_row_is_compared_with_is_evaluated_alike(jobs):
    known = commands(jobs)
    same = ("data", "part", "utility", "attackers", "views", "epochs", "size", "batch", "encoder", "seeds")
    for verb, recipe, *overrides in known.values():
        row = read(find(recipe), overrides)
        if verb == "evaluate" and vars(row).get("raw"):
            _, raw_recipe, *raw_overrides = known[row.raw]
            raw = read(find(raw_recipe), raw_overrides)
            assert raw.method == ("raw",)
            assert [vars(raw).get(key) for key in same] == [vars(row).get(key) for key in same]


@pytest.mark.parametrize("study", SAME_DATA)
def test_networks_are_evaluated_on_the_data_that_they_were_trained_on(study):
    known = commands(QUEUES[study])
    same = ("data", "part", "encoder", "half")
    for verb, recipe, *overrides in known.values():
        row = read(find(recipe), overrides)
        for method in row.method if verb == "evaluate" else ():
            network = known.get(method.rpartition(":")[2].replace("{seed}", "0"))
            if network is None:
                continue
            trained = read(find(network[1]), network[2:])
            assert [vars(trained).get(key) for key in same] == [vars(row).get(key) for key in same], row.name
