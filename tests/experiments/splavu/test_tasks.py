"""The table of tasks: its commands can be read, no adapter saw what it is evaluated on, its page is its results."""

import json
import sys
from pathlib import Path

import pytest

from vidveil.core.recipe import find, names, read
from vidveil.evaluation.results import Metric, Point, Results
from vidveil.methods.splavu.recipe import SplavuRecipe

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import splavu_tasks  # noqa: E402
from splavu_tasks import EVALUATORS, FOLDS, RESULTS, SETTINGS, SUBSETS, everything, judging, run_of, training  # noqa: E402
from splavu_tasks_page import page, summary, together, unseen  # noqa: E402


def all_trainings():
    return [read(find(command.recipe), command.words) for name in SETTINGS for command in training(name)]


def test_every_command_has_a_name_of_its_own_and_what_it_needs_stands_before_it():
    done = set()
    for command in everything([], []):
        assert command.name not in done
        for word in command.words:
            if word.startswith("method=splavu:"):
                assert {word.removeprefix("method=splavu:").format(seed=seed) for seed in (0, 1, 2)} <= done
            if word.startswith("raw="):
                assert word.removeprefix("raw=") in done
        done.add(command.name)
    assert len(done) > 250


def test_every_subset_of_tasks_is_learned_with_and_without_latent_consistency():
    found = all_trainings()
    assert all(isinstance(recipe, SplavuRecipe) for recipe in found)
    for erase in (0.0, 0.75):
        for weight in (0.0, 100.0):
            mine = {
                (recipe.tasks, recipe.seed)
                for recipe in found
                if (recipe.erase, recipe.latent_weight, recipe.budget) == (erase, weight, "static")
                and recipe.data == "puppets"
            }
            assert mine >= {(tasks, seed) for tasks in SUBSETS for seed in (0, 1, 2)}
    assert len(SUBSETS) == 7


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.set == "ucf101_5"])
def test_a_fold_of_fights_is_judged_after_an_adapter_that_did_not_see_its_test_videos(name):
    learned = {command.name: command.words for command in training(name)}
    for fold, command in zip(FOLDS, judging(name, "anomaly"), strict=True):
        assert f"data=surveillance_fight:{fold}" in command.words
        (method,) = [word.removeprefix("method=splavu:") for word in command.words if word.startswith("method=")]
        words = learned[method.format(seed=0)]
        if SETTINGS[name].by_fold:
            assert f"anomaly_data=surveillance_fight:{fold}" in words


def test_every_judge_has_a_recipe_that_can_be_read():
    for name, setting in SETTINGS.items():
        for evaluator, recipe in EVALUATORS[setting.set].items():
            assert recipe in names()
            for command in judging(name, evaluator):
                assert read(find(command.recipe), command.words).seeds == (0, 1, 2)


def test_parts_share_the_settings_and_only_takes_some():
    whole = [str(command) for command in everything([], [])]
    parts = [[str(command) for command in everything([], [], (i, 3))] for i in range(3)]
    assert sorted(whole) == sorted(command for part in parts for command in part)
    some = [str(command) for command in everything(["ours-detection"], ["anomaly"])]
    assert len(some) == 5
    assert some[0].startswith("vidveil evaluate anomaly_puppets method=raw ")
    assert some[-1].startswith("vidveil evaluate anomaly_puppets ")
    with pytest.raises(SystemExit, match="there is no setting 'mine'; there are: ours-action"):
        list(everything(["mine"], []))
    with pytest.raises(SystemExit, match="there is no judge 'faces'"):
        list(everything([], ["faces"]))


def metric(value, kind="utility", change=None, half=0.1):
    return Metric(
        kind=kind, value=value, seeds=[value] * 3, interval=[value - half, value + half], floor=0.1,
        floor_range=[0.0, 0.2], floor_analytic=0.1, measured_by="it", change=change,
        change_interval=None if change is None else [change - half, change + half],
    )  # fmt: skip


def results(name, metrics):
    raw, point = (Point(method="m", keep=None, metrics=own) for own in ({k: metric(0.9) for k in metrics}, metrics))
    return Results(name=name, recipe={}, data={}, machine={"commit": "abc"}, seconds=1.0, raw=raw, points=[point])


