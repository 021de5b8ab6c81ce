"""Two methods at a retention that was asked for, with answers known beforehand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.report.made_up import CLIPS, PEOPLE, metric, on_disk, share
from vidveil.evaluation.results import read
from vidveil.report import paired
from vidveil.report.compared import section
from vidveil.report.same_clips import open_run
from vidveil.statistics.intervals import Resamples

WHO = np.repeat(np.arange(PEOPLE), CLIPS)


def found(first, second, at):
    return {one.leakage: one for one in paired.at_retention(first, second, [at])}


def test_linkage_attributes_and_their_mean_are_read_off_both_curves(method):
    first = method("dual", (0.9, 10, 5, 0.6), (0.5, 8, 1, 0.2))  # excess of linkage 0.5 and 0
    second = method("random", (0.8, 10, 9, 1.0), (0.4, 6, 1, 0.0))  # 1 and 0
    at = found(first, second, 0.9)  # half way down the first, a quarter down the second
    assert [at[of].compared.first.leakage.value for of in paired.LEAKAGES] == pytest.approx([0.25, 0.4, 0.325])
    assert [at[of].compared.second.leakage.value for of in paired.LEAKAGES] == pytest.approx([0.75, 0.75, 0.75])
    assert [at[of].compared.difference.value for of in paired.LEAKAGES] == pytest.approx([-0.5, -0.35, -0.425])
    assert all(at[of].compared.difference.excludes_zero for of in paired.LEAKAGES)


def test_the_interval_is_of_the_difference_in_the_same_draws(method):
    """Who is hard is hard for both: each by itself varies, the difference does not."""
    hard = np.arange(PEOPLE) % 7
    wobble = np.random.default_rng(0).normal(0, 0.2, 2000)
    first = method("dual", (0.9, 10, hard + 1, 0.3 + wobble), (0.5, 8, hard + 1, 0.3 + wobble))
    second = method("random", (0.9, 10, hard + 2, 0.5 + wobble), (0.5, 8, hard + 2, 0.5 + wobble))
    for of in paired.LEAKAGES:
        one = found(first, second, 0.9)[of].compared
        assert one.first.leakage.high > one.second.leakage.low
        assert one.difference.high < 0
    leak = found(first, second, 0.9)["leak"].compared.difference
    assert (leak.value, leak.low, leak.high) == pytest.approx((-0.1625, -0.1625, -0.1625), abs=0.01)


def test_every_training_is_read_by_itself_too(method):
    def trained(*hits):
        return np.stack([share(of_ten) for of_ten in hits])

    first = method("dual", (0.9, trained(10, 10), trained(5, 9)), (0.5, trained(8, 8), trained(1, 9)))
    second = method("random", (0.8, trained(10, 10), trained(9, 7)), (0.4, trained(8, 8), trained(5, 5)))
    at = found(first, second, 0.9)
    assert at["linkage"].seeds == pytest.approx([0.25 - 0.75, 1.0 - 0.625])
    assert at["leak"].seeds == at["attributes"].seeds == ()
    assert np.isnan(paired.by_seed(first, second, 0.7)).all()  # neither gets there


def test_a_curve_that_never_gets_there_says_so(method):
    first, second = (
        method("dual", (0.9, 9, 5, 0.6), (0.5, 8, 1, 0.2)),
        method("random", (0.9, 10, 9, 1), (0.5, 6, 1, 0)),
    )
    one = found(first, second, 0.97)["leak"]
    assert one.compared.difference is None
    assert one.reasons == ("of dual, retention 0.970 is outside what was measured: 0.800 to 0.900",)


def test_a_method_without_a_knob_is_at_its_own_retention_only(method):
    one = found(method("dual", (0.9, 10, 5), (0.5, 8, 1)), method("blur", (None, 9, 5)), 0.95)["linkage"]
    assert one.reasons == ("of blur, retention 0.950 is outside what was measured: 0.900 only",)


def masking(one):
    """As of a method that hides by a mask."""
    return replace(one, settings=[replace(setting, share=setting.keep) for setting in one.settings])


def test_a_mask_that_is_below_already_is_read_between_raw_video_and_its_mildest_setting(method):
    first = masking(method("dual", (0.9, 10, 5, 0.6), (0.5, 8, 1, 0.2)))
    second = masking(method("random", (0.9, 9, 7, 0.75), (0.5, 6, 1, 0.0)))  # retention 0.9, excess 0.75
    at = found(first, second, 0.97)  # 0.3 of the way from raw video, where all of it leaks, to keep 0.9
    assert [at[of].compared.second.leakage.value for of in paired.LEAKAGES] == pytest.approx([0.925, 0.925, 0.925])
    assert at["linkage"].compared.second.next_to_raw
    assert at["linkage"].compared.second.leakage.interval == pytest.approx((0.925, 0.925))  # all draws reach it
    assert at["linkage"].compared.first.leakage.value == pytest.approx(0.5 - 0.15 * 0.5)
    assert not at["linkage"].compared.first.next_to_raw
    assert at["linkage"].reasons == ()


def test_a_mask_at_a_single_setting_is_a_curve_that_ends_in_raw_video(method):
    one = found(masking(method("dual", (0.7, 9, 1))), masking(method("random", (0.5, 5, 1))), 0.95)["linkage"]
    assert one.compared.first.leakage.value == pytest.approx(0.5)
    assert one.compared.second.leakage.value == pytest.approx(0.9)


def test_what_hides_by_other_means_does_not_end_in_raw_video(method):
    """Blur of any strength leaves no raw video, and a mask whose keep rate is its own has no place on a knob."""
    for_itself = masking(method("own", (None, 9, 1)))
    assert len(for_itself.curve()) == 1
    assert len(method("blur", (0.9, 9, 5), (0.5, 8, 1)).curve()) == 2


def test_a_mask_over_what_is_drawn_anew_does_not_end_in_raw_video(tmp_path):
    settings = [(0.9, 9, 7, 0.75), (0.5, 6, 1, 0.0)]
    made = {name: on_disk(tmp_path, name, settings) for name in ("filmed", "drawn", "earlier")}
    ends = {}
    for name, filmed in {"filmed": True, "drawn": False, "earlier": None}.items():
        path, results = made[name]
        for point in results.points:
            point.metrics["tubelets_kept"] = metric(point.keep, 0.0, kind="truth")
        replace(results, points=[replace(point, kept_as_filmed=filmed) for point in results.points]).write(path)
        one = paired.method(open_run(path, read(path)), Resamples(WHO))
        ends[name] = (one.ends_raw, len(one.curve("leak")))
    assert ends == {"filmed": (True, 3), "drawn": (False, 2), "earlier": (True, 3)}


def test_a_run_at_keep_1_stands_for_itself(method):
    assert len(masking(method("random", (1.0, 9, 9), (0.5, 8, 1))).curve()) == 2


def test_raw_video_is_no_place_where_methods_are_compared(method):
    first, second = masking(method("dual", (0.9, 9, 5))), masking(method("random", (0.9, 8, 7)))
    at = paired.at_equal_retention(first, second)
    assert [one.retention for one in at] == pytest.approx([0.9, 0.8])
    assert at[0].second.leakage.value == pytest.approx((1 + 0.75) / 2)
    assert at[1].difference is None  # below 0.9 nothing is known of the first


def test_without_attributes_linkage_is_still_compared(method):
    first, second = method("dual", (0.9, 10, 5), (0.5, 8, 1)), method("random", (0.9, 10, 9, 1.0), (0.5, 8, 1, 0.0))
    at = found(first, second, 0.9)
    assert at["linkage"].compared.difference.value == pytest.approx(-0.25)
    assert at["attributes"].compared is None
    assert at["leak"].reasons[0].startswith("of dual, no excess of attributes")
    assert len(at["leak"].reasons) == 1


def test_attributes_in_other_draws_of_people_are_not_paired(method):
    few = np.full(300, 0.5)
    at = found(method("dual", (0.9, 10, 5, few), (0.5, 8, 1, few)), method("b", (0.9, 10, 9, 1), (0.5, 8, 1, 0)), 0.9)
    assert "not in the same draws" in at["attributes"].reasons[0]


def test_a_reader_finds_the_table_and_what_is_not_in_it(tmp_path):
    text = section(
        [
            on_disk(tmp_path, "dual", [(0.9, 10, 5, 0.625), (0.5, 8, 1, 0.225)]),
            on_disk(tmp_path, "random", [(0.8, 10, 9, 1.0), (0.4, 6, 1, 0.0)]),
            on_disk(tmp_path, "blur", [(None, 7, 7)]),
        ]
    )
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines()]
    leak = next(row for row in rows if row[:2] == ["0.950", "leak"])
    assert leak[2:4] == ["0.450 [0.450, 0.450]", "0.875 [0.875, 0.875]"]  # the first is (0.375 + 0.525) / 2
    assert leak[4:6] == ["-0.425 [-0.425, -0.425]", "yes"]
    assert [row[:2] for row in rows if row[0] == "0.970"] == [["0.970", of] for of in paired.LEAKAGES]
    assert "of blur, retention 0.970 is outside what was measured: 0.700 only" in text


def test_a_reader_learns_what_was_read_next_to_raw_video(tmp_path):
    runs = [
        on_disk(tmp_path, "dual", [(0.9, 10, 5, 0.6), (0.5, 8, 1, 0.2)]),
        on_disk(tmp_path, "random", [(0.9, 9, 7, 0.75), (0.5, 6, 1, 0.0)]),
    ]
    assert "of random, retention 0.970 is outside" in section(runs)
    for point in runs[1][1].points:
        point.metrics["tubelets_kept"] = metric(point.keep, 0.0, kind="truth")
    text = section(runs)
    assert "of random, retention 0.970 is outside" not in text
    row = next(line for line in text.splitlines() if line.startswith("| 0.970 | linkage"))
    assert "0.925 [0.925, 0.925]" in row
    assert "of the second, read between raw video and its mildest setting" in row


def test_the_draws_of_an_evaluation_are_those_of_a_report():
    """Its people have names, the file has numbers: the excess of attributes can be paired only if this holds."""
    names = np.array([f"{who}" for who in WHO])
    numbers = np.unique(names, return_inverse=True)[1]
    np.testing.assert_array_equal(Resamples(names, resamples=50).counts, Resamples(numbers, resamples=50).counts)
