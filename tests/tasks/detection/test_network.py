"""TriDet follows its equations, and padding has no influence."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.tasks.detection.made import CLASSES, SMALL, D
from vidveil.core.errors import RecipeError, UsageError
from vidveil.tasks.detection.network import SGP, GroupNorm, Shape, TriDet, expected, halved
from vidveil.tasks.detection.targets import grid


def network(shape: Shape = SMALL) -> TriDet:
    torch.manual_seed(3)
    made = TriDet(shape).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():  # norms and biases, too
            parameter.add_(0.2 * torch.randn_like(parameter))
    return made


def sequence(length: int, seed: int = 0) -> Tensor:
    return torch.randn(1, length, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def there(length: int) -> Tensor:
    return torch.ones(1, length, dtype=torch.bool)


@pytest.mark.parametrize("filling", [0.0, 7.0, float("nan")])
@pytest.mark.parametrize("lengths", [(1, 2, 3), (8, 12, 20), (5, 17, 33), (40, 39, 1)])
def test_padding_does_not_change_the_output_of_moments(lengths, filling):
    made = network()
    alone = [sequence(length, seed) for seed, length in enumerate(lengths)]
    longest = max(lengths) + 5
    batch = torch.cat([F.pad(x, (0, 0, 0, longest - x.shape[1]), value=filling) for x in alone])
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    together = made(batch, mask)
    for i, x in enumerate(alone):
        single = made(x, there(x.shape[1]))
        assert single.mask.all()
        for name in ("logits", "distances"):
            found = getattr(together, name)[i][together.mask[i]]
            torch.testing.assert_close(found, getattr(single, name)[0], atol=1e-10, rtol=1e-10)


def test_padding_gets_no_gradient_and_gives_none():
    made = network()
    x = sequence(20).expand(2, -1, -1).clone()
    x[1, 9:] = float("nan")
    x.requires_grad_()
    mask = torch.arange(20) < torch.tensor([[20], [9]])
    output = made(x, mask)
    (output.logits[output.mask].sum() + output.distances[output.mask].sum()).backward()
    assert x.grad.isfinite().all()
    assert not x.grad[1, 9:].any()
    assert x.grad[1, :9].any(1).all()
    assert x.grad[0].any(1).all()


def test_sgp_is_the_published_formula():
    torch.manual_seed(0)
    shape = Shape(4, 2, embed=6, groups=2, window=3, wider=3)
    layer = SGP(shape).double()
    x = torch.randn(2, 6, 11, dtype=torch.float64)
    z = F.layer_norm(x.transpose(1, 2), (6,), layer.before.weight, layer.before.bias).transpose(1, 2)

    def window(conv: nn.Conv1d, i: int, c: int, t: int) -> Tensor:
        size = conv.kernel_size[0]
        total = conv.bias[c].clone()
        for j in range(size):
            if 0 <= t + j - size // 2 < 11:
                total = total + conv.weight[c, 0, j] * z[i, c, t + j - size // 2]
        return total

    wanted = torch.zeros_like(x)
    for i in range(2):
        phi = torch.relu(layer.whole.weight @ z[i].mean(1) + layer.whole.bias)
        for t in range(11):
            instant = layer.instant.weight[:, :, 0] @ z[i, :, t] + layer.instant.bias
            for c in range(6):
                windows = window(layer.narrow, i, c, t) + window(layer.wide, i, c, t)
                wanted[i, c, t] = x[i, c, t] + phi[c] * instant[c] + window(layer.gate, i, c, t) * windows + z[i, c, t]
    normed = F.group_norm(wanted, 2, layer.between.gain, layer.between.bias)
    wanted = wanted + layer.ffn(normed)
    assert layer.wide.kernel_size == (9,)
    torch.testing.assert_close(layer(x, torch.ones(2, 1, 11, dtype=torch.bool)), wanted, atol=1e-5, rtol=1e-5)


def test_the_distance_to_a_boundary_is_the_expected_value_over_bins():
    torch.manual_seed(1)
    responses, offsets = torch.randn(2, 7), torch.randn(2, 7, 4)
    found = expected(responses, offsets)
    for i in range(2):
        for t in range(7):
            scores = torch.stack(
                [(responses[i, t + b] if t + b < 7 else torch.tensor(0.0)) + offsets[i, t, b] for b in range(4)]
            )
            chance = scores.exp() / scores.exp().sum()
            assert found[i, t].item() == pytest.approx(sum(b * p.item() for b, p in enumerate(chance)), abs=1e-5)


def test_boundaries_that_respond_are_where_segments_start_and_end():
    """The heads themselves, with offsets of 0: 16 moments around, starts at 5 and ends at 20."""
    made = network(Shape(D, 2, embed=16, levels=2, groups=2))
    for head, at in ((made.starts, 5), (made.ends, 20)):
        head.forward = lambda x, _, at=at: 50.0 * (torch.arange(x.shape[2]) == at).to(x).expand(len(x), 1, -1)
    made.offsets.forward = lambda x, _: x.new_zeros(len(x), 2 * 17, x.shape[2])
    output = made(sequence(50), there(50))
    where = grid(50, 2)
    for moment, (at, stride) in enumerate(zip(where.at.tolist(), where.stride.tolist(), strict=True)):
        start, end = at - output.distances[0, moment, 0].item(), at + output.distances[0, moment, 1].item()
        if 0 <= at / stride - 5 <= 16:
            assert start == pytest.approx(5 * stride, abs=1e-4)
        if 0 <= 20 - at / stride <= 16:
            assert end == pytest.approx(20 * stride, abs=1e-4)


@pytest.mark.parametrize("length", [1, 2, 7, 12])
def test_a_level_is_the_maximum_of_three_moments_at_every_other_one(length):
    x = torch.randn(2, 3, length)
    found, mask = halved(x, torch.ones(2, 1, length, dtype=torch.bool))
    torch.testing.assert_close(found, F.max_pool1d(x, 3, stride=2, padding=1))
    assert mask.shape == (2, 1, found.shape[2])
    assert mask.all()


def test_the_group_norm_is_torchs_where_nothing_is_padded():
    x = torch.randn(3, 12, 9) * 5 + 2
    whole = torch.ones(3, 1, 9, dtype=torch.bool)
    torch.testing.assert_close(GroupNorm(4, 12)(x, whole), F.group_norm(x, 4), atol=1e-5, rtol=1e-5)


def test_moments_are_those_of_the_grid_and_an_untrained_network_has_low_scores():
    torch.manual_seed(0)
    output = TriDet(SMALL)(sequence(37).float(), there(37))
    where = grid(37, 3)
    assert output.logits.shape == (1, len(where.at), CLASSES)
    assert where.at.tolist() == [*range(37), *range(0, 37, 2), *range(0, 37, 4)]
    assert 0.003 < output.logits.sigmoid().mean().item() < 0.03
    assert (output.distances > 0).all()
    assert (output.distances <= 16 * where.stride[None, :, None]).all()


def test_the_default_is_the_published_network():
    shape = Shape(1024, 20)
    assert (shape.embed, shape.levels, shape.window * shape.wider, shape.bins) == (512, 6, 5, 16)
    with torch.device("meta"):
        made = TriDet(shape)
    assert 10e6 < sum(parameter.numel() for parameter in made.parameters()) < 25e6


@pytest.mark.parametrize(
    ("features", "mask"),
    [((2, 9, D + 1), (2, 9)), ((2, 9, D), (2, 8)), ((9, D), (9,))],
    ids=["width", "mask", "no batch"],
)
def test_features_of_another_shape_are_refused(features, mask):
    with pytest.raises(UsageError, match=rf"features of \(B, T, {D}\)"):
        TriDet(SMALL)(torch.zeros(features), torch.ones(mask, dtype=torch.bool))


def test_a_video_without_features_is_refused():
    with pytest.raises(UsageError, match="without features"):
        TriDet(SMALL)(torch.zeros(1, 0, D), torch.zeros(1, 0, dtype=torch.bool))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"window": 2}, "odd"), ({"groups": 5}, "5 groups"), ({"levels": 0}, "levels"), ({"prior": 1.0}, "prior")],
)
def test_a_shape_that_cannot_be_built_is_refused(changes, words):
    with pytest.raises(RecipeError, match=words):
        Shape(D, CLASSES, **{"embed": 32, "groups": 4, **changes})
