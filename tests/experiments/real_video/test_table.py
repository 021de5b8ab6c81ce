"""The table of real video: commands that vidveil takes, splits that are pooled clip by clip, a page that is true."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import table
import table_lots
import table_page
import table_picture
import table_pooled
import table_summary
from job_queue import wanted

from vidveil.core.errors import DataError
from vidveil.core.recipe import find, read
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.results import Metric, Point, Results
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.stprivacy.recipe import STPrivacyRecipe
from vidveil.report.same_clips import Run
from vidveil.statistics.intervals import Resamples

ROOT = Path(__file__).parents[2]


def test_every_command_is_a_recipe_with_fields_that_exist_and_a_name_of_its_own():
    runs = [pair for job in table.jobs() for pair in job.runs.items()]
    for name, (verb, recipe, *overrides) in runs:
        parsed = read(find(recipe), overrides)
        assert parsed.name == name
        if verb == "evaluate":
            assert isinstance(parsed, EvaluateRecipe)
            assert parsed.seeds == (0, 1, 2)
        else:
            assert isinstance(parsed, DualCLSRecipe | STPrivacyRecipe)
    assert len({name for name, _ in runs}) == len(runs)


def test_a_network_that_hides_is_judged_on_the_split_and_the_part_that_it_was_trained_on():
    known = {name: words for job in table.jobs() for name, words in job.runs.items()}
    learned = {
        name: words
        for name, words in known.items()
        if any("dual_cls:" in word or "stprivacy:" in word for word in words)
    }
    assert len(learned) > 60
    for words in learned.values():
        recipe = read(find(words[1]), words[2:])
        name = recipe.method.rpartition(":")[2]
        trained = read(find(known[name][1]), known[name][2:])
        assert (trained.data, trained.part) == (recipe.data, recipe.part)


def test_every_row_is_judged_beside_raw_video_of_the_same_split_and_part():
    known = {name: words for job in table.jobs() for name, words in job.runs.items()}
    for name, words in known.items():
        if words[0] == "train":
            continue
        recipe = read(find(words[1]), words[2:])
        if not recipe.raw:
            assert recipe.method == "raw"
            continue
        raw = read(find(known[recipe.raw][1]), known[recipe.raw][2:])
        same = ("data", "part", "utility", "attackers", "views", "epochs", "size", "batch")
        assert [getattr(raw, key) for key in same] == [getattr(recipe, key) for key in same]
        trained = ("t-", "s-")
        assert (raw.method, raw.name.startswith(trained)) == ("raw", name.startswith(trained))


def test_what_a_job_needs_stands_before_it_and_a_row_can_be_asked_for():
    before = set()
    for job in table.jobs():
        assert before >= set(job.needs)
        before.add(job.name)
    asked = {job.of for job in wanted(table.jobs(), ["moving"])}
    assert asked == {"raw", "moving"}
    asked = {job.name for job in wanted(table.jobs(), ["best-crop-u2"])}
    assert asked == {"d-best-u2", "raw-crop-u1", "best-crop-u2"}  # all splits of raw video are one job
    asked = {job.name for job in wanted(table.jobs(), ["t-motion-crop-u1"])}
    assert asked == {"t-raw-crop-u1", "t-motion-crop-u1"}


def point(method, values, floors, by, keep=None, kept=None):
    metrics = {
        name: Metric(
            kind="utility" if name == "action_top1" else "leakage", value=float(np.nanmean(each)),
            seeds=np.nanmean(each, axis=1).tolist(), interval=[0, 1], floor=floors[name], floor_range=[0, 1],
            floor_analytic=floors[name], measured_by=by, others={by: {"test": float(np.nanmean(each)), "val": 0.5}},
        )
        for name, each in values.items()
    }  # fmt: skip
    if kept is not None:
        metrics["tubelets_kept"] = replace(next(iter(metrics.values())), value=kept)
    return Point(method=method, keep=keep, metrics=metrics)


def run(seed, clips, method="random", keep=0.5, top1=0.5, linked=0.8, name="dual"):
    """Two seeds, three clips a person; raw video tells and links everything."""
    rng = np.random.default_rng(seed)
    values = {
        "raw": {"action_top1": np.ones((2, clips)), "linkage_rank1": np.ones((2, clips))},
        "point": {
            "action_top1": (rng.random((2, clips)) < top1).astype(float),
            "linkage_rank1": (rng.random((2, clips)) < linked).astype(float),
        },
    }
    floors = {"action_top1": 0.2, "linkage_rank1": 0.1 * (1 + seed)}
    points = [
        point("raw", values["raw"], floors, "i3d"),
        point(method, values["point"], floors, f"net{seed}", keep, None if keep is None else keep),
    ]
    arrays = {"people": np.arange(clips) // 3}
    for one, which in zip(points, ("raw", "point"), strict=True):
        tag = one.method if one.keep is None else f"{one.method}-{one.keep:g}"
        for metric, each in values[which].items():
            arrays[f"{tag}/{metric}"] = each
        arrays[f"{tag}/linkage_rank1/chance"] = np.full(clips, floors["linkage_rank1"])
    results = Results(
        name=name, recipe={}, data={}, machine={}, seconds=1.0, raw=points[0], points=points[1:], controls={}, cost={}
    )
    return Run(results, arrays)


def test_splits_are_pooled_clip_by_clip_and_their_people_are_different_ones():
    small, large = run(0, 30), run(1, 60)
    both = table_pooled.pooled([small, large])
    assert len(np.unique(both.people)) == 30
    one = both.results.points[0]
    values = both.values(one, "linkage_rank1")
    np.testing.assert_array_equal(values[:, :30], small.values(small.results.points[0], "linkage_rank1"))
    metric = one.metrics["linkage_rank1"]
    assert metric.value == pytest.approx(values.mean())
    assert metric.seeds == pytest.approx(values.mean(axis=1).tolist())
    assert metric.floor == pytest.approx((30 * 0.1 + 60 * 0.2) / 90)
    assert metric.measured_by == "net0 / net1"
    assert metric.others == {}  # nobody attacked both


def test_a_row_on_some_splits_stands_beside_raw_video_and_lots_on_these_and_for_no_row_on_all(tmp_path, monkeypatch):
    made = {}
    for end, clips in (("u1", 30), ("u2", 60), ("u3", 90)):
        made |= {("raw", end): raw_alone(clips), ("random", end): run(0, clips, top1=0.5, linked=1.0)}
    made |= {("motion", end): run(1, clips, "motion", None, 0.7, 0.4) for end, clips in (("u1", 30), ("u3", 90))}
    known = {table.run_of(name, "crop", end): one for (name, end), one in made.items()}
    for name in known:
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").touch()
    monkeypatch.setattr(table_summary, "_open", lambda _, name, part, end: known[table.run_of(name, part, end)])
    rows = table_summary.rows_of(tmp_path, table.UCF, "crop")
    assert rows.keys() == {"raw", "random", "motion"}
    assert rows["motion"]["splits"] == ["ucf101_5:1", "ucf101_5:3"]
    assert "splits" not in rows["random"]
    (one,) = rows["motion"]["settings"]
    apart = table_pooled.pooled([made["motion", "u1"], made["motion", "u3"]])
    lots = table_pooled.pooled([made["random", "u1"], made["random", "u3"]])
    assert one["minus_lots"]["minus"][0] == compared(apart, lots)["minus"][0]
    assert table_summary.joined({"motion": {"a": 1}}, {"motion": {"splits": []}}) == {"motion": {"a": 1}}
    assert table_summary.joined({"motion": {"splits": []}}, {"motion": {"a": 1}}) == {"motion": {"a": 1}}


def raw_alone(clips):
    one = run(0, clips)
    return Run(replace(one.results, points=[]), one.clips)


def test_people_who_are_in_every_split_are_drawn_as_one():
    folds = [run(0, 27), run(1, 27), run(2, 27)]
    assert len(np.unique(table_pooled.pooled(folds, table.NAMED).people)) == 9
    with pytest.raises(DataError, match="not everybody"):
        table_pooled.pooled([run(0, 27), run(1, 30)], table.NAMED)


def test_a_dagger_is_for_raw_video_that_came_out_otherwise():
    raw = {"action_top1": [0.94, 0.2], "linkage_rank1": [0.99, 0.1]}
    assert not table_page.another(raw, raw | {"linkage_rank1": [0.985, 0.1]})
    assert table_page.another(raw, raw | {"linkage_rank1": [0.97, 0.1]})
    assert table_page.another(raw, None)


def test_where_two_people_validate_average_precision_decides_between_attackers_that_are_always_right():
    """Those of its own split: test people have no say."""
    folds = [run(seed, 27, linked=0.8) for seed in range(3)]
    val = {"early": (1.0, 0.6), "best": (1.0, 0.9), "lucky": (0.9, 1.0)}  # rank-1, average precision
    hits = {"early": 0.1, "best": 0.5, "lucky": 1.0}
    for one in folds:
        for at in (one.results.raw, *one.results.points):
            for place, metric in enumerate(("linkage_rank1", "linkage_map")):
                others = {who: {"test": hits[who], "val": scores[place]} for who, scores in val.items()}
                at.metrics[metric] = replace(at.metrics["linkage_rank1"], others=others)
            for who, share in hits.items():
                tag = table_pooled.tag_of(at)
                one.clips[f"{tag}/linkage_rank1/by/{who}"] = np.tile(np.arange(27) < round(27 * share), (2, 1))
    both = table_pooled.pooled(folds, table.PEOPLE)
    metric = both.results.points[0].metrics["linkage_rank1"]
    assert metric.measured_by == "best"
    assert metric.value == pytest.approx(14 / 27)
    assert both.values(both.results.points[0], "linkage_rank1").mean() == pytest.approx(14 / 27)
    assert table_pooled.pooled(folds).results.points[0].metrics["linkage_rank1"].measured_by == "net0 / net1 / net2"
    del folds[1].clips["random-0.5/linkage_rank1/by/best"]
    with pytest.raises(DataError, match="keeps no hits of best"):
        table_pooled.pooled(folds, table.PEOPLE)


def judged_by(network, top1, linked, val, seed=0):
    """A run whose evaluators, one for the use and one attacker, are called by a network's name."""
    one = run(seed, 30, top1=top1, linked=linked)
    for at in (one.results.raw, *one.results.points):
        who, tag = f"{network}, cosine", table_pooled.tag_of(at)
        one.clips[f"{tag}/linkage_rank1/by/{who}"] = one.clips[f"{tag}/linkage_rank1"]
        for metric, name in (("action_top1", network), ("linkage_rank1", who), ("linkage_map", who)):
            at.metrics[metric] = replace(
                at.metrics.get(metric, at.metrics["linkage_rank1"]), others={name: {"test": 0.5, "val": val[metric]}}
            )
    return one


