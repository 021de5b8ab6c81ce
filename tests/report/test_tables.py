"""What a reader of the table learns, and that nothing breaks it."""

from dataclasses import replace

from tests.report.made_up import metric, point, results, sweep
from vidveil.evaluation.results import read
from vidveil.report.tables import overview, spoken, table, used


def rows(text):
    """Cells of all rows of all tables, by the first cell."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")] for line in lines]
    return {row[0]: row for row in reversed(cells)}


def test_every_number_has_its_interval_its_floor_its_seeds_and_its_attacker():
    row = rows(table([results()]))["linkage, rank-1"]
    assert row[1:] == ["0.800 [0.760, 0.850]", "0.790 0.810", "0.030 [0.020, 0.050]", "< 0.001", "resnet_tiny, LDA"]


def test_p_is_shown_where_labels_were_permuted():
    assert rows(table([results()]))["action, top-1"][4] == "–"
    weak = {"linkage_rank1": metric(0.05, 0.03, p=0.2)}
    assert rows(table([results(raw=point("raw", metrics=weak))]))["linkage, rank-1"][4] == "0.200"
    assert "| p |" not in table([results(raw=point("raw", metrics={"action_top1": metric(0.9, 0.1)}))])


def test_a_floor_that_is_a_count_has_no_range():
    assert rows(table([results()]))["action, top-1"][3] == "0.060"


def test_a_method_is_shown_next_to_raw_video_with_its_shares():
    blurred = point("blur:strong", utility=0.76, link=0.18)
    text = table([results("blur", [blurred])]).partition("### blur")[2]
    assert rows(text)["action, top-1"][5:7] == ["0.950", "retention 0.800 [0.700, 1.000]"]
    assert rows(text)["linkage, rank-1"][5:7] == ["0.800 [0.760, 0.850]", "excess 0.195 [0.095, 0.395]"]
    assert rows(text)["skin colour, AP"][5:7] == ["–", "–"]
    assert "together: 1.000 [0.900, 1.200]" in text


def test_a_gap_is_shown_with_its_change():
    gap = replace(metric(0.1, 0.02), kind="gap", raw=0.3, excess=0.3, change=-0.2, change_interval=[-0.3, -0.05])
    text = table([results("bias", [point("splavu:mine", metrics={"action_top1_gap": gap})])])
    assert rows(text)["action, top-1, gap"][-2] == "change -0.200 [-0.300, -0.050]"
    little = replace(gap, kind="leakage", excess=None)  # nor is there a share of what raw video hardly gives away
    text = table([results("bias", [point("splavu:mine", metrics={"linkage_rank1": little})])]).partition("### splavu")[
        2
    ]
    assert rows(text)["linkage, rank-1"][-2] == "change -0.200 [-0.300, -0.050]"
    unsure = replace(gap, change_interval=None)
    text = table([results("bias", [point("splavu:mine", metrics={"action_top1_gap": unsure})])])
    assert rows(text)["action, top-1, gap"][-2] == "change -0.200"


def test_the_verdict_what_was_left_out_and_the_controls_are_shown():
    text = table([results(raw=point("raw", verdict="no leak was found, nothing is useful"))])
    assert "**No leak was found, nothing is useful.**" in text
    assert "too near its floor: nudity." in text
    assert "left out: gender." in text
    assert rows(text)["background, rank-1"][1] == "0.031 [-0.009, 0.081]"
    assert "puppets · 720 test clips of 36 people · 2 seeds · cpu · 1234567 · 800 s · data `abababababab`" in text


def test_a_commit_is_shortened_and_changes_on_top_of_it_are_not_forgotten():
    assert " · 123456789abc+ · " in table([results(machine={"commit": "123456789abcdef0123+"})])
    assert " · 123456789abc · " in table([results(machine={"commit": "123456789abcdef0123"})])


def test_everybody_who_tried_is_listed_and_the_one_that_counts_is_marked():
    text = table([results()])
    lines = [line for line in text.splitlines() if line.startswith("| linkage, rank-1")]
    assert "| linkage, rank-1 | resnet_tiny, LDA | 0.700 | 0.800 | counts |" in lines
    assert "| linkage, rank-1 | r3d_tiny, cosine | 0.600 | 0.810 |  |" in lines


def test_one_seed_needs_no_column_of_seeds():
    only = {"action_top1": metric(0.9, 0.1, seeds=[0.9])}
    text = table([results(raw=point("raw", metrics=only), controls={})])
    assert "seeds |" not in text
    assert "Controls" not in text


def test_what_could_not_be_measured_is_a_dash(tmp_path):
    lost = {"linkage_rank1": metric(float("nan"), float("nan"), interval=[float("nan")] * 2, excess=float("nan"))}
    results(raw=point("raw", metrics=lost, attributes=None)).write(tmp_path / "results.json")
    row = rows(table([read(tmp_path / "results.json")]))["linkage, rank-1"]
    assert row[1] == "–"
    assert row[3].startswith("–")


def test_a_chain_of_methods_does_not_break_the_table():
    text = table([results("chain", [point("blur:strong | stride:5")])])
    widths = {line.replace("\\|", "").count("|") for line in overview([results(points=[point("a | b")])]).splitlines()}
    assert widths == {9}
    assert "### blur:strong \\| stride:5" in text


def test_several_runs_are_compared_first_one_row_a_setting():
    text = table([sweep("dual_cls", 1.0), results("raw_puppets")])
    compared = text.partition("## dual_cls")[0]
    assert compared.count("| dual_cls | dual_cls, keep ") == 4
    assert (
        "| raw_puppets | raw | 0.950 [0.910, 1.000] | 1.000 [0.900, 1.200] | 0.800 [0.760, 0.850] | 0.030 "
        "| 1.000 [0.900, 1.200] | 1.000 [0.900, 1.200] |" in compared
    )
    assert "different clips" not in text


def test_raw_video_is_all_of_itself_whoever_is_drawn_and_needs_no_interval():
    raw = point("raw")
    certain = replace(raw.metrics["action_top1"], retention=1.0, retention_interval=[1.0, 1.0])
    text = overview([results(raw=replace(raw, metrics=raw.metrics | {"action_top1": certain}))])
    assert rows(text)["raw_puppets"][3] == "1.000"


def test_the_utility_of_several_actions_at_once_is_their_cmap():
    one = point("blur")
    several = replace(one, metrics={"action_cmap": replace(one.metrics["action_top1"], value=0.4)})
    run = results("tagged", [several], raw=several)
    assert rows(overview([run]))["run"][2:4] == ["cMAP", "retention"]
    assert rows(overview([run]))["tagged"][2:4] == ["0.400 [0.910, 1.000]", "1.000 [0.900, 1.200]"]
    assert rows(overview([run, results()]))["run"][2] == "top-1 or cMAP"
    assert used({}) == "top-1"


def test_columns_that_are_empty_in_all_rows_are_left_out():
    one = point("blur", attributes=None)
    whole = replace(one, metrics={"anomaly_frame_auc": one.metrics["action_top1"]})
    assert rows(overview([results(points=[whole], raw=whole)]))["run"] == ["run", "method", "AUC", "retention"]


def test_raw_video_is_not_next_to_itself():
    excess = "Excess over all measurable attributes together"
    assert excess not in table([results()])
    assert table([results(points=[point("blur")])]).count(excess) == 1


def test_runs_about_different_clips_say_so():
    other = replace(results("other"), data={"fingerprint": "cd"})
    assert "cannot be compared" in table([results(), other])


def test_metrics_have_the_names_that_people_write():
    assert spoken("linkage_rank1_changed_clothes") == "linkage, rank-1, changed clothes"
    assert spoken("linkage_rank1_raw_gallery") == "linkage, rank-1, raw gallery"
    assert spoken("auroc_skin_colour") == "skin colour, AUROC"
    assert spoken("one_frame_top1") == "one frame, top-1"
    assert spoken("linkage_map") == "linkage, mAP"
    assert spoken("action_cmap") == "actions, cMAP"
    assert spoken("one_frame_cmap") == "one frame, cMAP"
    assert spoken("something_new") == "something new"


def masked(name, hidden):
    """A method with a mask, on people whose truth is known."""
    nothing = {"kind": "truth", "floor_range": [0.3, 0.3], "measured_by": "ground truth", "seeds": [hidden]}
    truth = {
        "identity_hidden": metric(hidden, 0.3, **nothing),
        "tubelets_kept": metric(0.7, float("nan"), **nothing | {"interval": [0.7, 0.7], "floor_range": [None, None]}),
    }
    return results(name, [point(name, 0.7, metrics=point(name).metrics | truth)])


def test_what_a_mask_hid_is_shown_next_to_what_leaks():
    text = table([masked("dual", 0.9), results("blur", [point("blur:strong")])])
    compared = rows(text.partition("## dual")[0])
    assert compared["run"][-1] == "identity hidden"
    assert compared["dual"][-1] == "0.900 [0.860, 0.950]"
    assert compared["blur"][-1] == "–"
    numbers = rows(text.partition("### dual")[2])
    assert numbers["pixels of identity alone, hidden"][1:4] == ["0.900 [0.860, 0.950]", "0.900", "0.300"]
    assert numbers["tubelets kept"][3] == "–"  # nothing to be compared with
    assert "identity hidden" not in overview([results("blur", [point("blur:strong")]), results()])


def test_a_privacy_weight_that_was_changed_is_shown():
    assert " · privacy weight inf · " in table([results(recipe={"privacy_weight": "inf", "fill": None})])
    assert "privacy weight" not in table([results(recipe={"privacy_weight": None})])
