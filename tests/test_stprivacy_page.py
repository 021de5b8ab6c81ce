"""What the page of STPrivacy says of its worth is what results say."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import stprivacy_figure4
from dual_cls_summary import page

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TEXT = (ROOT / "docs" / "methods" / "stprivacy.md").read_text()
PAGE = " ".join(TEXT.split())
SUMMARY = json.loads((RESULTS / "stprivacy" / "summary-rho0.json").read_text())
ROWS = SUMMARY["rows"]


def between(name):
    return TEXT.split(f"<!-- {name} -->\n")[1].split(f"\n<!-- end of {name} -->")[0]


def points(name):
    return json.loads((RESULTS / "stprivacy" / f"{name}-rho0.json").read_text())["points"]


def test_its_tables_are_those_of_the_summary():
    for name, table in zip(("read", "settings", "judged", "met"), page(SUMMARY).split("\n\n"), strict=True):
        assert between(name) == table


def test_three_trainings_are_judged_on_as_many_clips_of_as_many_people_as_it_says():
    results = json.loads((RESULTS / "stprivacy" / "stprivacy-rho0.json").read_text())
    assert results["recipe"]["seeds"] == [0, 1, 2]
    assert "720 clips of 36 test people" in PAGE
    assert (results["data"]["clips"]["test"], results["data"]["people"]["test"]) == (720, 36)


def minus(rival, of):
    """Of each setting; None where the rival's curve does not get there."""
    return [one["minus"][rival][of] for one in SUMMARY["met"]]


def test_of_attributes_less_is_found_than_of_dual_cls_and_of_linkage_where_nearly_all_of_the_use_is_kept():
    assert all(high < 0 for _, _, high in minus("credit", "attributes"))
    guessed = [one["minus"]["credit"]["beside_raw"] for one in SUMMARY["met"]]
    assert guessed == [True, True, True, False, False, False]
    linkage = minus("credit", "linkage")
    assert linkage[3][2] < 0
    assert all(value > -0.05 for value, _, _ in linkage[4:])


def test_use_is_nearly_whole_and_trainings_differ_as_it_says():
    raw = json.loads((RESULTS / "stprivacy" / "raw-rho0.json").read_text())["raw"]["metrics"]["action_top1"]
    assert f"Raw video is told at {raw['value']:.4f}," in PAGE
    seeds = [point["metrics"]["action_top1"]["seeds"] for name in ("stprivacy", "stprivacy-anonymous")
             for point in points(name)]  # fmt: skip
    assert f"differ by up to {max(max(each) - min(each) for each in seeds):.2f} (brackets" in PAGE


def test_blurs_and_resolutions_that_cost_as_much_use_leak_as_much_more_as_it_says():
    found = [one for rival in ("blur", "downsample") for one in minus(rival, "linkage") if one]
    assert f"they still leave {-max(one[0] for one in found):.2f} to {-min(one[0] for one in found):.2f} of raw" in PAGE
    assert all(one[2] is None or one[2] < 0 for one in found)
    for rival in ("blur", "downsample"):
        assert any(one and one[2] is not None for one in minus(rival, "linkage"))
    readme = " ".join((ROOT / "README.md").read_text().split())
    most = max(one["linkage"][0] for one in SUMMARY["settings"])
    attributes = max(one["attributes"][0] for one in SUMMARY["settings"])
    told = f"gets at most {most:.2f} of the linkage of raw video, and {attributes:.2f} of the attributes,"
    assert f"{told} at 0.98 of the use and more" in readme
    blur = points("blur4")[0]
    left = blur["metrics"]["linkage_rank1"]["excess"], blur["attribute_excess"]
    assert f"a blur that costs three hundredths of the use {left[0]:.2f}." in readme
    assert "comes closer: {:.2f} of the linkage and {:.2f} of the attributes.".format(*left) in PAGE
    assert f"{1 - blur['metrics']['action_top1']['retention']:.2f}" == "0.03"
    (stronger,) = points("clips-stprivacy-anonymous")
    left = stronger["metrics"]["linkage_rank1"]["excess"], stronger["attribute_excess"]
    assert "where nothing is dropped: {:.2f} and {:.2f}.".format(*left) in readme
    least = min(one["retention"][0] for one in (*SUMMARY["settings"], ROWS["stprivacy-anonymous"]["judged"]))
    assert f"{least:.2f}" == "0.98"


