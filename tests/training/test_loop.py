"""What `fit` does to a model, and when it stops."""

import math

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tests.training.toy import Sums, accuracy, loss, network, train
from vidveil.core.errors import DeviceError, RecipeError, TrainingError
from vidveil.training.checkpoints import CheckpointManager
from vidveil.training.loop import fit
from vidveil.training.options import Options


def on_cpu(**options):
    return Options(**{"epochs": 3, "lr": 0.01, "device": "cpu", **options})


def test_a_network_learns_and_ends_ready_for_use():
    model, found = train(None, epochs=8)
    assert found.best >= 0.85
    assert found.best == accuracy(model)["top1"]  # so it is in eval mode and has the best weights
    assert not model.training
    assert [row["epoch"] for row in found.history] == list(range(1, 9))
    assert found.history[-1]["train_loss"] < found.history[0]["train_loss"]
    assert found.steps == 80


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    weights = [train(None, seed=seed)[0][0].weight for seed in (0, 0, 1)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_training_does_not_disturb_the_generators_of_its_caller():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(None)
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()


def scores(*values):
    """A validation that returns these scores, one after the other, and the weights that it was called with."""
    left, seen = list(values), []

    def validate(model):
        seen.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        return {"other": 0.0, "score": left.pop(0)}

    return validate, seen


def test_the_best_epoch_is_returned_and_of_equals_the_later():
    validate, seen = scores(0.1, 0.5, 0.5, 0.2)
    model = network()
    found = fit(model, batches=Sums(), loss=loss, validate=validate, options=on_cpu(epochs=4, monitor="score"))
    assert (found.best_epoch, found.best, found.stopped_early) == (3, 0.5, False)
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in seen[2].items())


def test_patience_counts_validations_without_a_better_one():
    validate, seen = scores(0.1, 0.5, 0.5, 0.2, 0.9)
    options = on_cpu(epochs=10, monitor="score", patience=2)
    found = fit(network(), batches=Sums(), loss=loss, validate=validate, options=options)
    assert (found.best_epoch, found.stopped_early, len(seen)) == (3, True, 4)


def test_validation_can_be_rare_but_the_last_epoch_is_always_validated():
    validate, seen = scores(0.1, 0.2, 0.3)
    found = fit(network(), batches=Sums(2), loss=loss, validate=validate, options=on_cpu(epochs=5, validate_every=2))
    assert ["score" in row for row in found.history] == [False, True, False, True, True]
    assert len(seen) == 3


def test_without_validation_the_last_weights_are_returned():
    found = fit(network(), batches=Sums(2), loss=loss, validate=None, options=on_cpu())
    assert found.best_epoch == 3
    assert math.isnan(found.best)


def test_where_the_last_epoch_is_taken_metrics_are_logged_and_choose_nothing():
    validate, seen = scores(0.9, 0.1, math.nan)
    model = network()
    found = fit(model, batches=Sums(), loss=loss, validate=validate, options=on_cpu(monitor="last", patience=1))
    assert (found.best_epoch, found.stopped_early, len(seen)) == (3, False, 3)
    assert math.isnan(found.best)
    assert [row["score"] for row in found.history[:2]] == [0.9, 0.1]
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in seen[2].items())
    assert not torch.equal(seen[0]["0.weight"], seen[2]["0.weight"])


def test_where_the_last_epoch_is_taken_a_rare_validation_changes_no_weight():
    weights = []
    for every in (1, 2, 5):
        model = network()
        options = on_cpu(monitor="last", validate_every=every)
        fit(model, batches=Sums(2), loss=loss, validate=scores(0.9, 0.5, 0.1)[0], options=options)
        weights.append(model[0].weight)
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[0], weights[2])


def test_the_average_is_what_is_validated_and_returned():
    validate, seen = scores(1.0)
    model = network()
    fit(model, batches=Sums(1), loss=loss, validate=validate, options=on_cpu(epochs=1, ema=0.99))
    plain = network()
    fit(plain, batches=Sums(1), loss=loss, validate=None, options=on_cpu(epochs=1))
    start, stepped = network()[0].weight, plain[0].weight
    torch.testing.assert_close(seen[0]["0.weight"], 0.1 * start + 0.9 * stepped)  # d₀ = 1/10
    assert torch.equal(model[0].weight, seen[0]["0.weight"])


def test_long_gradients_are_cut_to_the_norm():
    lengths = []

    def look(optimizer, *_):
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        lengths.append(torch.nn.utils.get_total_norm(gradients).item())

    handle = register_optimizer_step_pre_hook(look)
    try:
        for clip in (0.05, 0):
            fit(
                network(),
                batches=Sums(3),
                loss=lambda m, b: 10 * loss(m, b),
                validate=None,
                options=on_cpu(epochs=1, clip_norm=clip),
            )
    finally:
        handle.remove()
    assert lengths[:3] == pytest.approx([0.05] * 3, rel=1e-3)
    assert min(lengths[3:]) > 1


