"""The numbers of real video: splits are pooled clip by clip, and rows are compared with random tubelets."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.job_queue import read_json, select
from experiments.real_video import figure_table, table
from experiments.real_video import page as page_of_tables
from experiments.real_video import summary as script
from experiments.real_video.pooled import pooled
from vidveil.core.errors import DataError
from vidveil.evaluation.results import Metric, Point, Results
from vidveil.report.same_clips import Run, tag_of
from vidveil.statistics.intervals import Resamples


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("moving", {"raw-whole-u1", "raw-whole-w0", "raw-crop-u1", "raw-crop-w0", "moving-whole-u1", "moving-whole-w0",
                    "moving-crop-u1", "moving-crop-w0"}),
        ("best-crop-u2", {"d-best-u2", "raw-crop-u1", "best-crop-u2"}),
        ("t-figure14-crop-u1", {"t-raw-crop-u1", "t-figure14-crop-u1"}),
    ],
)  # fmt: skip
def test_a_row_or_a_run_can_be_selected_with_what_it_needs(word, names):
    assert {job.name for job in select(table.jobs(), [word])} == names  # one job evaluates all splits of raw video


def point(method, values, floors, by, keep=None):
    metrics = {
        name: Metric(
            kind="utility" if name == "action_top1" else "leakage", value=float(np.nanmean(each)),
            seeds=np.nanmean(each, axis=1).tolist(), interval=[0, 1], floor=floors[name], floor_range=[0, 1],
            floor_analytic=floors[name], measured_by=by, others={by: {"test": float(np.nanmean(each)), "val": 0.5}},
        )
        for name, each in values.items()
    }  # fmt: skip
    if keep is not None:
        metrics["tubelets_kept"] = replace(next(iter(metrics.values())), value=keep)
    return Point(method=method, keep=keep, metrics=metrics)


def run(seed, clips, method="random", keep=0.5, top1=0.5, linked=0.8):
    """Two seeds, three clips per person; on raw video all clips are classified and linked."""
    rng = np.random.default_rng(seed)
    raw = {"action_top1": np.ones((2, clips)), "linkage_rank1": np.ones((2, clips))}
    own = {
        "action_top1": (rng.random((2, clips)) < top1).astype(float),
        "linkage_rank1": (rng.random((2, clips)) < linked).astype(float),
    }
    floors = {"action_top1": 0.2, "linkage_rank1": 0.1 * (1 + seed)}
    points = [point("raw", raw, floors, "i3d"), point(method, own, floors, f"net{seed}", keep)]
    arrays = {"people": np.arange(clips) // 3}
    for one, values in zip(points, (raw, own), strict=True):
        arrays |= {f"{tag_of(one)}/{metric}": each for metric, each in values.items()}
        arrays[f"{tag_of(one)}/linkage_rank1/chance"] = np.full(clips, floors["linkage_rank1"])
    results = Results(
        name="dual", recipe={}, data={}, machine={}, seconds=1.0, raw=points[0], points=points[1:], controls={}, cost={}
    )
    return Run(results, arrays)


def raw_alone(clips):
    one = run(0, clips)
    return Run(replace(one.results, points=[]), one.clips)


def test_splits_are_pooled_clip_by_clip_with_different_people():
    small, large = run(0, 30), run(1, 60)
    both = pooled([small, large])
    assert len(np.unique(both.people)) == 30
    one = both.results.points[0]
    values = both.values(one, "linkage_rank1")
    np.testing.assert_array_equal(values[:, :30], small.values(small.results.points[0], "linkage_rank1"))
    metric = one.metrics["linkage_rank1"]
    assert metric.value == pytest.approx(values.mean())
    assert metric.seeds == pytest.approx(values.mean(axis=1).tolist())
    assert metric.floor == pytest.approx((30 * 0.1 + 60 * 0.2) / 90)
    assert metric.measured_by == "net0 / net1"
    assert metric.others == {}  # no attacker was tried on both


def test_clips_that_are_no_queries_do_not_count():
    first, second = run(0, 30), run(1, 30)
    values = first.clips["random-0.5/linkage_rank1"]
    values[:, :15] = np.nan
    metrics = first.results.points[0].metrics
    metrics["linkage_rank1"] = replace(metrics["linkage_rank1"], value=float(np.nanmean(values)))
    both = pooled([first, second])
    metric = both.results.points[0].metrics["linkage_rank1"]
    assert metric.value == pytest.approx(np.nanmean(both.clips["random-0.5/linkage_rank1"]))
    assert metric.floor == pytest.approx((15 * 0.1 + 30 * 0.2) / 45)


def test_known_people_are_the_same_in_every_split():
    folds = [run(0, 27), run(1, 27), run(2, 27)]
    assert len(np.unique(pooled(folds, table.KNOWN).people)) == 9
    with pytest.raises(DataError, match="not everybody"):
        pooled([run(0, 27), run(1, 30)], table.KNOWN)


def test_where_two_people_validate_average_precision_decides_between_attackers_with_equal_rank1():
    folds = [run(seed, 27, linked=0.8) for seed in range(3)]
    val = {"early": (1.0, 0.6), "best": (1.0, 0.9), "lucky": (0.9, 1.0)}  # rank-1, average precision
    hits = {"early": 0.1, "best": 0.5, "lucky": 1.0}  # of test people, which must not matter
    for one in folds:
        for each in (one.results.raw, *one.results.points):
            for place, metric in enumerate(("linkage_rank1", "linkage_map")):
                others = {who: {"test": hits[who], "val": scores[place]} for who, scores in val.items()}
                each.metrics[metric] = replace(each.metrics["linkage_rank1"], others=others)
            for who, share in hits.items():
                one.clips[f"{tag_of(each)}/linkage_rank1/by/{who}"] = np.tile(np.arange(27) < round(27 * share), (2, 1))
    both = pooled(folds, table.PEOPLE)
    metric = both.results.points[0].metrics["linkage_rank1"]
    assert metric.measured_by == "best"
    assert metric.value == pytest.approx(14 / 27)
    assert both.values(both.results.points[0], "linkage_rank1").mean() == pytest.approx(14 / 27)
    assert pooled(folds).results.points[0].metrics["linkage_rank1"].measured_by == "net0 / net1 / net2"
    del folds[1].clips["random-0.5/linkage_rank1/by/best"]
    with pytest.raises(DataError, match="keeps no hits of best"):
        pooled(folds, table.PEOPLE)


def compared(row, random):
    draws = Resamples(row.people, resamples=200)
    evaluated, baseline = (script.method(one, draws) for one in (row, random))
    (setting,) = evaluated.settings
    return script.minus_random(setting, setting.excess.estimate, baseline)


def test_a_row_is_compared_with_random_tubelets_that_keep_as_much_utility():
    random = run(0, 300, top1=0.5, linked=1.0)
    found = compared(run(0, 300, method="figure", keep=None, top1=0.8, linked=0.5), random)
    value, low, high = found["minus"]
    assert value == pytest.approx(-0.5 / 0.9, abs=0.1)
    assert low < value < high < 0
    assert (found["next_to_raw"], found["several"]) == (True, False)


def test_a_row_with_all_of_the_utility_is_compared_with_raw_video_and_one_with_less_than_random_with_nothing():
    random = run(0, 300, top1=0.5, linked=1.0)
    found = compared(run(0, 300, method="figure", keep=None, top1=1.1, linked=0.5), random)
    assert found["at"] == "raw video"
    assert found["minus"][0] == pytest.approx(-0.5 / 0.9, abs=0.1)
    assert "outside" in compared(run(0, 300, method="figure", keep=None, top1=0.2), random)["reason"]


def test_rows_that_are_finished_on_all_splits_are_in_the_summary(tmp_path, monkeypatch):
    runs = {}
    for end, clips in (("u1", 30), ("u2", 60), ("u3", 90)):
        runs |= {("raw", end): raw_alone(clips), ("random", end): run(0, clips, top1=0.5, linked=1.0)}
        runs["motion", end] = run(1, clips, "motion", None, 0.7, 0.4)
    del runs["motion", "u2"]
    for name, end in runs:
        (tmp_path / table.run_of(name, "crop", end)).mkdir()
        (tmp_path / table.run_of(name, "crop", end) / "results.json").touch()
    monkeypatch.setattr(script, "_open", lambda _, name, __, end: runs[name, end])
    rows = script.rows_of(tmp_path, table.UCF, "crop")
    assert rows.keys() == {"raw", "random"}
    assert rows["raw"]["settings"][0]["linkage_rank1"]["share"][0] == 1
    (one,) = rows["random"]["settings"]
    assert "minus_random" not in one
    assert one["action_top1"]["share"] == one["action_top1"]["value"]  # of raw video's 1.0


def test_rows_without_runs_stay_as_they_are(tmp_path):
    before = page_of_tables.summary()
    assert script.summary(tmp_path, before) == before
    trainings = read_json(table.RESULTS / "trainings.json")
    assert script.trainings(tmp_path, trainings) == trainings


def test_every_share_is_one_of_the_raw_video_of_its_row():
    compared_shares = 0
    for found in page_of_tables.summary().values():
        for rows in found["parts"].values():
            for row in rows.values():
                for one in row["settings"]:
                    for metric, (raw, floor) in row["raw"].items():
                        if metric not in one or one[metric]["share"] is None:
                            continue
                        own, raw_floor = (0, 0) if metric == "action_top1" else (one[metric]["floor"], floor)
                        share = (one[metric]["value"][0] - own) / (raw - raw_floor)
                        assert one[metric]["share"][0] == pytest.approx(share, abs=2e-4)
                        compared_shares += 1
    assert compared_shares > 200


def test_the_summary_of_masks_over_figures_is_that_of_its_results():
    found = read_json(figure_table.RESULTS / "summary.json")
    for job in figure_table.jobs():
        if job.commands[0][0] == "evaluate":
            results = read_json(figure_table.RESULTS / f"{job.name}.json")
            metrics = (results["points"] or [results["raw"]])[0]["metrics"]
            row = found["rows"].get(job.name, found["raw"])
            for name in figure_table.METRICS:
                assert [metrics[name]["value"], *metrics[name]["interval"]] == row[name]
            if "highest" in row:
                assert row["highest"] == max(one["test"] for one in metrics["linkage_rank1"]["others"].values())


def test_marks_say_how_a_row_was_compared_with_random_tubelets():
    minus = {"minus": [-0.1, -0.2, 0.0]}
    assert page_of_tables._minus(None) == ""
    assert page_of_tables._minus({"reason": "outside"}) == "–"
    assert page_of_tables._minus(minus | {"next_to_raw": False, "several": False}) == "-0.10 [-0.20, 0.00]"
    assert page_of_tables._minus(minus | {"next_to_raw": True, "several": True}) == "-0.10 [-0.20, 0.00] ^ ~"
    assert page_of_tables._minus(minus | {"at": "raw video"}) == "-0.10 [-0.20, 0.00] *"
