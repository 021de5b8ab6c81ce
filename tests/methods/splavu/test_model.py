"""The adapter: it starts as nothing, looks at one clip at a time, and what its projection loses is lost."""

import json
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import RecipeError
from vidveil.methods.splavu.model import AAM, AttentionBlock, Shape, attend_side_by_side, rebuilt, too_few

D = 32
SHAPES = {
    "attention": Shape(D, heads=2, groups=4),
    "published attention": Shape(D, heads=4, reference=True),
    "mlp": Shape(D, kind="mlp"),
}


def adapter(shape: Shape, *, opinions: bool = True) -> AAM:
    """With opinions, every number in it is drawn; without, it is as training finds it."""
    torch.manual_seed(4)
    made = AAM(shape).eval()
    if opinions:
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.normal_(std=0.3)
            for module in made.modules():
                if isinstance(module, nn.BatchNorm1d):
                    module.running_mean.normal_()
                    module.running_var.uniform_(0.5, 2)
            made.scale.fill_(1.7)
    return made


def clips(count: int = 6) -> Tensor:
    return torch.randn(count, D, generator=torch.Generator().manual_seed(9))


def losing(made: AAM, directions: int = 10) -> tuple[AAM, Tensor]:
    """The adapter behind a projection that is not an orthogonal one; and (directions, D), what it loses."""
    draws = torch.Generator().manual_seed(3)
    basis = torch.linalg.qr(torch.randn(D, D, generator=draws, dtype=torch.float64)).Q
    skew = torch.eye(D, dtype=torch.float64) + 0.1 * torch.randn(D, D, generator=draws, dtype=torch.float64)
    keep = torch.diag((torch.arange(D) >= directions).double())
    made.left.copy_(skew @ basis @ keep @ basis.T @ skew.inverse())
    made.centre.copy_(torch.randn(D, generator=draws))
    axes, strengths, _ = torch.linalg.svd(made.left)
    return made, axes[:, strengths < 1e-9].T.float()  # rows d with d @ left = 0


@pytest.mark.parametrize("size", [1.0, 0.013, 1234.5])
@pytest.mark.parametrize("kind", list(SHAPES))
def test_an_adapter_starts_as_the_identity_to_the_bit(kind, size):
    made = adapter(SHAPES[kind], opinions=False)
    made.scale.fill_(size)
    z = size * clips()
    assert torch.equal(made(z), z)
    made.train()
    assert torch.equal(made(z), z)


def test_an_mlp_as_published_does_not_start_as_the_identity():
    made = adapter(Shape(D, kind="mlp", reference=True), opinions=False)
    assert (made(clips()) - clips()).abs().max() > 0.1
    assert not any("outer" in name for name in made.state_dict())


@pytest.mark.parametrize("kind", ["attention", "mlp"])
def test_a_clip_does_not_depend_on_others_of_its_batch(kind):
    made, z = adapter(SHAPES[kind]).double(), clips().double()  # in 32 bits sums are rounded otherwise
    together = made(z)
    assert (together - z).abs().max() > 0.1
    for number in range(len(z)):
        torch.testing.assert_close(made(z[number : number + 1])[0], together[number], atol=1e-9, rtol=1e-9)


def test_a_clip_depends_on_others_of_its_batch_where_attention_is_as_published():
    made, z = adapter(SHAPES["published attention"]), clips()
    together = made(z)
    assert (made(z[:1])[0] - together[0]).abs().max() > 0.1
    order = torch.tensor([2, 0, 1, 5, 4, 3])  # but not on where in the batch it is
    torch.testing.assert_close(made(z[order]), together[order], atol=1e-4, rtol=1e-4)


def test_published_attention_is_that_of_torch_over_the_batch_with_the_clip_added():
    layer = adapter(SHAPES["published attention"]).blocks[0]
    theirs = nn.MultiheadAttention(D, 4).eval()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(layer.inner.weight)
        theirs.in_proj_bias.copy_(layer.inner.bias)
        theirs.out_proj.weight.copy_(layer.outer.weight)
        theirs.out_proj.bias.copy_(layer.outer.bias)
    z = clips()
    torch.testing.assert_close(layer(z), z + theirs(z, z, z)[0], atol=1e-5, rtol=1e-5)
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in layer.parameters())


def test_attention_is_between_groups_of_a_clips_channels_head_by_head():
    shape = Shape(D, heads=2, groups=4, inner=24)
    layer, z = adapter(shape).blocks[0], clips(3)
    each, d = 24 // 4, 24 // 4 // 2  # channels of a group, and of a head of it
    wanted = []
    for clip in z:
        q, k, v = (layer.inner.weight @ clip + layer.inner.bias).view(3, 24)
        mixed = torch.zeros(24)
        for head in range(2):

            def of(x, group, head=head):
                return x[group * each + head * d : group * each + (head + 1) * d]

            def place(which, group, head=head):
                return layer.places[which, group, head * d : (head + 1) * d]

            for group in range(4):
                scores = [(of(q, group) + place(0, group)) @ (of(k, other) + place(1, other)) for other in range(4)]
                shares = (torch.stack(scores) / math.sqrt(d)).softmax(0)
                of(mixed, group)[:] = sum(share * of(v, other) for other, share in enumerate(shares))
        wanted.append(clip + layer.outer.weight @ mixed + layer.outer.bias)
    torch.testing.assert_close(layer(z), torch.stack(wanted), atol=1e-5, rtol=1e-5)


def test_attention_of_a_clip_is_no_linear_map():
    made, (a, b) = adapter(SHAPES["attention"]), clips(2)
    middle = made((a + b)[None] / 2)[0]
    assert (middle - made(torch.stack([a, b])).mean(0)).abs().max() > 1e-2


