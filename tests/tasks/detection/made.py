"""Synthetic videos for detection: features of one class after the other, with background between them."""

import numpy as np

from vidveil.data.clips import SPLITS
from vidveil.tasks.detection import DetectionVideos, Shape

D, CLASSES = 16, 4
SMALL = Shape(D, CLASSES, embed=32, levels=3, stem=1, groups=4)


def synthetic(features, labels, background, *, videos, parts=None, events=(1, 4), lasting=(4, 24), between=(4, 16)):
    """Videos out of features of clips (n, D), their labels (n,), and of background clips (m, D).

    Args:
        videos: numbers of training, validation and test videos.
        parts: the split of every feature and of every background feature. A video is made of its own split's.
        events, lasting, between: from, to: actions per video, features per action, features of background.
    """
    rows, segments, split = [], [], np.repeat(SPLITS, videos).tolist()
    for number, name in enumerate(split):
        rng = np.random.default_rng((0, number))
        own, idle = (np.ones(len(x), bool) for x in (features, background))
        if parts is not None:
            own, idle = parts[0] == name, parts[1] == name
        pieces, happened, at = [], [], 0
        for event in range(int(rng.integers(events[0], events[1] + 1)) + 1):
            if event:
                label, count = int(rng.choice(np.unique(labels[own]))), int(rng.integers(lasting[0], lasting[1] + 1))
                pieces.append(features[rng.choice(np.flatnonzero(own & (labels == label)), count)])
                happened.append((at * 0.5, (at + count) * 0.5, label))
                at += count
            count = int(rng.integers(between[0], between[1] + 1))
            pieces.append(background[rng.choice(np.flatnonzero(idle), count)])
            at += count
        rows.append(np.concatenate(pieces).astype(np.float32))
        segments.append(happened)
    classes = tuple(f"class {number}" for number in range(int(labels.max()) + 1))
    return DetectionVideos(rows, [0.5] * len(rows), segments, split, classes, name="synthetic")


def easy(videos=(32, 8, 8)) -> DetectionVideos:
    """Noisy prototypes: whoever misses an action here has a bug."""
    rng = np.random.default_rng(0)
    prototypes = rng.normal(size=(CLASSES + 1, D))
    labels = np.repeat(np.arange(CLASSES), 60)
    features = (prototypes[labels] + 0.3 * rng.normal(size=(len(labels), D))).astype(np.float32)
    background = (prototypes[CLASSES] + 0.3 * rng.normal(size=(200, D))).astype(np.float32)
    return synthetic(features, labels, background, videos=videos)
