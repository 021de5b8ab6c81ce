"""Clips that show several actions at once: cMAP with its floor and interval, and whole evaluations and trainings."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.evaluation import toy as toy_world
from tests.evaluation.toy import learned, several, toy
from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import ClipSet
from vidveil.data.description import labels_fingerprint
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.measures.actions import readable
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.measures.subgroups import subgroups
from vidveil.evaluation.number import Number
from vidveil.evaluation.points import point
from vidveil.evaluation.protocols import recognizer as train
from vidveil.evaluation.results import Results, read
from vidveil.report.compared import section
from vidveil.report.tables import table
from vidveil.training.recipe import TrainRecipe

pytestmark = pytest.mark.usefixtures("own_folders")

NAN = float("nan")
RECIPE = replace(toy_world.RECIPE, name="several", attack=("attributes",), attacker_epochs=1, permutations=20)


@pytest.fixture(scope="module")
def data() -> ClipSet:
    return several(toy())


def predicting(data: ClipSet, probabilities: np.ndarray, val: float = 0.5) -> TrainedNetwork:
    """A network that has these probabilities (n, A) of the test clips."""
    return learned(data, {"test": {"action": probabilities}}, {"action": val})


def measured(data: ClipSet, networks: dict[str, list[TrainedNetwork]], resamples: int = 300) -> Number:
    return Measure(data, permutations=10, resamples=resamples).action(networks)


def truth(data: ClipSet) -> np.ndarray:
    assert data.action_labels is not None
    return data.action_labels[data.indices("test")]


def test_the_best_on_validation_counts_whatever_test_says(data):
    rng = np.random.default_rng(0).random(truth(data).shape)
    networks = {"honest": [predicting(data, rng, 0.9)], "peeking": [predicting(data, truth(data), 0.4)]}
    found = measured(data, networks)
    assert (found.measured_by, found.kind, found.note) == ("honest", "utility", "")
    assert found.measured.value.value < 0.7
    assert found.others["peeking"] == pytest.approx({"test": 1, "val": 0.4})
    unknown = {name: [replace(one[0], scores={"action": NAN})] for name, one in networks.items()}
    assert measured(data, unknown).measured_by == "honest"  # validation says nothing: the first one


def test_the_number_is_the_mean_over_actions_and_over_seeds(data):
    wrong = truth(data).copy()
    wrong[:, 2] = 1 - wrong[:, 2]  # half of the clips shine, and all of them come last, together: precision ½
    found = measured(data, {"net": [predicting(data, truth(data)), predicting(data, wrong)]})
    assert found.measured.value.per_seed == pytest.approx((1, (1 + 1 + 0.5) / 3))
    assert found.measured.value.value == pytest.approx(np.mean(found.measured.value.per_seed))


def test_one_answer_for_all_clips_is_at_its_floor_which_is_the_prevalence(data):
    found = measured(data, {"black": [predicting(data, np.full(truth(data).shape, 0.3))]})
    assert found.measured.value.value == pytest.approx(found.measured.floor)
    assert found.measured.floor == pytest.approx(found.analytic)
    assert found.analytic == pytest.approx(truth(data).mean())
    assert point("solid", None, {"action_cmap": found}, [], {}).verdict.endswith("nothing is useful")


def test_a_random_order_is_at_its_floor_which_is_above_the_prevalence(data):
    rng = np.random.default_rng(0)
    above = []
    for _ in range(40):
        found = measured(data, {"random": [predicting(data, rng.random(truth(data).shape))]}, resamples=100)
        above.append(found.measured.above_floor())
        assert found.measured.floor > found.analytic + 0.02
    assert np.mean([one.value for one in above]) == pytest.approx(0, abs=0.01)
    assert np.mean([one.low > 0 for one in above]) < 0.2


def test_an_action_that_is_the_same_in_all_test_clips_is_left_out_with_a_note(data):
    labels = data.action_labels.copy()
    labels[data.indices("test"), 1] = 0
    labels[data.indices("train"), 2] = NAN
    changed = replace(data, action_labels=labels)
    found = measured(changed, {"net": [predicting(changed, np.nan_to_num(truth(changed)))]})
    assert found.measured.value.value == pytest.approx(1)
    assert found.note == "over 2 of 3 actions, 1 of them in no training clip"
    labels[data.indices("test")] = 1
    with pytest.raises(DataError, match="every action is in all test clips or in none"):
        measured(changed, {"net": [predicting(changed, truth(changed))]})


def test_labels_that_nobody_knows_count_for_nothing(data):
    rng = np.random.default_rng(1)
    rows = data.indices("test")
    labels = data.action_labels.copy()
    labels[rows[::3]] = NAN
    changed = replace(data, action_labels=labels)
    known = np.arange(len(rows)) % 3 != 0
    scores = rng.random(truth(data).shape)
    other = np.where(known[:, None], scores, rng.random(scores.shape))
    one, two = (measured(changed, {"net": [predicting(changed, each)]}) for each in (scores, other))
    assert one.measured.value.value == pytest.approx(two.measured.value.value)
    assert one.measured.floor == pytest.approx(two.measured.floor)
    assert one.analytic == pytest.approx(truth(data)[known].mean())


def test_of_rare_actions_the_interval_holds_what_other_clips_would_give():
    """Measured anew in each draw of clips, it would lie above: a clip that is drawn twice lifts its own precision."""
    rng = np.random.default_rng(0)
    base, often = toy((1, 1, 300), clips=1), 0.5 / np.arange(1, 61)  # the rarest are in two or three clips of 300
    tested = base.indices("test")
    values, intervals = [], []
    for _ in range(80):
        shown = (rng.random((len(base), len(often))) < often).astype(np.float32)
        some = replace(base, action=base.action * 0 - 1, actions=list(map(str, often)), action_labels=shown)
        scores = 1 / (1 + np.exp(-rng.normal(size=(300, len(often))) - shown[tested]))
        found = measured(some, {"net": [predicting(some, scores)]}, resamples=200).measured.value
        values.append(found.value)
        intervals.append(found.interval)
    low, high = np.array(intervals).T
    assert np.mean((low <= np.mean(values)) & (np.mean(values) <= high)) > 0.85


def test_actions_can_be_read_where_one_varies_in_training_and_in_test(data):
    def varying(**columns: int) -> ClipSet:
        """In each of these splits one action is in all clips but the first, and the others are in all clips."""
        labels = np.ones_like(data.action_labels)
        for split, column in columns.items():
            labels[data.indices(split)[0], column] = 0
        return replace(data, action_labels=labels)

    assert readable(data)
    assert readable(varying(train=1, test=1))
    assert not readable(varying(train=1))
    assert not readable(varying(test=1))
    assert not readable(varying(train=1, test=0))


def test_there_are_no_hits_of_subgroups(data):
    tagged = replace(data, tags={"subgroup": data.person % 2})
    network = predicting(tagged, truth(tagged))
    measure = Measure(tagged, permutations=10, resamples=10)
    assert subgroups(measure, measure.action({"net": [network]}), [network]) == {}


def test_other_actions_of_the_same_clips_are_other_labels(data):
    other = data.action_labels.copy()
    other[data.indices("test")[0], 0] = NAN
    assert labels_fingerprint(data) != labels_fingerprint(replace(data, action_labels=other))
    assert labels_fingerprint(data) == labels_fingerprint(replace(data, action_labels=data.action_labels.copy()))


# ---- whole evaluations and trainings


def evaluate(data: ClipSet, **changes: object) -> Results:
    return toy_world.evaluate(data, RECIPE, **changes)


def test_an_evaluation_reports_retention_of_cmap_and_two_of_them_are_compared(data, tmp_path):
    black = evaluate(data, method="solid", controls=("shuffled",))
    raw, (point,) = black.raw.metrics, black.points
    assert "action_top1" not in raw
    assert raw["action_cmap"].kind == "utility"
    assert raw["action_cmap"].retention == 1
    assert raw["action_cmap"].value > raw["action_cmap"].floor + 0.2
    assert "the action is still readable" in black.raw.verdict
    hidden = point.metrics["action_cmap"]
    assert hidden.value == pytest.approx(hidden.floor, abs=1e-6)  # all black: every order is as good
    assert hidden.retention == pytest.approx(hidden.value / raw["action_cmap"].value, rel=1e-4)
    assert point.verdict == "no leak was found, nothing is useful"
    assert black.controls["shuffled_cmap"].value > 0
    assert "| actions, cMAP |" in table([black])
    evaluate(data, method="blur:weak", raw="several", name="blur")
    paths = [tmp_path / "runs" / name / "results.json" for name in ("several", "blur")]
    text = section([(path, read(path)) for path in paths])
    assert "of raw cMAP; the leak" in text
    assert "| actions, cMAP | solid | blur:weak |" in text


def test_people_are_found_where_they_do_several_things_at_once(data):
    found = evaluate(data, attack=("linkage",), attacker_epochs=4).raw.metrics
    assert found["linkage_rank1"].value > found["linkage_rank1"].floor + 0.3


def test_where_nobody_is_named_nobody_is_looked_for(data):
    nobody = replace(data, person=np.full(len(data), -1))
    found = evaluate(nobody, attack=("linkage", "attributes"), epochs=1, attacker_epochs=1).raw.metrics
    assert {"action_cmap", "cmap"} <= found.keys()
    assert not [name for name in found if name.startswith("linkage")]
    with pytest.raises(DataError, match=r"several names no people: write attack=\[attributes\]"):
        evaluate(nobody, attack=("linkage",), name="other")


def test_where_no_action_varies_utility_is_not_measured(data):
    labels = np.ones_like(data.action_labels)
    results = evaluate(replace(data, action_labels=labels))
    assert "action_cmap" not in results.raw.metrics
    assert "useful" not in results.raw.verdict


def test_a_recognizer_of_several_actions_is_trained_and_measured(data, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "load_data", lambda *_, **__: data)
    recipe = TrainRecipe(name="mine", data="toy", recognizer="r3d_tiny", frames=4, size=16, epochs=3, batch=16, lr=3e-3)
    found = train.run(recipe).raw.metrics
    assert list(found) == ["action_cmap"]
    assert found["action_cmap"].value > found["action_cmap"].floor
    kept = json.loads((tmp_path / "runs" / "mine" / "checkpoint" / "checkpoint.json").read_text())
    assert kept["metrics"]["action_cmap"] == pytest.approx(found["action_cmap"].value)
    labels = np.ones_like(data.action_labels)
    monkeypatch.setattr(train, "load_data", lambda *_, **__: replace(data, action_labels=labels))
    with pytest.raises(DataError, match="no action to learn: all clips show the same"):
        train.run(replace(recipe, name="other"))
    assert not (tmp_path / "runs" / "other").exists()


def test_a_training_on_other_labels_of_actions_is_not_taken_for_this_one(data):
    evaluate(data, epochs=1)
    other = data.action_labels.copy()
    other[data.indices("train")[0], 0] = NAN
    with pytest.raises(UsageError, match="was trained on other clips or with other settings"):
        evaluate(replace(data, action_labels=other), epochs=1, raw="several", name="other")
