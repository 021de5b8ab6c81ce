"""A picture transformer's weights in the dual-CLS network."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.core.errors import UsageError, WeightsError
from vidveil.methods.dual_cls import model as dual_cls
from vidveil.methods.dual_cls.model import DualCLS, Network
from vidveil.methods.dual_cls.train import load_picture_weights

WIDTH = 24


@pytest.fixture(autouse=True)
def sizes(monkeypatch):
    monkeypatch.setitem(dual_cls.SIZES, "tiny", (WIDTH, 4, 3, (1, 2, 3), (2, 8, 8)))


def tiny(mode: str = "reversed") -> DualCLS:
    torch.manual_seed(5)
    shape: dict[str, Any] = {"size": "tiny", "frames": 8, "side": 32, "actions": 5, "budget": {"attributes": 4}}
    return DualCLS(Network(**shape, privacy_attention=mode)).eval()


def picture_vit(width: int, depth: int, side: int, patch: int) -> dict[str, Tensor]:
    """Names and shapes of timm's ViT, with a head."""
    torch.manual_seed(8)
    shapes = {
        "cls_token": (1, 1, width), "pos_embed": (1, 1 + side**2, width),
        "patch_embed.proj.weight": (width, 3, patch, patch), "patch_embed.proj.bias": (width,),
        "norm.weight": (width,), "norm.bias": (width,), "head.weight": (10, width), "head.bias": (10,),
    }  # fmt: skip
    for block in (f"blocks.{number}." for number in range(depth)):
        for part in ("norm1", "norm2"):
            shapes |= {f"{block}{part}.weight": (width,), f"{block}{part}.bias": (width,)}
        for part, (out, into) in {
            "attn.qkv": (3, 1),
            "attn.proj": (1, 1),
            "mlp.fc1": (4, 1),
            "mlp.fc2": (1, 4),
        }.items():
            shapes |= {f"{block}{part}.weight": (out * width, into * width), f"{block}{part}.bias": (out * width,)}
    return {name: torch.randn(shape).half() for name, shape in shapes.items()}


@pytest.mark.parametrize("mode", ["reversed", "detector"])
def test_a_pictures_transformer_fills_the_trunk(mode):
    net, tensors = tiny(mode), picture_vit(WIDTH, 4, side=6, patch=8)
    left = load_picture_weights(net, tensors)
    assert {name.split(".")[0] for name in left} == {"action_head", "budget_heads"}
    assert torch.equal(net.blocks[2].mlp.fc1.weight, tensors["blocks.2.mlp.fc1.weight"].float())
    act, priv = net.cls_token[0]
    assert torch.equal(act, tensors["cls_token"][0, 0].float())
    assert 0.3 < torch.cosine_similarity(act, priv, dim=0) < 0.99  # alike, but two equal tokens would have equal maps
    assert not net.time_embed.any()
    if mode == "detector":
        query = tensors["blocks.1.attn.qkv.weight"].float()[:WIDTH]
        assert torch.equal(net.blocks[1].reader.query.weight, query)
        assert torch.equal(net.blocks[1].reader.mlp.fc2.bias, tensors["blocks.1.mlp.fc2.bias"].float())


def test_two_equal_frames_give_the_embedding_of_the_picture():
    net, tensors = tiny(), picture_vit(WIDTH, 4, side=4, patch=8)
    load_picture_weights(net, tensors)
    picture = torch.rand(1, 3, 32, 32)
    x = net.embed(picture.unsqueeze(2).expand(-1, -1, 8, -1, -1))  # (1, 2 + 4·16, D)
    tensors = {name: tensor.float() for name, tensor in tensors.items()}
    standard = net.standardize(picture.unsqueeze(2))[:, :, 0]
    patches = F.conv2d(standard, tensors["patch_embed.proj.weight"], tensors["patch_embed.proj.bias"], stride=8)
    tokens = patches.flatten(2).transpose(1, 2) + tensors["pos_embed"][:, 1:]  # (1, 16, D)
    torch.testing.assert_close(x[:, 2:], tokens.repeat(1, 4, 1), atol=1e-3, rtol=1e-3)
    first = tensors["cls_token"][:, 0] + tensors["pos_embed"][:, 0]
    torch.testing.assert_close(x[:, 0], first)
    torch.testing.assert_close(x[:, 1], net.cls_token[:, 1] + tensors["pos_embed"][:, 0])


def test_weights_of_another_width_are_refused():
    with pytest.raises(UsageError, match="does not fit"):
        load_picture_weights(tiny(), picture_vit(WIDTH + 1, 4, side=4, patch=8))


def test_published_weights_fill_a_vit_s(monkeypatch):
    from vidveil.weights import weights
    from vidveil.weights.tensors import read_tensors

    monkeypatch.setenv("VIDVEIL_OFFLINE", "1")
    try:
        tensors = read_tensors(weights("vits14"))
    except WeightsError:
        pytest.skip("vits14 is not on disk: vidveil fetch vits14")
    net = DualCLS(Network(size="vit_s", frames=16, side=112, actions=3, budget={"attributes": 2})).eval()
    left = load_picture_weights(net, tensors)
    assert {name.split(".")[0] for name in left} == {"action_head", "budget_heads"}
    kept = net.decide(torch.rand(1, 3, 16, 112, 112)).kept
    assert kept.sum() == 287