def test_of_two_kinds_of_judges_the_better_one_counts_for_the_use_and_the_stronger_one_for_linkage():
    fine = {"action_top1": 0.9, "linkage_rank1": 0.2, "linkage_map": 0.9}
    strong = {"action_top1": 0.1, "linkage_rank1": 0.8, "linkage_map": 0.1}
    kinds = [judged_by("large", 1.0, 0.0, fine), judged_by("small", 0.0, 1.0, strong)]
    one = table_pooled.merged(kinds)
    both = table_pooled.pooled([one, one], None, ("action_top1", "linkage_rank1"))
    metrics = both.results.points[0].metrics
    assert {name: metrics[name].measured_by for name in ("action_top1", "linkage_rank1")} == {
        "action_top1": "large", "linkage_rank1": "small, cosine"
    }  # fmt: skip
    assert (metrics["action_top1"].value, metrics["linkage_rank1"].value) == (1.0, 1.0)
    assert set(metrics["linkage_rank1"].others) == {"large, cosine", "small, cosine"}
    other = judged_by("small", 0.0, 1.0, strong)
    other.clips["people"] = other.clips["people"][::-1]
    with pytest.raises(DataError, match="different clips"):
        table_pooled.merged([kinds[0], other])


def test_clips_that_asked_nothing_count_nothing():
    first, second = run(0, 30), run(1, 30)
    first.clips["random-0.5/linkage_rank1"][:, :15] = np.nan
    first.results.points[0].metrics["linkage_rank1"] = replace(
        first.results.points[0].metrics["linkage_rank1"],
        value=float(np.nanmean(first.clips["random-0.5/linkage_rank1"])),
    )
    both = table_pooled.pooled([first, second])
    metric = both.results.points[0].metrics["linkage_rank1"]
    assert metric.value == pytest.approx(np.nanmean(both.clips["random-0.5/linkage_rank1"]))
    assert metric.floor == pytest.approx((15 * 0.1 + 30 * 0.2) / 45)


