"""The table in one screen: numbers of the report, in its order."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.report.made_up import metric, on_disk
from vidveil.statistics.tradeoff import Excess

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(FOLDER))
    spec = importlib.util.spec_from_file_location("dual_cls_summary", FOLDER / "dual_cls_summary.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(FOLDER))
    return module


@pytest.fixture
def runs(tmp_path):
    more = {"recipe": {"seeds": [0], "attackers": ["resnet_tiny"]}}
    for name, settings in {
        "credit-rho0": [(0.9, 10, 5, 0.6), (0.5, 9, 1, 0.2)],
        "random-rho0": [(0.9, 10, 9, 1.0), (0.5, 8, 5, 0.5)],
        "faces-rho0": [(None, 10, 9, 0.9)],
        "late-rho0": [(0.9, 10, 9, 0.9), (0.5, 10, 8, 0.8)],
        "credit-rho0.5": [(0.9, 10, 9, 1.0), (0.5, 9, 5, 1.0)],
    }.items():
        on_disk(tmp_path, name, settings, **more)
    return tmp_path


def test_excess_is_read_where_as_much_is_kept_and_the_best_mode_is_taken_from_it(script, runs):
    rows = script.summary(runs, "-rho0")["rows"]
    assert next(iter(rows)) == "credit"
    assert rows.keys() == {"credit", "random", "faces", "late"}
    assert rows["credit"]["linkage"][0] == pytest.approx(0.5 * 0.7)  # 0.97 is three tenths of the way down
    assert rows["random"]["linkage"][0] == pytest.approx(1 - 0.5 * 0.15)
    assert rows["random"]["linkage_minus"][0] == pytest.approx(0.35 - 0.925)
    assert rows["random"]["attributes"][0] == pytest.approx(1 - 0.5 * 0.15)


def test_a_method_without_a_knob_is_met_where_it_stands_and_a_curve_that_is_too_short_says_nothing(script, runs):
    rows = script.summary(runs, "-rho0")["rows"]
    assert (rows["faces"]["retention"], rows["faces"]["knob"]) == (1.0, False)
    assert rows["faces"]["linkage_minus"][0] == pytest.approx(0.5 - 1.0)
    assert rows["late"]["linkage"] is None
    lines = script.page(script.summary(runs, "-rho0")).split("\n\n")[0].splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in lines[2:]] == ["credit", "random", "faces (at 1.000)", "late"]
    assert "| – | – | – |" in lines[-1]


def test_the_best_modes_strongest_setting_that_keeps_no_less_stands_beside_each_row(script, runs):
    rows = script.summary(runs, "-rho0")["rows"]
    assert "beside" not in rows["credit"]
    for name in ("random", "faces"):  # 0.97 and 1 of the use: the hard setting keeps 0.9 and is not asked
        assert rows[name]["beside"]["linkage"][0] == pytest.approx(0.5 - rows[name]["linkage"][0])
    assert 0 < rows["random"]["beside"]["often"] <= 1


def estimate(script, value, *samples):
    return script.Estimate(value, np.array(samples), drawn="these")


def test_settings_that_keep_enough_are_compared_without_reading_a_curve(script, runs):
    summary = script.summary(runs, "-rho0")
    late, best = summary["rows"]["late"]["judged"], summary["rows"]["credit"]["judged"]
    assert (best["keep"], best["retention"][0], best["linkage"][0]) == (0.9, 1.0, pytest.approx(0.5))
    assert "beside" not in best
    assert late["keep"] == 0.5  # the stronger of two that keep all of the use
    assert late["beside"]["linkage"][0] == pytest.approx(best["linkage"][0] - late["linkage"][0])
    assert summary["rows"]["random"]["judged"]["keep"] == 0.9
    table = script.page(summary).split("\n\n")[2].splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in table[2:]] == ["credit", "late", "faces", "random"]


def test_the_setting_is_chosen_anew_in_each_draw_and_raw_video_stands_for_none(script):
    def made(keep, kept, leaked):
        return script.Setting(str(keep), keep, {}, kept, None, Excess(leaked, (), {}), leaked, keep)

    hard = made(0.5, estimate(script, 0.98, 0.99, 0.96, 0.90), estimate(script, 0.1, 0.1, 0.1, 0.1))
    mild = made(0.9, estimate(script, 1.00, 1.00, 0.98, 0.95), estimate(script, 0.6, 0.6, 0.6, 0.6))
    best = script.Method("best", [mild, hard], {})
    rival = estimate(script, 0.9, 0.9, 0.9, 0.9)
    found = script.next_to(best, script.at(best, 0.97), {"linkage": rival})
    assert found["share"] == 0.5
    assert found["often"] == pytest.approx(1 / 3)
    low, high = np.percentile([0.1 - 0.9, 0.6 - 0.9, 1.0 - 0.9], [2.5, 97.5])  # hard, mild, raw
    assert found["linkage"] == pytest.approx([0.1 - 0.9, low, high])


def test_masks_of_faces_of_several_sizes_are_one_curve(script, runs):
    more = {"recipe": {"seeds": [0], "attackers": ["resnet_tiny"]}}
    on_disk(runs, "faces2-rho0", [(None, 9, 5, 0.5)], **more)
    rows = script.summary(runs, "-rho0")["rows"]
    assert "faces2" not in rows
    assert (rows["faces"]["knob"], rows["faces"]["retention"]) == (True, 0.97)
    assert rows["faces"]["linkage"][0] == pytest.approx(1 - 0.3 * 0.5)


def test_blurs_and_small_pictures_of_several_sizes_are_a_curve_each_milder_ones_first(script, runs):
    more = {"recipe": {"seeds": [0], "attackers": ["resnet_tiny"]}}
    for name, hits in (("blur", 10), ("blur8", 9), ("downsample2", 10), ("downsample16", 8), ("downsample4", 9)):
        on_disk(runs, f"{name}-rho0", [(None, hits, hits - 4, 0.5)], **more)
    rows = script.summary(runs, "-rho0")["rows"]
    assert {"blur8", "downsample2", "downsample4", "downsample16"}.isdisjoint(rows)
    for name in ("blur", "downsample"):
        assert (rows[name]["knob"], rows[name]["retention"]) == (True, 0.97)
        first, second = 5 / 8, 4 / 8  # beyond chance, of raw video's: where all of the use is kept, and 0.9 of it
        assert rows[name]["linkage"][0] == pytest.approx(first - 0.3 * (first - second))


def test_each_setting_is_met_by_the_curves_of_others_where_they_keep_as_much(script, runs):
    more = {"recipe": {"seeds": [0], "attackers": ["resnet_tiny"]}}
    on_disk(runs, "credit-alone-rho0", [(None, 9, 1, 0.1)], **more)
    summary = script.summary(runs, "-rho0")
    mild, hard, alone = summary["met"]
    assert [one["of"] for one in (mild, hard, alone)] == ["credit", "credit", "credit-alone"]
    assert mild["minus"].keys() == {"random", "late"}  # faces have no curve
    assert mild["minus"]["random"]["linkage"][0] == pytest.approx(0.5 - 1)
    assert hard["minus"]["random"]["linkage"][0] == pytest.approx(0 - 0.75)  # half of the way from 1 to 0.5
    assert hard["minus"]["late"]["linkage"] is None  # it keeps all of the use
    assert alone["minus"]["random"]["attributes"][0] == pytest.approx(0.1 - 0.75)
    assert [one["minus"]["random"]["beside_raw"] for one in summary["met"]] == [False] * 3
    table = script.page(summary).split("\n\n")[3].splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in table[2:]] == ["credit", "credit", "credit-alone"]


def test_a_rival_of_whom_no_attributes_are_known_is_left_out_and_stops_nobody(script, runs, capsys):
    more = {"recipe": {"seeds": [0], "attackers": ["resnet_tiny"]}}
    on_disk(runs, "blind-rho0", [(0.9, 10, 9, None), (0.5, 8, 5, None)], **more)
    summary = script.summary(runs, "-rho0")
    assert "blind" not in summary["rows"]
    assert "blind" not in summary["met"][0]["minus"]
    assert "left out: blind" in capsys.readouterr().out


def test_the_curve_of_what_draws_anew_is_not_read_between_its_mildest_setting_and_raw_video(script, runs):
    more = {"recipe": {"seeds": [0], "attackers": ["resnet_tiny"]}}
    for name, filmed in (("stprivacy", False), ("stprivacy-sparse", True)):
        path, made = on_disk(runs, f"{name}-rho0", [(0.9, 9, 5, 0.5), (0.5, 7, 1, 0.1)], **more)
        for point in made.points:
            point.metrics["tubelets_kept"] = metric(point.keep, 0.0, kind="truth")
        replace(made, points=[replace(point, kept_as_filmed=filmed) for point in made.points]).write(path)
    on_disk(runs, "stprivacy-anonymous-rho0", [(None, 8, 4, 0.4)], **more)
    rows = script.summary(runs, "-rho0")["rows"]
    assert rows["stprivacy"]["linkage"] is None
    assert rows["stprivacy"]["judged"] is None
    assert "linkage_minus" not in rows["stprivacy"]
    assert rows["stprivacy-sparse"]["linkage"][0] == pytest.approx(1 - 0.3 * 0.5)
    assert rows["stprivacy-sparse"]["beside_raw"]
    anonymous = rows["stprivacy-anonymous"]
    assert (anonymous["retention"], anonymous["linkage"][0]) == (pytest.approx(0.8), pytest.approx(0.375))
    assert anonymous["beside"]["linkage"][0] == pytest.approx(0 - 0.375)  # the best mode's hard setting keeps 0.9


def test_each_setting_of_the_best_mode_has_its_use_and_what_it_leaks(script, runs):
    summary = script.summary(runs, "-rho0")
    mild, hard = summary["settings"]
    assert (mild["retention"][0], hard["retention"][0]) == (pytest.approx(1.0), pytest.approx(0.9))
    assert mild["linkage"][0] == pytest.approx(0.5)
    assert hard["linkage"][0] == pytest.approx(0.0)
    assert len(script.page(summary).split("\n\n")[1].splitlines()) == 2 + 2


def test_what_has_no_interval_is_written_without_one_and_not_as_nan(script):
    estimate = script.Estimate(0.5, np.full(10, np.nan))
    assert script.told(estimate) == [0.5, None, None]
    assert script.interval(script.told(estimate)) == "0.50"


def test_a_best_mode_that_is_not_finished_is_asked_for(script, runs):
    with pytest.raises(SystemExit, match="strong-credit-rho0 is not finished"):
        script.summary(runs, "-rho0", "strong-")
