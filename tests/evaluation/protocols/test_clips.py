"""Whole evaluations of a toy world: what is there is found, what is not there is not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.masked import Masker, loader
from tests.evaluation.toy import RECIPE, Arrays, evaluate, toy
from vidveil import methods
from vidveil.core.errors import DataError, UsageError
from vidveil.data.single_frames import by_frame
from vidveil.evaluation.checks import refuse_mistakes
from vidveil.evaluation.evaluators.mlp import identity_space
from vidveil.evaluation.measures import measure
from vidveil.evaluation.per_clip import read_per_clip
from vidveil.evaluation.protocols import clips, clips_protocol
from vidveil.evaluation.protocols.clips import AttackProtocol
from vidveil.methods import load
from vidveil.report.tables import table
from vidveil.training.runs import runs_folder

pytestmark = pytest.mark.usefixtures("own_folders")


def test_raw_video_has_excess_one_and_retention_one():
    results = evaluate(toy())
    raw = results.raw.metrics
    assert raw["action_top1"].retention == 1
    assert raw["linkage_rank1"].excess == pytest.approx(1)
    assert raw["action_top1"].value > 0.9
    assert raw["linkage_rank1"].value > raw["linkage_rank1"].floor + 0.3
    assert "identities" in results.raw.verdict


def test_noise_leaks_nothing_and_has_no_utility():
    results = evaluate(toy(), method="noise")
    (point,) = results.points
    assert point.verdict == "no leak was found, nothing is useful"
    linkage = point.metrics["linkage_rank1"]
    assert linkage.floor_range[0] <= linkage.value <= linkage.floor_range[1] + 0.06
    assert abs(linkage.excess or 0) < 0.25
    assert (point.metrics["action_top1"].retention or 0) < 0.8


def test_black_video_is_at_its_floor_exactly():
    """All clips are the same: ties must not be broken by the order of a list that is sorted by person."""
    (point,) = evaluate(toy(), method="solid").points
    linkage = point.metrics["linkage_rank1"]
    assert linkage.value == pytest.approx(linkage.floor_analytic, abs=1e-6)
    assert point.metrics["ap_bright"].value == pytest.approx(point.metrics["ap_bright"].floor_analytic, abs=1e-6)


def test_people_who_are_not_in_the_picture_are_not_found():
    results = evaluate(toy(identity=False))
    linkage = results.raw.metrics["linkage_rank1"]
    assert linkage.floor_range[0] - 0.02 <= linkage.value <= linkage.floor_range[1] + 0.02
    assert "identities" not in results.raw.verdict


def test_random_labels_of_actions_have_no_utility():
    raw = evaluate(toy(action=False)).raw
    top1 = raw.metrics["action_top1"]
    assert top1.interval[0] <= top1.floor
    assert "evaluators could not even read the action of raw video" in raw.verdict


def test_a_constant_attribute_is_named_and_left_out():
    data = toy()
    constant = np.concatenate([data.attributes, np.ones((len(data), 1), np.float32)], axis=1)
    results = evaluate(replace(data, attributes=constant, attribute_names=("bright", "always")))
    assert results.raw.constant == ["always"]
    assert "ap_always" not in results.raw.metrics


def test_a_frozen_network_measures_utility_by_a_head_alone_and_links_by_a_small_network_too():
    """The toy's actions are bright and dark squares: what an untrained network embeds is enough for them."""
    results = evaluate(toy(), utility="r3d_tiny:frozen", attackers=("resnet_tiny", "r3d_tiny:frozen"))
    utility = results.raw.metrics["action_top1"]
    assert utility.measured_by == "r3d_tiny:frozen"
    assert utility.value > utility.floor
    tried = set(results.raw.metrics["linkage_rank1"].others)
    assert "r3d_tiny:frozen, MLP" in tried
    assert "resnet_tiny, MLP" not in tried
    again = evaluate(toy(), utility="r3d_tiny:frozen", attackers=("resnet_tiny", "r3d_tiny:frozen"), name="again")
    assert again.raw.metrics["action_top1"].value == utility.value


def test_hits_of_every_attacker_are_kept_for_another_choice_among_them():
    results = evaluate(toy(), attackers=("resnet_tiny", "r3d_tiny:frozen"), attack=("linkage",))
    kept = read_per_clip(runs_folder() / "toy" / "per_clip.safetensors")
    metric = results.raw.metrics["linkage_rank1"]
    for who, got in metric.others.items():
        assert np.nanmean(kept[f"raw/linkage_rank1/by/{who}"]) == pytest.approx(got["test"], abs=1e-6)
    np.testing.assert_array_equal(kept["raw/linkage_rank1"], kept[f"raw/linkage_rank1/by/{metric.measured_by}"])


def test_a_small_network_behind_a_frozen_one_is_trained_once_for_all_rows(monkeypatch):
    trained_heads = []
    monkeypatch.setattr(measure, "identity_space", lambda *given: trained_heads.append(1) or identity_space(*given))
    frozen = {"utility": "r3d_tiny:frozen", "attackers": ("r3d_tiny:frozen",), "attack": ("linkage",)}
    first = evaluate(toy(), name="before", **frozen)
    assert len(trained_heads) == 1
    second = evaluate(toy(), name="after", method="blur:strong", raw="before", **frozen)
    assert len(trained_heads) == 2
    assert second.raw.metrics["linkage_rank1"] == first.raw.metrics["linkage_rank1"]


