"""The table of tasks: adapters are not trained on test videos, and summaries join folds and earlier results."""

import json

import pytest

from experiments.splavu import tasks_page
from experiments.splavu.tasks import FOLDS, SETTINGS, SUBSETS, adapter_jobs, evaluation_job, run_of
from experiments.splavu.tasks_summary import joined, summary
from vidveil.core.recipe import find, read
from vidveil.evaluation.results import Metric, Point, Results


def test_every_subset_of_tasks_is_trained_with_and_without_latent_consistency():
    assert len(SUBSETS) == 7
    commands = [job.commands[0] for name in SETTINGS for job in adapter_jobs(name)]
    found = [read(find(recipe), overrides) for _, recipe, *overrides in commands]
    for erase in (0.0, 0.75):
        for weight in (0.0, 100.0):
            trained = {
                (recipe.tasks, recipe.seed)
                for recipe in found
                if (recipe.erase, recipe.latent_weight, recipe.budget) == (erase, weight, "static")
                and recipe.data == "puppets"
            }
            assert trained >= {(tasks, seed) for tasks in SUBSETS for seed in (0, 1, 2)}


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.set == "ucf101_5"])
def test_a_fold_of_fights_is_evaluated_behind_an_adapter_that_did_not_see_its_test_videos(name):
    trained = {job.name: job.commands[0] for job in adapter_jobs(name)}
    for fold, words in zip(FOLDS, evaluation_job(name, "anomaly").commands, strict=True):
        assert f"data=surveillance_fight:{fold}" in words
        (method,) = [word.removeprefix("method=splavu:") for word in words if word.startswith("method=")]
        if SETTINGS[name].by_fold:
            assert f"anomaly_data=surveillance_fight:{fold}" in trained[method.format(seed=0)]


def metric(value, kind="utility", change=-0.1, half=0.1):
    return Metric(
        kind=kind, value=value, seeds=[value] * 3, interval=[value - half, value + half], floor=0.1,
        floor_range=[0.0, 0.2], floor_analytic=0.1, measured_by="it", change=change,
        change_interval=None if change is None else [change - half, change + half],
    )  # fmt: skip


def write(runs, name, **metrics):
    raw, point = (Point(method="m", keep=None, metrics=own) for own in ({k: metric(0.9) for k in metrics}, metrics))
    found = Results(name=name, recipe={}, data={}, machine={"commit": "abc"}, seconds=1.0, raw=raw, points=[point])
    (runs / name).mkdir()
    found.write(runs / name / "results.json")


def test_folds_are_joined_as_means_with_a_narrower_interval():
    found = joined([metric(value) for value in (0.6, 0.7, 0.8, 0.9)])
    assert found["value"] == pytest.approx([0.75, 0.70, 0.80])
    assert found["change"] == pytest.approx([-0.1, -0.15, -0.05])
    assert found["seeds"] == pytest.approx([0.75] * 3)
    alone = joined([metric(0.6, change=None)])
    assert alone["value"] == pytest.approx([0.6, 0.5, 0.7])
    assert "change" not in alone


def test_finished_settings_are_in_the_table(tmp_path, monkeypatch):
    write(tmp_path, run_of("ours-detection", "detection"), detection_map=metric(0.81, change=-0.09))
    for fold in FOLDS[:-1]:
        write(tmp_path, run_of("real-action", "anomaly", fold), anomaly_video_auc=metric(0.6 + fold / 10))
    assert summary(tmp_path, {}).keys() == {"puppets"}  # a fold is missing
    write(tmp_path, run_of("real-action", "anomaly", FOLDS[-1]), anomaly_video_auc=metric(1.0))
    found = json.loads(json.dumps(summary(tmp_path, {})))
    monkeypatch.setattr(tasks_page, "summary", lambda: found)
    _, _, raw, row = tasks_page.TABLES["splavu-tasks"]().splitlines()
    assert raw.startswith("| (a) raw features |")
    assert row.startswith("| (c) ours, detection |  | ✓ |  |")
    assert "0.81 [0.71, 0.91] | -0.09 [-0.19, 0.01]" in row
    assert "| published losses, action | ✓ |  |  | 0.80 [0.76, 0.84] |" in tasks_page.TABLES["splavu-tasks-real"]()


def test_earlier_settings_stay_if_raw_features_had_the_same_results(tmp_path, capsys):
    write(tmp_path, run_of("ours-detection", "detection"), detection_map=metric(0.81))
    earlier = {"detection": {"detection_map": {"value": [0.7, 0.6, 0.8]}}, "gait": {}, "commits": {"gait": "old"}}
    raw = {"tasks": [], "detection": {"detection_map": {"value": [0.9, 0.8, 1.0]}}}
    before = {"puppets": {"raw": raw, "ours-action": earlier, "ours-detection": earlier}, "ucf101_5": {"raw": {}}}
    found = summary(tmp_path, before)
    assert list(found["puppets"]) == ["raw", "ours-action", "ours-detection"]
    assert found["puppets"]["ours-action"] == earlier
    assert found["puppets"]["ours-detection"]["detection"]["detection_map"]["value"][0] == pytest.approx(0.81)
    assert found["puppets"]["ours-detection"]["commits"] == {"detection": "abc"}  # nothing of other adapters is kept
    assert found["ucf101_5"] == {"raw": {}}
    raw["detection"]["detection_map"]["value"][0] = 0.91
    assert list(summary(tmp_path, before)["puppets"]) == ["raw", "ours-detection"]
    assert "raw features then had other results (detection)" in capsys.readouterr().out


def test_summaries_without_runs_stay_as_they_are(tmp_path):
    before = tasks_page.summary()
    assert summary(tmp_path, before) == before
