"""A learned method that has learned nothing, and built-in people that are quickly made: squares on a grey wall.

Each clip is 4 × 32 × 32. A square of 8 × 8 pixels carries identity alone (kind 1) and stands still; one next to it
carries the action (kind 2) and flickers; both lie on the borders of tubelets of 2 × 8 × 8.
"""

import hashlib

import numpy as np
import torch

from vidveil.data.puppets import PuppetClips
from vidveil.data.puppets.world import parse
from vidveil.data.store.videos import VideoStore
from vidveil.methods import Anonymized
from vidveil.methods.masking.masker import Scorer, TubeletMasker
from vidveil.models.layers.tubelets import over_pixels, paint

FRAMES, SIZE, SIDE = 4, 32, 8
FACE, ARM = (slice(None), slice(0, 8), slice(8, 16)), (slice(None), slice(16, 24), slice(8, 16))


def people(folder, *, clips=6, people=(2, 2, 3)):
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(sum(people)), clips)
    videos, kinds = [], np.zeros((len(who), FRAMES, SIZE, SIZE), np.uint8)
    kinds[(slice(None), *FACE)], kinds[(slice(None), *ARM)] = 1, 2
    for _ in who:
        video = np.full((FRAMES, SIZE, SIZE, 3), 60, np.uint8)
        video += rng.integers(0, 9, (1, SIZE, SIZE, 3), dtype=np.uint8)
        video[FACE] += 40
        video[ARM] += rng.integers(0, 150, (FRAMES, 8, 8, 3), dtype=np.uint8)
        videos.append(video)
    items = [(video, {"masks": kind}) for video, kind in zip(videos, kinds, strict=True)]
    drawn = VideoStore.write(folder / "drawn", items, {})
    split = np.array(["train", "val", "test"])[np.searchsorted(np.cumsum(people), who, side="right")]
    return PuppetClips(
        name="puppets",
        videos=drawn,
        ids=[f"{p}-{i}" for i, p in enumerate(who)],
        split=split,
        group=who.astype(str),
        action=np.arange(len(who)) % 2,
        actions=("left", "right"),
        person=who,
        attributes=(who % 2).astype(np.float32)[:, None],
        attribute_names=("tall",),
        world=parse(None, frames=8, size=64, seed=0),
        drawn=drawn,
    )


class Undecided(Scorer):
    frames, size, tubelet = FRAMES, SIZE, (2, SIDE, SIDE)

    def decide(self, clips, keep, privacy_weight):
        raise NotImplementedError


class Masker(TubeletMasker):
    """Keeps dark tubelets, or with a privacy weight bright ones. Counts how many clips it was shown at a time."""

    def __init__(self, name="masker", weights="masker 1234", fill="black", preprocess=None):
        super().__init__(name, Undecided(), weights=weights, fill=fill)
        self.preprocess, self.batches = preprocess, []

    def anonymize_batch(self, clips, *, keep=None, privacy_weight=None):
        self.batches.append(len(clips))
        pooled = torch.nn.functional.avg_pool3d(clips, self.scorer.tubelet).mean(1)  # (B, L, h, w)
        scores = pooled if privacy_weight else -pooled
        flat = scores.flatten(1)
        best = flat.argsort(dim=1, descending=True, stable=True)[:, : round((keep or 0.5) * flat.shape[1])]
        kept = torch.zeros_like(flat, dtype=torch.bool).scatter_(1, best, True).view_as(scores)
        mask = over_pixels(kept, self.scorer.tubelet)
        return Anonymized(paint(clips, mask, self.fill), mask, over_pixels(scores, self.scorer.tubelet))


def loader(monkeypatch, *maskers):
    """`load` knows these methods, by their names."""
    known = {masker.spec: masker for masker in maskers}

    def load(spec, *, region="frame", find_regions=None):  # noqa: ARG001
        assert region == "frame"
        found = known[spec]
        found.fill = "black"
        return found

    for where in ("vidveil.methods.load", "vidveil.methods.anonymized_data.load"):
        monkeypatch.setattr(where, load)


def digest(data):
    return hashlib.sha256(b"".join(data.videos.frames(i).tobytes() for i in range(len(data)))).hexdigest()
