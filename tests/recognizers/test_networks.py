"""Networks against what was published of them, and against arithmetic by hand."""

import pytest
import torch
from torch import nn

from vidveil.errors import UsageError
from vidveil.recognizers import build
from vidveil.recognizers.i3d import Pool, Unit, same_padding
from vidveil.recognizers.recognizer import Classifier, Standardize, with_changes
from vidveil.recognizers.vit import VideoViT


def count(module: nn.Module) -> int:
    return sum(weights.numel() for weights in module.parameters())


@pytest.mark.parametrize(
    ("name", "classes", "published"),
    [
        ("r3d18", 400, 33_371_472),  # torchvision's r3d_18
        ("resnet18", 1000, 11_689_512),  # torchvision's resnet18
        ("resnet50_v15", 1000, 25_557_032),  # torchvision's resnet50
        ("resnet50", 1000, 25_583_592),  # Keras' ResNet50: biases before every normalisation
        ("i3d", 400, 12_697_264),  # 12.29 M of the trunk and 400 classes
    ],
)
def test_there_are_as_many_parameters_as_published(name, classes, published):
    with torch.device("meta"):
        assert count(Classifier(build(name, frames=16, size=224), {"class": classes})) == published


@pytest.mark.parametrize(("name", "width", "pictures"), [("vit_ti", 192, 5_717_416), ("vit_s", 384, 22_050_664)])
def test_a_video_transformer_has_the_picture_transformer_and_its_time_embedding(name, width, pictures):
    with torch.device("meta"):
        judge = Classifier(build(name, frames=16, size=224), {"class": 1000})
    second_frame = 3 * 16 * 16 * width  # a tubelet is two frames deep
    assert count(judge) == pictures + second_frame + 8 * width


@pytest.mark.parametrize(
    ("n", "kernel", "stride", "pads"),
    [
        (224, 7, 2, (2, 3)),  # 112 windows need 111·2 + 7 = 229
        (112, 3, 2, (0, 1)),
        (7, 3, 2, (1, 1)),
        (16, 3, 1, (1, 1)),
        (5, 2, 2, (0, 1)),
        (4, 1, 2, (0, 0)),  # a window of one never sticks out
    ],
)
def test_same_padding_is_what_tensorflow_documents(n, kernel, stride, pads):
    assert same_padding(n, kernel, stride) == pads


def test_a_strided_unit_looks_where_tensorflow_looks():
    unit = Unit(1, 1, 3, 2).eval()
    nn.init.ones_(unit.conv3d.weight)
    ramp = torch.arange(1.0, 5).view(1, 1, 1, 1, 4)  # along the width: 1 2 3 4, padded to 1 2 3 4 0
    out = unit(ramp).flatten() * (1 + 1e-3) ** 0.5  # undo the normalisation's eps
    torch.testing.assert_close(out, torch.tensor([6.0, 7.0]))  # 1+2+3 and 3+4+0; torch's padding would say 3 and 9


def test_what_a_pool_is_padded_with_never_wins():
    below = torch.full((1, 1, 2, 3, 3), -5.0)
    assert Pool((3, 3, 3), (2, 2, 2))(below).eq(-5).all()


def test_changes_are_the_differences_of_neighbouring_frames():
    clip = torch.rand(1, 3, 8, 4, 4)
    frames, changes = with_changes(clip).split(3, dim=1)
    torch.testing.assert_close(frames, clip)
    torch.testing.assert_close(changes[:, :, 2], clip[:, :, 3] - clip[:, :, 2])
    assert not changes[:, :, -1].any()


@pytest.mark.parametrize(("name", "stem"), [("r3d_tiny", "stem.0"), ("vit_mini", "patch_embed.stem.0")])
def test_a_network_for_two_cores_sees_the_changes_of_all_its_channels(name, stem):
    network = build(name, frames=8, size=64, channels=4)
    assert network.get_submodule(stem).in_channels == 8


def test_convolved_tubelets_lie_on_the_same_grid():
    network = build("vit_mini", frames=8, size=64).eval()
    clip = torch.rand(1, 3, 8, 64, 64)
    with torch.no_grad():
        before = network.patch_embed(clip)
        clip[:, :, 4:6, 8:16, 24:32] = 1
        changed = (network.patch_embed(clip) - before).abs().amax(3)[0]  # (4, 64)
    assert changed.argmax().item() == 2 * 64 + 1 * 8 + 3


def test_a_mask_beside_the_colours_stays_a_mask():
    clip = torch.rand(1, 4, 2, 3, 3)
    out = Standardize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25), 4)(clip)
    torch.testing.assert_close(out[:, 3], clip[:, 3])
    torch.testing.assert_close(out[:, :3], (clip[:, :3] - 0.5) * 4)


def test_a_transformer_refuses_clips_that_its_tubelets_do_not_fill():
    with pytest.raises(UsageError, match="do not fill 7 frames of 64"):
        build("vit_mini", frames=7, size=64)
    with pytest.raises(UsageError, match="built for clips of"):
        build("vit_mini", frames=8, size=64)(torch.rand(1, 3, 4, 64, 64))


def test_tubelets_keep_their_place_and_time():
    """Tokens go time, row, column: what the masks of methods rely on."""
    network = VideoViT(frames=8, size=64, tubelet=(2, 8, 8), width=12, depth=1, heads=1, pool="mean").eval()
    seen: list[torch.Tensor] = []
    network.blocks.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    clip = torch.zeros(1, 3, 8, 64, 64)
    network(clip)
    clip[:, :, 4:6, 8:16, 24:32] = 1  # tubelet (2, 1, 3) of (4, 8, 8)
    network(clip)
    changed = (seen[0] - seen[1]).abs().amax(2)[0].nonzero().flatten().tolist()
    assert changed == [2 * 64 + 1 * 8 + 3]