def test_layers_follow_one_another_and_the_size_of_features_is_undone():
    made, z = adapter(SHAPES["attention"]), clips()
    assert len(made.blocks) == 3
    x = z / 1.7
    for block in made.blocks:
        x = block(x)
    torch.testing.assert_close(made(z), x * 1.7, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("width", "words"), [
    (30, {"reference": True}),
    (D, {"inner": 33}),
    (D, {"inner": 32, "heads": 3}),
    (D, {"inner": 32, "groups": 5}),
])  # fmt: skip
def test_channels_that_cannot_be_cut_are_refused(width, words):
    with pytest.raises(RecipeError, match="cannot be cut into"):
        Shape(width, **words)


@pytest.mark.parametrize("width", [4, 30, 100, 768, 1408])
def test_features_of_any_length_can_be_cut_unless_somebody_says_how(width):
    z = torch.randn(2, width)
    assert AAM(Shape(width))(z).shape == z.shape


def test_adapters_are_as_large_as_they_were_published_and_ours_a_quarter_of_that():
    def parameters(**words):
        return sum(p.numel() for p in AAM(Shape(768, **words)).parameters())

    assert parameters(reference=True) == 3 * (4 * 768**2 + 4 * 768) == 7_087_104
    assert parameters() == 3 * (768 * 3 * 192 + 3 * 192 + 192 * 768 + 768 + 2 * 192) == 1_774_656
    assert parameters(kind="mlp", reference=True) == 3 * (768**2 + 3 * 768)


@pytest.mark.parametrize("erase", [0.0, 0.5])
@pytest.mark.parametrize("kind", list(SHAPES))
def test_an_adapter_comes_back_out_of_its_checkpoint(kind, erase):
    made = adapter(Shape(**SHAPES[kind].__dict__ | {"erase": erase}))
    if erase:
        losing(made)
    again = rebuilt(json.loads(json.dumps(made.about())), made.state_dict())
    assert not again.training
    assert not any(p.requires_grad for p in again.parameters())
    assert torch.equal(again(clips()), made(clips()))


def test_clips_that_differ_in_what_is_lost_alone_become_the_same():
    made, lost = losing(adapter(Shape(D, heads=2, groups=4, erase=0.3)))
    z = clips()
    other = z + 5 * torch.randn(len(z), 10, generator=torch.Generator().manual_seed(1)) @ lost
    assert (other - z).abs().max() > 1
    torch.testing.assert_close(made(other), made(z), atol=1e-4, rtol=1e-4)
    kept = z + 0.5 * (torch.randn_like(z).double() @ made.left).float()
    assert (made(kept) - made(z)).abs().max() > 0.1


def test_the_projection_is_the_first_thing_and_is_done_in_64_bits_of_32():
    made, _ = losing(adapter(Shape(D, heads=2, groups=4, erase=0.3), opinions=False))
    z = clips()
    wanted = made.centre + (z.double() - made.centre) @ made.left
    assert torch.equal(made(z), wanted.float())
    with torch.autocast("cpu", torch.bfloat16):  # as in training on an accelerator
        assert torch.equal(made.erased(z), wanted.float())


def test_few_training_videos_are_told_where_something_is_erased_by_them():
    assert too_few(Shape(D, heads=2, groups=4, erase=0.3), D) is None
    assert too_few(Shape(D, heads=2, groups=4), D - 1) is None
    assert f"{D - 1} training videos" in too_few(Shape(D, heads=2, groups=4, erase=0.3), D - 1)


def test_no_clips_are_no_clips():
    assert adapter(SHAPES["attention"])(clips(0)).shape == (0, D)


@pytest.mark.parametrize("lost", [0, 10, D // 2 + 1, D - 1])
def test_through_the_few_directions_that_are_left_it_is_the_same_projection(lost):
    made, gone = losing(adapter(Shape(D, heads=2, groups=4, erase=0.3)), lost)
    again = rebuilt(made.about(), made.state_dict())
    assert (again.into is not None) == (lost > D // 2)
    if again.into is not None:
        assert again.into.shape == (D, D - lost)
    z = clips()
    torch.testing.assert_close(again.erased(z.double()), made.erased(z.double()), atol=1e-12, rtol=0)
    torch.testing.assert_close(
        again.erased(z.double() + 5 * gone.double().sum(0)), made.erased(z.double()), atol=1e-5, rtol=0
    )
    assert again.state_dict().keys() == made.state_dict().keys()


def test_a_map_that_is_no_projection_is_used_as_it_is():
    made = adapter(Shape(D, heads=2, groups=4, erase=0.3))
    made.left.copy_(0.3 * torch.eye(D))
    again = rebuilt(made.about(), made.state_dict())
    torch.testing.assert_close(again.erased(clips()), made.erased(clips()))


def test_nothing_is_projected_where_nothing_is_erased():
    made = AAM(SHAPES["attention"])
    assert {"centre", "left"}.isdisjoint(made.state_dict())
    assert isinstance(made.blocks[0], AttentionBlock)


@pytest.mark.parametrize("size", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("shape", [(8, 8, 3, 5), (2, 1, 1, 1), (4, 3, 7, 0)])
def test_attention_of_clips_side_by_side_is_what_torch_computes(shape, size):
    q, k, v = size * torch.randn(3, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    plain = F.scaled_dot_product_attention(*(x.permute(3, 1, 0, 2) for x in (q, k, v)))  # (B, heads, tokens, d)
    torch.testing.assert_close(attend_side_by_side(q, k, v), plain.permute(2, 1, 3, 0))
