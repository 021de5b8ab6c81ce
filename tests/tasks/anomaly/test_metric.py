"""AUC of frames and of videos, compared with scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vidveil.core.errors import UsageError
from vidveil.tasks.anomaly.metric import frame_auc, video_auc


def made(videos=12, seed=0):
    """Frames in runs of one score, as segments give them; every other video has some that are abnormal."""
    rng = np.random.default_rng(seed)
    labels, scores = [], []
    for number in range(videos):
        count = int(rng.integers(40, 200))
        truth = np.zeros(count, np.uint8)
        if number % 2:
            truth[10 : 10 + count // 3] = 1
        segments = np.repeat(rng.random(count // 8 + 1).round(3), 8)[:count]
        labels.append(truth)
        scores.append(np.clip(0.8 * segments + 0.15 * truth, 0.001, 0.999))
    return labels, scores


def test_frames_of_all_videos_are_ranked_together():
    labels, scores = made()
    wanted = roc_auc_score(np.concatenate(labels), np.concatenate(scores))
    assert frame_auc(labels, scores) == pytest.approx(wanted, abs=1e-6)


def test_videos_are_ranked_by_their_own_scores():
    truth, scores = np.array([0, 1, 0, 1, 1]), np.array([0.1, 0.4, 0.6, 0.9, 0.6])
    assert video_auc(truth, scores) == pytest.approx(roc_auc_score(truth, scores))


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
