"""Networks compared with what was published, and with arithmetic by hand."""

import pytest
import torch
from torch import nn

from vidveil.core.errors import UsageError
from vidveil.models.recognizers import build
from vidveil.models.recognizers.i3d import Pool, Stem, Unit, folded_convolution, pad_same, same_padding
from vidveil.models.recognizers.i3d_r50 import I3DResNet
from vidveil.models.recognizers.recognizer import Classifier, Standardize, with_changes
from vidveil.models.recognizers.resnet import fold_biases
from vidveil.models.recognizers.vit import VideoViT


def count(module: nn.Module) -> int:
    return sum(weights.numel() for weights in module.parameters())


@pytest.mark.parametrize(
    ("name", "classes", "published"),
    [
        ("r3d18", 400, 33_371_472),  # torchvision's r3d_18
        ("resnet18", 1000, 11_689_512),  # torchvision's resnet18
        ("resnet50_v15", 1000, 25_557_032),  # torchvision's resnet50
        ("resnet50", 1000, 25_583_592),  # Keras' ResNet50: biases before every normalisation
        ("i3d", 400, 12_697_264),  # 12.29 M of the backbone and 400 classes
        ("i3d_r50", 400, 28_043_472),  # 28.04 M in SlowFast's model zoo
    ],
)
def test_there_are_as_many_parameters_as_published(name, classes, published):
    with torch.device("meta"):
        assert count(Classifier(build(name, frames=16, size=224), {"class": classes})) == published


@pytest.mark.parametrize(
    ("name", "width", "pictures"),
    [
        ("vit_ti", 192, 5_717_416),
        ("vit_s", 384, 22_050_664),
        ("vit_b", 768, 86_567_656),
        ("vit_l", 1024, 304_326_632),
        # timm's, of patches of 14 pixels; ours have 16: larger kernels, fewer places
        ("vit_h", 1280, 632_045_800 + 3 * 1280 * (16**2 - 14**2) - 1280 * (16**2 - 14**2)),
    ],
)
def test_a_video_transformer_has_the_picture_transformer_and_its_time_embedding(name, width, pictures):
    with torch.device("meta"):
        model = Classifier(build(name, frames=16, size=224), {"class": 1000})
    second_frame = 3 * 16 * 16 * width  # a tubelet is two frames deep
    assert count(model) == pictures + second_frame + 8 * width


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


@pytest.mark.parametrize("shape", [(2, 3, 8, 14, 14), (1, 2, 7, 9, 5), (1, 1, 1, 4, 7)])
@pytest.mark.parametrize(
    ("kernel", "stride"),
    [
        ((3, 3, 3), (1, 1, 1)),
        ((1, 3, 3), (1, 2, 2)),
        ((3, 3, 3), (2, 2, 2)),
        ((2, 2, 2), (2, 2, 2)),
        ((4, 5, 2), (2, 3, 1)),
    ],
)
def test_a_pool_over_space_and_then_over_time_is_one_over_both(shape, kernel, stride):
    clip = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    pads = [side for n, k, s in zip(shape[2:], kernel, stride, strict=True) for side in same_padding(n, k, s)[::-1]]
    at_once = nn.functional.max_pool3d(nn.functional.pad(clip, pads[::-1], value=-torch.inf), kernel, stride)
    for layout in (torch.contiguous_format, torch.channels_last_3d):
        torch.testing.assert_close(Pool(kernel, stride)(clip.contiguous(memory_format=layout)), at_once, rtol=0, atol=0)


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


def test_without_biases_before_its_norms_a_network_in_evaluation_gives_the_same_features():
    torch.manual_seed(0)
    network = build("resnet50", frames=2, size=64).eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    for convolution in convolutions:
        nn.init.normal_(convolution.bias)
    clip = torch.rand(2, 3, 2, 64, 64)
    with torch.no_grad():
        before = network.features(clip)
        fold_biases(network)
        after = network.features(clip)
    assert all(convolution.bias is None for convolution in convolutions)
    torch.testing.assert_close(after, before, rtol=1e-3, atol=1e-3 * before.abs().max().item())


def test_convolved_tubelets_lie_on_the_same_grid():
    network = build("vit_mini", frames=8, size=64).eval()
    clip = torch.rand(1, 3, 8, 64, 64)
    with torch.no_grad():
        before = network.patch_embed(clip)
        clip[:, :, 4:6, 8:16, 24:32] = 1
        changed = (network.patch_embed(clip) - before).abs().amax(3)[0]  # (4, 64)
    assert changed.argmax().item() == 2 * 64 + 1 * 8 + 3


