"""Published weights into our networks: names, shapes, and what a mask or a second frame may change."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from vidveil.core.errors import UsageError, WeightsError
from vidveil.models.recognizers import build
from vidveil.models.recognizers.i3d_r50 import I3DResNet
from vidveil.models.recognizers.pretrained import load_published, resample_kernel, resample_places
from vidveil.models.recognizers.recognizer import Recognizer
from vidveil.models.recognizers.resnet import ResNet
from vidveil.models.recognizers.vit import VideoViT
from vidveil.weights import describe, lookup
from vidveil.weights.tensors import read_tensors

BASIC = {
    "conv1.weight",
    "bn1.weight",
    "layer1.0.conv1.weight",
    "layer1.0.bn2.running_var",
    "layer2.0.downsample.1.bias",
}
R3D = {"stem.0.weight", "stem.1.running_mean", "layer1.1.conv2.0.weight", "layer3.0.downsample.0.weight"}
INCEPTION = {"Conv3d_1a_7x7.conv3d.weight", "Mixed_5c.Branch_1.Conv3d_0b_3x3.bn.running_var"}
TRANSFORMER = {"cls_token", "pos_embed", "patch_embed.proj.bias", "blocks.11.attn.qkv.weight", "blocks.0.mlp.fc2.bias"}


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("resnet18", BASIC),
        ("resnet50_v15", BASIC | {"layer4.2.conv3.weight"}),
        ("resnet50", BASIC | {"layer4.2.conv3.bias"}),
        ("r3d18", R3D),
        ("i3d", INCEPTION),
        ("i3d_r50", BASIC | {"layer4.2.conv3.weight"}),
        ("i3d_r50_v1", BASIC | {"layer4.2.conv3.bias"}),
        ("vit_ti", TRANSFORMER | {"norm.weight", "blocks.3.norm1.bias"}),
    ],
)
def test_names_are_those_of_the_published_files(name, names):
    with torch.device("meta"):
        assert names <= build(name, frames=16, size=224).state_dict().keys()


def tiny_resnet(block: str, channels: int = 3) -> ResNet:
    return ResNet(block, channels=channels, widths=(4, 4, 4, 4), depths=(1, 1, 1, 1)).eval()


def tiny_i3d_resnet(channels: int = 3, *, v1: bool = False) -> I3DResNet:
    torch.manual_seed(2)
    return I3DResNet(channels=channels, widths=(4, 4, 4, 4), depths=(1, 2, 1, 1), v1=v1).eval()


def tiny_vit(*, tubelet: tuple[int, int, int] = (2, 4, 4), channels: int = 3, pool: str = "class") -> VideoViT:
    torch.manual_seed(3)
    shape = {"frames": 4, "size": 16, "width": 12, "depth": 2, "heads": 2}
    return VideoViT(tubelet=tubelet, channels=channels, pool=pool, **shape).eval()


def published(network: Recognizer) -> dict[str, torch.Tensor]:
    """Its own tensors, changed, in half precision and with a head: like a file."""
    torch.manual_seed(5)
    found = {
        k: (v + torch.rand_like(v.float())).half() for k, v in network.state_dict().items() if v.is_floating_point()
    }
    return found | {"fc.weight": torch.rand(7, network.width), "fc.bias": torch.rand(7)}


@pytest.mark.parametrize(
    "make",
    [lambda: tiny_resnet("basic"), lambda: tiny_resnet("bottleneck"), tiny_i3d_resnet, tiny_vit],
)
def test_tensors_of_a_file_arrive_under_their_names(make):
    network = make()
    file = published(network)
    load_published(network, file)
    for name, tensor in network.state_dict().items():
        if name in file:
            torch.testing.assert_close(tensor, file[name].float())


def test_the_first_kernel_of_caffe_is_turned_from_blue_first_to_red_first():
    network = tiny_resnet("bottleneck v1")
    file = published(network)
    load_published(network, file)
    torch.testing.assert_close(network.conv1.weight[:, 0], file["conv1.weight"][:, 2].float())


@pytest.mark.parametrize("make", [lambda n: tiny_resnet("basic", n), tiny_i3d_resnet, lambda n: tiny_vit(channels=n)])
def test_a_fourth_channel_changes_nothing_at_first_and_can_learn(make):
    three, four = make(3), make(4)
    file = published(three)
    load_published(three, file)
    load_published(four, file)
    clip = torch.rand(1, 4, 4, 16, 16)
    torch.testing.assert_close(four(clip), three(clip[:, :3]), rtol=1e-4, atol=1e-5)
    four(clip).square().sum().backward()
    first = four.conv1 if isinstance(four, ResNet | I3DResNet) else four.patch_embed.proj
    assert first.weight.grad[:, 3].any()


def of_pytorchvideo(network: I3DResNet) -> dict[str, torch.Tensor]:
    """A checkpoint in the naming of its hub's `i3d_r50`, every tensor a different one."""
    parts = {"downsample.0": "branch1_conv", "downsample.1": "branch1_norm"}
    for i, letter in enumerate("abc", 1):
        parts |= {f"conv{i}": f"branch2.conv_{letter}", f"bn{i}": f"branch2.norm_{letter}"}
    found = {"blocks.6.proj.weight": torch.rand(400, network.width), "blocks.6.proj.bias": torch.rand(400)}
    for name, tensor in network.state_dict().items():
        module, _, kind = name.rpartition(".")
        if module in ("conv1", "bn1"):
            place = {"conv1": "blocks.0.conv", "bn1": "blocks.0.norm"}[module]
        else:
            layer, block, part = module.split(".", 2)
            place = f"blocks.{(1, 3, 4, 5)[int(layer[-1]) - 1]}.res_blocks.{block}.{parts[part]}"
        found[f"{place}.{kind}"] = torch.rand(tensor.shape) if tensor.is_floating_point() else torch.tensor(7)
    return found