def test_the_first_step_moves_by_the_rate_of_the_warm_up():
    layer = nn.Linear(8, 2)
    before = layer.weight.clone()
    options = on_cpu(epochs=1, lr=0.1, warmup_epochs=5, weight_decay=0, clip_norm=0)
    fit(layer, batches=Sums(1), loss=loss, validate=None, options=options)
    # Adam's first step is the rate times the gradient's sign: 0.1 · 1/5
    torch.testing.assert_close((layer.weight - before).abs(), torch.full((2, 8), 0.02), rtol=1e-3, atol=1e-5)


def test_bfloat16_keeps_weights_in_32_bits():
    model, found = train(None, precision="bf16-mixed")
    assert model[0].weight.dtype == torch.float32
    assert found.best > 0.6


def test_features_may_be_called_by_the_loss():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(8, 4), nn.Linear(4, 2)

        def features(self, x):
            return self.body(x)

        def forward(self, x):
            return self.head(self.features(x))

    def shape(model, batch):
        assert model.features(batch[0]).shape == (16, 4)
        return loss(model, batch)

    fit(Net(), batches=Sums(2), loss=shape, validate=accuracy, options=on_cpu(epochs=1))


class Log(nn.Module):
    def forward(self, x):
        return x.log()


def test_a_bad_number_is_named_with_its_place_and_no_checkpoint_is_lost(tmp_path):
    class TurnsNegative(Sums):
        def epoch(self, epoch, start=0):
            for i, (x, y) in enumerate(super().epoch(epoch, start), start):
                yield (-x.abs() if (epoch, i) == (1, 3) else x.abs()), y

    model = nn.Sequential(nn.Identity(), Log(), nn.Linear(8, 2))
    with pytest.raises(TrainingError) as caught:
        fit(
            model,
            batches=TurnsNegative(),
            loss=loss,
            validate=None,
            options=on_cpu(checkpoint_seconds=0),
            folder=tmp_path,
            label="toy",
        )
    line = str(caught.value)
    assert line.startswith("toy: training broke at step 14 (epoch 2, batch 4): the loss is nan")
    assert "the output of 1 (Log)" in line
    assert "gradient is that of 2.weight" in line
    assert all(torch.isfinite(p).all() for p in model.parameters())
    kept = CheckpointManager(tmp_path).load()
    assert kept.about["state"]["step"] == 13
    assert all(torch.isfinite(tensor).all() for tensor in kept.part("model").values())


def test_a_batch_that_is_bad_itself_is_named():
    class Holes(Sums):
        def epoch(self, epoch, start=0):
            for x, y in super().epoch(epoch, start):
                yield x.masked_fill(x > 2, math.inf), y

    with pytest.raises(TrainingError, match="in the batch itself"):
        fit(network(), batches=Holes(), loss=loss, validate=None, options=on_cpu())


def test_a_bad_gradient_of_a_good_loss_is_named():
    class Root(nn.Module):
        def forward(self, x):
            return (x * 0).sqrt() + x  # the slope of the root at 0 is infinite

    model = nn.Sequential(nn.Linear(8, 4), Root(), nn.Linear(4, 2))
    with pytest.raises(TrainingError, match=r"the loss is 0\.\d+, the first such gradient is that of 0\.weight"):
        fit(model, batches=Sums(), loss=loss, validate=None, options=on_cpu())


def test_a_metric_that_is_not_there_or_not_a_number_is_an_error():
    with pytest.raises(TrainingError, match="gives no 'auroc' to choose an epoch by; it gives top1"):
        train(None, monitor="auroc")
    with pytest.raises(TrainingError, match="returns NaN for score"):
        fit(network(), batches=Sums(1), loss=loss, validate=scores(math.nan)[0], options=on_cpu(monitor="score"))
    with pytest.raises(TrainingError, match="may not call a metric epoch"):
        fit(network(), batches=Sums(1), loss=loss, validate=lambda _: {"epoch": 1}, options=on_cpu())
    last = on_cpu(monitor="last")
    with pytest.raises(TrainingError, match="may not call a metric train_loss"):
        fit(network(), batches=Sums(1), loss=loss, validate=lambda _: {"train_loss": 1}, options=last)


def test_batches_that_end_early_are_an_error():
    class Short(Sums):
        def epoch(self, epoch, start=0):
            yield from list(super().epoch(epoch, start))[:-1]

    with pytest.raises(TrainingError, match="epoch 1 ended after 9 of 10 batches"):
        fit(network(), batches=Short(), loss=loss, validate=None, options=on_cpu())
    with pytest.raises(TrainingError, match="0 batches an epoch"):
        fit(network(), batches=Sums(0), loss=loss, validate=None, options=on_cpu())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_device_that_is_not_here_is_an_error():
    with pytest.raises(DeviceError, match="device=auto"):
        train(None, device="cuda")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("lr", -1),
        ("lr", math.nan),
        ("ema", 1),
        ("precision", "8"),
        ("betas", (0.9, 1.0)),
        ("device", "tpu"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(name, value):
    with pytest.raises(RecipeError, match=name):
        Options(**{name: value})
