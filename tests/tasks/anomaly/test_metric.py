"""AUC of frames and of videos against scikit-learn, and what is drawn for an interval."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vidveil.core.errors import UsageError
from vidveil.tasks.anomaly.metric import frame_auc, frame_estimate, video_auc, video_estimate


def made(videos=12, seed=0):
    """Frames in runs of one score, as segments give them; every other video has some that are abnormal."""
    rng = np.random.default_rng(seed)
    labels, scores = [], []
    for number in range(videos):
        count = int(rng.integers(40, 200))
        truth = np.zeros(count, np.uint8)
        if number % 2:
            truth[10 : 10 + count // 3] = 1
        said = np.repeat(rng.random(count // 8 + 1).round(3), 8)[:count]
        labels.append(truth)
        scores.append(np.clip(0.8 * said + 0.15 * truth, 0.001, 0.999))
    return labels, scores


def test_frames_of_all_videos_are_ranked_together():
    labels, scores = made()
    wanted = roc_auc_score(np.concatenate(labels), np.concatenate(scores))
    assert frame_auc(labels, scores) == pytest.approx(wanted, abs=1e-6)
    assert frame_estimate(labels, scores, resamples=10).value == pytest.approx(wanted, abs=1e-6)


def test_videos_are_ranked_by_their_own_scores():
    truth, said = np.array([0, 1, 0, 1, 1]), np.array([0.1, 0.4, 0.6, 0.9, 0.6])
    assert video_auc(truth, said) == pytest.approx(roc_auc_score(truth, said))
    assert video_estimate(truth, said, resamples=10).value == pytest.approx(roc_auc_score(truth, said))


def test_a_resample_is_the_auc_of_the_videos_that_were_drawn():
    labels, scores = made(6)
    found = frame_estimate(labels, scores, resamples=50, seed=3)
    counts = np.random.default_rng(3).multinomial(6, np.full(6, 1 / 6), size=50)
    for times, value in zip(counts, found.samples, strict=True):
        drawn = np.repeat(np.arange(6), times)
        truth = np.concatenate([labels[i] for i in drawn])
        wanted = roc_auc_score(truth, np.concatenate([scores[i] for i in drawn])) if truth.any() else np.nan
        assert value == pytest.approx(wanted, abs=1e-6, nan_ok=True)


def test_frames_are_no_witnesses_of_their_own():
    """Each frame ten times over is the same knowledge, and the same interval."""
    labels, scores = made()
    once = frame_estimate(labels, scores, resamples=300)
    tenfold = frame_estimate([np.repeat(x, 10) for x in labels], [np.repeat(x, 10) for x in scores], resamples=300)
    np.testing.assert_allclose(tenfold.interval, once.interval, atol=1e-9)
    assert once.low < once.value < once.high


def test_videos_of_one_camera_are_drawn_together():
    rng = np.random.default_rng(0)
    easy = np.repeat(rng.random(10) < 0.5, 8)  # of a camera all videos are told, or none
    truth = np.tile([0, 1], 40)
    said = np.where(easy, 0.1 + 0.8 * truth, rng.random(80))
    alone = video_estimate(truth, said, resamples=500)
    together = video_estimate(truth, said, group=np.repeat(np.arange(10), 8), resamples=500)
    assert together.value == alone.value
    assert together.high - together.low > alone.high - alone.low


def test_where_nothing_is_abnormal_there_is_no_auc():
    assert np.isnan(frame_auc([np.zeros(4)], [np.full(4, 0.5)]))
    assert np.isnan(video_auc([1, 1], [0.2, 0.4]))


def test_noise_of_arithmetic_is_a_tie_and_small_probabilities_are_not():
    assert video_auc([0, 1], [0.5, 0.5 + 1e-9]) == 0.5
    assert video_auc([0, 1], [1e-7, 2e-7]) == 1.0
    assert video_auc([0, 1], [0.0, 1.0]) == 1.0


def test_what_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="video 1"):
        frame_auc([np.zeros(4), np.ones(4)], [np.zeros(4), np.ones(5)])
    with pytest.raises(UsageError, match="do not make"):
        frame_auc([np.zeros(4)], [])
    with pytest.raises(UsageError, match="between 0 and 1"):
        video_auc([0, 1], [0.5, np.nan])
    with pytest.raises(UsageError, match="labels are"):
        video_estimate([0, 1, 1], [0.5, 0.2])
    with pytest.raises(UsageError, match="groups are"):
        video_estimate([0, 1], [0.5, 0.2], group=[1, 2, 3])