def test_a_checkpoint_of_pytorchvideo_arrives_tensor_by_tensor():
    network = tiny_i3d_resnet()
    file = of_pytorchvideo(network)
    load_published(network, file)
    for theirs, ours in {
        "blocks.0.conv": network.conv1,
        "blocks.0.norm": network.bn1,
        "blocks.1.res_blocks.0.branch1_conv": network.layer1[0].downsample[0],
        "blocks.1.res_blocks.0.branch1_norm": network.layer1[0].downsample[1],
        "blocks.3.res_blocks.1.branch2.conv_a": network.layer2[1].conv1,
        "blocks.4.res_blocks.0.branch2.norm_b": network.layer3[0].bn2,
        "blocks.5.res_blocks.0.branch2.conv_c": network.layer4[0].conv3,
    }.items():
        torch.testing.assert_close(ours.weight, file[f"{theirs}.weight"])
    torch.testing.assert_close(
        network.layer3[0].bn2.running_var, file["blocks.4.res_blocks.0.branch2.norm_b.running_var"]
    )
    assert network.bn1.num_batches_tracked == 7
    file["blocks.2.res_blocks.0.branch2.conv_a.weight"] = torch.rand(1)  # a pool has none
    with pytest.raises(WeightsError, match=r"has a strange blocks\.2\.res_blocks\.0"):
        load_published(network, file)


@pytest.mark.parametrize("v1", [False, True])
def test_weights_of_pictures_make_i3d_resnet_that_network_on_each_frame(v1):
    network = tiny_i3d_resnet(v1=v1)
    kind = "bottleneck v1" if v1 else "bottleneck"
    shape = {"widths": (4, 4, 4, 4), "depths": (1, 2, 1, 1)}
    means = {
        "mean": network.standardize.mean.flatten().tolist(),
        "deviation": network.standardize.deviation.flatten().tolist(),
    }
    pictures = ResNet(kind, **shape, **means).eval()
    file = published(pictures)
    load_published(pictures, file)
    load_published(network, file)
    picture = torch.rand(1, 3, 1, 32, 32)
    still = picture.expand(-1, -1, 6, -1, -1)
    with torch.no_grad():
        torch.testing.assert_close(network(still), pictures(picture), rtol=1e-4, atol=1e-5)
    network.train()(torch.rand(2, 3, 6, 32, 32)).square().sum().backward()
    assert network.layer1[0].conv1.weight.grad[:, :, 0].any()  # frames next to it can be learned


