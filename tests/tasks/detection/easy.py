"""Sequences of noisy prototypes: a set so easy that whoever misses something in it has a bug."""

import numpy as np

from vidveil.tasks.detection import Shape, Untrimmed, drawn

D, CLASSES = 16, 4
SMALL = Shape(D, CLASSES, embed=32, levels=3, stem=1, groups=4)


def easy(*, videos=(32, 8, 8), noise=0.3, seed=0, **more) -> Untrimmed:
    draws = np.random.default_rng(seed)
    prototypes = draws.normal(size=(CLASSES + 1, D))
    labels = np.repeat(np.arange(CLASSES), 60)
    features = (prototypes[labels] + noise * draws.normal(size=(len(labels), D))).astype(np.float32)
    background = (prototypes[CLASSES] + noise * draws.normal(size=(200, D))).astype(np.float32)
    return drawn(features, labels, background, videos=videos, seed=seed, **{"seconds": 0.5, **more})
