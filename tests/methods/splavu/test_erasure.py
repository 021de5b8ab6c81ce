"""What still clips predict is gone from moving ones, and what separates the classes of the task is left."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.core.errors import DataError
from vidveil.methods.splavu.erasure import class_directions, covariance, erasing, means_of, roots

D, STATIC, CLASSES = 16, 4, 3
REST = D - (CLASSES - 1)
"""Directions that do not separate classes."""
ENOUGH = STATIC / REST
"""The share that loses as many as still clips have."""


def world(clips: int = 3000, seed: int = 0, width: int = D) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Clips and still clips (n, D), classes (n,), and what both share (n, STATIC), all mixed up."""
    draws = torch.Generator().manual_seed(seed)
    mix = torch.randn(width, width, generator=torch.Generator().manual_seed(77))
    shared = torch.randn(clips, STATIC, generator=draws)
    classes = torch.arange(clips) % CLASSES
    motion = torch.randn(clips, width - STATIC, generator=draws)
    motion[:, :CLASSES] += 3 * F.one_hot(classes, CLASSES)
    jitter = 0.05 * torch.randn(clips, width, generator=draws)
    still = F.pad(shared, (0, width - STATIC)) + jitter
    return torch.cat([shared, motion], 1) @ mix + 5, still @ mix - 2, classes, shared


def left(mean: Tensor, kept: Tensor, z: Tensor) -> Tensor:
    return mean + (z.double() - mean) @ kept


def predictable(known: Tensor, wanted: Tensor, other_known: Tensor, other: Tensor, **cut: float) -> float:
    """R² of least squares on clips that it was not fitted to, the best of all columns."""
    a, b = (np.c_[one.double().numpy(), np.ones(len(one))] for one in (known, other_known))
    weights = np.linalg.lstsq(a, wanted.numpy(), **{"rcond": 1e-6} | cut)[0]
    errors = ((b @ weights - other.numpy()) ** 2).sum(0)
    return float((1 - errors / ((other - wanted.mean(0)).numpy() ** 2).sum(0)).max())


def class_means(z: Tensor, classes: Tensor) -> Tensor:
    return torch.stack([z[classes == number].mean(0) for number in range(CLASSES)])


def test_what_still_clips_predict_cannot_be_predicted_from_other_clips_any_more():
    (z, y, classes, shared), (other, _, _, others) = world(), world(seed=1)
    assert predictable(z, shared, other, others) > 0.95
    mean, kept = erasing(z, y, classes, ENOUGH, ridge=0.0)
    assert predictable(left(mean, kept, z), shared, left(mean, kept, other), others) < 0.01


def test_nor_from_their_last_bits():
    """In 32 bits the map would leave a ten-millionth of it, where nothing else is: see `erasing`."""
    (z, y, classes, shared), (other, _, _, others) = world(), world(seed=1)
    mean, kept = erasing(z, y, classes, ENOUGH, ridge=0.0)
    stored = [left(mean, kept, one).float() for one in (z, other)]
    assert predictable(stored[0], shared, stored[1], others, rcond=0.0) < 0.01
    rounded = [left(mean.float(), kept.float().double(), one) for one in (z, other)]
    assert predictable(rounded[0], shared, rounded[1], others, rcond=0.0) > 0.9  # the test can see it


@pytest.mark.parametrize("share", [ENOUGH, 0.7, 1.0])
def test_classes_stay_as_far_apart_as_they_were(share):
    z, y, classes, _ = world()
    mean, kept = erasing(z, y, classes, share)
    whiten, _ = roots(covariance(z.double() - mean))
    before, after = (class_means((one - mean) @ whiten, classes) for one in (z.double(), left(mean, kept, z)))
    assert (before[0] - before[1]).norm() > 1
    torch.testing.assert_close(after, before, atol=1e-4, rtol=0)


