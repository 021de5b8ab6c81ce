"""Numbers against ground truth, with answers known beforehand."""

import numpy as np
import pytest

from tests.evaluation.masked import Masker, loader, people
from tests.evaluation.toy import toy
from vidveil.core.errors import DataError
from vidveil.evaluation.measures.ground_truth import Truth
from vidveil.evaluation.measures.measure import Measure
from vidveil.methods.anonymized_data import Setting, anonymized
from vidveil.methods.masking.baselines import Grid
from vidveil.methods.masking.ground_truth import has_truth, of_mask, of_scores

GRID = Grid(2, 8)


pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.fixture
def data(tmp_path):
    return people(tmp_path)


def numbers(data, **knobs):
    truth = Truth(data, Measure(data, permutations=10, resamples=50))
    found = truth.numbers([anonymized(data, Setting(**knobs))])
    return {name: number.measured.value.value for name, number in found.items()}, found


def test_the_oracle_is_right(data):
    values, _ = numbers(data, method="oracle", keep=30 / 32)  # all but the two tubelets of the face
    assert values["identity_hidden"] == 1
    assert values["action_kept"] == 1
    assert values["tubelets_kept"] == pytest.approx(30 / 32)
    assert values["score_auroc"] == 1
    assert values["score_auroc_all"] == 1


def test_random_tubelets_are_at_their_floor(tmp_path):
    values, found = numbers(people(tmp_path, clips=60), method="random", keep=0.5)
    for name, floor in (("identity_hidden", 0.5), ("action_kept", 0.5), ("score_auroc", 0.5), ("score_auroc_all", 0.5)):
        assert found[name].measured.floor == pytest.approx(floor)
        assert values[name] == pytest.approx(floor, abs=0.1)


def test_what_moves_is_the_action_here(data):
    values, _ = numbers(data, method="moving", keep=2 / 32)
    assert values["action_kept"] == 1
    assert values["identity_hidden"] == 1


def test_a_learned_method_is_measured_by_its_own_mask_and_scores(data, monkeypatch):
    loader(monkeypatch, Masker())  # the face and the arm are brighter than the wall, the arm more so
    values, _ = numbers(data, method="masker", keep=28 / 32)
    assert values == pytest.approx(
        {"identity_hidden": 1, "action_kept": 0, "tubelets_kept": 28 / 32, "score_auroc": 0, "score_auroc_all": 28 / 30}
    )
    values, _ = numbers(data, method="masker", keep=28 / 32, privacy_weight=1.0)
    assert values["action_kept"] == 1
    assert values["score_auroc"] == 1


def test_trainings_of_the_method_are_averaged_and_each_has_its_value(data, monkeypatch):
    loader(monkeypatch, Masker("m-0"), Masker("m-1", weights="other"))
    settings = [Setting(method="m-{seed}", keep=28 / 32, privacy_weight=w).of_seed(s) for s, w in ((0, 0.0), (1, 1.0))]
    truth = Truth(data, Measure(data, permutations=10, resamples=50))
    found = truth.numbers([anonymized(data, one) for one in settings])["action_kept"]
    assert found.measured.value.per_seed == (0, 1)
    assert found.measured.value.value == 0.5
    assert found.per_clip.shape == (2, 18)


def test_one_mask_for_the_evaluators_of_all_seeds_is_one_number(data):
    after = anonymized(data, Setting(method="random", keep=0.5))
    found = Truth(data, Measure(data, permutations=10, resamples=50)).numbers([after, after, after])
    assert len(found["action_kept"].measured.value.per_seed) == 1


def test_only_test_clips_count(data):
    _, found = numbers(data, method="centre", keep=0.5)
    assert found["identity_hidden"].per_clip.shape == (1, len(data.indices("test")))


def test_without_truth_or_without_a_mask_there_is_no_number(data):
    assert numbers(data, method="blur:strong") == ({}, {})
    assert numbers(toy(), method="blur:strong") == ({}, {})
    assert has_truth("puppets:rho=1")
    assert not has_truth("puppets:view=mask")
    assert not has_truth("ucf101")


def test_how_much_a_mask_keeps_is_known_without_truth():
    values, found = numbers(toy(), method="random", keep=0.5)
    assert values == {"tubelets_kept": 0.5}
    assert found["tubelets_kept"].measured_by == "the mask"


def test_a_clip_without_such_pixels_is_left_out_and_not_counted_as_hidden():
    found = of_mask(np.zeros((2, 8, 16), np.uint8), np.array([[[True, False]]]), GRID)
    assert np.isnan(found["identity_hidden"])
    assert np.isnan(found["action_kept"])


def test_a_tubelet_with_a_trace_of_identity_is_not_private():
    kinds = np.zeros((2, 8, 24), np.uint8)
    kinds[:, :, :8] = 1
    kinds[0, :3, 8:10] = 1  # 6 of 128 pixels
    kinds[:, :, 16:] = 2
    best = of_scores(kinds, np.array([[[-1, 0, 1]]], np.float32), GRID)
    assert best == {"score_auroc": 1, "score_auroc_all": 1}
    trace_below = of_scores(kinds, np.array([[[-1, -2, 1]]], np.float32), GRID)
    assert trace_below == {"score_auroc": 1, "score_auroc_all": 0.5}


def test_pixels_of_both_belong_to_the_action():
    kinds = np.zeros((2, 8, 16), np.uint8)
    kinds[:, :, :8] = 1
    kinds[:, :, 8:] = 3
    assert of_mask(kinds, np.array([[[False, True]]]), GRID)["action_kept"] == 1
    assert of_scores(kinds, np.array([[[0, 1]]], np.float32), GRID)["score_auroc"] == 1


def test_infinite_scores_are_the_lowest_and_broken_ones_are_refused():
    kinds = np.zeros((2, 8, 16), np.uint8)
    kinds[:, :, :8], kinds[:, :, 8:] = 1, 2
    assert of_scores(kinds, np.array([[[-np.inf, 1]]], np.float32), GRID)["score_auroc"] == 1
    with pytest.raises(DataError, match="not a number"):
        of_scores(kinds, np.array([[[np.nan, 1]]], np.float32), GRID)
