"""Only what was tested on the same clips is paired; for anything else there is a reason of one line."""

import re

import numpy as np
import pytest

from tests.report.made_up import on_disk, results
from vidveil.core.errors import DataError
from vidveil.core.recipe import as_values
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.report.same_clips import comparable, different_settings, open_run, why_not


def opened(*words, **more):
    return open_run(*on_disk(*words, **more))


def test_runs_on_the_same_clips_can_be_compared(tmp_path):
    first, other = opened(tmp_path, "blur", [(None, 8, 4)]), opened(tmp_path, "random", [(0.5, 8, 4)])
    assert why_not(first, other) is None


def strangers(clips):
    clips["people"] = clips["people"][::-1].copy()


def smaller_gallery(clips):
    clips["raw/linkage_rank1/chance"] = clips["raw/linkage_rank1/chance"] * 2


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"data": {"fingerprint": "cd" * 32}}, r"different videos \(data abababababab and cdcdcdcdcdcd\)"),
        (
            {"data": {"fingerprint": "ab" * 32, "labels": "other"}},
            "other clips of the same videos, or with other labels",
        ),
        ({"data": {}}, "different videos"),
        ({"people": 12}, "different numbers of clips, 200 and 120"),
        ({"change": strangers}, "different people"),
        ({"change": smaller_gallery}, "different galleries"),
    ],
    ids=["other videos", "other split", "unknown videos", "fewer clips", "other people", "another gallery"],
)
def test_other_clips_are_a_reason(tmp_path, more, reason):
    runs = [on_disk(tmp_path, "blur", [(None, 8, 4)]), on_disk(tmp_path, "random", [(0.5, 8, 4)], **more)]
    (only,), (why,) = comparable(runs)
    assert only.name == "blur"
    assert re.fullmatch(f"blur and random .*{reason}.*", why)


def test_two_runs_of_unknown_videos_are_not_taken_for_the_same(tmp_path):
    first, other = (opened(tmp_path, name, [(None, 8, 4)], data={}) for name in ("blur", "random"))
    assert "different videos" in str(why_not(first, other))


def drop_people(clips):
    del clips["people"]


def drop_a_setting(clips):
    del clips["blur/action_top1"]


def shorten(clips):
    clips["blur/action_top1"] = clips["blur/action_top1"][:, 1:].copy()


def other_hits(clips):
    clips["blur/linkage_rank1"] = np.ones_like(clips["blur/linkage_rank1"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (drop_people, "does not say who is in the clips"),
        (drop_a_setting, "not of these results: it lacks blur/action_top1"),
        (shorten, "is damaged: 199 clips in blur/action_top1, 200 in people"),
        (other_hits, "not of these results: linkage, rank-1 is 1.000 there and 0.400 here"),
    ],
)
def test_a_file_of_other_results_is_not_believed(tmp_path, change, reason):
    with pytest.raises(DataError, match=f"^blur: .*{reason}"):
        opened(tmp_path, "blur", [(None, 8, 4)], change=change)


def test_results_without_their_clips_and_damaged_files_are_refused(tmp_path):
    path, made = on_disk(tmp_path, "blur", [(None, 8, 4)])
    path.with_name("per_clip.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(DataError, match=r"^blur: .*per_clip.safetensors cannot be read"):
        open_run(path, made)
    path.with_name("per_clip.safetensors").unlink()
    with pytest.raises(DataError, match=r"^blur: there is no per_clip.safetensors"):
        open_run(path, made)


def test_what_could_not_be_measured_is_no_sign_of_another_file(tmp_path):
    hits = np.full((2, 200), np.nan)
    assert opened(tmp_path, "blur", [(None, 8, hits)]).results.points


def test_a_run_that_cannot_be_compared_does_not_keep_others_from_it(tmp_path):
    lost, made = on_disk(tmp_path, "lost", [(None, 8, 4)])
    lost.with_name("per_clip.safetensors").unlink()
    runs = [(lost, made), *(on_disk(tmp_path, name, [(None, 8, 4)]) for name in ("blur", "random"))]
    found, (reason,) = comparable(runs)
    assert [run.name for run in found] == ["blur", "random"]
    assert reason.startswith("lost: ")


def test_raw_video_is_no_method(tmp_path):
    assert comparable([(tmp_path / "results.json", results())]) == ([], [])


def test_other_evaluators_are_noticed_and_another_method_is_no_difference(tmp_path):
    recipe = {"name": "blur", "method": "blur", "attackers": ["resnet_tiny", "r3d_tiny"], "seeds": [0], "raw": ""}
    easier = recipe | {"name": "random", "method": "random", "attackers": ["resnet_tiny"], "raw": "blur"}
    first = opened(tmp_path, "blur", [(None, 8, 4)], recipe=recipe)
    assert different_settings(first, opened(tmp_path, "random", [(0.5, 8, 4)], recipe=easier)) == ["attackers"]


def test_how_a_run_keeps_its_files_is_no_difference(tmp_path):
    recipe = as_values(EvaluateRecipe(name="blur", data="puppets"))
    first = opened(tmp_path, "blur", [(None, 8, 4)], recipe=recipe)
    for key, value in (("tidy", True), ("checkpoint_seconds", 5.0)):
        assert recipe[key] != value
        assert different_settings(first, opened(tmp_path, key, [(0.5, 8, 4)], recipe=recipe | {key: value})) == []
    harder = opened(tmp_path, "longer", [(0.5, 8, 4)], recipe=recipe | {"attacker_epochs": 99})
    assert different_settings(first, harder) == ["attacker_epochs"]