@pytest.mark.parametrize("share", [0.0, 0.01, ENOUGH, 0.5, 1.0])
def test_it_is_a_projection_that_loses_as_many_directions_as_it_was_asked_to(share):
    z, y, classes, _ = world()
    _, kept = erasing(z, y, classes, share)
    torch.testing.assert_close(kept @ kept, kept, atol=1e-9, rtol=0)
    assert int(torch.linalg.matrix_rank(kept, tol=1e-6)) == D - round(share * REST)
    if round(share * REST) == 0:
        torch.testing.assert_close(kept, torch.eye(D, dtype=kept.dtype), atol=1e-9, rtol=0)


def test_all_of_it_leaves_what_separates_classes_and_nothing_else():
    z, y, classes, _ = world()
    mean, kept = erasing(z, y, classes, 1.0)
    whiten, _ = roots(covariance(z.double() - mean))
    kept_on_purpose = class_directions(means_of((z.double() - mean) @ whiten, classes))
    assert kept_on_purpose.shape == (D, CLASSES - 1)
    torch.testing.assert_close(whiten.inverse() @ kept @ whiten, kept_on_purpose @ kept_on_purpose.T, atol=1e-6, rtol=0)


@pytest.mark.parametrize("classes", [None, torch.full((3000,), -1)])
def test_without_classes_nothing_is_kept_on_purpose(classes):
    z, y, _, shared = world()
    mean, kept = erasing(z, y, classes, 1.0)
    assert kept.abs().max() < 1e-9
    torch.testing.assert_close(left(mean, kept, z), mean.expand(len(z), -1))
    mean, kept = erasing(z, y, classes, STATIC / D, ridge=0.0)
    other, _, _, others = world(seed=1)
    assert predictable(left(mean, kept, z), shared, left(mean, kept, other), others) < 0.01
    assert int(torch.linalg.matrix_rank(kept, tol=1e-6)) == D - STATIC


def test_clips_of_unknown_class_do_not_count_as_a_class():
    z, y, classes, _ = world()
    some = torch.where(torch.arange(len(z)) % 4 == 0, -1, classes)
    mean, kept = erasing(z, y, some, 1.0)
    assert int(torch.linalg.matrix_rank(kept, tol=1e-6)) == CLASSES - 1
    known = class_means(z.double(), some)
    torch.testing.assert_close((known[0] - known[1]) @ kept, known[0] - known[1], atol=1e-8, rtol=0)
    assert torch.isfinite(mean).all()


def test_a_single_class_separates_nothing():
    z, y, _, _ = world(200)
    _, kept = erasing(z, y, torch.zeros(200, dtype=torch.int64), 1.0)
    assert kept.abs().max() < 1e-9


def test_more_classes_than_directions_leave_nothing_to_lose():
    z, y, _, _ = world(400)
    _, kept = erasing(z, y, torch.arange(400) % 40, 1.0)
    torch.testing.assert_close(kept, torch.eye(D, dtype=kept.dtype), atol=1e-9, rtol=0)


