"""A learned mask over a stream: what any window hides of a frame is painted over."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import cv2
import numpy as np

from vidveil.core.frame import FULL_BLACK, LIMITED_BLACK, NEUTRAL, Frame, Plane, SafeFrame
from vidveil.methods.learned.cells import CellDecision, Grid, decisions, rectangles
from vidveil.methods.learned.stream import StreamSegment
from vidveil.methods.learned.windows import Window

if TYPE_CHECKING:
    from torch import Tensor

    from vidveil.methods.masking.masker import TubeletMasker


class MaskedSegment(StreamSegment[CellDecision]):
    def __init__(self, masker: "TubeletMasker") -> None:
        super().__init__(masker)
        self._masker = masker

    def results(self, clip: "Tensor", window: Window) -> Iterator[tuple[int, CellDecision]]:
        decision = self._masker.ask(clip)
        layers = decisions(decision.kept[0], decision.scores[0])
        for cells, (begin, end) in zip(layers, window.spans, strict=True):
            for number in range(begin, end):
                yield number, cells

    def combined(self, first: CellDecision, second: CellDecision) -> CellDecision:
        return first.and_also(second)

    def shown(self, frame: Frame, result: CellDecision) -> SafeFrame:
        heat = result.on(frame, preprocessed=self._masker.preprocess is not None)
        safe = hide_cells(frame, heat.kept, self._masker.fill)
        safe.heat = heat  # of several masks in a chain the last one's is kept
        return safe


def hide_cells(frame: Frame, kept: Grid, fill: str) -> SafeFrame:
    """The frame with its hidden cells painted over: `black`, or the `mean` colour of what is kept of the frame."""
    places = rectangles(kept, frame.width, frame.height)

    def paint(source: Plane, target: Plane, shrink: int) -> None:
        def cover(plane: Plane, value: float) -> None:
            for top, bottom, left, right in places:
                plane[top // shrink : bottom // shrink, left // shrink : right // shrink] = value

        np.copyto(target, source)
        black = FULL_BLACK if frame.full_range else LIMITED_BLACK
        colour: float = NEUTRAL if shrink == 2 else black
        if fill == "mean" and kept.any():
            cover(shown := np.ones(source.shape, np.uint8), 0)
            if shown.any():
                colour = round(cv2.mean(source, shown)[0])
        cover(target, colour)

    return frame.paint(paint)
