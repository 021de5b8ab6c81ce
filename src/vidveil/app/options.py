"""What a user asks for, and holds for all files of a run."""

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from vidveil.core.errors import UsageError
from vidveil.detect.settings import DetectionSettings
from vidveil.video.x264 import CRF, PRESET

SIZES = ("original", "network")
MANIFESTS = ("full", "share", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything but the sources, the output and the method. Raises UsageError where options contradict each other."""

    audio: str = "drop"
    """`drop`, `keep` or `distort`."""
    metadata: str = "drop"
    """`drop` or `keep`."""
    start: Fraction | None = None
    """Seconds, on the clock that a media player shows."""
    end: Fraction | None = None
    reconnect: float = 60.0
    """Seconds for which a live source that broke off is waited for."""
    manifest: str | None = None
    """`full`, `share` (without what identifies the source) or `none`. None: `full`, and `share` with `rename`."""
    rename: bool = False
    """Outputs get random names."""
    rename_map: Path | None = None
    """A private file that says which name each source got; with it a run can be resumed. Implies `rename`."""
    max_pixels: int | None = None
    """Larger pictures are refused. None: 100 million for images, 40 million for video."""
    overwrite: bool = False
    dry_run: bool = False
    preview: Path | None = None
    heatmap: Path | None = None
    """Where a learned method's scores are shown over the original."""
    size: str = "original"
    """`original`, or `network`: what a network draws, at the size at which it draws."""
    device: str = "cpu"
    preset: str = PRESET
    crf: int = CRF
    detection: DetectionSettings = field(default_factory=DetectionSettings)
    """Whom to look for, and what becomes of them."""

    def __post_init__(self) -> None:
        if self.audio not in ("drop", "keep", "distort"):
            raise UsageError(f"audio is drop, keep or distort, not {self.audio!r}")
        if self.metadata not in ("drop", "keep"):
            raise UsageError(f"metadata is drop or keep, not {self.metadata!r}")
        if self.manifest not in (None, *MANIFESTS):
            raise UsageError(f"manifest is {', '.join(MANIFESTS[:-1])} or {MANIFESTS[-1]}, not {self.manifest!r}")
        if self.renames and self.manifest == "full":
            raise UsageError("a full manifest holds the name that --rename hides: --manifest share, or none")
        if self.renames and self.metadata == "keep":
            raise UsageError(
                "--metadata keep writes the source's tags into outputs that --rename makes nameless: drop one"
            )
        if self.size not in SIZES:
            raise UsageError(f"size is {' or '.join(SIZES)}, not {self.size!r}")
        if not 1 <= self.crf <= 51:  # 0 is lossless, in a profile that browsers do not play
            raise UsageError(f"crf is from 1 to 51, not {self.crf}")
        if self.start is not None and self.start < 0:
            raise UsageError("the start lies before the beginning")
        if self.max_pixels is not None and self.max_pixels < 1:
            raise UsageError(f"max_pixels is at least 1, not {self.max_pixels}")
        if self.end is not None and self.end <= (self.start or 0):
            raise UsageError("the end lies before the start")

    @property
    def renames(self) -> bool:
        return self.rename or self.rename_map is not None

    @property
    def manifest_form(self) -> str:
        return self.manifest or ("share" if self.renames else "full")
