"""Training on an accelerator, where the host does not wait for each step."""

import pytest
import torch
from torch import nn

from tests.training.test_loop import Log
from tests.training.toy import Sums, loss, network
from vidveil.core.errors import TrainingError
from vidveil.training.loop import fit
from vidveil.training.options import Options

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


class OnDevice(Sums):
    """All batches are on the device before the first step: a copy would make the host wait."""

    def __init__(self):
        super().__init__()
        self.there = {epoch: [(x.cuda(), y.cuda()) for x, y in super(OnDevice, self).epoch(epoch)] for epoch in (0, 1)}

    def epoch(self, epoch, start=0):
        yield from self.there[epoch][start:]


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_the_host_does_not_wait_for_a_step():
    options = Options(epochs=2, log_every=1000, warmup_epochs=0, ema=0.9)
    waits = []

    def watched(model, batch):
        torch.cuda.set_sync_debug_mode("error" if len(waits) == 5 else "default")  # one whole step, from loss to loss
        waits.append(1)
        return loss(model, batch)

    try:
        fit(network(), batches=OnDevice(), loss=watched, validate=None, options=options)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(waits) == 20


def test_a_bad_number_is_named_although_it_is_read_late():
    class TurnsNegative(OnDevice):
        def epoch(self, epoch, start=0):
            for i, (x, y) in enumerate(super().epoch(epoch, start), start):
                yield (-x.abs() if i == 3 else x.abs()), y

    model = nn.Sequential(nn.Identity(), Log(), nn.Linear(8, 2))
    with pytest.raises(TrainingError, match=r"step 4 \(epoch 1, batch 4\): the loss is nan.*1 \(Log\).*2\.weight"):
        fit(model, batches=TurnsNegative(), loss=loss, validate=None, options=Options(epochs=2, log_every=9))
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_a_run_can_be_resumed_and_compiled(tmp_path):
    class StopsError(Exception):
        pass

    class Stops(OnDevice):
        def epoch(self, epoch, start=0):
            if epoch == 1:
                raise StopsError
            yield from super().epoch(epoch, start)

    options = Options(epochs=2, checkpoint_seconds=0, ema=0.9, channels_last=True)
    with pytest.raises(StopsError):
        fit(network(), batches=Stops(), loss=loss, validate=None, options=options, folder=tmp_path)
    model = network()
    assert fit(model, batches=OnDevice(), loss=loss, validate=None, options=options, folder=tmp_path).steps == 20
    whole = network()
    fit(whole, batches=OnDevice(), loss=loss, validate=None, options=options)
    torch.testing.assert_close(model[0].weight, whole[0].weight, rtol=1e-2, atol=1e-3)
