"""What comes out of training a method."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Trained:
    method: str
    folder: Path
    """Of the checkpoint."""
    metrics: Mapping[str, float]
    """On validation, after the last epoch."""
    floors: Mapping[str, float]
    """What guessing gets of them: the largest class, tubelets by lot."""