@pytest.mark.parametrize("videos", [2, 5])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_classes_are_kept_where_few_videos_order_only_few_directions(videos, share):
    """Beyond what still clips have at all, any direction would do, but for those of classes."""
    z, y, classes, _ = world(600)
    mean, kept = erasing(z, y[:videos].repeat(600 // videos, 1), classes, share)
    means = class_means(z.double() - mean, classes)
    torch.testing.assert_close(means @ kept, means, atol=1e-8, rtol=0)
    assert int(torch.linalg.matrix_rank(kept, tol=1e-6)) == D - round(share * REST)


@pytest.mark.parametrize("clips", [2, 6, 15])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_fewer_clips_than_channels_give_finite_numbers_and_a_projection(clips, share):
    z, y, classes, _ = world(clips)
    mean, kept = erasing(z, y, classes, share)
    assert torch.isfinite(mean).all()
    assert torch.isfinite(kept).all()
    torch.testing.assert_close(kept @ kept, kept, atol=1e-6, rtol=0)


@pytest.mark.parametrize("which", ["clips", "static"])
def test_features_that_are_all_alike_do_no_harm(which):
    z, y, classes, _ = world(30)
    mean, kept = erasing(*((z * 0 + 1, y) if which == "clips" else (z, y * 0)), classes, 0.5)
    assert torch.isfinite(mean).all()
    assert torch.isfinite(kept).all()


@pytest.mark.parametrize("with_classes", [True, False])
def test_it_is_what_its_equations_say(with_classes):
    """In numpy."""
    z, y, classes, _ = (one.numpy() for one in world(200))
    share, count = 0.4, round(0.4 * (REST if with_classes else D))

    def root(matrix, power):
        values, axes = np.linalg.eigh(matrix)
        return axes @ np.diag(values**power) @ axes.T

    middle, still = z.astype(np.float64).mean(0), y.astype(np.float64)
    sigma, sigma_y = (np.cov(one.T, bias=True) for one in (z.astype(np.float64), still))
    sigma, sigma_y = (one + np.trace(one) / D * np.eye(D) for one in (sigma, sigma_y))
    x = (z - middle) @ root(sigma, -0.5)
    e = x.T @ ((still - still.mean(0)) @ root(sigma_y, -0.5)) / len(x)
    t = np.zeros((D, 0))
    if with_classes:
        means = np.stack([x[classes == number].mean(0) for number in range(CLASSES)])
        t = np.linalg.qr((means[1:] - means[0]).T)[0]  # the same span
    u = np.linalg.svd((np.eye(D) - t @ t.T) @ e)[0][:, :count]
    wanted = middle + (z - middle) @ root(sigma, -0.5) @ (np.eye(D) - u @ u.T) @ root(sigma, 0.5)
    given = torch.from_numpy(classes) if with_classes else None
    mean, kept = erasing(torch.from_numpy(z), torch.from_numpy(y), given, share, ridge=1.0)
    np.testing.assert_allclose(left(mean, kept, torch.from_numpy(z)).numpy(), wanted, atol=1e-8)


@pytest.mark.parametrize(
    ("clips", "static"), [((4, D), (3, D)), ((4, D), (4, D - 1)), ((1, D), (1, D)), ((0, D), (0, D))]
)
def test_clips_without_their_still_clips_are_refused(clips, static):
    with pytest.raises(DataError, match="as many static clips as clips"):
        erasing(torch.zeros(clips), torch.zeros(static), None, 0.5)


def test_further_tasks_without_classes_change_nothing_and_those_with_are_kept_as_well():
    z, y, classes, _ = world()
    other = torch.arange(len(z)) % 5  # as good as noise: means lie apart by little, and are kept all the same
    means = torch.stack([z[other == number].double().mean(0) for number in range(5)])
    alone, none, both = (erasing(z, y, classes, 1.0, also=also)[1] for also in ((), [means[:1]], [means]))
    assert torch.equal(alone, erasing(z, y, classes, 1.0)[1])
    torch.testing.assert_close(none, alone, atol=1e-9, rtol=0)  # one class separates nothing
    assert [int(torch.linalg.matrix_rank(kept, tol=1e-6)) for kept in (alone, both)] == [CLASSES - 1, CLASSES + 3]
    assert ((means - means[0]) @ alone - (means - means[0])).norm() > 0.1 * (means - means[0]).norm()
    torch.testing.assert_close((means - means[0]) @ both, means - means[0], atol=1e-8, rtol=0)
    apart = class_means(z.double(), classes)
    torch.testing.assert_close((apart - apart[0]) @ both, apart - apart[0], atol=1e-8, rtol=0)


def test_a_task_that_only_other_clips_show_is_kept():
    z, y, _, _ = world()
    means = torch.stack([z[:50].double().mean(0) + 3, z[50:].double().mean(0)])
    _, kept = erasing(z, y, None, 1.0, also=[means])
    torch.testing.assert_close((means[1] - means[0]) @ kept, means[1] - means[0], atol=1e-8, rtol=0)
    assert int(torch.linalg.matrix_rank(kept, tol=1e-6)) == 1