def test_another_mode_of_dual_cls_leaves_less_of_the_attributes_than_its_best_one():
    rows = json.loads((RESULTS / "dual_cls" / "summary-rho0.json").read_text())["rows"]
    attributes = {name: row["judged"]["attributes"][0] for name, row in rows.items() if row.get("judged")}
    assert attributes["pixels-reversed"] < attributes["credit"]


def test_dropping_alone_leaks_more_than_dual_cls_and_drawing_alone_tells_no_attribute():
    sparse = next(point for point in points("stprivacy-sparse") if point["keep"] == 0.928)
    left = sparse["metrics"]["linkage_rank1"]["excess"], sparse["attribute_excess"]
    told = f"{left[0]:.2f} of the linkage and {left[1]:.2f} of the attributes"
    assert f"{told} at {sparse['metrics']['action_top1']['retention']:.2f} of the use" in PAGE
    credit, drawn = (ROWS[name]["judged"] for name in ("credit", "stprivacy-anonymous"))
    assert left[0] > credit["linkage"][2]
    assert left[1] > credit["attributes"][2]
    assert drawn["attributes"][1] < 0 < drawn["attributes"][2]


def test_attackers_who_begin_with_raw_video_get_what_it_says():
    (point,) = points("clips-stprivacy-anonymous")
    linked = point["metrics"]["linkage_rank1"]
    low, high = linked["excess_interval"]
    assert f"get {linked['excess']:.2f} [{low:.2f}, {high:.2f}] of the linkage" in PAGE
    low, high = point["attribute_excess_interval"]
    assert f"{point['attribute_excess']:.2f} [{low:.2f}, {high:.2f}] of the attributes. The strongest" in PAGE
    assert linked["measured_by"].startswith("resnet_tiny:raw")
    ways = {who: max(one["test"] for name, one in linked["others"].items() if name.startswith(f"{who},"))
            for who in ("r3d_tiny", "resnet_tiny:raw")}  # fmt: skip
    assert ways["r3d_tiny"] < ways["resnet_tiny:raw"]


def test_dropping_adds_to_what_is_known_of_attributes_wherever_it_is_judged():
    drawn = ROWS["stprivacy-anonymous"]["judged"]["attributes"]
    assert all(one["attributes"][0] > drawn[0] for one in SUMMARY["settings"])
    assert [one["most"][0] for one in SUMMARY["settings"]] == ["relationship"] * 4 + ["gender"]


def test_what_is_hidden_of_the_truth_follows_alpha_and_of_dropping_alone_so_do_use_and_leakage():
    for name, up, down in (
        ("stprivacy", ["identity_hidden"], ["action_kept"]),
        ("stprivacy-sparse", ["identity_hidden"], ["action_kept", "action_top1", "linkage_rank1", "cmap"]),
    ):
        for metric in up + down:
            values = [point["metrics"][metric]["value"] for point in points(name)]
            assert values == sorted(values, reverse=metric in down), (name, metric)


def test_linkage_is_next_to_nothing_at_every_setting_and_rises_as_more_is_dropped():
    left = [one["linkage"][0] for one in SUMMARY["settings"]]
    assert left == sorted(left)
    assert left[-1] < 0.05


def test_strong_blur_and_half_the_resolution_leave_what_it_says():
    blur, half = (points(name)[0]["metrics"] for name in ("blur", "downsample2"))
    left = [one["linkage_rank1"]["excess"] for one in (blur, half)]
    assert "`blur:strong` leaves {:.2f} of the linkage and half the resolution {:.2f}".format(*left) in PAGE
    most = max(one["retention"][0] for one in SUMMARY["settings"])
    assert all(one["action_top1"]["retention"] - most < 0.01 for one in (blur, half))