def test_weights_that_nobody_can_fetch_are_taken_from_the_folder_or_named_with_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_WEIGHTS", str(tmp_path))
    with pytest.raises(WeightsError, match=r"i3d_r50_kinetics400\.safetensors is missing from .*I3D_8x8_R50\.pyth"):
        build("i3d_r50", frames=8, size=64, pretrained=True)
    with pytest.raises(UsageError, match="it cannot be fetched"):
        lookup("i3d_r50")
    torch.manual_seed(1)
    file = of_pytorchvideo(build("i3d_r50", frames=8, size=64))
    save_file({name: tensor.half() for name, tensor in file.items()}, tmp_path / "i3d_r50_kinetics400.safetensors")
    network = build("i3d_r50", frames=8, size=64, pretrained=True)
    there = file["blocks.5.res_blocks.2.branch2.conv_c.weight"].half().float()
    torch.testing.assert_close(network.layer4[2].conv3.weight, there)
    first = describe("i3d_r50")
    save_file({name: tensor + 1 for name, tensor in file.items()}, tmp_path / "i3d_r50_kinetics400.safetensors")
    assert describe("i3d_r50") != first  # another start is another training


def test_a_picture_transformer_sees_in_a_still_video_what_it_saw_in_the_picture():
    pictures, video = tiny_vit(tubelet=(1, 4, 4)), tiny_vit()
    file = published(pictures)
    file["patch_embed.proj.weight"] = file["patch_embed.proj.weight"][:, :, 0]  # (D, C, p, p), as in a picture's file
    del file["time_embed"]
    load_published(video, file)
    picture = torch.rand(1, 3, 1, 16, 16)
    embedded = F.conv2d((picture[:, :, 0] - video.standardize.mean[:, :, 0]) / video.standardize.deviation[:, :, 0],
                        file["patch_embed.proj.weight"].float(), file["patch_embed.proj.bias"].float(), 4)  # fmt: skip
    still = video.patch_embed(video.standardize(picture.expand(-1, -1, 4, -1, -1)))  # (1, 2, 16, D)
    for time in range(2):
        torch.testing.assert_close(still[:, time], embedded.flatten(2).transpose(1, 2), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(video.pos_embed, file["pos_embed"].float())
    assert not video.time_embed.any()


def test_an_enlarged_patch_is_embedded_like_the_patch():
    kernel, patch = torch.randn(5, 3, 14, 14), torch.rand(2, 3, 14, 14)
    large = F.interpolate(patch, (16, 16), mode="bicubic", antialias=True)
    after = F.conv2d(large, resample_kernel(kernel, (16, 16)))
    torch.testing.assert_close(after, F.conv2d(patch, kernel), rtol=1e-3, atol=1e-3)


def test_places_are_resampled_as_a_picture_and_the_class_token_stays():
    ramp = torch.linspace(0, 1, 8).repeat(8, 1)  # grows along a row
    places = torch.cat([torch.full((1, 1, 1), 9.0), ramp.reshape(1, 64, 1)], 1)
    small = resample_places(places, 4, token=True)
    assert small.shape == (1, 17, 1)
    assert small[0, 0, 0] == 9
    rows = small[0, 1:, 0].view(4, 4)
    torch.testing.assert_close(rows, rows[:1].expand(4, -1))  # the same in every row
    assert (rows.diff(dim=1) > 0.2).all()
    assert resample_places(places, 4, token=False).shape == (1, 16, 1)
    torch.testing.assert_close(resample_places(places, 8, token=True), places)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: f.pop("bn1.bias"), "lacks bn1.bias"),
        (lambda f: f.update(other=torch.zeros(1)), "has a strange other"),
        (lambda f: f.update({"bn1.bias": torch.zeros(9)}), "has another shape of bn1.bias"),
        (lambda f: f.clear(), "lacks .* more"),
    ],
)
def test_a_file_of_another_network_is_refused_by_name(change, says):
    network = tiny_resnet("basic")
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    file = published(network)
    change(file)
    with pytest.raises(WeightsError, match=says):
        load_published(network, file)
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(tensor, before[name])  # nothing half loaded


def test_a_file_that_is_no_safetensors_is_one_line(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(WeightsError, match="no readable safetensors"):
        read_tensors(tmp_path / "a.safetensors")


def test_fresh_networks_of_the_same_seed_are_the_same():
    states = []
    for _ in range(2):
        torch.manual_seed(4)
        states.append(nn.utils.parameters_to_vector(tiny_vit().parameters()))
    torch.testing.assert_close(*states, rtol=0, atol=0)
