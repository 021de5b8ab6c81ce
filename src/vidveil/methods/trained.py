"""What comes out of training a method."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Trained:
    method: str
    name: str
    """Of the run."""
    data: str
    """As the recipe names it."""
    folder: Path
    """Of the checkpoint."""
    metrics: Mapping[str, float]
    """On validation, after the last epoch."""
    floors: Mapping[str, float]
    """Chance levels of these: the largest class, random tubelets."""
    on_features: bool = False
    """Whether it is for stored features, not for video."""
    shows_filmed: bool = True
    """Whether what it keeps of a video is shown as it was filmed."""
