"""MGFN: its shapes, what each part sees, and that a video is alone."""

import pytest
import torch

from tests.tasks.anomaly.made import SMALL, WIDTH, features
from vidveil.core.errors import RecipeError, UsageError
from vidveil.tasks.anomaly.network import MGFN, Block, Focus, Shape
from vidveil.training.seeds import seeded


@pytest.fixture
def network():
    with seeded(0):
        return MGFN(SMALL).eval()


def test_it_is_built_as_published():
    shape = Shape(width=24)
    network = MGFN(shape)
    blocks = [layer for layer in network.stages if isinstance(layer, Block)]
    assert [type(block.look).__name__ for block in blocks] == ["Glance"] * 3 + ["Focus"] * 5
    assert [block.norm.normalized_shape[0] for block in blocks] == [64] * 3 + [128] * 3 + [1024] * 2
    assert (shape.ratio, shape.dropout, shape.segments) == (0.1, 0.7, 32)
    with torch.no_grad():
        output = network(features(1, 2, 32, 24))
    assert output.scores.shape == (1, 32)
    assert output.features.shape == (1, 2, 32, 1024)


def test_scores_are_probabilities_and_the_mean_over_crops(network):
    crops = features(3, 5, 32, WIDTH)
    scores = network(crops).scores
    assert ((scores > 0) & (scores < 1)).all()
    each = torch.stack([network(crops[:, number]).scores for number in range(5)])
    torch.testing.assert_close(scores, each.mean(0))


def test_a_videos_scores_do_not_depend_on_its_neighbours(network):
    videos = features(6, 1, 32, WIDTH)
    together = network(videos)
    others = network(torch.cat([videos[:1], 100 * features(4, 1, 32, WIDTH, seed=1)]))
    alone = network(videos[:1])
    for output in (together, others):
        torch.testing.assert_close(output.scores[:1], alone.scores, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(output.features[:1], alone.features, atol=1e-5, rtol=1e-5)


def test_nor_do_they_in_training_but_for_dropout():
    with seeded(0):
        network = MGFN(Shape(**{**SMALL.__dict__, "dropout": 0.0})).train()
    videos = features(6, 1, 32, WIDTH)
    torch.testing.assert_close(network(videos).scores[:1], network(videos[:1]).scores, atol=1e-6, rtol=1e-5)


def test_the_magnitude_is_one_more_channel_through_its_own_convolution(network):
    z = features(2, 32, WIDTH)
    made = network.amplified(z)
    plain = network.feature(z.mT)
    length = z.pow(2).sum(-1, keepdim=True).sqrt()
    torch.testing.assert_close(made, (plain + 0.1 * network.magnitude(length.mT)).mT)


def test_focus_sees_two_neighbours_on_either_side_and_weighs_them_by_head():
    with seeded(0):
        focus = Focus(16, SMALL)
    x = features(1, 9, 16)
    v = x @ focus.value.weight.T
    around = torch.zeros_like(v)
    for t in range(9):
        for channel in range(16):
            head = channel // 8
            around[0, t, channel] = focus.near.bias[head]
            for step in range(-2, 3):
                if 0 <= t + step < 9:
                    around[0, t, channel] += focus.near.weight[head, 0, step + 2] * v[0, t + step, channel]
    torch.testing.assert_close(focus(x), focus.outer(around), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("kind", "reach"), [("glance", 31), ("focus", 3)])
def test_a_glance_sees_the_whole_video_and_a_focus_what_is_near(kind, reach):
    with seeded(0):
        block = Block(kind, 16, SMALL)
        block.look.outer.reset_parameters()  # as if it had learned
    x = features(1, 32, 16).requires_grad_()
    block(x)[0, 0].pow(2).sum().backward()
    output = x.grad[0].abs().sum(1).nonzero().flatten()
    assert output.max() == reach  # 1 of the short-cut convolution, 2 of the aggregation


def test_at_the_start_a_segment_knows_of_its_neighbours_alone_and_all_magnitudes_are_the_same(network):
    z = features(2, 1, 32, WIDTH).requires_grad_()
    output = network(z)
    torch.testing.assert_close(output.features.norm(dim=-1), torch.full((2, 1, 32), 32**0.5), atol=1e-3, rtol=0)
    output.scores[0, 0].backward()
    known = z.grad[0, 0].abs().sum(1).nonzero().flatten()
    assert known.max() == 4  # 1 of the first convolution, and 1 of each of three blocks
    assert not z.grad[1].any()


def test_one_number_scales_all_features(network):
    z = features(2, 1, 32, WIDTH)
    before = network(z).scores
    network.scale.fill_(50.0)
    torch.testing.assert_close(network(50 * z).scores, before, atol=1e-6, rtol=1e-5)


def test_features_of_nought_break_nothing(network):
    z = torch.zeros(2, 1, 32, WIDTH, requires_grad=True)
    network(z).scores.sum().backward()
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize("shape", [(2, 1, 32, WIDTH + 1), (32, WIDTH), (0, 1, 32, WIDTH), (2, 1, 0, WIDTH)])
def test_features_of_another_width_or_of_nothing_are_refused(network, shape):
    with pytest.raises(UsageError, match=rf"\(B, crops, T, {WIDTH}\)"):
        network(torch.zeros(shape))


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"head": 7}, "heads of 7"),
        ({"depths": (1, 1)}, "as many"),
        ({"dropout": 1.0}, "dropout"),
        ({"width": 0}, "1 or"),
    ],
)
def test_shapes_that_cannot_be_built_are_refused(changed, word):
    with pytest.raises(RecipeError, match=word):
        Shape(**{**SMALL.__dict__, **changed})