def compared(row, lots):
    draws = Resamples(row.people, resamples=200)
    evaluated, rival = (table_summary.method(one, draws) for one in (row, lots))
    (setting,) = evaluated.settings
    return table_lots.beside_lots(setting, setting.excess.estimate, rival)


def test_a_row_is_read_beside_lots_where_they_keep_as_much():
    lots = run(0, 300, top1=0.5, linked=1.0)
    better = run(0, 300, method="figure", keep=None, top1=0.8, linked=0.5)
    found = compared(better, lots)
    value, low, high = found["minus"]
    assert value == pytest.approx(-0.5 / 0.9, abs=0.1)
    assert low < value < high < 0
    assert (found["beside_raw"], found["several"]) == (True, False)


def test_who_keeps_all_of_the_use_stands_beside_raw_video_and_who_keeps_less_than_lots_has_no_rival():
    lots = run(0, 300, top1=0.5, linked=1.0)
    found = compared(run(0, 300, method="figure", keep=None, top1=1.1, linked=0.5), lots)
    assert found["at"] == "raw video"
    assert found["minus"][0] == pytest.approx(-0.5 / 0.9, abs=0.1)
    assert "outside" in compared(run(0, 300, method="figure", keep=None, top1=0.2), lots)["reason"]


def test_rows_that_another_training_takes_the_place_of_are_kept_and_others_are_not():
    def rows(linked, **more):
        return {"ucf101_5": {"parts": {"crop": {
            name: {"settings": [{"linkage_rank1": {"value": [linked]}}]} | more for name in ("best", "motion")
        }}}}  # fmt: skip

    assert table_summary.replaced(rows(0.5), rows(0.6)) == {
        "ucf101_5 crop best": rows(0.5)["ucf101_5"]["parts"]["crop"]["best"]
    }
    assert table_summary.replaced(rows(0.5), rows(0.5, commit="later")) == {}


