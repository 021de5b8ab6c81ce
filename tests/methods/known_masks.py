"""A scorer whose masks are known beforehand, with clips and frames for it."""

import math

import numpy as np
import torch

from tests.detect.stage import frame_of, stored_as
from vidveil.methods.masking.masker import Decision, Scorer, TubeletMasker

FRAMES, SIZE, CELL = 8, 32, 8
GRID = SIZE // CELL


class KeepsBrightest(Scorer):
    """Keeps the brightest tubelets, a share `keep` of all. Counts how often it is asked, and can break."""

    frames, size, tubelet = FRAMES, SIZE, (2, CELL, CELL)

    def __init__(self, breaks_at=None, answer=None):
        self.calls, self.breaks_at, self.answer = [], breaks_at, answer

    def decide(self, clips, keep, privacy_weight):
        self.calls.append((clips.clone(), keep, privacy_weight))
        if self.breaks_at == len(self.calls):
            raise RuntimeError("broken")
        scores = torch.nn.functional.avg_pool3d(clips.mean(1, keepdim=True), self.tubelet)[:, 0]  # (B, L, h, w)
        if self.answer is not None:
            return self.answer(scores)
        best = scores.flatten(1).topk(math.ceil((keep or 0.75) * scores[0].numel())).indices
        kept = torch.zeros_like(scores, dtype=torch.bool).flatten(1).scatter_(1, best, True).view_as(scores)
        return Decision(kept, scores)


def masker(scorer=None, **knobs):
    return TubeletMasker("brightest", scorer or KeepsBrightest(), weights="brightest 1234", **knobs)


def only(*cells):
    """A scorer that hides these cells (layer or None for all, row, column) and nothing else."""

    def answer(scores):
        kept = torch.ones_like(scores, dtype=torch.bool)
        for layer, row, column in cells:
            kept[:, slice(None) if layer is None else layer, row, column] = False
        return Decision(kept, scores)

    return KeepsBrightest(answer=answer)


def clip(length=FRAMES, height=SIZE, width=SIZE, seed=0):
    return torch.rand(3, length, height, width, generator=torch.Generator().manual_seed(seed)) * 0.8 + 0.1


def frames(count, width=64, height=48, matrix=None, seed=5):
    """Raw frames whose every pixel is brighter than black."""
    rng = np.random.default_rng(seed)
    chroma = ((height + 1) // 2, (width + 1) // 2)
    for i in range(count):
        planes = [rng.integers(40, 120, shape).astype(np.uint8) for shape in ((height, width), chroma, chroma)]
        yield frame_of([stored_as(plane, matrix) for plane in planes], index=i, matrix=matrix)
