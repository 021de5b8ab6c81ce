"""The published weights do in our networks what they were published for. Skipped where nobody has fetched them."""

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from vidveil.data.decode import decode
from vidveil.models.recognizers import build
from vidveil.models.recognizers.pretrained import load_published
from vidveil.models.recognizers.vit import VideoViT
from vidveil.weights import WEIGHTS, state, weights
from vidveil.weights.tensors import read_tensors

KINETICS = {"JugglingBalls": 169, "Lunges": 183}  # numbers of `juggling balls` and `lunge`
CATS = range(281, 286)  # ImageNet's tabby to Egyptian cat


def tensors_of(name: str) -> dict[str, torch.Tensor]:
    if state(name) != "present":
        pytest.skip(f"{WEIGHTS[name].file} is not here: vidveil fetch {name}")
    return read_tensors(weights(name))


def square(picture: np.ndarray, size: int = 224) -> np.ndarray:
    height, width = picture.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return cv2.resize(picture[top : top + side, left : left + side], (size, size), interpolation=cv2.INTER_AREA)


def clip_of(pictures: list[np.ndarray]) -> torch.Tensor:
    return torch.from_numpy(np.stack(pictures)).permute(3, 0, 1, 2)[None].float() / 255  # (1, 3, T, H, W)


@pytest.mark.parametrize("action", KINETICS)
def test_i3d_names_the_action_of_a_real_clip(action):
    tensors = tensors_of("i3d")
    folder = Path(os.environ.get("VIDVEIL_DATA", "")) / "ucf101_5" / action
    if not os.environ.get("VIDVEIL_DATA") or not folder.is_dir():
        pytest.skip("VIDVEIL_DATA names no folder that has ucf101_5")
    frames = decode(sorted(folder.iterdir())[3], limit=32)  # at 12.5 frames a second
    network = build("i3d", frames=32, size=224, pretrained=True).eval()
    with torch.no_grad():
        features = network(clip_of([square(frame) for frame in frames]))
        kernel = tensors["Logits.Conv3d_0c_1x1.conv3d.weight"].float().flatten(1)  # (400, 1024)
        logits = features @ kernel.T + tensors["Logits.Conv3d_0c_1x1.conv3d.bias"]
    assert logits.argmax().item() == KINETICS[action]


def test_resnet50_sees_that_a_cat_is_a_cat():
    tensors = tensors_of("resnet50")
    data = pytest.importorskip("skimage.data", reason="scikit-image has the cat: pip install -e '.[dev]'")
    network = build("resnet50", frames=1, size=224, pretrained=True).eval()
    with torch.no_grad():
        logits = network(clip_of([square(data.chelsea())])) @ tensors["fc.weight"].float().T + tensors["fc.bias"]
    assert logits.argmax().item() in CATS
    assert logits.softmax(1)[0, list(CATS)].sum() > 0.9


def test_i3d_resnet_sees_in_a_still_clip_what_resnet50_sees_in_the_picture():
    tensors_of("resnet50")
    pictures = build("resnet50", frames=1, size=64, pretrained=True).eval()
    video = build("i3d_r50_v1", frames=8, size=64, pretrained=True).eval()
    picture = torch.rand(1, 3, 1, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(video(picture.expand(-1, -1, 8, -1, -1)), pictures(picture), rtol=1e-3, atol=1e-4)


def test_a_mask_next_to_the_pictures_changes_nothing_at_first():
    tensors_of("i3d")
    three, four = (build("i3d", frames=8, size=64, channels=n, pretrained=True).eval() for n in (3, 4))
    clip = torch.rand(1, 4, 8, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(four(clip), three(clip[:, :3]), rtol=1e-3, atol=1e-4)


def test_a_still_video_is_to_the_video_transformer_what_its_picture_was():
    tensors = tensors_of("vits14")
    shape = {"size": 64, "width": 384, "depth": 12, "heads": 6}
    video = VideoViT(frames=2, tubelet=(2, 16, 16), **shape).eval()
    picture = VideoViT(frames=1, tubelet=(1, 16, 16), **shape).eval()
    load_published(video, tensors)
    load_published(picture, tensors)
    clip = torch.rand(1, 3, 1, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(video(clip.expand(-1, -1, 2, -1, -1)), picture(clip), rtol=1e-3, atol=1e-3)
