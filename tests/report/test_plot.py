"""The picture of the trade-off: what stands where, and that it can always be drawn."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.report.made_up import metric, point, results, sweep
from vidveil.core.errors import OutputError
from vidveil.report import plot, utility_plot
from vidveil.report.plot import places, stretched, ticks, trade_off

UTILITY = point("blur", attributes=None)
UTILITY = replace(UTILITY, metrics={"detection_map": UTILITY.metrics["action_top1"]})
"""Of whole videos, which nobody attacks."""


def test_a_setting_stands_at_its_retention_and_its_excess():
    (place,) = places(results(points=[point("blur", utility=0.76, link=0.18)]), "linkage")
    assert (place.x, place.y) == pytest.approx((0.8, 0.15 / 0.77))


def test_retention_is_of_cmap_where_clips_show_several_actions():
    one = point("blur", utility=0.76, link=0.18)
    renamed = {"action_cmap" if name == "action_top1" else name: metric for name, metric in one.metrics.items()}
    (place,) = places(results(points=[replace(one, metrics=renamed)]), "linkage")
    assert place.x == pytest.approx(0.8)


def test_bars_are_the_intervals_of_the_ratios():
    run = results(points=[point("blur", utility=0.76, link=0.18, attributes=0.4)])
    for panel in ("linkage", "attributes"):
        (place,) = places(run, panel)
        assert place[2:6] == pytest.approx((0.1, 0.2, 0.1, 0.2))


def test_settings_are_joined_in_the_order_of_the_knob():
    run = sweep("dual_cls", 1.0)
    shuffled = replace(run, points=[run.points[k] for k in (2, 0, 3, 1)])
    assert [place.label for place in places(shuffled, "attributes")] == ["0.9", "0.7", "0.5", "0.3"]


def test_a_setting_without_an_excess_is_not_drawn_as_if_it_were_zero():
    without = point("blur", attributes=None)
    assert places(results(points=[without]), "attributes") == []
    assert places(results(points=[replace(without, metrics={})]), "linkage") == []


@pytest.mark.parametrize("interval", [None, [], [None, None], [float("nan")] * 2])
def test_an_interval_that_does_not_exist_has_no_bars(interval):
    one = point("blur")
    lost = metric(0.2, 0.03, excess=0.2, excess_interval=interval)
    one = replace(one, metrics=one.metrics | {"linkage_rank1": lost})
    assert places(results(points=[one]), "linkage")[0][4:6] == (0, 0)


@pytest.mark.parametrize(
    "runs",
    [
        [results()],
        [sweep("dual_cls", 1.0), sweep("splavu", 0.6), results("blur", [point("blur", utility=0.4, link=0.01)])],
        [results(raw=UTILITY, points=[UTILITY])],
        [sweep(f"method_{number}", 0.1 * number) for number in range(9)],
    ],
    ids=["raw alone", "several", "utility alone", "many"],
)
def test_any_results_can_be_drawn(runs, tmp_path):
    trade_off(runs, tmp_path / "tradeoff.png")
    picture = cv2.imread(str(tmp_path / "tradeoff.png"))
    assert picture.shape[0] > 400
    assert picture.min() < 128  # not an empty page


def test_utility_is_drawn_where_nothing_was_attacked_and_nothing_where_neither_was_measured(tmp_path):
    path = tmp_path / "a.png"
    assert trade_off([results(raw=replace(UTILITY, metrics={}))], path) == ""
    assert not path.exists()
    assert trade_off([results(raw=UTILITY)], path) == "utility"
    ((name, rows),) = utility_plot.rows_by_metric([results("run", [UTILITY], raw=UTILITY)]).items()
    assert (name, [row.label for row in rows]) == ("detection_map", ["blur", "blur"])
    assert trade_off([sweep("dual_cls", 1.0)], path) == "trade-off"


@pytest.mark.parametrize("end", [1.0, 1.05, 1.4, 3.0, 12.0])
def test_ticks_go_beyond_raw_video_and_are_not_printed_over_each_other(end):
    found = ticks(-0.02, end)
    places_of = (stretched(np.array(found)) - stretched(-0.02)) / (stretched(end) - stretched(-0.02))
    assert np.diff(places_of).min() >= plot.APART
    assert {0.5, 1.0} <= set(found)
    assert max(found) > 1 or end < 1.1


def test_long_bars_are_cut_at_the_border_of_the_panel(tmp_path, monkeypatch):
    wide = point("blur")
    wide = replace(wide, metrics=wide.metrics | {"action_top1": replace(wide.utility, retention_interval=[0.1, 9.0])})
    borders = []
    monkeypatch.setattr(plot, "ticks", lambda _, end: borders.append(end) or [1.0])
    trade_off([results(points=[wide])], tmp_path / "a.png")
    assert max(borders) < 1.2


def test_a_picture_that_cannot_be_written_is_an_error_of_one_line(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        trade_off([results()], tmp_path / "nowhere" / "tradeoff.png")


def test_each_method_of_a_run_is_a_curve_of_its_own(tmp_path, monkeypatch):
    several = results("both", [*sweep("dual", 1.0).points, point("blur")], recipe={"method": ["dual", "blur"]})
    drawn = []
    monkeypatch.setattr(plot, "_panel", lambda _, each, panel: drawn.append((panel, [one.name for one in each])))
    trade_off([several], tmp_path / "a.png")
    assert drawn == [(panel, ["both/dual", "both/blur"]) for panel in ("linkage", "attributes")]