def test_people_who_are_known_from_training_are_named():
    """Everybody of the toy in every split, with other clips."""
    data = toy(identity=True)
    by_clip = np.arange(len(data)) % 8
    split = np.where(by_clip < 4, "train", np.where(by_clip < 6, "val", "test"))
    shared = replace(data, split=split, group=by_clip.astype(str))
    results = evaluate(shared, attackers=("resnet_tiny", "r3d_tiny:frozen"), method="solid")
    raw, black = (point.metrics["identity_top1"] for point in (results.raw, results.points[0]))
    assert raw.value > raw.floor + 0.3
    assert set(raw.others) == {"resnet_tiny", "r3d_tiny:frozen"}
    assert raw.measured_by == max(raw.others, key=lambda name: raw.others[name]["val"])
    assert raw.floor == pytest.approx(1 / 26, abs=0.02)
    assert black.value <= black.floor_range[1]
    assert black.excess == pytest.approx(0, abs=0.1)
    assert "identity_top1" not in evaluate(data, name="strangers").raw.metrics


def test_frozen_networks_predict_attributes_by_heads():
    results = evaluate(toy(), attackers=("r3d_tiny:frozen",), attack=("attributes",))
    precision = results.raw.metrics["ap_bright"]
    assert precision.measured_by == "r3d_tiny:frozen"
    assert precision.value > precision.floor + 0.2
    assert "linkage_rank1" not in results.raw.metrics


def test_a_part_of_recorded_video_is_what_the_method_and_everybody_sees(monkeypatch):
    monkeypatch.setattr(clips, "load_data", lambda *_, **__: toy())
    seen = []
    monkeypatch.setattr(clips_protocol, "anonymized", lambda data, *_, **__: seen.append(data) or data)
    results = clips.run(replace(RECIPE, name="place", part="median", method="solid", epochs=1, attacker_epochs=1))
    assert results.data["name"] == "toy, medians"
    assert results.recipe["part"] == "median"
    assert seen[0].name == "toy, medians"
    assert len(seen[0].videos.frames(0)) == 1


def test_an_evaluation_that_was_interrupted_goes_on(tmp_path):
    def cut(*_: object) -> None:
        raise RuntimeError("cut")

    first = evaluate(toy(), name="whole")
    stopped = AttackProtocol(RECIPE, toy())
    stopped.measure.linkage = cut
    with pytest.raises(RuntimeError, match="cut"):
        stopped.evaluate()
    stamp = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs" / "toy").rglob("weights.safetensors")}
    assert stamp
    second = AttackProtocol(RECIPE, toy()).evaluate(resume=True)
    assert {path: path.stat().st_mtime_ns for path in stamp} == stamp  # found, not trained again
    assert {name: metric.value for name, metric in second.raw.metrics.items()} == {
        name: metric.value for name, metric in first.raw.metrics.items()
    }


def test_an_attacker_may_start_from_what_it_learned_on_raw_video():
    results = evaluate(toy(), method="random", keep=(0.9,), attack=("linkage",), attackers=("resnet_tiny:raw",))
    (point,) = results.points
    tried = {name.partition(",")[0] for name in results.raw.metrics["linkage_rank1"].others}
    assert tried == {"resnet_tiny", "resnet_tiny:raw"}  # raw video is attacked for as long
    assert point.metrics["linkage_rank1"].measured_by.startswith("resnet_tiny:raw,")
    assert point.metrics["linkage_rank1_raw_gallery"].raw == results.raw.metrics["linkage_rank1"].value


def test_controls_are_attacked_from_nothing_whatever_else_attackers_start_from():
    results = evaluate(toy(), attackers=("resnet_tiny:raw",), joint=True, controls=("median",))
    tried = {name.partition(",")[0] for name in results.controls["median_rank1"].others}
    assert tried == {"resnet_tiny"}


def test_the_curve_of_a_knob_is_one_point_a_setting():
    results = evaluate(toy(), method="random", keep=(1.0, 0.1), attack=("linkage",))
    whole, little = results.points
    assert (whole.keep, little.keep) == (1.0, 0.1)
    assert whole.metrics["action_top1"].retention == pytest.approx(1, abs=0.1)
    assert (little.metrics["linkage_rank1"].excess or 0) < (whole.metrics["linkage_rank1"].excess or 0)
    assert 0 <= whole.metrics["linkage_rank1_raw_gallery"].value <= 1


def test_a_tidy_evaluation_leaves_no_clips_and_has_the_same_results(tmp_path):
    short = {"method": "random", "keep": (0.9, 0.5), "attack": ("linkage",), "epochs": 1, "attacker_epochs": 1}
    tidy = evaluate(toy(), **short, name="tidy", tidy=True)
    cache = tmp_path / "cache" / "anonymized"
    assert not list(cache.glob("*/frames.bin"))
    untidy = evaluate(toy(), **short, name="untidy")
    assert len(list(cache.glob("*/frames.bin"))) == 2
    assert tidy.points == untidy.points
    evaluate(toy(), **short, name="guest", tidy=True)
    assert len(list(cache.glob("*/frames.bin"))) == 2  # another run made them


