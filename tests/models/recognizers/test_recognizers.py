"""What every recognizer must do."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from vidveil.core.errors import UsageError
from vidveil.models.recognizers import RECOGNIZERS, build
from vidveil.models.recognizers.recognizer import Classifier, Recognizer

FRAMES = 8
HEAVY = ["vit_b", "vit_l", "vit_h"]  # gigabytes; the same code as vit_s, see test_networks
PIXELS = [name for name in RECOGNIZERS if name not in ("mlp", *HEAVY)]
PER_FRAME = ["resnet_tiny", "resnet18", "resnet50", "resnet50_v15"]
SMALL = ["r3d_tiny", "resnet_tiny", "vit_mini"]
SIZES = dict.fromkeys(PIXELS, 32) | dict.fromkeys(SMALL, 64)


def small(name: str, channels: int = 3) -> Recognizer:
    torch.manual_seed(0)
    return build(name, frames=FRAMES, size=SIZES[name], channels=channels).eval()


def clip_for(name: str, channels: int = 3, count: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    size = SIZES[name]
    return torch.rand(count, channels, FRAMES, size, size, generator=generator)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("name", PIXELS)
def test_a_clip_becomes_a_vector_of_the_promised_width(name, channels):
    network = small(name, channels)
    with torch.no_grad():
        found = network.features(clip_for(name, channels, count=2))
    assert found.shape == (2, network.width)
    assert found.isfinite().all()


@pytest.mark.parametrize("name", SMALL)
def test_clips_of_a_batch_do_not_see_each_other(name):
    network, clips = small(name), clip_for(name, count=3)
    with torch.no_grad():
        torch.testing.assert_close(network(clips)[1:2], network(clips[1:2]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", PIXELS)
def test_gradients_reach_every_parameter(name):
    network = small(name).train()
    model = Classifier(network, {"action": 3})
    clips = clip_for(name, count=2)
    model(clips)["action"].square().sum().backward()
    silent = [name for name, weights in model.named_parameters() if weights.grad is None or not weights.grad.any()]
    # A bias right before a normalisation is taken away again; and a network on two clips of 32 × 32 may be left with
    # one pixel a channel, which the ReLU can silence.
    assert [name for name in silent if not name.endswith("bias")] == []


@pytest.mark.parametrize("name", PER_FRAME)
def test_a_network_on_frames_ignores_their_order(name):
    network, clip = small(name), clip_for(name)
    with torch.no_grad():
        torch.testing.assert_close(network(clip), network(clip.flip(2)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in PIXELS if name not in PER_FRAME])
def test_a_network_on_clips_depends_on_their_order(name):
    network, clip = small(name), clip_for(name)
    if hasattr(network, "time_embed"):  # starts so small that order hardly matters before training
        nn.init.normal_(network.time_embed)
    with torch.no_grad():
        assert (network(clip) - network(clip.flip(2))).abs().max() > 1e-3 * network(clip).abs().max()


@pytest.mark.parametrize("name", SMALL)
def test_the_layout_in_memory_does_not_change_the_result(name):
    network, clip = small(name), clip_for(name, count=2)
    with torch.no_grad():
        strided = network(clip.contiguous(memory_format=torch.channels_last_3d))
        torch.testing.assert_close(network(clip), strided, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_half_precision_gives_about_the_same(name):
    network, clip = small(name), clip_for(name)
    with torch.no_grad():
        exact = network(clip)
        with torch.autocast("cpu", torch.bfloat16):
            half = network(clip).float()
    assert torch.nn.functional.cosine_similarity(exact, half).item() > 0.99


def test_the_network_on_features_takes_vectors():
    network = build("mlp", frames=0, size=0, channels=40)
    assert network.features(torch.rand(5, 40)).shape == (5, network.width)


def test_a_classifier_has_a_head_for_each_output():
    model = Classifier(small("resnet_tiny"), {"action": 10, "identity": 7}, dropout=0.5).eval()
    clip = clip_for("resnet_tiny", count=2)
    with torch.no_grad():
        out = model(clip)
        assert {name: tuple(logits.shape) for name, logits in out.items()} == {"action": (2, 10), "identity": (2, 7)}
        torch.testing.assert_close(out["identity"], model.heads["identity"](model.features(clip)))


def test_a_head_on_mean_features_gives_the_mean_of_logits_over_frames():
    model = Classifier(small("resnet_tiny"), {"action": 4}).eval()
    clip = clip_for("resnet_tiny")
    with torch.no_grad():
        single = [model(clip[:, :, t : t + 1])["action"] for t in range(FRAMES)]
        torch.testing.assert_close(model(clip)["action"], torch.stack(single).mean(0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_a_small_network_learns_a_few_clips_by_heart(name):
    network = small(name).train()
    model = Classifier(network, {"action": 4})
    clips, labels = clip_for(name, count=8), torch.arange(8) % 4
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(clips)["action"], labels)
        if loss.item() < 0.5:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.5


def test_an_unknown_name_comes_with_a_suggestion():
    with pytest.raises(UsageError, match="did you mean r3d_tiny"):
        build("r3d_tny", frames=8, size=64)
    with pytest.raises(UsageError, match="there are r3d_tiny, resnet_tiny"):
        build("zzz", frames=8, size=64)


def test_without_published_weights_the_error_lists_networks_that_have_them():
    with pytest.raises(UsageError, match=r"r3d_tiny has no published weights.*i3d, i3d_r50, .*resnet50, vit_s"):
        build("r3d_tiny", frames=8, size=64, pretrained=True)


def test_listing_the_names_loads_no_network():
    code = "import sys, vidveil.models.recognizers as r; print(len(r.RECOGNIZERS), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(RECOGNIZERS)), "False"]


def test_the_table_of_the_docs_has_every_name():
    page = (Path(__file__).parents[3] / "docs" / "recognizers.md").read_text()
    named = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert named == [*RECOGNIZERS]