def test_what_is_read_beyond_the_most_lots_that_were_judged_is_marked_as_a_guess():
    def kept(share, keep=None, **more):
        return {"keep": keep, "action_top1": {"share": [share]}, **more}

    rows = {"random": {"settings": [kept(0.9, 0.9), kept(0.6, 0.5)]}}
    few = {"minus": [0, 0, 0]}
    many, beyond = few | {"beside_raw": False}, few | {"beside_raw": True}
    told = [
        (0.7, few),
        (0.5, few),
        (0.7, many),
        (0.95, beyond),
        (1.1, few | {"at": "raw video"}),
        (0.7, {"reason": ""}),
    ]
    marks = [table_page.beyond("motion", kept(share, minus_lots=met), rows) for share, met in told]
    assert marks == [True, False, False, True, False, False]
    assert not table_page.beyond("t-motion", kept(0.7, minus_lots=few), rows)  # other evaluators evaluated these lots
    assert not table_page.beyond("motion", kept(0.7, minus_lots=few), {"random": {"settings": [kept(0.9, 0.9)]}})


def test_the_page_is_the_one_of_the_summary():
    found = json.loads((table.RESULTS / "summary.json").read_text())
    assert (ROOT / "benchmarks" / "TABLE.md").read_text() == table_page.page(found)


def test_every_share_is_one_of_the_raw_video_that_stands_with_the_row():
    found = json.loads((table.RESULTS / "summary.json").read_text())
    looked = 0
    for of in found.values():
        for part, rows in of["parts"].items():
            for name, row in rows.items() if part != "strongest" else ():
                for one in row["settings"]:
                    for metric, (raw, floor) in row["raw"].items():
                        if metric not in one or one[metric]["share"] is None:
                            continue
                        told, below = one[metric], (0, 0) if metric == "action_top1" else (one[metric]["floor"], floor)
                        share = (told["value"][0] - below[0]) / (raw - below[1])
                        assert told["share"][0] == pytest.approx(share, abs=2e-4), (part, name, metric)
                        looked += 1
    assert looked > 200


def test_rows_whose_runs_are_gone_stay_as_they_were_told(tmp_path):
    before = json.loads((table.RESULTS / "summary.json").read_text())
    assert table_summary.summary(tmp_path, before) == before


def test_what_was_not_run_is_named(tmp_path):
    found = json.loads((table.RESULTS / "summary.json").read_text())
    for one in found.values():
        one["parts"]["whole"].pop("moving", None)
        one["parts"]["crop"].pop("moving", None)
    found["ucf101_5"]["parts"]["crop"].pop("paper-mask")
    page = table_page.page(found)
    left = page.partition("Not run yet")[2].partition("\n")[0]
    assert "`moving`;" in left
    assert "`paper-mask` of UCF101 in squares;" in left
    assert "`random`" not in left
    table_picture.picture(found, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
