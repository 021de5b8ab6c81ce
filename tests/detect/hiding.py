"""A film through the whole pipeline, and what its output shows."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vidveil
from tests.detect.stage import Film, Luma, shown
from tests.media import lumas
from vidveil.app.jobs import Options, Outcome
from vidveil.core.rotation import turn
from vidveil.detect.settings import DetectionSettings

HIDDEN = 0.02  # share of a head's detail: the encoder's noise at the edge of a black region stays below


@dataclass
class Hiding:
    film: Film
    outcome: Outcome

    @property
    def manifest(self) -> dict[str, Any]:
        assert self.outcome.output is not None
        return json.loads(self.outcome.output.with_suffix(".json").read_text())

    @cached_property
    def pictures(self) -> list[Luma]:
        """The output's frames, upright."""
        assert self.outcome.error is None, self.outcome.error
        assert self.outcome.output is not None
        return [self._upright(luma) for luma in lumas(self.outcome.output)]

    @cached_property
    def exposed(self) -> NDArray[np.float64]:
        """(T,): how much of the most visible head each frame shows."""
        truth = self.film.truth()
        assert len(truth) == len(self.pictures)
        return np.array(
            [max((shown(p, m) for m in masks), default=0.0) for p, masks in zip(self.pictures, truth, strict=True)]
        )

    def shown_of(self, head: int) -> NDArray[np.float64]:
        """(T,): how much each frame shows of one head."""
        return np.array([shown(p, masks[head]) for p, masks in zip(self.pictures, self.film.truth(), strict=True)])

    @property
    def bad(self) -> dict[int, float]:
        """Frames in which somebody can be seen."""
        return {i: round(float(share), 2) for i, share in enumerate(self.exposed) if share > HIDDEN}

    def black(self, i: int) -> bool:
        return bool(self.pictures[i].max() < 24)

    def changed(self, i: int) -> NDArray[np.bool_]:
        """(H, W): where a frame is not as it was filmed, but for the encoder's noise."""
        was = self.film.upright[i][0].astype(np.int16)
        return np.abs(self.pictures[i][: was.shape[0], : was.shape[1]] - was) > 24

    def touched(self, i: int, x: float, y: float, reach: int = 10) -> float:
        """The share of changed pixels around a place."""
        x, y = int(x), int(y)
        return float(self.changed(i)[max(0, y - reach) : y + reach, max(0, x - reach) : x + reach].mean())

    def _upright(self, luma: Luma) -> Luma:
        height, width = luma.shape
        return turn(width, height, self.film.matrix).upright(luma)[: self.film.height, : self.film.width]


def hide(
    film: Film,
    folder: Path,
    *,
    method: str = "solid",
    region: str | None = "discs",
    again: bool = False,
    **detection: Any,
) -> Hiding:
    if film.path is None:
        film.make(folder / "film.mp4")
    assert film.path is not None
    if "tracks_in" in detection:
        region = None
    options = Options(
        crf=8, preset="ultrafast", overwrite=again, detection=DetectionSettings(region=region, **detection)
    )
    (outcome,) = vidveil.anonymize(film.path, method=method, options=options)
    return Hiding(film, outcome)
