"""Pictures out of features: they are recovered where features hold them, and from noise nothing is; no test video takes
part in training."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from skimage.metrics import structural_similarity

from tests.evaluation.toy import FRAMES, Arrays, toy
from vidveil.core.errors import DataError, OutputError
from vidveil.data.features.labels import FeatureRows
from vidveil.data.features.sets import on_device
from vidveil.data.store.features import fill
from vidveil.evaluation.attacks.reconstruction import (
    LEAST_ERROR,
    SIDE,
    Decoder,
    decoder,
    numbers_of,
    pictures,
    psnr,
    reconstructed,
    ssim,
)
from vidveil.evaluation.attacks.reconstruction_sheet import sheet
from vidveil.evaluation.measures.measure import Measure
from vidveil.statistics.tradeoff import excess

D, A_CLIP, CLIPS = 32, 2, FRAMES // 2
"""Length of a feature; frames a clip; clips a video."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Features that are the picture, seen from a few directions."""
    labels = toy(people=(10, 4, 6), clips=6)
    width = {"spec": "made", "width": D, "frames": A_CLIP, "fingerprint": "made"}
    empty = [{"clips": np.zeros((CLIPS, D), np.float32)} for _ in range(len(labels))]
    about = {"encoder": width, "clips": {"stride": 1}}
    store = fill(
        tmp_path_factory.mktemp("features") / "store", about, labels.ids, lambda rows: [empty[i] for i in rows]
    )
    blank = replace(on_device(labels.with_videos(FeatureRows(store)), store, "cpu"), pixels=labels.videos)
    directions = torch.randn(3 * SIDE**2, D, generator=torch.manual_seed(0))
    return with_features(blank, 5 + pictures(blank).flatten(1) @ directions)


def with_features(data, features):
    return replace(data, clips=replace(data.clips, all=features))


def noise_of(data, seed=0):
    return with_features(data, torch.randn(len(data.clips.all), D, generator=torch.manual_seed(seed)))


@pytest.fixture(scope="module")
def wanted(data):
    return pictures(data)


@pytest.fixture(scope="module")
def back(data, wanted):
    return reconstructed(data, wanted, seed=0, epochs=12)


@pytest.fixture(scope="module")
def of_noise(data, wanted):
    return reconstructed(noise_of(data), wanted, seed=0, epochs=12)


@pytest.fixture(scope="module")
def measure(data):
    return Measure(data.labels, permutations=50, resamples=50)


