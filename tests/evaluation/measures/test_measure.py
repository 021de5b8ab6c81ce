"""Who is chosen, and by what: networks with hand-made predictions, the best on validation and on test being others."""

import numpy as np
import pytest

from tests.evaluation.toy import toy
from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.measures.measure import Measure, SharedSpace
from vidveil.evaluation.measures.measured import choose
from vidveil.tasks import Predictions


@pytest.fixture(scope="module")
def data() -> ClipSet:
    return toy()


@pytest.fixture(scope="module")
def measure(data) -> Measure:
    return Measure(data, permutations=100, resamples=100)


def learned(data: ClipSet, tmp_path, *, knows: set[str], seed: int = 0) -> TrainedNetwork:
    """A network that knows person, action and attribute in the splits `knows`, and guesses in the others."""
    rng = np.random.default_rng(seed)
    predictions, scores = {}, {}
    for split in ("train", "val", "test"):
        rows, sure = data.indices(split), split in knows
        who = np.eye(40, dtype=np.float32)[data.person[rows]] if sure else rng.random((len(rows), 40), np.float32)
        action = np.where(sure, data.action[rows], rng.integers(0, 2, len(rows)))
        bright = np.where(sure, data.attributes[rows, 0], rng.random(len(rows)))
        heads = {
            "action": np.eye(2, dtype=np.float32)[action],
            "attributes": bright[:, None].astype(np.float32),
        }
        predictions[split] = Predictions(rows, who, heads)
        scores |= {"action": float(sure), "attributes": 0.9 if sure else 0.5} if split == "val" else {}
    return TrainedNetwork(predictions, scores, 1, 1.0, "made", tmp_path)


@pytest.fixture
def pair(data, tmp_path):
    """One that shines on validation alone, and one that shines on test alone: whoever peeks takes the second."""
    return {
        "honest": [learned(data, tmp_path, knows={"train", "val"})],
        "peeking": [learned(data, tmp_path, knows={"train", "test"}, seed=1)],
    }


def test_the_best_on_validation_counts_whatever_test_says(measure, pair):
    linkage = measure.linkage(pair)["linkage_rank1"]
    assert linkage.measured_by.startswith("honest")
    assert linkage.measured.value.value < 0.5
    assert max(one["test"] for one in linkage.others.values()) == 1  # reported, and decides nothing

    top1 = measure.action(pair)
    assert top1.measured_by == "honest"
    assert top1.measured.value.value < 0.8
    assert top1.others["peeking"]["test"] == 1

    numbers, _ = measure.attributes(pair)
    for name in ("ap_bright", "auroc_bright", "cmap"):
        assert numbers[name].measured_by == "honest"
        assert numbers[name].others["peeking"]["test"] == 1


def test_an_attacker_that_knows_nobody_is_at_its_floor(data, measure, tmp_path):
    blind = {"blind": [learned(data, tmp_path, knows={"train"}, seed=s) for s in (0, 1, 2)]}
    linkage = measure.linkage(blind)["linkage_rank1"]
    assert linkage.floor_range[0] <= linkage.measured.value.value <= linkage.floor_range[1]
    assert (linkage.p or 0) > 0.01
    numbers, _ = measure.attributes(blind)
    assert numbers["auroc_bright"].analytic == 0.5
    low, high = numbers["auroc_bright"].floor_range
    assert low <= numbers["auroc_bright"].measured.value.value <= high


def test_one_that_knows_all_is_far_above_it(data, measure, tmp_path):
    knowing = {"knowing": [learned(data, tmp_path, knows={"train", "val", "test"})]}
    linkage = measure.linkage(knowing)["linkage_rank1"]
    assert linkage.measured.value.value == 1
    assert linkage.p == pytest.approx(1 / 101)
    assert linkage.least_p == pytest.approx(1 / 101)


def test_f1_says_yes_at_the_threshold_that_was_asked_for_and_notes_it(data, tmp_path):
    unsure = learned(data, tmp_path, knows={"train", "val", "test"})
    for split, predictions in unsure.predictions.items():
        bright = data.attributes[data.indices(split), 0]
        predictions.probabilities["attributes"][:, 0] = np.where(bright == 1, 0.6, 0.1)  # a logit of 0.41
    usual, released = (
        Measure(data, permutations=10, resamples=10, f1_threshold=at).attributes({"unsure": [unsure]})[0]["f1"]
        for at in ("probability", "logit")
    )
    assert (usual.measured.value.value, usual.note) == (1, "")
    assert (released.measured.value.value, released.note) == (0, "yes where the logit is above 0.5")
    assert (
        usual.measured.floor == released.measured.floor == pytest.approx(2 / 3)
    )  # who always says yes says so at either


def test_seeds_are_averaged_and_each_has_its_value(data, measure, tmp_path):
    three = {"mixed": [learned(data, tmp_path, knows={"train", "val", *more}) for more in ({"test"}, set(), {"test"})]}
    value = measure.action(three).measured.value
    assert value.per_seed[0] == value.per_seed[2] == 1
    assert value.value == pytest.approx(np.mean(value.per_seed))


def test_anonymized_probes_are_looked_up_among_raw_clips(data, measure):
    who = {split: np.eye(40)[data.person[data.indices(split)]] for split in ("val", "test")}
    same = measure.raw_gallery({"same": [SharedSpace(who, who)]})
    assert same.measured.value.value == 1
    turned = {split: np.roll(vectors, 1, axis=1) for split, vectors in who.items()}
    assert measure.raw_gallery({"turned": [SharedSpace(who, turned)]}).measured.value.value < 0.5


def test_validation_that_says_nothing_chooses_nobody():
    assert choose({"a": 0.1, "b": float("nan"), "c": 0.2}, "x") == "c"
    with pytest.raises(DataError, match="validation cannot choose by x"):
        choose({"a": float("nan")}, "x")
