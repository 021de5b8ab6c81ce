"""A method may learn from several views of each clip, and from other data at the same time."""

from dataclasses import replace

import pytest
import torch

from tests.evaluation.masked import FRAMES, SIZE
from tests.evaluation.stopped import bits, events, same, stop_at
from tests.methods.learned import blend
from tests.methods.learned.blend import BlendNetwork, BlendNetworks, BlendRecipe
from vidveil.training.batches import BatchesTogether
from vidveil.training.learner import Learner

RECIPE = BlendRecipe(
    name="mine", data="puppets", frames=FRAMES, size=SIZE, epochs=2, batch=4, checkpoint_seconds=0.0, deploy_stride=1,
    seed=1,
)  # fmt: skip


class Pictures:
    """Pictures with an attribute each: their brightness."""

    def __len__(self):
        return 3

    def epoch(self, epoch, start=0):
        for number in range(start, len(self)):
            pictures = torch.rand(4, 3, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(10 * epoch + number))
            yield pictures, (pictures.mean((1, 2, 3, 4)) > 0.5).long()


class PairNetworks(BlendNetworks):
    """Two views of a clip are to look alike, and pictures train the attacker as well."""

    views_per_clip = 2

    def batches(self, clips):
        return BatchesTogether(clips=clips, pictures=Pictures())

    def learners(self):
        return [Learner("all", lambda _, batch: self.losses(batch))]

    def update_rules(self):
        return ()

    def losses(self, batch):
        clips, (pictures, bright) = batch["clips"], batch["pictures"]
        assert clips.video.shape[1:] == (2, 3, FRAMES, SIZE, SIZE)
        one, other = (self.anonymizer(view) for view in clips.video.unbind(1))
        logits = self.attacker(pictures.expand(-1, -1, FRAMES, -1, -1))["attributes"][:, 0]
        attack = torch.nn.functional.binary_cross_entropy_with_logits(logits, bright.float())
        action = self.action.loss(self.recognizer(one)["action"], clips.index)
        return {"alike": (one - other).square().mean(), "pictures": attack, "action": action}


def test_a_method_trains_on_pairs_of_views_and_on_pictures_and_resumes_to_the_bit(runs, monkeypatch):
    pairs = replace(blend.TRAINING, prepare=PairNetworks)
    pairs.run(replace(RECIPE, name="whole"))
    rows = [event for event in events(runs, "whole") if event["event"] == "epoch"]
    assert {"train_loss/alike", "train_loss/pictures", "train_loss/action"} <= rows[0].keys()
    assert rows[0]["train_loss/alike"] > 0
    with monkeypatch.context() as patch:
        stop_at(patch, BlendNetwork, 5)
        with pytest.raises(KeyboardInterrupt):
            pairs.run(replace(RECIPE, name="stopped"))
    pairs.run(replace(RECIPE, name="stopped"), resume=True)
    assert same(bits(runs, "whole"), bits(runs, "stopped"))