def test_the_short_of_it_is_of_the_results():
    asked = {"stprivacy": (0.963, 0.741), "stprivacy-anonymous": (None,), "credit": (0.888,)}
    asked |= dict.fromkeys(("blur", "blur4", "downsample2", "downsample16"), (None,))
    rows = [(name, keep) for name, keeps in asked.items() for keep in keeps]
    for line, (name, keep) in zip(between("short").splitlines()[2:], rows, strict=True):
        (point,) = [point for point in points(name) if keep is None or point["keep"] == keep]
        metrics = point["metrics"]
        shares = metrics["action_top1"]["retention"], metrics["linkage_rank1"]["excess"], point["attribute_excess"]
        told = [f"{share:.2f}".replace("-0.00", "0.00") for share in shares]
        assert line.endswith(f"| {' | '.join(told)} |"), name


def test_the_ablations_are_those_of_figure_4():
    found = json.loads((RESULTS / "stprivacy" / "figure4.json").read_text())
    assert between("figure4") == stprivacy_figure4.told_of(found)
    settings = found["settings"]
    seeds = {
        name: [settings[part][name]["seeds"] for part in ("sparse", "anonymous")] for name in ("top1", "attributes")
    }
    apart = {name: max(max(each) - min(each) for each in both) for name, both in seeds.items()}
    assert f"differ by up to {apart['top1']:.2f} in top-1 and {apart['attributes']:.2f} in the excess" in PAGE
    left = {name: one["attributes"]["mean"][0] for name, one in settings.items()}
    falls = left["privacy_weight0.25"] - left["privacy_weight1"], left["action_weight1"] - left["action_weight0.25"]
    assert "({:.2f} less from a privacy weight of 0.25 to 1, {:.2f} more from an action weight".format(*falls) in PAGE
    assert max(falls) < apart["attributes"]
    low, high = settings["anonymous"]["attributes"]["mean"][1:]
    assert low < 0 < high
    use = sorted((one["top1"]["mean"][0], name) for name, one in settings.items())
    assert [name for _, name in use[:2]] == ["sparse", "tubelet_frames4"]
    assert (
        "(top-1 {:.2f}), four frames a tubelet the next most ({:.2f}),".format(*(told for told, _ in use[:2])) in PAGE
    )
    assert use[2][0] - use[1][0] > apart["top1"]
    assert all(
        len(one["top1"]["seeds"]) == (3 if name in ("sparse", "anonymous") else 1) for name, one in settings.items()
    )


def test_speed_is_what_was_measured():
    found = json.loads((RESULTS / "stprivacy" / "speed_h200.json").read_text())
    forward, train = found["forward"], found["train"]
    assert found["machine"]["device"] == "NVIDIA H200"
    assert (
        f"In use {forward['times_as_fast_as_plain']:.1f} times as fast as the paper written down plainly with dense "
        f"masks, {forward['times_as_fast_as_gathered']:.1f} times as fast as that with dropped tokens taken out, and "
        f"{train['times_as_fast_as_plain']:.1f} times as fast while learning, at "
        f"{train['ours_gib'] / train['plain_gib']:.2f} of the memory"
    ) in PAGE


def test_what_validation_people_say_is_what_trainings_said():
    trainings = json.loads((RESULTS / "table" / "trainings.json").read_text())

    def spread(letter, of):
        values = [one[of]["masked_top1"] for name, one in trainings.items() if name.startswith(f"d-drawn-{letter}")]
        assert len(values) == 3
        ends = [f"{value:.2f}" for value in (min(values), max(values))]
        return " to ".join(dict.fromkeys(ends))

    assert (
        f"tells {spread('u', 'metrics')} of the actions of validation people in what is drawn, where guessing tells "
        f"{spread('u', 'floors')}; on Weizmann {spread('w', 'metrics')}, where guessing tells {spread('w', 'floors')}."
    ) in PAGE


def test_real_video_says_what_the_table_says():
    found = json.loads((RESULTS / "table" / "summary.json").read_text())
    ucf, weizmann = (found[of]["parts"]["crop"]["stprivacy"]["settings"][0] for of in ("ucf101_5", "weizmann"))
    assert ucf["keep"] == weizmann["keep"] == 0.9
    assert (
        f"Frozen judges have {ucf['action_top1']['share'][0]:.2f} of the use on UCF101 and link "
        f"{ucf['linkage_rank1']['share'][0]:.2f} of what they link of raw video; on Weizmann they have "
        f"{weizmann['action_top1']['share'][0]:.2f} of the use, and the highest attacker gets "
        f"{weizmann['linkage_rank1']['highest_share']:.2f} of the linkage"
    ) in PAGE
