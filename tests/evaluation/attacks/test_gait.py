"""Gaits: pairs of views, conditions, floors, and whole evaluations that train nothing."""

from dataclasses import replace

import numpy as np
import pytest

from tests.evaluation import toy as toy_world
from tests.evaluation.toy import Arrays, several, toy
from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import ClipSet
from vidveil.evaluation.attacks.gait import Gait, GaitSequences, energy, look_up
from vidveil.evaluation.checks import refuse_mistakes
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.protocols.lookups import GaitProtocol
from vidveil.evaluation.results import Results, read
from vidveil.report.tables import table

pytestmark = pytest.mark.usefixtures("own_folders")

VIEWS = (0, 90)
RECIPE = replace(toy_world.RECIPE, name="gaits", protocol="gait", attackers=("energy",))


def walks(people: int = 12, *, condition: bool = False, split: tuple[str, ...] = ("test",)) -> ClipSet:
    """Of each person four walks from each of two views, the first two of them gallery. Pixels are noise."""
    rows = [(p, v, r) for p in range(people) for v in VIEWS for r in range(4)]
    person, view, repetition = (np.array(column) for column in zip(*rows, strict=True))
    rng = np.random.default_rng(0)
    tags = {"view": view, "gallery": (repetition < 2).astype(np.int64)}
    if condition:
        tags["condition"] = (repetition == 3).astype(np.int64)
    return ClipSet(
        name="walks",
        videos=Arrays(rng.integers(0, 256, (len(rows), 4, 16, 16, 3), dtype=np.uint8)),
        ids=[f"{p}/{v}_{r}" for p, v, r in rows],
        split=np.array(split)[person % len(split)],
        group=person.astype(str),
        action=np.zeros(len(rows), np.int64),
        actions=("walk",),
        person=person,
        attributes=np.zeros((len(rows), 0), np.float32),
        tags=tags,
    )


def embedded(data: ClipSet, known: np.ndarray, *, width: int = 40) -> np.ndarray:
    """One direction a person where `known`, noise of a length of 1 elsewhere."""
    noise = np.random.default_rng(1).normal(size=(len(data), width))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    return np.where(known[:, None], np.eye(width)[data.person], noise)


def measured(data: ClipSet, *features: np.ndarray):
    measure = Measure(data, permutations=200, resamples=200)
    return Gait(measure).numbers({"made": [{"test": one} for one in features]})


def evaluate(data: ClipSet, **changes: object) -> Results:
    return toy_world.evaluate(data, RECIPE, **changes)


def test_somebody_known_from_one_side_is_found_from_that_side_alone():
    data = walks()
    shown = embedded(data, np.ones(len(data), bool))
    turned = np.where(data.tags["view"][:, None] == 90, np.roll(shown, 20, axis=1), shown)  # another space a view
    numbers, by_view = measured(data, turned)
    value = {name: number.measured.value.value for name, number in numbers.items()}
    assert value["gait_rank1_same_view"] == 1
    assert value["gait_rank1_any_view"] == 1
    assert value["gait_rank1_all_views"] == pytest.approx((1 + value["gait_rank1_cross_view"]) / 2)
    assert value["gait_rank1_cross_view"] < 0.2
    assert by_view["all"]["000"]["000"] == by_view["all"]["090"]["090"] == 1
    cross = (by_view["all"]["000"]["090"] + by_view["all"]["090"]["000"]) / 2
    assert value["gait_rank1_cross_view"] == pytest.approx(cross)


def test_floors_are_those_of_a_random_gallery_walk_and_noise_is_at_them():
    data = walks()
    numbers, _ = measured(data, embedded(data, np.zeros(len(data), bool)))
    for number in numbers.values():
        assert number.analytic == pytest.approx(1 / 12)
        assert number.measured.floor == pytest.approx(1 / 12, abs=0.02)
        assert number.floor_range[0] <= number.measured.value.value <= number.floor_range[1]
        assert number.p is not None
        assert number.p > 0.02


def test_people_who_are_always_taken_for_the_same_other_are_no_leak_if_some_are_right_by_luck():
    """Three of twelve people happen to be taken for themselves: with single walks permuted that would be impossible."""
    data = walks()
    taken = np.r_[0, 1, 2, np.roll(np.arange(3, 12), 1)]
    vectors = np.eye(40)[np.where(data.tags["gallery"] == 1, data.person, taken[data.person])]
    number = measured(data, vectors)[0]["gait_rank1_all_views"]
    assert number.measured.value.value == 0.25
    assert number.floor_range[1] >= 0.25
    assert number.p is not None
    assert number.p > 0.02


def test_identical_walks_are_at_the_floor_exactly():
    data = walks()
    number = measured(data, np.ones((len(data), 3)))[0]["gait_rank1_any_view"]
    assert number.measured.value.value == pytest.approx(number.analytic)


def test_conditions_have_numbers_of_their_own_and_the_same_gallery():
    data = walks(condition=True)
    coat = data.tags["condition"] == 1
    numbers, by_view = measured(data, embedded(data, ~coat))
    assert numbers["gait_rank1_cross_view_nm"].measured.value.value == 1
    assert numbers["gait_rank1_cross_view_bg"].measured.value.value < 0.3
    assert set(by_view) == {"nm", "bg"}
    assert not any(name.endswith("_cl") for name in numbers)  # nobody wears one here


def test_a_probe_whose_person_is_not_in_the_gallery_of_a_view_is_left_out_there():
    data = walks()
    gone = (data.person == 3) & (data.tags["view"] == 0) & (data.tags["gallery"] == 1)
    keep = np.flatnonzero(~gone)
    few = GaitSequences(*(column[keep] for column in (data.person, data.tags["view"], data.tags["gallery"] == 1)), None)
    found = look_up(embedded(data, np.ones(len(data), bool))[keep], few)
    lost = (few.person == 3) & ~few.gallery
    assert np.isnan(found.hit[lost, 0]).all()
    assert (found.nearest[lost, 0] == -1).all()
    assert (found.hit[lost, 1] == 1).all()
    assert (found.hit[lost, 2] == 1).all()


