"""Figure 4 on synthetic people: its settings, the numbers of its runs, and its picture."""

import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments import job_queue
from experiments.dual_cls import table as dual_cls_table
from experiments.stprivacy import figure4, figure4_picture
from tests.report.made_up import metric, on_disk, point, share
from vidveil.core.recipe import as_values, find, read
from vidveil.evaluation.results import read as read_results

FEW = ("data=puppets:rho=0,share=0.05", "frames=4", "size=32")
QUICK = ["epochs=1", "attacker_epochs=1", "attackers=[resnet_tiny]", "permutations=20", "resamples=50"]


def test_each_setting_differs_from_the_recipe_in_one_thing():
    trained = {
        job.row: as_values(read(find(job.commands[0][1]), job.commands[0][2:]))
        for job in figure4.jobs("0")
        if job.commands[0][0] == "train"
    }
    own = trained.pop("train-stprivacy")
    names = [{"alpha"}] * 4 + [{key} for key in ("tubelet_frames", "action_weight", "privacy_weight")] * 2
    differ = [{key for key in one if one[key] != own[key]} - {"name", "seed"} for one in trained.values()]
    assert sorted(map(sorted, differ)) == sorted(map(sorted, [{"anonymize"}, {"sparsify"}, *names]))


def test_columns_contain_the_defaults_of_the_recipe():
    recipe = read(find("stprivacy_puppets"))
    for key, (own, values) in figure4.VALUES.items():
        assert getattr(recipe, key) == own in values
    assert figure4.ALPHA in figure4.DEPLOYED
    assert all(figure4.BOTH in places.values() for places in figure4.COLUMNS.values())


def test_jobs_of_the_table_of_dual_cls_are_shared():
    ours, theirs = ({job.name: job for job in jobs} for jobs in (figure4.jobs("0"), dual_cls_table.jobs("0", 0)))
    both = ours.keys() & theirs.keys()
    assert len(both) == 1 + 3 * len(figure4.PARTS)
    assert all(ours[name] == theirs[name] for name in both)
    assert not any(name.endswith("-rho0") for name in ours.keys() - both)  # it would count as one of the table's rows


def test_columns_can_be_selected():
    found = job_queue.select(figure4.jobs("0"), figure4.with_columns("tubelet_frames,sparse").split(","))
    evaluated = [job.name for job in found if job.commands[0][0] == "evaluate"]
    settings = ("tubelet_frames1", "both", "tubelet_frames4", "sparse")
    assert evaluated == ["raw-rho0", *(f"figure4-rho0-{name}" for name in settings)]
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


def test_each_setting_has_means_seeds_and_its_difference_from_the_recipe(tmp_path):
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


def test_without_the_recipe_itself_settings_have_no_difference(tmp_path):
    whole = figure4.summary(runs_of(tmp_path), "0")["settings"]["sparse"]
    (tmp_path / "figure4-rho0-both" / "results.json").unlink()
    found = figure4.summary(tmp_path, "0")
    assert found["settings"].keys() == {"sparse", "alpha0.5"}
    assert found["settings"]["sparse"] == {key: value for key, value in whole.items() if key != "minus"}
    figure4_picture.draw(json.loads(json.dumps(found)), tmp_path / "figure.png")
    with pytest.raises(SystemExit, match="nothing of figure 4 is finished"):
        figure4.summary(tmp_path / "empty", "0")


def test_a_recipe_whose_clips_are_missing_is_refused(tmp_path):
    (runs_of(tmp_path) / "figure4-rho0-both" / "per_clip.safetensors").unlink()
    with pytest.raises(SystemExit, match="figure4-rho0-both cannot be compared with"):
        figure4.summary(tmp_path, "0")


def test_columns_without_finished_settings_are_not_drawn(tmp_path):
    found = figure4.summary(runs_of(tmp_path), "0")
    shown = [column for column, places in figure4.COLUMNS.items() if figure4_picture._finished(found, places)]
    assert shown == ["parts", "alpha", "deployed"]


def test_attributes_of_each_seed_have_the_mean_of_the_evaluation():
    def evaluated(hair, skin):
        metrics = {"ap_hair": metric(np.mean(hair), 0.3, seeds=hair), "ap_skin": metric(np.mean(skin), 0.2, seeds=skin)}
        return point("any", metrics=metrics | {"ap_nudity": metric(0.5, 0.49, seeds=[0.4, 0.6])})

    seeds = figure4.attributes_by_seed(evaluated([0.5, 0.3], [0.4, 0.4]), evaluated([0.7, 0.7], [0.8, 0.8]))
    assert seeds == pytest.approx([(0.2 + 0.2) / 1.0, (0.0 + 0.2) / 1.0])


def test_finished_settings_are_drawn_and_alpha_at_deployment_is_a_curve(tmp_path):
    found = json.loads(json.dumps(figure4.summary(runs_of(tmp_path), "0")))
    figure4_picture.draw(found, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    for column, curves in {"parts": [], "alpha": [], "deployed": [[0.75, 0.25]]}.items():
        axis = Figure().subplots()
        figure4_picture._panel(axis, found, column, "linkage")
        drawn = [line.get_xdata() for line in axis.get_lines() if line.get_linestyle() == "-"]
        assert [list(xs) for xs in drawn if len(xs) > 1] == [pytest.approx(curve) for curve in curves]


def test_the_queue_trains_evaluates_and_draws(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    found = job_queue.select(figure4.jobs("0", ["epochs=1", "initialise=0.5"], QUICK, seeds=(0,)), ["both"])
    few = [(*job.commands[0], *FEW) for job in found]
    few[-1] = (*few[-1], "keep=[0.9,0.7]")
    jobs = [replace(job, commands=(command,)) for job, command in zip(found, few, strict=True)]
    runs = tmp_path / "runs"
    assert job_queue.run_queue(jobs, set(), runs, 2, float("inf"), tmp_path) == set()
    assert all(job.done(runs) and not job_queue.has_other_recipe(job, runs) for job in jobs)
    points = read_results(runs / "figure4-rho0-both" / "results.json").points
    assert [(one.keep, one.kept_as_filmed) for one in points] == [(0.9, False), (0.7, False)]
    summary = figure4.summary(runs, "0")
    assert summary["settings"].keys() == {"both", "deployed0.9"}
    assert summary["settings"]["both"]["share"] == 5 / 16
    figure4_picture.draw(summary, tmp_path / "figure.png")
    assert (tmp_path / "figure4-rho0-both.json").is_file()
    assert (tmp_path / "figure.png").is_file()