def test_pictures_are_the_middle_frames_of_clips_in_the_order_of_their_features(data):
    wide = np.zeros((2, FRAMES, SIDE, SIDE + 8, 3), np.uint8)
    wide[0] = 10 * np.arange(FRAMES)[:, None, None, None]
    wide[1, ..., 0] = 255
    wide[:, :, :, :4] = wide[:, :, :, -4:] = 77  # next to the middle square
    videos = np.concatenate([wide] * (len(data.labels) // 2))
    found = pictures(replace(data, pixels=Arrays(videos)))
    assert found.shape == (CLIPS * len(data.labels), 3, SIDE, SIDE)
    for clip, frame in ((0, 1), (1, 3)):
        torch.testing.assert_close(found[clip], torch.full((3, SIDE, SIDE), 10 * frame / 255))
    assert found[2:4, 0].min() > 0.999
    assert found[2:4, 1:].max() == 0


def test_features_without_their_videos_are_refused_in_one_line(data):
    with pytest.raises(DataError, match="reconstruction needs the videos, and these are features alone: /") as e:
        pictures(replace(data, pixels=None))
    assert "\n" not in str(e.value)


def test_videos_that_do_not_have_as_many_clips_as_their_features_are_refused(data):
    longer = Arrays(np.zeros((len(data.labels), 3 * FRAMES, 8, 8, 3), np.uint8))
    with pytest.raises(DataError, match="has 2 clips of features, but 6 in its video"):
        pictures(replace(data, pixels=longer))


def test_pictures_are_recovered_from_features_that_hold_them(back):
    assert back.psnr.mean() > back.floor_psnr.mean() + 3
    assert back.ssim.mean() > back.floor_ssim.mean() + 0.05
    assert (back.psnr > back.floor_psnr).mean() > 0.9
    assert back.pictures.shape == (36, 3, SIDE, SIDE)
    assert back.pictures.min() >= 0
    assert back.pictures.max() <= 1


def test_convolutions_see_what_no_straight_line_does(data, wanted):
    """Features that only hold how far the picture is from the usual one, either way."""
    bright = (torch.arange(len(wanted)) // CLIPS % 2).float()
    square = torch.zeros(SIDE, SIDE)
    square[8:24, 8:24] = 1
    target = (0.2 + 0.6 * bright[:, None, None] * square).expand(3, -1, -1, -1).transpose(0, 1).contiguous()
    side = torch.randint(2, (len(wanted), 1), generator=torch.manual_seed(0)) * 2.0 - 1
    features = bright[:, None] * side * torch.ones(D)
    found = reconstructed(with_features(data, features), target, seed=0, epochs=40)
    assert found.psnr.mean() > found.floor_psnr.mean() + 6


def test_of_noise_nothing_but_the_mean_picture_is_recovered(of_noise, wanted, data):
    np.testing.assert_allclose(of_noise.psnr.mean(), of_noise.floor_psnr.mean(), atol=0.15)
    train = torch.from_numpy(np.repeat(data.labels.split == "train", CLIPS))
    usual = wanted[train].mean(0)
    assert (of_noise.pictures - usual).abs().mean() < 0.02


def test_no_test_video_changes_the_decoder(data, wanted):
    test = torch.from_numpy(np.repeat(data.labels.split == "test", CLIPS))
    other = with_features(data, torch.where(test[:, None], 9.0, data.clips.all))
    changed = torch.where(test[:, None, None, None], 0.0, wanted)
    one, two = decoder(data, wanted, seed=1, epochs=2), decoder(other, changed, seed=1, epochs=2)
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True))


def test_validation_chooses_and_does_not_train(data, wanted):
    """Where validation videos show the mean picture, nothing is better than that, whatever was learned."""
    split = np.repeat(data.labels.split, CLIPS)
    usual = wanted[torch.from_numpy(split == "train")].mean(0)
    target = torch.where(torch.from_numpy(split == "val")[:, None, None, None], usual, wanted)
    found = decoder(data, target, seed=0, epochs=3).decode(data.clips.all)
    torch.testing.assert_close(found, usual.expand_as(found), atol=2e-3, rtol=0)


def test_the_same_seed_gives_the_same_decoder_and_the_callers_draws_go_on(data, wanted):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    one, same, other = (decoder(data, wanted, seed=seed, epochs=1) for seed in (0, 0, 1))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(one.coarse.weight, same.coarse.weight)
    assert not torch.equal(one.coarse.weight, other.coarse.weight)


@pytest.mark.parametrize("width", [8, 256, 1024])
def test_a_decoder_is_small_however_long_features_are(width):
    network = Decoder(torch.randn(4, width), torch.full((3, SIDE, SIDE), 0.5))
    assert sum(weights.numel() for weights in network.parameters()) < 600_000
    assert network.decode(torch.randn(5, width)).shape == (5, 3, SIDE, SIDE)


def test_ssim_is_that_of_scikit_image():
    rng = np.random.default_rng(0)
    a = cv2.GaussianBlur(rng.random((6, SIDE, SIDE, 3)).reshape(-1, SIDE, 3), (5, 5), 1).reshape(6, SIDE, SIDE, 3)
    b = np.clip(a + rng.normal(size=a.shape) * np.array([0, 0.01, 0.1, 0.3, 1, 9])[:, None, None, None], 0, 1)
    ours = ssim(*(torch.from_numpy(x).permute(0, 3, 1, 2) for x in (a, b)))
    theirs = [structural_similarity(x, y, win_size=7, data_range=1, channel_axis=-1) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-9)
    assert ours[0] == 1


def test_psnr_is_in_decibel_and_ends_where_rounding_does():
    a = torch.full((2, 3, 4, 4), 0.5)
    b = a.clone()
    b[0] += 0.1
    np.testing.assert_allclose(psnr(a, b).numpy(), [20, -10 * np.log10(LEAST_ERROR)], rtol=1e-5)


def test_numbers_are_compared_with_those_of_raw_features_on_the_same_people(measure, back, of_noise):
    raw, after = numbers_of(measure, [back, back]), numbers_of(measure, [of_noise, of_noise])
    assert set(raw) == {"reconstruction_psnr", "reconstruction_ssim", "reconstruction_rank1"}
    for name, number in raw.items():
        assert number.kind == "leakage"
        assert number.per_clip.shape == (2, 36)
        assert number.measured.value.value > number.measured.floor
        share = excess(after[name].measured, number.measured, name).estimate
        assert share is not None, name
        assert share.value < 0.3
        assert excess(number.measured, number.measured, name).estimate.value == pytest.approx(1)
    assert raw["reconstruction_psnr"].measured.value.value == pytest.approx(back.psnr.mean())
    assert raw["reconstruction_psnr"].measured.floor == pytest.approx(back.floor_psnr.mean())
    assert raw["reconstruction_rank1"].measured_by in ("pixels, cosine", "pixels, LDA")
    assert set(raw["reconstruction_rank1"].others) == {"pixels, cosine", "pixels, LDA"}


def test_nobody_is_looked_for_where_nobody_is_named(data, back):
    strangers = replace(data.labels, person=np.full(len(data.labels), -1))
    found = numbers_of(Measure(strangers, permutations=5, resamples=5), [back])
    assert set(found) == {"reconstruction_psnr", "reconstruction_ssim"}


def test_a_sheet_shows_what_was_filmed_above_what_was_recovered_and_is_the_same_each_time(
    data, back, of_noise, tmp_path
):
    columns = {"from raw features": back.pictures, "from anonymized features": of_noise.pictures}
    for name in ("one.png", "two.png"):
        sheet(data, columns, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    height, width, _ = cv2.imread(str(tmp_path / "one.png")).shape
    assert 400 < height < width < 2500
    sheet(data, {"from raw features": of_noise.pictures}, tmp_path / "less.png")
    assert cv2.imread(str(tmp_path / "less.png")).shape[0] < height


def test_a_sheet_that_cannot_be_written_is_one_line(data, back, tmp_path):
    with pytest.raises(OutputError, match="cannot be written: No such file"):
        sheet(data, {"from raw features": back.pictures}, tmp_path / "nowhere" / "sheet.png")