def test_validation_people_choose_and_without_them_the_first_attacker_counts():
    alone = evaluate(walks(), attackers=("resnet_tiny:frozen", "energy")).raw.metrics["gait_rank1_any_view"]
    assert alone.measured_by == "resnet_tiny:frozen"
    data = walks(split=("test", "test", "val"))
    rows = {split: data.indices(split) for split in ("val", "test")}
    good, bad = (embedded(data, np.full(len(data), known)) for known in (True, False))
    gait = Gait(Measure(data, permutations=20, resamples=20))
    numbers, _ = gait.numbers(
        {
            "peeking": [{"val": bad[rows["val"]], "test": good[rows["test"]]}],
            "honest": [{"val": good[rows["val"]], "test": bad[rows["test"]]}],
        }
    )
    assert {number.measured_by for number in numbers.values()} == {"honest"}
    assert numbers["gait_rank1_any_view"].others["peeking"]["test"] == 1


def test_a_whole_evaluation_trains_nothing_and_is_reported(tmp_path):
    data = walks()
    clips = data.videos.clips // 4
    clips[np.arange(len(data)), :, data.person] = 255  # everybody is a line at a height of their own
    data = replace(data, videos=Arrays(clips))
    results = evaluate(data, method="solid", attackers=("energy", "resnet_tiny:frozen"))
    assert results.raw.metrics["gait_rank1_cross_view"].value > 0.8
    assert results.raw.verdict == "identities leak"
    (point,) = results.points
    black = point.metrics["gait_rank1_cross_view"]
    assert black.value == pytest.approx(black.floor_analytic)
    assert abs(black.excess or 1) < 0.05
    assert not list((tmp_path / "runs").rglob("weights.safetensors"))
    results.write(tmp_path / "results.json")
    text = table([read(tmp_path / "results.json")])
    assert "| probe | 000 | 090 | other views |" in text
    assert "gait, rank-1, cross view" in text
    assert "the set has nobody to choose on, and the first attacker counts" in text


def test_an_evaluation_that_was_interrupted_computes_no_features_again(tmp_path):
    data, recipe = walks(), replace(RECIPE, attackers=("resnet_tiny:frozen",))

    def cut(*_: object) -> None:
        raise RuntimeError("cut")

    stopped = GaitProtocol(recipe, data)
    stopped.gait.numbers = cut
    with pytest.raises(RuntimeError, match="cut"):
        stopped.evaluate()
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("predictions.safetensors")}
    assert stamps
    assert GaitProtocol(recipe, data).evaluate(resume=True).raw.by_view
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_the_mean_of_all_frames_is_in_grey_and_of_one_size():
    data = walks()
    (picture, *_), count = energy(data, ["test"])["test"], len(data)
    assert energy(data, ["test"])["test"].shape == (count, 64 * 64)
    assert picture.mean() == pytest.approx(data.videos.clips[0].mean(), rel=0.02)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"attackers": ("r3d_tiny",)}, r"r3d_tiny: the protocol gait trains nothing; .*i3d:frozen or energy"),
        ({"protocol": "retrieval"}, r"energy: the protocol retrieval trains nothing; .*i3d:frozen$"),
        ({"attackers": ("r3d_tinny:frozen",)}, "did you mean r3d_tiny"),
        ({"controls": ("median",)}, "leave controls out"),
    ],
)
def test_what_asks_for_a_training_is_refused(changes, reason):
    with pytest.raises(UsageError, match=reason):
        refuse_mistakes(replace(RECIPE, **changes))


def test_sets_without_gaits_are_refused():
    with pytest.raises(DataError, match="toy has no tag gallery"):
        evaluate(toy())
    everything = walks()
    tags = {**everything.tags, "gallery": np.ones(len(everything), np.int64)}
    with pytest.raises(DataError, match="has no gallery among its test clips, or nothing to look up"):
        evaluate(replace(everything, tags=tags), name="other")


def test_retrieval_finds_actions_among_training_clips_and_has_a_floor_by_formula():
    results = evaluate(toy(), protocol="retrieval", attackers=("r3d_tiny:frozen",), method="solid")
    raw, (point,) = results.raw.metrics, results.points
    assert list(raw) == ["retrieval_r1", "retrieval_r5", "retrieval_r10", "retrieval_map"]
    assert raw["retrieval_r1"].kind == "utility"
    assert raw["retrieval_r1"].floor == pytest.approx(0.5)  # two actions, equally many clips
    size, right = 12 * 8, 12 * 4
    missed = np.prod([(size - right - i) / (size - i) for i in range(5)])
    assert raw["retrieval_r5"].floor == pytest.approx(1 - missed)
    assert raw["retrieval_map"].value > raw["retrieval_map"].floor
    for name, metric in point.metrics.items():  # all black: any order is as good
        assert metric.value == pytest.approx(metric.floor, abs=1e-6), name
        assert metric.retention == pytest.approx(metric.value / raw[name].value)
    with pytest.raises(DataError, match="walks has no videos in train and val"):
        evaluate(walks(), protocol="retrieval", attackers=("r3d_tiny:frozen",), name="other")


def test_several_actions_at_once_are_not_looked_up():
    with pytest.raises(
        DataError, match="several shows several actions at once, and retrieval needs one action per clip"
    ):
        evaluate(several(toy()), protocol="retrieval", attackers=("r3d_tiny:frozen",))
