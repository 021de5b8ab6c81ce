"""Several sources of batches in one training."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from tests.training.test_learners import OPTIONS, Stopped
from tests.training.toy import Sums, network
from vidveil.core.errors import TrainingError
from vidveil.training import checkpoints
from vidveil.training.batches import BatchesTogether
from vidveil.training.loop import fit


class Numbered:
    """Batches that are (epoch, number)."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def epoch(self, epoch, start=0):
        yield from ((epoch, number) for number in range(start, self.count))


def test_every_batch_has_one_of_each_source_and_each_goes_through_its_own_epochs():
    together = BatchesTogether(clips=Numbered(3), pictures=Numbered(2), rest=Numbered(5))
    assert len(together) == 3
    seen = [batch for epoch in range(4) for batch in together.epoch(epoch)]
    assert [batch["clips"] for batch in seen] == [(i // 3, i % 3) for i in range(12)]
    assert [batch["pictures"] for batch in seen] == [(i // 2, i % 2) for i in range(12)]
    assert [batch["rest"] for batch in seen] == [(i // 5, i % 5) for i in range(12)]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_an_epoch_can_be_taken_up_anywhere(start):
    together = BatchesTogether(clips=Numbered(3), pictures=Numbered(2))
    assert list(together.epoch(2, start)) == list(together.epoch(2))[start:]


def test_a_source_without_batches_is_named():
    with pytest.raises(TrainingError, match="no batches of pictures"):
        BatchesTogether(clips=Numbered(3), pictures=Numbered(0))


def test_a_training_from_two_sources_resumes_to_the_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "COST", 0)

    class Stops(Sums):
        def epoch(self, epoch, start=0):
            for number, batch in enumerate(super().epoch(epoch, start), start):
                if (epoch, number) == (1, 4):
                    raise Stopped
                yield batch

    def train(first, folder):
        model = network()
        options = OPTIONS.__class__(epochs=3, device="cpu", checkpoint_seconds=0)
        batches = BatchesTogether(a=first, b=Sums(batches=7, rows=4))
        fit(
            model, batches=batches, validate=None, options=options, folder=folder,
            loss=lambda model, batch: {name: cross_entropy(model(x), y) for name, (x, y) in batch.items()},
        )  # fmt: skip
        return model

    whole = train(Sums(), None)
    with pytest.raises(Stopped):
        train(Stops(), tmp_path)
    again = train(Sums(), tmp_path)
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in whole.state_dict().items())