def test_folds_are_put_together_as_means_whose_interval_is_narrower():
    found = together([metric(value, change=-0.1) for value in (0.6, 0.7, 0.8, 0.9)])
    assert found["value"] == pytest.approx([0.75, 0.70, 0.80])
    assert found["change"] == pytest.approx([-0.1, -0.15, -0.05])
    assert found["seeds"] == pytest.approx([0.75] * 3)
    alone = together([metric(0.6)])
    assert alone["value"] == pytest.approx([0.6, 0.5, 0.7])
    assert "change" not in alone


def test_what_is_finished_comes_to_stand_in_its_table(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))

    def write(name, **metrics):
        (tmp_path / name).mkdir()
        results(name, metrics).write(tmp_path / name / "results.json")

    write(run_of("ours-detection", "detection"), detection_map=metric(0.81, change=-0.09))
    for fold in FOLDS[:-1]:
        write(run_of("real-action", "anomaly", fold), anomaly_video_auc=metric(0.6 + fold / 10))
    found = summary()
    assert found.keys() == {"puppets"}  # a fold is missing
    write(run_of("real-action", "anomaly", FOLDS[-1]), anomaly_video_auc=metric(1.0))
    text = page(json.loads(json.dumps(summary())))
    (row,) = [line for line in text.splitlines() if line.startswith("| (c) ours")]
    assert row.split(" | ")[1:4] == ["", "✓", ""]
    assert "0.81 [0.71, 0.91] | -0.09 [-0.19, 0.01]" in row
    (row,) = [line for line in text.splitlines() if line.startswith("| published losses, action |")]
    assert "0.80 [0.76, 0.84]" in row
    assert text.count("| raw features |") == 1
    assert "(a) raw features" in text
    assert "gait, rank-1" not in text


def test_what_was_judged_before_stays_where_raw_features_gave_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))
    name = run_of("ours-detection", "detection")
    (tmp_path / name).mkdir()
    results(name, {"detection_map": metric(0.81)}).write(tmp_path / name / "results.json")
    evaluated = {"detection": {"detection_map": {"value": [0.7, 0.6, 0.8]}}, "gait": {}, "commits": {"gait": "old"}}
    raw = {"title": "raw features", "tasks": [], "detection": {"detection_map": {"value": [0.9, 0.8, 1.0]}}}
    before = {"puppets": {"raw": raw, "ours-action": evaluated, "ours-detection": evaluated}, "ucf101_5": {"raw": {}}}
    found = summary(before)
    assert list(found["puppets"]) == ["raw", "ours-action", "ours-detection"]
    assert found["puppets"]["ours-action"] == evaluated | {"title": SETTINGS["ours-action"].title}
    assert found["puppets"]["ours-detection"]["detection"]["detection_map"]["value"][0] == pytest.approx(0.81)
    assert found["puppets"]["ours-detection"]["commits"] == {
        "detection": "abc"
    }  # other adapters, evaluated by nobody else
    assert found["ucf101_5"] == {"raw": {}}
    raw["detection"]["detection_map"]["value"][0] = 0.91
    assert list(summary(before)["puppets"]) == ["raw", "ours-detection"]
    assert "raw features gave something else (detection)" in capsys.readouterr().out


def test_a_finished_run_is_not_done_again_and_a_begun_one_goes_on(tmp_path, monkeypatch):
    from vidveil.methods.splavu import run as train_adapter

    done = []
    monkeypatch.setattr(splavu_tasks, "load_once", lambda: None)
    monkeypatch.setattr(
        train_adapter, "run", lambda recipe, resume: done.append((recipe.name, resume)) or Made({"moved": 0.5})
    )
    first, second, third = training("ours-detection")
    (tmp_path / first.name / "checkpoint").mkdir(parents=True)
    (tmp_path / first.name / "checkpoint" / "checkpoint.json").touch()
    (tmp_path / second.name / "fits").mkdir(parents=True)
    for command in (first, second, third):
        splavu_tasks.do(command, tmp_path)
    assert done == [(second.name, True), (third.name, False)]
    assert not (tmp_path / second.name / "fits").exists()


def test_what_another_process_makes_is_waited_for(tmp_path, monkeypatch, capsys):
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            (tmp_path / "results.json").touch()

    monkeypatch.setattr(splavu_tasks.time, "sleep", sleep)
    splavu_tasks.wait_for(None)
    splavu_tasks.wait_for(tmp_path)
    assert len(waited) == 3
    assert capsys.readouterr().out.count("waiting for") == 1


