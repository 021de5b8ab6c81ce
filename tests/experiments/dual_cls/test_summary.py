"""Summaries of dual-CLS: leakage at a retention, at equal utility, and of the strongest settings."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.dual_cls import page
from experiments.dual_cls import summary as script
from experiments.markdown import interval, with_interval
from tests.report.made_up import metric, on_disk
from vidveil.statistics.tradeoff import Excess

MORE = {"recipe": {"seeds": [0], "attackers": ["resnet_tiny"]}}


@pytest.fixture
def runs(tmp_path):
    for name, settings in {
        "attribution-rho0": [(0.9, 10, 5, 0.6), (0.5, 9, 1, 0.2)],
        "random-rho0": [(0.9, 10, 9, 1.0), (0.5, 8, 5, 0.5)],
        "faces-rho0": [(None, 10, 9, 0.9)],
        "late-rho0": [(0.9, 10, 9, 0.9), (0.5, 10, 8, 0.8)],
        "attribution-rho0.5": [(0.9, 10, 9, 1.0), (0.5, 9, 5, 1.0)],
    }.items():
        on_disk(tmp_path, name, settings, **MORE)
    return tmp_path


def first_cells(table):
    return [line.split(" | ")[0].strip("| ") for line in table.splitlines()[2:]]


def test_excess_is_read_where_as_much_is_kept_and_the_best_mode_is_taken_from_it(runs):
    rows = script.summary(runs, "-rho0")["rows"]
    assert next(iter(rows)) == "attribution"
    assert rows.keys() == {"attribution", "random", "faces", "late"}
    assert rows["attribution"]["linkage"][0] == pytest.approx(0.5 * 0.7)  # 0.97 is three tenths of the way down
    assert rows["random"]["linkage"][0] == pytest.approx(1 - 0.5 * 0.15)
    assert rows["random"]["linkage_minus"][0] == pytest.approx(0.35 - 0.925)
    assert rows["random"]["attributes"][0] == pytest.approx(1 - 0.5 * 0.15)


def test_a_method_without_a_knob_is_compared_at_its_own_retention_and_a_short_curve_has_no_value(runs):
    rows = script.summary(runs, "-rho0")["rows"]
    assert (rows["faces"]["retention"], rows["faces"]["knob"]) == (1.0, False)
    assert rows["faces"]["linkage_minus"][0] == pytest.approx(0.5 - 1.0)
    assert rows["late"]["linkage"] is None
    table = page.rows_table(script.summary(runs, "-rho0"))
    assert first_cells(table) == ["attribution", "random", "faces (at 1.000)", "late"]
    assert "| – | – | – |" in table.splitlines()[-1]


def test_each_row_is_compared_with_the_best_modes_strongest_setting_that_keeps_no_less(runs):
    rows = script.summary(runs, "-rho0")["rows"]
    assert "compared" not in rows["attribution"]
    for name in ("random", "faces"):  # 0.97 and 1 of the utility; the strong setting keeps 0.9
        assert rows[name]["compared"]["linkage"][0] == pytest.approx(0.5 - rows[name]["linkage"][0])
    assert 0 < rows["random"]["compared"]["often"] <= 1


def estimate(value, *samples):
    return script.Estimate(value, np.array(samples), drawn="these")


def test_settings_that_keep_enough_are_compared_without_reading_a_curve(runs):
    summary = script.summary(runs, "-rho0")
    late, best = summary["rows"]["late"]["strongest"], summary["rows"]["attribution"]["strongest"]
    assert (best["keep"], best["retention"][0], best["linkage"][0]) == (0.9, 1.0, pytest.approx(0.5))
    assert "compared" not in best
    assert late["keep"] == 0.5  # the stronger of two that keep all of the utility
    assert late["compared"]["linkage"][0] == pytest.approx(best["linkage"][0] - late["linkage"][0])
    assert summary["rows"]["random"]["strongest"]["keep"] == 0.9
    assert first_cells(page.strongest_table(summary)) == ["attribution", "late", "faces", "random"]


def test_the_setting_is_chosen_in_each_draw_and_raw_video_replaces_it_where_none_keeps_enough():
    def made(keep, kept, leaked):
        return script.Setting(str(keep), keep, {}, kept, None, Excess(leaked, (), {}), leaked, keep)

    strong = made(0.5, estimate(0.98, 0.99, 0.96, 0.90), estimate(0.1, 0.1, 0.1, 0.1))
    mild = made(0.9, estimate(1.00, 1.00, 0.98, 0.95), estimate(0.6, 0.6, 0.6, 0.6))
    best = script.Method("best", [mild, strong], {})
    other = estimate(0.9, 0.9, 0.9, 0.9)
    found = script.compared_with(best, script.at(best, 0.97), {"linkage": other})
    assert found["share"] == 0.5
    assert found["often"] == pytest.approx(1 / 3)
    low, high = np.percentile([0.1 - 0.9, 0.6 - 0.9, 1.0 - 0.9], [2.5, 97.5])  # strong, mild, raw
    assert found["linkage"] == pytest.approx([0.1 - 0.9, low, high])


def test_masks_of_faces_of_several_sizes_are_one_curve(runs):
    on_disk(runs, "faces2-rho0", [(None, 9, 5, 0.5)], **MORE)
    rows = script.summary(runs, "-rho0")["rows"]
    assert "faces2" not in rows
    assert (rows["faces"]["knob"], rows["faces"]["retention"]) == (True, 0.97)
    assert rows["faces"]["linkage"][0] == pytest.approx(1 - 0.3 * 0.5)


def test_blurs_and_lower_resolutions_are_a_curve_each(runs):
    for name, hits in (("blur", 10), ("blur8", 9), ("downsample2", 10), ("downsample16", 8), ("downsample4", 9)):
        on_disk(runs, f"{name}-rho0", [(None, hits, hits - 4, 0.5)], **MORE)
    rows = script.summary(runs, "-rho0")["rows"]
    assert {"blur8", "downsample2", "downsample4", "downsample16"}.isdisjoint(rows)
    for name in ("blur", "downsample"):
        assert (rows[name]["knob"], rows[name]["retention"]) == (True, 0.97)
        first, second = 5 / 8, 4 / 8  # beyond chance, of raw video's: where all of the utility is kept, and 0.9 of it
        assert rows[name]["linkage"][0] == pytest.approx(first - 0.3 * (first - second))


def test_each_setting_is_compared_with_the_curves_of_others_at_the_same_utility(runs):
    on_disk(runs, "attribution-alone-rho0", [(None, 9, 1, 0.1)], **MORE)
    summary = script.summary(runs, "-rho0")
    mild, strong, alone = summary["equal_utility"]
    assert [one["of"] for one in (mild, strong, alone)] == ["attribution", "attribution", "attribution-alone"]
    assert mild["minus"].keys() == {"random", "late"}  # faces have no curve
    assert mild["minus"]["random"]["linkage"][0] == pytest.approx(0.5 - 1)
    assert strong["minus"]["random"]["linkage"][0] == pytest.approx(0 - 0.75)  # half of the way from 1 to 0.5
    assert strong["minus"]["late"]["linkage"] is None  # it keeps all of the utility
    assert alone["minus"]["random"]["attributes"][0] == pytest.approx(0.1 - 0.75)
    assert [one["minus"]["random"]["next_to_raw"] for one in summary["equal_utility"]] == [False] * 3
    assert first_cells(page.equal_utility_table(summary)) == ["attribution", "attribution", "attribution-alone"]


def test_a_method_without_attributes_is_left_out_and_stops_no_other(runs, capsys):
    on_disk(runs, "blind-rho0", [(0.9, 10, 9, None), (0.5, 8, 5, None)], **MORE)
    summary = script.summary(runs, "-rho0")
    assert "blind" not in summary["rows"]
    assert "blind" not in summary["equal_utility"][0]["minus"]
    assert "left out: blind" in capsys.readouterr().out


def test_the_curve_of_a_method_that_draws_anew_does_not_end_at_raw_video(runs):
    for name, filmed in (("stprivacy", False), ("stprivacy-sparse", True)):
        path, made = on_disk(runs, f"{name}-rho0", [(0.9, 9, 5, 0.5), (0.5, 7, 1, 0.1)], **MORE)
        for point in made.points:
            point.metrics["tubelets_kept"] = metric(point.keep, 0.0, kind="truth")
        replace(made, points=[replace(point, kept_as_filmed=filmed) for point in made.points]).write(path)
    on_disk(runs, "stprivacy-anonymous-rho0", [(None, 8, 4, 0.4)], **MORE)
    rows = script.summary(runs, "-rho0")["rows"]
    assert rows["stprivacy"]["linkage"] is None
    assert rows["stprivacy"]["strongest"] is None
    assert "linkage_minus" not in rows["stprivacy"]
    assert rows["stprivacy-sparse"]["linkage"][0] == pytest.approx(1 - 0.3 * 0.5)
    assert rows["stprivacy-sparse"]["next_to_raw"]
    anonymous = rows["stprivacy-anonymous"]
    assert (anonymous["retention"], anonymous["linkage"][0]) == (pytest.approx(0.8), pytest.approx(0.375))
    assert anonymous["compared"]["linkage"][0] == pytest.approx(0 - 0.375)  # the best mode's strong setting keeps 0.9


def test_each_setting_of_the_best_mode_has_its_utility_and_leakage(runs):
    summary = script.summary(runs, "-rho0")
    mild, strong = summary["settings"]
    assert (mild["retention"][0], strong["retention"][0]) == (pytest.approx(1.0), pytest.approx(0.9))
    assert mild["linkage"][0] == pytest.approx(0.5)
    assert strong["linkage"][0] == pytest.approx(0.0)
    assert first_cells(page.settings_table(summary)) == ["0.9", "0.5"]


def test_a_number_without_an_interval_is_written_without_one_and_not_as_nan():
    numbers = with_interval(script.Estimate(0.5, np.full(10, np.nan)))
    assert numbers == [0.5, None, None]
    assert interval(numbers) == "0.50"


def test_an_unfinished_best_mode_is_refused(runs):
    with pytest.raises(SystemExit, match="strong-attribution-rho0 is not finished"):
        script.summary(runs, "-rho0", "strong-")
