"""What a reader of the section "Compared, on the same clips" learns."""

from dataclasses import replace

from safetensors.numpy import load_file, save_file

from tests.report.made_up import on_disk, point, results
from tests.report.test_tables import rows
from vidveil.report.compared import TITLE, section
from vidveil.report.several_methods import by_method
from vidveil.report.tables import table


def two(folder, **more):
    """A method with a knob that leaks less than one without, at the same utility."""
    return [
        on_disk(folder, "dual", [(0.9, 9, 5), (0.5, 5, 1)], **more),
        on_disk(folder, "blur", [(None, 7, 7)]),
    ]


def test_differences_equal_retention_and_areas_are_there_with_their_verdicts(tmp_path):
    text = section(two(tmp_path))
    assert text.startswith(f"{TITLE}\n\n200 test clips of 20 people, the same for all.")
    assert "### dual − blur" in text
    assert (
        "| linkage, rank-1 | dual, keep 0.9 | blur | 0.500 [0.500, 0.500] | 0.700 [0.700, 0.700] "
        "| -0.200 [-0.200, -0.200] | yes |" in text
    )
    assert rows(text)["0.700"][3:5] == ["-0.500 [-0.500, -0.500]", "yes"]
    areas = rows(text.partition("### Trade-off")[2])
    assert areas["dual"][1:4] == ["2", "0.700 [0.700, 0.700]", "–"]  # 0.5 × 1 + 0.4 × 0.5
    assert areas["blur"][1:5] == ["1", "0.175 [0.175, 0.175]", "+0.525 [+0.525, +0.525]", "yes"]
    assert "not of equal numbers" in text


def test_draws_are_as_many_as_the_evaluation_made_so_that_its_intervals_come_back(tmp_path):
    assert "in the same 300 draws of people" in section(two(tmp_path, recipe={"resamples": 300}))
    assert "in the same 2,000 draws of people" in section(two(tmp_path / "again"))


def test_a_warning_is_given_for_few_people(tmp_path):
    runs = [on_disk(tmp_path, name, [(None, 7, 7)], people=9) for name in ("dual", "blur")]
    assert "9 people are few" in section(runs)
    assert "are few" not in section(two(tmp_path / "again"))


def test_one_method_is_compared_with_nothing(tmp_path):
    assert section(two(tmp_path)[:1]) == ""
    assert section([*two(tmp_path / "again")[:1], (tmp_path / "results.json", results())]) == ""


def test_the_first_is_compared_with_each_of_the_others(tmp_path):
    text = section([*two(tmp_path), on_disk(tmp_path, "random", [(0.9, 9, 8), (0.5, 5, 4)])])
    assert [line for line in text.splitlines() if " − " in line and line.startswith("###")] == [
        "### dual − blur",
        "### dual − random",
    ]


def test_whole_videos_are_not_compared_clip_by_clip_and_the_reason_is_given_once(tmp_path):
    value = point("blur").metrics["action_top1"]
    points = [replace(point(name), metrics={"detection_map": value}) for name in ("raw", "blur", "solid")]
    recipe = {"protocol": "detection", "method": ["blur", "solid"]}
    text = section([(tmp_path / "results.json", results("both", points[1:], raw=points[0], recipe=recipe))])
    assert text.endswith("\n\nNot compared clip by clip: mAP of whole videos is no mean over videos.")
    assert text.count("Not compared") == 1


def test_runs_that_cannot_be_compared_are_reported_without_it_and_the_reason_is_given(tmp_path):
    runs = two(tmp_path)
    runs[1][0].with_name("per_clip.safetensors").unlink()
    text = table([one for _, one in runs], section(runs))
    assert "Not compared clip by clip: blur: there is no per_clip.safetensors next to its results" in text
    assert str(tmp_path) not in text  # a page is made to be shared
    assert "### dual − blur" not in text
    assert "## blur" in text  # the rest of the report is there


def test_settings_without_anything_in_common_say_so(tmp_path):
    first = on_disk(tmp_path, "dual", [(0.9, 9, 5), (0.8, 8, 4)])
    text = section([first, on_disk(tmp_path, "random", [(0.3, 3, 2), (0.2, 2, 1)])])
    assert "no keep rate in common" in text
    assert "Not measured: of random, retention 0.900 is outside what was measured: 0.200 to 0.300;" in text


def test_a_retention_that_many_draws_do_not_reach_has_no_interval(tmp_path):
    varied = [(0.9, [9, 7] * 10, 5), (0.5, [5, 3] * 10, 1)]  # retention 0.8 and 0.4
    text = section([on_disk(tmp_path, "dual", varied), on_disk(tmp_path, "blur", [(None, 8, 7)])])
    assert rows(text)["0.800"][3:] == [
        "-0.250",
        "not known",
        "too near an end of a curve: many draws of people do not reach it",
    ]


def test_a_warning_is_given_for_other_evaluators_and_other_raw_video(tmp_path):
    runs = [
        on_disk(tmp_path, "dual", [(None, 7, 5)], recipe={"attackers": ["vit_mini"]}, raw=(9, 9)),
        on_disk(tmp_path, "blur", [(None, 7, 7)], recipe={"attackers": ["resnet_tiny"]}),
    ]
    text = section(runs)
    assert "evaluators of these two differ (attackers)" in text
    assert "its own evaluators of raw video (action, top-1 0.900 and 1.000)" in text


def test_what_was_not_attacked_is_compared_by_what_was_measured(tmp_path):
    runs = [on_disk(tmp_path, name, [(None, 7, None)], raw=(10, None)) for name in ("dual", "blur")]
    text = section(runs)
    assert rows(text)["action, top-1"][5:] == ["+0.000 [+0.000, +0.000]", "no"]
    assert "Not measured: dual has no excess to read at a retention: nobody tried to link its clips." in text


def test_the_section_stands_between_the_overview_and_the_runs(tmp_path):
    runs = two(tmp_path)
    text = table([one for _, one in runs], section(runs))
    places = [text.index(f"{title}\n") for title in ("## Compared", TITLE, "## dual", "## blur")]
    assert places == sorted(places)


def both(folder):
    """One run with two methods, the files of which are those of two runs."""
    made = two(folder)
    clips = {}
    for path, _ in made:
        clips |= load_file(path.with_name("per_clip.safetensors"))
    (folder / "both").mkdir()
    save_file(clips, folder / "both" / "per_clip.safetensors")
    (_, first), (_, second) = made
    path = folder / "both" / "results.json"
    points = [*first.points, *second.points]
    one = replace(first, name="both", points=points, recipe={"method": ["dual", "blur"]})
    one.write(path)
    return path, one


def test_methods_of_one_run_are_compared_like_those_of_two(tmp_path):
    path, one = both(tmp_path)
    text = section([(path, one)])
    apart = section(two(tmp_path / "apart"))
    assert "### both/dual − both/blur" in text
    assert text.replace("both/", "") == apart
    assert table([one]).startswith("## Compared\n\n| run | method |")


def test_a_run_with_one_method_is_split_no_further_by_what_was_recovered_after_it():
    points = [point("splavu:a"), point("splavu:a inverted by pairs")]
    assert by_method(results("one", points, recipe={"method": "splavu:a"})) == [
        results("one", points, recipe={"method": "splavu:a"})
    ]
    points += [point("splavu:a b"), point("splavu:a b inverted by pairs")]
    first, second = by_method(results("two", points, recipe={"method": ["splavu:a", "splavu:a b"]}))
    assert [one.method for one in first.points] == ["splavu:a", "splavu:a inverted by pairs"]
    assert [one.method for one in second.points] == ["splavu:a b", "splavu:a b inverted by pairs"]
