"""Whole-frame methods: what they take away, on planes and on clips alike."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vidveil import load
from vidveil.core.errors import UsageError
from vidveil.core.frame import Frame

HIDING = ("blur:weak", "blur:strong", "pixelate:8", "downsample:2", "downsample:4", "solid")


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def painted(spec: str, plane: np.ndarray, shrink: int = 1) -> np.ndarray:
    target = np.full_like(plane, 77)
    load(spec).paint(plane, target, shrink)
    return target


@pytest.mark.parametrize("spec", HIDING)
@given(width=st.integers(1, 70), height=st.integers(1, 70), shrink=st.sampled_from([1, 2]))
@settings(max_examples=60, deadline=None)
def test_every_pixel_is_painted_whatever_the_size(spec, width, height, shrink):
    plane = np.full((height, width), 200, np.uint8)
    result = painted(spec, plane, shrink)
    assert np.all(result == (0 if spec == "solid" else 200))


@pytest.mark.parametrize("spec", HIDING)
def test_a_target_inside_a_larger_picture_is_filled_and_nothing_else(spec):
    canvas = np.full((60, 80), 7, np.uint8)
    load(spec).paint(noise(40, 50), canvas[:40, :50], 1)
    assert np.all(canvas[40:] == 7)
    assert np.all(canvas[:, 50:] == 7)


def test_blur_is_the_gaussian_that_it_says():
    side = 256
    plane = np.zeros((side, side), np.uint8)
    plane[:, side // 2 :] = 200  # an edge: its blurred profile is the Gaussian's integral
    for spec, share in (("blur:weak", 1 / 32), ("blur:strong", 1 / 16), ("blur:8", 1 / 8)):
        sigma = share * side
        x = np.arange(side) - side / 2 + 0.5
        wanted = 200 * np.array([0.5 * (1 + math.erf(v / sigma / math.sqrt(2))) for v in x])
        assert np.abs(painted(spec, plane)[side // 2] - wanted).max() < 4


def test_blur_is_relative_to_the_size_of_the_frame():
    small = noise(64, 64)
    large = np.kron(small, np.ones((4, 4), np.uint8))
    shrunk = painted("blur:strong", large).reshape(64, 4, 64, 4).mean((1, 3))
    inside = np.s_[8:-8, 8:-8]
    assert np.abs(shrunk - painted("blur:strong", small))[inside].max() < 5


def test_pixelate_leaves_one_value_a_block():
    result = painted("pixelate:8", noise(64, 96))
    blocks = result.reshape(8, 8, 12, 8)
    assert np.all(blocks == blocks[:, :1, :, :1])
    assert len(np.unique(result)) > 20


def test_pixelate_has_whole_blocks_up_to_an_uneven_edge():
    result = painted("pixelate:8", noise(61, 93))
    for y, x in ((0, 0), (8, 16), (56, 88)):
        assert np.ptp(result[y : y + 8, x : x + 8]) == 0
    assert result[8, 8] != result[8, 16]


def test_pixelate_has_the_same_blocks_in_colour_as_in_brightness():
    chroma = painted("pixelate:8", noise(32, 48), shrink=2)
    blocks = chroma.reshape(8, 4, 12, 4)
    assert np.all(blocks == blocks[:, :1, :, :1])


def test_downsample_keeps_means_and_nothing_finer():
    plane = noise(64, 64)
    result = painted("downsample:4", plane)
    means = plane.reshape(16, 4, 16, 4).mean((1, 3))
    assert abs(result.mean() - plane.mean()) < 1
    checker = (np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8)
    assert np.ptp(painted("downsample:2", checker)) <= 2
    assert np.corrcoef(result.reshape(16, 4, 16, 4).mean((1, 3)).ravel(), means.ravel())[0, 1] > 0.9


@pytest.mark.parametrize("spec", [*HIDING, "stride:3", "blur:weak | stride:2"])
def test_a_clip_keeps_its_size_and_its_range(spec):
    clip = torch.from_numpy(noise(3, 7, 33, 45).astype(np.float32) / 255)
    result = load(spec).anonymize(clip).video
    assert result.shape == clip.shape
    assert result.dtype == clip.dtype
    assert 0 <= result.min() <= result.max() <= 1


@pytest.mark.parametrize("spec", [*HIDING, "stride:3"])
def test_clips_are_treated_alone_and_always_the_same(spec):
    method = load(spec)
    clips = [torch.from_numpy(noise(3, 4, 32, 32, seed=s).astype(np.float32) / 255) for s in range(3)]
    alone = [method.anonymize(clip).video for clip in clips]
    again = [load(spec).anonymize(clip).video for clip in reversed(clips)][::-1]
    assert all(torch.equal(a, b) for a, b in zip(alone, again, strict=True))


def test_a_transposed_view_of_a_clip_is_fine():
    clip = torch.rand(4, 30, 40, 3).permute(3, 0, 1, 2)
    assert torch.equal(load("blur").anonymize(clip).video, load("blur").anonymize(clip.contiguous()).video)


def test_stride_holds_each_kept_frame():
    clip = torch.arange(7).float().div(10).view(1, 7, 1, 1).expand(3, 7, 2, 2)
    result = load("stride:3").anonymize(clip).video
    assert torch.allclose(result[0, :, 0, 0] * 10, torch.tensor([0.0, 0, 0, 3, 3, 3, 6]))


@pytest.mark.parametrize("spec", ["blur", "stride:2", "blur | stride:2"])
def test_knobs_of_learned_methods_are_refused(spec):
    with pytest.raises(UsageError, match="are settings of learned methods"):
        load(spec).anonymize(torch.zeros(3, 4, 8, 8), keep=0.5)


@pytest.mark.parametrize("shape", [(4, 3, 8, 8), (3, 8, 8), (1, 3, 4, 8, 8)])
def test_what_is_no_clip_is_refused(shape):
    with pytest.raises(ValueError, match="a clip is a float tensor"):
        load("blur").anonymize(torch.zeros(shape))


def test_what_is_no_tensor_or_out_of_range_is_refused():
    for wrong in (np.zeros((3, 4, 8, 8), np.float32), "clip.mp4", torch.full((3, 4, 8, 8), 255.0)):
        with pytest.raises(ValueError, match="a clip is a float tensor"):
            load("blur").anonymize(wrong)


def test_a_frame_without_a_picture_comes_out_black_from_every_method():
    for spec in (*HIDING, "stride:1", "blur | stride:1"):
        lost = Frame(index=0, pts=0, duration=1, width=64, height=48, lost="could not be decoded")
        (safe,) = load(spec).stream([lost])
        assert safe.hidden == "could not be decoded"
        assert np.all(safe.planes[0] == 16)
        assert np.all(safe.planes[1] == 128)
