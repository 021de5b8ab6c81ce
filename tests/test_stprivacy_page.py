"""What the page of STPrivacy says of its worth is what results say."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
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
    read, settings, judged = page(SUMMARY).split("\n\n")
    assert between("read") == read
    assert between("settings") == settings
    assert between("judged") == judged


def test_three_trainings_are_judged_on_as_many_clips_of_as_many_people_as_it_says():
    results = json.loads((RESULTS / "stprivacy" / "stprivacy-rho0.json").read_text())
    assert results["recipe"]["seeds"] == [0, 1, 2]
    assert "720 clips of 36 test people" in PAGE
    assert (results["data"]["clips"]["test"], results["data"]["people"]["test"]) == (720, 36)


def test_less_is_found_than_of_dual_cls_of_attributes_not_beyond_chance_by_both_readings():
    readings = [ROWS["credit"]["judged"]["beside"], ROWS["credit"]["beside"]]
    assert all(one["linkage"][2] < 0 for one in readings)
    assert [one["attributes"][2] < 0 for one in readings] == [True, False]
    assert [f"{one['attributes'][0]:.1f}" for one in readings] == ["-0.1", "-0.1"]
    assert all(one["linkage"][0] > -0.05 for one in readings)


def test_another_mode_of_dual_cls_leaves_less_of_the_attributes_than_its_best_one():
    rows = json.loads((RESULTS / "dual_cls" / "summary-rho0.json").read_text())["rows"]
    attributes = {name: row["judged"]["attributes"][0] for name, row in rows.items() if row.get("judged")}
    assert attributes["pixels-reversed"] < attributes["credit"]


def test_dropping_alone_leaks_more_than_dual_cls_and_drawing_alone_nothing_that_is_found():
    sparse, credit, drawn = (ROWS[name]["judged"] for name in ("stprivacy-sparse", "credit", "stprivacy-anonymous"))
    for of in ("linkage", "attributes"):
        assert sparse[of][1] > credit[of][2]
        assert drawn[of][1] < 0 < drawn[of][2]


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


def test_linkage_is_at_chance_at_every_setting_and_no_setting_keeps_all_of_the_use():
    assert all(one["linkage"][1] < 0 < one["linkage"][2] for one in SUMMARY["settings"])
    most = max(one["retention"][0] for one in SUMMARY["settings"])
    assert f"which STPrivacy does not ({most:.2f} at most)" in PAGE
    assert max(one["retention"][2] for one in SUMMARY["settings"]) < 1


def test_blur_and_half_the_resolution_leave_what_it_says():
    blur, half = (ROWS[name]["judged"]["linkage"][0] for name in ("blur", "downsample2"))
    assert f"leave {blur:.2f} and {half:.2f} of the linkage" in PAGE
    for name in ("blur", "downsample2"):
        assert ROWS[name]["judged"]["retention"][2] > 1


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
