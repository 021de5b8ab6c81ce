"""RandomPruning in the tubelets and windows of a learned method."""

import pytest
import torch

from tests.evaluation.masked import FRAMES, Undecided, people
from tests.methods import made_checkpoint
from vidveil.core.errors import UsageError
from vidveil.data.store.anonymized import KEPT
from vidveil.methods import load
from vidveil.methods.anonymized_data import Setting, anonymized, check_method
from vidveil.methods.masking.baselines import RandomPruning, with_random_pruning
from vidveil.methods.masking.masker import TubeletMasker


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    folder = made_checkpoint.write(tmp_path / "mine", made_checkpoint.network())
    return f"dual_cls:{folder}"


@pytest.mark.parametrize("keep", [0.9, 0.5])
def test_as_many_tubelets_stay_as_the_network_would_keep(keep):
    network, clips = made_checkpoint.network(), made_checkpoint.clips()
    found = RandomPruning(network).decide(clips, keep, None)
    wanted = network.decide(clips, keep, None)
    assert found.kept.shape == wanted.kept.shape
    assert torch.equal(found.kept.flatten(1).sum(1), wanted.kept.flatten(1).sum(1))
    assert not torch.equal(found.kept, wanted.kept)
    lowest_kept, highest_hidden = found.scores[0][found.kept[0]].min(), found.scores[0][~found.kept[0]].max()
    assert lowest_kept > highest_hidden


def test_a_clip_has_the_same_random_pruning_in_any_company_and_another_clip_has_others():
    pruned, clips = RandomPruning(made_checkpoint.network()), made_checkpoint.clips(3)
    together = pruned.decide(clips, 0.7, None).kept
    assert torch.equal(together[1], pruned.decide(clips[1:2], 0.7, None).kept[0])
    assert not torch.equal(together[0], together[1])


def test_random_pruning_hides_the_cells_of_the_network_over_video_of_another_size(spec):
    clip = torch.rand(3, 2 * FRAMES + 3, 40, 56)
    masker = with_random_pruning(load(spec), "random")
    found = masker.anonymize(clip, keep=0.8)
    hidden = ~found.mask
    assert hidden.any()
    assert not found.video[:, hidden].any()
    assert torch.equal(found.video[:, found.mask], clip[:, found.mask])
    columns = {place for row in hidden.flatten(0, 1).int() for place in row.diff().nonzero().flatten().tolist()}
    assert columns <= {round(56 / 4 * cell) - 1 for cell in range(1, 4)}  # borders of four cells a row


def test_recipes_evaluate_it_like_any_method_and_it_takes_no_privacy_weight(spec, tmp_path):
    data = people(tmp_path)
    setting = Setting(method=f"random:{spec}", keep=0.8)
    check_method(setting, (0.8,))
    pruned, learned = (anonymized(data, one).videos for one in (setting, Setting(method=spec, keep=0.8)))
    assert pruned.side(KEPT, 0).sum() == learned.side(KEPT, 0).sum()
    assert (pruned.side(KEPT, 0) != learned.side(KEPT, 0)).any()
    with pytest.raises(UsageError, match="has no privacy attention"):
        check_method(Setting(method=f"random:{spec}", privacy_weight=1.0), (0.8,))


def test_random_pruning_takes_the_place_of_a_network_and_of_nothing_else():
    with pytest.raises(UsageError, match="this is not one"):
        with_random_pruning(load("solid"), "random:dual_cls:x")
    with pytest.raises(UsageError, match="this is not one"):
        with_random_pruning(TubeletMasker("other", Undecided()), "random:dual_cls:x")