class Made:
    def __init__(self, metrics):
        self.metrics = metrics


def test_the_page_is_drawn_from_the_results():
    assert (BENCHMARKS / "SPLAVU_TASKS.md").read_text() == page(json.loads(RESULTS.read_text()))


def test_what_the_method_s_page_says_of_tasks_that_it_never_saw_is_what_was_measured():
    found = json.loads(RESULTS.read_text())
    text = " ".join((BENCHMARKS.parent / "docs" / "methods" / "splavu.md").read_text().split())

    def told(numbers):
        value, low, high = numbers
        return f"{value:.2f} [{low:.2f}, {high:.2f}]"

    fights = {name: row["anomaly"]["anomaly_video_auc"] for name, row in found["ucf101_5"].items()}
    raw, kept, lost = (fights[name] for name in ("raw", "real-action", "real-action-lc0"))
    assert (
        f"an AUC of {told(raw['value'])} raw and {kept['value'][0]:.2f} behind adapters that learned actions of UCF101 "
        f"and nothing of fights, a change of {told(kept['change'])}; without latent consistency "
        f"{lost['value'][0]:.2f}, a change of {told(lost['change'])}."
    ) in text
    assert kept["change"][1] > -0.03 > lost["change"][2]


def changes(people, kind, tasks):
    """Of tasks that adapters of a kind did not learn with."""
    metrics = {"action": ("clips", "action_top1"), "detection": ("detection", "detection_map"),
               "anomaly": ("anomaly", "anomaly_frame_auc")}  # fmt: skip
    told = people[f"{kind}-{'-'.join(tasks)}"]
    return [told[evaluator][metric]["change"] for task, (evaluator, metric) in metrics.items() if task not in tasks]


def test_unseen_tasks_stay_within_three_points_behind_the_published_losses_and_behind_ours_where_it_learned_actions():
    people = json.loads(RESULTS.read_text())["puppets"]
    page_of = (BENCHMARKS.parent / "docs" / "methods" / "splavu.md").read_text()
    text = " ".join(page_of.split())
    assert page_of.split("<!-- unseen -->\n")[1].split("\n<!-- end of unseen -->")[0] == unseen(people)
    for tasks in SUBSETS[:-1]:
        assert all(value > -0.03 for value, _, _ in changes(people, "apart", tasks)), tasks
        ours = [value for value, _, _ in changes(people, "ours", tasks)]
        assert (min(ours) > -0.03) == ("action" in tasks), tasks
    worst = min(changes(people, "ours", ("anomaly",))[0][0], changes(people, "ours", ("detection",))[0][0])
    assert f"top-1 falls by up to {-worst:.2f}." in text
    mild = [people[f"mild-{task}"] for task in ("detection", "anomaly")]
    for told in mild:
        numbers = (("clips", "action_top1"), ("detection", "detection_map"), ("anomaly", "anomaly_frame_auc"))
        assert all(told[evaluator][metric]["change"][0] > -0.03 for evaluator, metric in numbers)
    left = sorted(told["clips"]["linkage_rank1"]["excess"][0] for told in mild)
    assert "and leave {:.2f} to {:.2f} of the linkage. So".format(*left) in text
    lost = people["apart-action"]["anomaly"]["anomaly_video_auc"]["change"][0]
    assert f"adapters that learned the action alone lose {-100 * lost:.0f} points." in text
    value, low, high = people["apart-action-lc0"]["anomaly"]["anomaly_frame_auc"]["change"]
    assert (
        f"lose {-value:.2f} [{-high:.2f}, {-low:.2f}] of the AUC of frames, and nothing of detection or top-1" in text
    )
    for evaluator, metric in (("detection", "detection_map"), ("clips", "action_top1")):
        _, low, high = people["apart-action-lc0"][evaluator][metric]["change"]
        assert low < 0 < high
    left = [people[f"apart-{'-'.join(tasks)}"]["clips"]["linkage_rank1"]["excess"][0] for tasks in SUBSETS]
    assert f"They also keep the people in it: {min(left):.2f} to {max(left):.2f} of the linkage." in text
    linked = [
        people[name]["clips"]["linkage_rank1"]["excess"][0] for name in ("ours-action-detection-anomaly", "ours-action")
    ]
    assert "with all three ours leaves {:.2f} of the linkage instead of {:.2f}, since".format(*linked) in text