def test_a_mask_next_to_the_colours_stays_a_mask():
    clip = torch.rand(1, 4, 2, 3, 3)
    out = Standardize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25), 4)(clip)
    torch.testing.assert_close(out[:, 3], clip[:, 3])
    torch.testing.assert_close(out[:, :3], (clip[:, :3] - 0.5) * 4)


def test_a_transformer_refuses_clips_that_its_tubelets_do_not_fill():
    with pytest.raises(UsageError, match="do not fill 7 frames of 64"):
        build("vit_mini", frames=7, size=64)
    with pytest.raises(UsageError, match="built for clips of"):
        build("vit_mini", frames=8, size=64)(torch.rand(1, 3, 4, 64, 64))


@pytest.mark.parametrize("name", ["vit_b", "vit_l", "vit_h"])
def test_a_large_transformer_refuses_them_before_it_takes_up_memory(name):
    with pytest.raises(UsageError, match="tubelets of 2 × 16 × 16 do not fill 16 frames of 100 × 100"):
        build(name, frames=16, size=100)
    with torch.device("meta"):
        network = build(name, frames=4, size=32)
        assert network(torch.rand(2, 3, 4, 32, 32)).shape == (2, network.width)
        with pytest.raises(UsageError, match="built for clips of"):
            network(torch.rand(2, 3, 2, 32, 32))


def temporal(network: I3DResNet) -> list[list[int]]:
    """Frames that the first convolution of each block sees."""
    layers = (network.layer1, network.layer2, network.layer3, network.layer4)
    return [[block.conv1.kernel_size[0] for block in layer] for layer in layers]


@pytest.mark.parametrize("shape", [(2, 3, 16, 32, 32), (1, 3, 15, 33, 26), (1, 1, 4, 9, 8)])
def test_two_pixels_as_channels_of_one_give_the_stem_of_i3d(shape):
    stem = Stem(shape[1], 8).double()
    clip = torch.rand(shape, dtype=torch.float64, requires_grad=True)
    plain = stem.conv3d(pad_same(clip, stem.kernel, stem.stride))
    folded = folded_convolution(clip, stem.conv3d.weight)
    torch.testing.assert_close(folded, plain)
    weights = torch.rand_like(plain)
    to = (clip, stem.conv3d.weight)
    for one, other in zip(
        torch.autograd.grad((folded * weights).sum(), to), torch.autograd.grad((plain * weights).sum(), to), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", ["i3d_r50", "i3d_r50_v1"])
def test_i3d_resnet_looks_into_time_where_the_published_one_does(name):
    with torch.device("meta"):
        network = build(name, frames=8, size=64)
        assert network.conv1.kernel_size == (5, 7, 7)
        assert temporal(network) == [[3, 3, 3], [3, 1, 3, 1], [3, 1, 3, 1, 3, 1], [1, 3, 1]]
        seen: list[tuple[int, ...]] = []
        for layer in (network.layer1, network.layer2, network.layer4):
            layer.register_forward_hook(lambda *call: seen.append(tuple(call[-1].shape[1:])))
        network(torch.rand(1, 3, 8, 64, 64))
    assert seen == [(256, 8, 16, 16), (512, 4, 8, 8), (2048, 4, 2, 2)]  # time is halved once, behind layer1


def test_i3d_resnet_takes_a_single_frame_and_keeps_the_odd_one():
    network = I3DResNet(widths=(4, 4, 4, 4), depths=(1, 1, 1, 1)).eval()
    seen: list[int] = []
    network.layer2.register_forward_hook(lambda *call: seen.append(call[-1].shape[2]))
    with torch.no_grad():
        for frames in (1, 2, 5):
            assert network(torch.rand(1, 3, frames, 32, 32)).isfinite().all()
    assert seen == [1, 1, 3]


def test_the_two_forms_of_i3d_resnet_stride_at_different_places():
    v15, v1 = (I3DResNet(widths=(4, 4, 4, 4), depths=(1, 1, 1, 1), v1=v1).layer2[0] for v1 in (False, True))
    assert (v15.conv1.stride, v15.conv2.stride, v15.conv1.bias) == ((1, 1, 1), (1, 2, 2), None)
    assert (v1.conv1.stride, v1.conv2.stride, v1.conv1.bias is None) == ((1, 2, 2), (1, 1, 1), False)


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
