"""What becomes of the frames of a video: how many are black, and how much a learned mask leaves of the others."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vidveil.core.frame import SafeFrame


@dataclass(slots=True)
class FrameCounts:
    hidden: int = 0
    """Frames that were blacked out whole."""
    hidden_runs: list[dict[str, Any]] = field(default_factory=list)
    """Runs of such frames, with the reason of each."""
    masked: int = 0
    """Frames over which a learned mask was laid."""
    kept: float = 0.0
    """Shares of their pictures that the mask left, added up."""
    blank: int = 0
    """Frames that a method made black which compares frames with those before them: there was nothing to compare."""
    everywhere: int = 0
    """Frames in which such a method found something moving all over the picture."""

    def add(self, frame: SafeFrame) -> None:
        if frame.hidden is not None:
            self._hide(frame.index, frame.hidden)
        elif frame.heat is not None:
            self.masked += 1
            self.kept += float(frame.heat.kept.mean())
        self.blank += frame.blank
        self.everywhere += frame.everywhere

    def _hide(self, index: int, why: str) -> None:
        self.hidden += 1
        runs = self.hidden_runs
        if runs and runs[-1]["last"] == index - 1 and runs[-1]["why"] == why:
            runs[-1]["last"] = index
        else:
            runs.append({"first": index, "last": index, "why": why})

    @property
    def mask(self) -> dict[str, Any] | None:
        """For the manifest."""
        return {"frames": self.masked, "kept_area": round(self.kept / self.masked, 4)} if self.masked else None

    def warnings(self, frames: int) -> Iterator[str]:
        """About methods that compare frames, for a video of so many frames."""
        if self.blank > 1 or self.blank == frames:  # the first one always is
            many = "all" if self.blank == frames else f"{self.blank:,} of"
            why = "they had none before them to compare with, or it was too different"
            yield f"{many} {frames:,} frames are black: {why}"
        if self.everywhere > frames / 2:
            where = f"in {self.everywhere:,} of {frames:,} frames something moves all over the picture"
            yield f"{where}: if that is the camera, the place shows, and who stands still in it"