def test_one_frame_and_shuffled_frames_do_not_show_a_direction():
    results = evaluate(toy(), controls=("one_frame", "one_frame_linkage", "shuffled", "median"))
    assert results.controls["one_frame_top1"].value < 0.8
    assert results.raw.metrics["action_top1"].value > 0.9
    assert {"shuffled_top1", "median_rank1", "one_frame_rank1"} <= results.controls.keys()


def test_a_set_without_people_and_attributes_cannot_be_attacked():
    data = toy()
    nobody = replace(
        data,
        person=np.full(len(data), -1),
        attributes=np.zeros((len(data), 0), np.float32),
        attribute_names=(),
    )
    with pytest.raises(DataError, match="nothing to attack; its actions can be learned: vidveil train"):
        evaluate(nobody)
    people = replace(nobody, person=data.person)
    with pytest.raises(DataError, match=r"names no attributes: write attack=\[linkage\]"):
        evaluate(people, attack=("attributes",), name="people")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"controls": ("background",)}, "take the control median"),
        ({"method": "blurr"}, "did you mean blur"),
        ({"method": "blur", "keep": (0.5,)}, "are settings of learned methods"),
        ({"keep": (0.5,)}, "raw has no keep: leave it out"),
        ({"utility": "r3d_tinny"}, "did you mean r3d_tiny"),
        ({"utility": "r3d_tiny:raw"}, "the utility network is trained anew"),
        ({"attackers": ("r3d_tiny:pretrained",)}, "no published weights"),
        ({"attackers": ("r3d_tiny:trained",)}, "pretrained, frozen or raw"),
        ({"raw": "nothing"}, "no finished run 'nothing'"),
        ({"data": "puppets", "part": "median"}, "built-in people have view="),
        ({"part": "person_crop", "controls": ("median",)}, "of the whole video"),
        ({"part": "median", "data": "pa_hmdb51:frames"}, "is single frames"),
        ({"part": "median", "method": "motion:8"}, "shows nothing, whatever it hides"),
        ({"part": "median", "method": "blur:weak | figure"}, "shows nothing, whatever it hides"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_trained(changes, reason):
    with pytest.raises(UsageError, match=reason):
        refuse_mistakes(replace(RECIPE, **changes))


def test_a_setting_that_moves_after_another_method_is_refused_for_medians(monkeypatch):
    loader(monkeypatch, Masker("moving_mask", preprocess=load("motion")))
    monkeypatch.setattr("vidveil.evaluation.checks.load", methods.load)
    with pytest.raises(UsageError, match="shows nothing, whatever it hides"):
        refuse_mistakes(replace(RECIPE, part="median", method="moving_mask"))


def test_raw_video_of_another_run_is_used_again(tmp_path):
    first = evaluate(toy(), name="before")
    second = evaluate(toy(), name="after", method="blur:strong", raw="before")
    assert second.raw.metrics["action_top1"].value == first.raw.metrics["action_top1"].value
    assert not list(Path(tmp_path, "runs", "after", "fits").glob("raw*"))
    with pytest.raises(UsageError, match="other settings"):
        evaluate(toy(), name="wrong", method="blur:strong", raw="before", epochs=3)


def test_frames_are_evaluated_by_labels_of_their_own():
    """A border that is bright in the second half of a film alone: no label of a whole film could say so."""
    data = toy((12, 6, 8), clips=2)
    length, half = 24, 12
    videos = np.repeat(data.videos.clips[:, :1], length, axis=1)
    videos[:, :, :2] = 0
    videos[:, half:, :2] = 255
    labels = {name: np.repeat([[0.0], [1.0]], 2 * half, axis=0).astype(np.float32) for name in data.ids}
    frames = by_frame(replace(data, videos=Arrays(videos), person=np.full(len(data), -1)), labels)
    assert len(frames) == 3 * len(data)
    results = evaluate(frames, attack=("attributes",), frames=1, attacker_epochs=6)
    assert results.raw.metrics["ap_bright"].value > 0.95
    assert results.raw.metrics["ap_bright"].floor_analytic == pytest.approx(2 / 3)  # decoded frames 4, 12 and 20
    assert "action_top1" not in results.raw.metrics
    assert results.data["clips"]["test"] == 3 * 16


def test_subgroups_are_measured_of_raw_video_and_of_every_setting():
    data = toy()
    data = replace(data, tags={"subgroup": data.person % 2})
    results = evaluate(data, method="solid", attack=("linkage",))
    for point in (results.raw, *results.points):
        for name in ("f", "m", "gap"):
            assert f"action_top1_{name}" in point.metrics
    (point,) = results.points
    assert point.metrics["action_top1_gap"].raw == results.raw.metrics["action_top1_gap"].value
    assert point.metrics["action_top1_f"].retention is not None
    assert "action, top-1, gap" in table([results])
