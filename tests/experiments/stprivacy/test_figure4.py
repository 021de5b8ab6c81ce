"""Figure 4 on the built-in people: its queue can be run, its numbers are those of the runs, and it can be drawn."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.report.made_up import metric, on_disk, point, share
from vidveil.core.recipe import as_values, find, read
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.results import read as read_results
from vidveil.methods.stprivacy.recipe import STPrivacyRecipe
from vidveil.methods.stprivacy.train import check

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import dual_cls_table  # noqa: E402
import job_queue  # noqa: E402
import stprivacy_figure4 as figure4  # noqa: E402

FEW = ("data=puppets:rho=0,share=0.05", "frames=4", "size=32")
QUICK = ["epochs=1", "attacker_epochs=1", "attackers=[resnet_tiny]", "permutations=20", "resamples=50"]


def all_jobs(rho="0"):
    return figure4.jobs(rho, figure4.LEARNING, figure4.JUDGING)


def recipe_of(job):
    return read(find(job.words[1]), job.words[2:])


def test_every_command_of_the_queue_is_a_recipe_with_fields_that_exist():
    for job in all_jobs("0.5"):
        recipe = recipe_of(job)
        assert (recipe.name, recipe.data) == (job.name, "puppets:rho=0.5")
        if job.words[0] == "train":
            check(recipe)
        else:
            assert isinstance(recipe, EvaluateRecipe)


def test_what_a_job_needs_stands_before_it():
    before = set()
    for job in all_jobs():
        assert before >= set(job.needs)
        before.add(job.name)
    assert len(before) == len(all_jobs()) == 1 + 13 * 3 + 13


def test_each_setting_differs_from_the_method_as_it_is_in_one_thing():
    trained = {job.of: as_values(recipe_of(job)) for job in all_jobs() if job.words[0] == "train"}
    own = trained.pop("train-stprivacy")
    names = [{"alpha"}] * 4 + [{key} for key in ("tubelet_frames", "action_weight", "privacy_weight")] * 2
    differ = [{key for key in one if one[key] != own[key]} - {"name", "seed"} for one in trained.values()]
    assert sorted(map(sorted, differ)) == sorted(map(sorted, [{"anonymize"}, {"sparsify"}, *names]))


def test_what_columns_call_the_methods_own_is_what_its_recipe_says():
    recipe = read(find("stprivacy_puppets"))
    assert isinstance(recipe, STPrivacyRecipe)
    for key, (own, values) in figure4.VALUES.items():
        assert getattr(recipe, key) == own in values
    assert figure4.ALPHA in figure4.DEPLOYED
    assert all(figure4.BOTH in places.values() for places in figure4.COLUMNS.values())


def test_what_the_table_of_dual_cls_needs_too_is_done_once():
    ours, theirs = (
        {job.name: job for job in jobs}
        for jobs in (all_jobs(), dual_cls_table.jobs("0", 0, figure4.LEARNING, figure4.JUDGING))
    )
    both = ours.keys() & theirs.keys()
    assert len(both) == 1 + 3 * len(figure4.PARTS)
    assert all(ours[name] == theirs[name] for name in both)
    assert not any(name.endswith("-rho0") for name in ours.keys() - both)  # it would pass for one of the table's rows


def test_columns_can_be_asked_for():
    found = job_queue.wanted(all_jobs(), figure4.with_columns("tubelet_frames,sparse").split(","))
    evaluated = [job.of for job in found if job.words[0] == "evaluate"]
    assert evaluated == ["raw", "tubelet_frames1", "both", "tubelet_frames4", "sparse"]
    assert figure4.with_columns("deployed") == "both"
    assert figure4.with_columns("") == ""


def runs_of(folder):
    """Two seeds; raw top-1 is 1 and raw linkage 0.9, with a floor of 0.1."""
    more = {"recipe": {"seeds": [0, 1], "attackers": ["resnet_tiny"]}}
    for name, settings in {
        "both": [(0.9, 9, 7, 0.8), (0.7, np.stack([share(8), share(6)]), np.stack([share(5), share(1)]), 0.4)],
        "sparse": [(None, 10, 7, 0.9)],
        "alpha0.5": [(None, 5, 1, 0.1)],
    }.items():
        on_disk(folder, f"figure4-rho0-{name}", settings, **more)
    return folder


def test_each_setting_has_means_seeds_and_its_difference_from_the_method_as_it_is(tmp_path):
    found = figure4.summary(runs_of(tmp_path), "0")["settings"]
    assert found.keys() == {"both", "deployed0.9", "sparse", "alpha0.5"}
    assert found["both"]["top1"]["mean"][0] == pytest.approx(0.7)
    assert found["both"]["top1"]["seeds"] == pytest.approx([0.8, 0.6])
    assert found["both"]["linkage"]["mean"][0] == pytest.approx(0.25)
    assert found["both"]["linkage"]["seeds"] == pytest.approx([0.5, 0.0])
    assert "minus" not in found["both"]
    assert found["sparse"]["minus"]["top1"] == pytest.approx([0.3, 0.3, 0.3])  # the same for every person
    assert found["sparse"]["minus"]["attributes"][0] == pytest.approx(0.5)
    assert found["alpha0.5"]["minus"]["linkage"][0] == pytest.approx(-0.25)


def test_without_the_method_as_it_is_settings_are_told_and_compared_with_nothing(tmp_path):
    whole = figure4.summary(runs_of(tmp_path), "0")["settings"]["sparse"]
    (tmp_path / "figure4-rho0-both" / "results.json").unlink()
    found = figure4.summary(tmp_path, "0")
    assert found["settings"].keys() == {"sparse", "alpha0.5"}
    assert found["settings"]["sparse"] == {key: value for key, value in whole.items() if key != "minus"}
    figure4.draw(json.loads(json.dumps(found)), tmp_path / "figure.png")
    with pytest.raises(SystemExit, match="nothing of figure 4 is finished"):
        figure4.summary(tmp_path / "empty", "0")


def test_a_method_as_it_is_that_cannot_be_read_is_refused_and_not_passed_over(tmp_path):
    (runs_of(tmp_path) / "figure4-rho0-both" / "per_clip.safetensors").unlink()
    with pytest.raises(SystemExit, match="figure4-rho0-both cannot be compared with"):
        figure4.summary(tmp_path, "0")


def test_columns_of_which_nothing_is_finished_are_not_drawn(tmp_path):
    found = figure4.summary(runs_of(tmp_path), "0")
    shown = [column for column, places in figure4.COLUMNS.items() if figure4._finished(found, places)]
    assert shown == ["parts", "alpha", "deployed"]


def test_seeds_of_attributes_have_the_mean_that_the_evaluation_found():
    def evaluated(hair, skin):
        metrics = {"ap_hair": metric(np.mean(hair), 0.3, seeds=hair), "ap_skin": metric(np.mean(skin), 0.2, seeds=skin)}
        return point("any", metrics=metrics | {"ap_nudity": metric(0.5, 0.49, seeds=[0.4, 0.6])})

    seeds = figure4.attributes_by_seed(evaluated([0.5, 0.3], [0.4, 0.4]), evaluated([0.7, 0.7], [0.8, 0.8]))
    assert seeds == pytest.approx([(0.2 + 0.2) / 1.0, (0.0 + 0.2) / 1.0])


def test_what_is_finished_is_drawn_and_alpha_in_use_is_a_curve(tmp_path):
    found = json.loads(json.dumps(figure4.summary(runs_of(tmp_path), "0")))
    figure4.draw(found, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    for column, curves in {"parts": [], "alpha": [], "deployed": [[0.75, 0.25]]}.items():
        axis = Figure().subplots()
        figure4._panel(axis, found, column, "linkage")
        drawn = [line.get_xdata() for line in axis.get_lines() if line.get_linestyle() == "-"]
        assert [list(xs) for xs in drawn if len(xs) > 1] == [pytest.approx(curve) for curve in curves]


def test_the_queue_trains_judges_and_draws_what_was_found(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    queue = figure4.jobs("0", ["epochs=1", "initialise=0.5"], QUICK, seeds=(0,))
    asked = [replace(job, words=(*job.words, *FEW)) for job in job_queue.wanted(queue, ["both"])]
    asked[-1] = replace(asked[-1], words=(*asked[-1].words, "keep=[0.9,0.7]"))
    runs = tmp_path / "runs"
    assert job_queue.work(asked, set(), runs, 2, float("inf"), tmp_path) == set()
    assert all(job.done(runs) and not job_queue.made_otherwise(job, runs) for job in asked)
    points = read_results(runs / "figure4-rho0-both" / "results.json").points
    assert [(one.keep, one.kept_as_filmed) for one in points] == [(0.9, False), (0.7, False)]
    found = figure4.summary(runs, "0")
    assert found["settings"].keys() == {"both", "deployed0.9"}
    assert found["settings"]["both"]["share"] == 5 / 16
    figure4.draw(found, tmp_path / "figure.png")
    assert (tmp_path / "figure4-rho0-both.json").is_file()
    assert (tmp_path / "figure.png").is_file()
