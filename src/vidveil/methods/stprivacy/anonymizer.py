"""An STPrivacy checkpoint as an anonymizer: the network drops tubelets and draws the others.

    video  →  windows of the network's frames at the network's size (`windows`)  →  STPrivacy.draw
           →  each frame at the video's own size (bilinear), black wherever a hidden cell touches a pixel
           →  or `unstretched`: at the network's size, upright, every pixel as it was drawn

No pixel of the video is shown. Windows overlap: a frame is drawn by the first that covers it, and a cell is hidden if
any window hides it. Frames that are not in the network's input repeat the drawn one before them.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from vidveil.core.anonymizer import Anonymized
from vidveil.core.errors import UsageError
from vidveil.core.frame import FULL_BLACK, LIMITED_BLACK, NEUTRAL, CellScores, Frame, Plane, SafeFrame
from vidveil.core.rotation import turn_of
from vidveil.core.yuv import yuv
from vidveil.methods.learned.network import rebuilt
from vidveil.methods.learned.stream import PendingFrame, StreamSegment
from vidveil.methods.learned.windows import Grid, Window, laid_over, rectangles, spread, squashed_clips, stored
from vidveil.methods.masking.masker import AT_ONCE, Decision, Scorer, TubeletMasker, check_clips, check_knobs
from vidveil.methods.stprivacy.model import Network, STPrivacy, refuse_privacy_weight
from vidveil.models.checkpoint import Checkpoint, network_of

if TYPE_CHECKING:
    from torch import Tensor


def load(checkpoint: Checkpoint) -> TubeletMasker:
    network = read_network(checkpoint)
    kind = STPrivacyAnonymizer if network.network.anonymize else TubeletMasker
    return kind(f"stprivacy:{checkpoint.name}", network, weights=f"{checkpoint.name} {checkpoint.sha256[:16]}")


def read_network(checkpoint: Checkpoint) -> STPrivacy:
    return rebuilt(checkpoint, lambda: STPrivacy(network_of(checkpoint, Network)))


class STPrivacyAnonymizer(TubeletMasker):
    """The network draws what is kept, at its own size; the rest is black."""

    draws = True

    def __init__(self, spec: str, scorer: Scorer, **options: Any) -> None:
        super().__init__(spec, scorer, **options)
        if self.preprocess is not None or self.fill != "black":
            raise UsageError(f"{spec} draws from what was filmed, and black elsewhere: leave out preprocess and fill")

    def caution(self, short_side: int) -> str | None:  # noqa: ARG002
        return f"{self.spec} draws what it keeps: measure with `vidveil evaluate` how much that reveals about people"

    def tuned(
        self, keep: float | None, privacy_weight: float | None, device: str | None = None
    ) -> "STPrivacyAnonymizer":
        turned = super().tuned(keep, privacy_weight, device)
        assert isinstance(turned, STPrivacyAnonymizer)
        turned.stretched = self.stretched
        return turned

    def unstretched(self) -> "STPrivacyAnonymizer":
        """The same, with frames of a stream at the network's size: upright, bit by bit as they were drawn."""
        small = self.tuned(None, None)
        small.stretched = False
        return small

    def draw(
        self, clips: "Tensor", keep: float | None = None, privacy_weight: float | None = None
    ) -> "tuple[Tensor, Decision]":
        """Clips of the network's own shape as it draws them, and its decision; NaN and infinities are refused."""
        network = self.scorer
        assert isinstance(network, STPrivacy)
        refuse_privacy_weight(privacy_weight)
        video, kept, scores = network.draw(clips.to(self.device), self.keep if keep is None else keep)
        if not video.isfinite().all() or scores.isnan().any():
            raise ValueError("the network drew values that are not numbers")
        return video, Decision(kept, scores)

    def anonymize_batch(
        self, clips: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """Clips of one shape, of any length and size: see `TubeletMasker`."""
        if self.fill == "mask":  # to evaluate how much masks alone reveal
            return super().anonymize_batch(clips, keep=keep, privacy_weight=privacy_weight)
        check_knobs(keep, privacy_weight)
        check_clips(clips)
        whole = clips.dtype == torch.uint8
        with torch.no_grad():
            video = clips.to(self.device).float() / 255 if whole else clips.to(self.device).float()
            small, kept, scores = self._drawn(video, keep, privacy_weight)
            height, width = clips.shape[-2:]
            mask = laid_over(kept, height, width)  # (B, T, H, W)
            shown = resized(small, height, width) * mask.unsqueeze(1)
            shown = (shown * 255).round().to(torch.uint8) if whole else shown.to(clips.dtype)
        there = clips.device
        return Anonymized(shown.to(there), mask.to(there), spread(scores, height, width).to(there))

    def _drawn(
        self, video: "Tensor", keep: float | None, privacy_weight: float | None
    ) -> "tuple[Tensor, Tensor, Tensor]":
        """The video as drawn (B, 3, T, size, size); kept or not, and scores, of cells at frames (B, T, h, w)."""
        count, _, length = video.shape[:3]
        if not video.numel():
            raise ValueError(f"there is nothing in clips of {tuple(video.shape)}")
        windows = self.plan.windows(length)
        small = squashed_clips(video, self.scorer.size)  # (B, 3, T, size, size)
        clips = torch.cat([small[:, :, list(window.samples)] for window in windows])  # (windows · B, 3, frames, …)
        parts = [self.draw(part, keep, privacy_weight) for part in torch.split(clips, max(AT_ONCE, count))]
        pictures = torch.cat([drawn for drawn, _ in parts])
        kept = torch.cat([decision.kept for _, decision in parts])  # (windows · B, L, h, w)
        scores = torch.cat([decision.scores for _, decision in parts]).float()
        shown = torch.zeros_like(small)
        all_kept = torch.ones(count, length, *kept.shape[-2:], dtype=torch.bool, device=kept.device)
        lowest = torch.full(all_kept.shape, torch.inf, device=kept.device)
        drawn: set[int] = set()
        for number, window in enumerate(windows):
            own = slice(number * count, (number + 1) * count)
            for frame, layer, picture in frames_of(window, self.plan.depth):
                all_kept[:, frame] &= kept[own, layer]
                lowest[:, frame] = torch.minimum(lowest[:, frame], scores[own, layer])
                if frame not in drawn:
                    shown[:, :, frame] = pictures[own, :, picture]
                    drawn.add(frame)
        return shown, all_kept, lowest

    def _segment(self) -> StreamSegment:
        return DrawnSegment(self)


class DrawnSegment(StreamSegment):
    """Frames without a gap. Each is held until its windows are decided, and shown as the first of them drew it."""

    def __init__(self, drawer: STPrivacyAnonymizer) -> None:
        super().__init__(drawer)
        self._drawer = drawer
        self._pictures: dict[int, NDArray[np.float32]] = {}  # (3, size, size), by the frame's number
        self._picture: NDArray[np.float32] | None = None  # of the frame that is painted

    def _ask(self, clip: "Tensor", window: Window) -> Decision:
        video, decision = self._drawer.draw(clip)
        pictures = video[0].float().cpu().numpy()  # (3, frames, size, size)
        for number, _, picture in frames_of(window, self._plan.depth):
            self._pictures.setdefault(number, pictures[:, picture])
        return decision

    def _paint(self, waiting: PendingFrame) -> SafeFrame:
        self._picture = self._pictures.pop(self._done - 1, None)
        return super()._paint(waiting)

    def _shown(self, frame: Frame, heat: CellScores, upright: Grid) -> SafeFrame:
        assert self._picture is not None
        picture = self._picture.transpose(1, 2, 0)  # (size, size, 3)
        if self._drawer.stretched:
            return drawn_over(frame, stored(picture, turn_of(frame)), heat.kept)
        return drawn_alone(frame, picture, upright)

    def _already_black(self, frame: SafeFrame, why: str) -> SafeFrame:
        return frame if self._drawer.stretched else self._black(frame, why)

    def _black(self, frame: Frame, why: str) -> SafeFrame:
        """At the size of all other frames: a file has one."""
        size = self._drawer.scorer.size
        return (frame if self._drawer.stretched else frame.instead(size, size)).black(why)


def frames_of(window: Window, depth: int) -> Iterator[tuple[int, int, int]]:
    """Each frame that a window decides, with its layer of tubelets and its picture in the window: of those of its layer
    the last that is not later."""
    for layer, (begin, end) in enumerate(window.spans):
        first = layer * depth
        samples = window.samples[first : first + depth]
        for frame in range(begin, end):
            yield frame, layer, first + max(0, bisect_right(samples, frame) - 1)


def resized(video: "Tensor", height: int, width: int) -> "Tensor":
    """(B, 3, T, h, w) → (B, 3, T, H, W), in [0, 1]."""
    if video.shape[-2:] == (height, width):
        return video
    pictures = video.transpose(1, 2).flatten(0, 1)  # (B·T, 3, h, w)
    larger = F.interpolate(pictures, (height, width), mode="bilinear", align_corners=False).clamp(0, 1)
    return larger.view(len(video), -1, 3, height, width).transpose(1, 2)


def drawn_over(frame: Frame, picture: NDArray[np.float32], kept: Grid) -> SafeFrame:
    """A frame that shows only the picture, (h, w, 3) of red, green and blue as it is stored, and black hidden cells."""
    assert frame.picture is not None
    planes = iter(yuv(picture, int(frame.picture.colorspace), full_range=frame.full_range))
    places = rectangles(kept, frame.width, frame.height)
    black = FULL_BLACK if frame.full_range else LIMITED_BLACK

    def paint(source: Plane, target: Plane, shrink: int) -> None:  # noqa: ARG001
        height, width = target.shape
        larger = cv2.resize(next(planes), (width, height), interpolation=cv2.INTER_LINEAR)
        target[:] = np.clip(np.rint(larger), 0, 255)
        for top, bottom, left, right in places:
            target[top // shrink : bottom // shrink, left // shrink : right // shrink] = (
                NEUTRAL if shrink == 2 else black
            )

    return frame.paint(paint)


def drawn_alone(frame: Frame, picture: NDArray[np.float32], kept: Grid) -> SafeFrame:
    """A frame with the time of another: the picture, (size, size, 3) of red, green and blue, upright.

    Hidden cells are black.
    `rgb()` returns exactly its pixels. The colours in its planes are means of two by two of them.
    """
    assert frame.picture is not None
    height, width = picture.shape[:2]
    shown = kept.repeat(height // kept.shape[0], 0).repeat(width // kept.shape[1], 1)  # (size, size)
    pixels = (np.rint(picture * 255) * shown[..., None]).astype(np.uint8)
    planes = yuv(
        pixels.astype(np.float32) / np.float32(255), int(frame.picture.colorspace), full_range=frame.full_range
    )
    safe = frame.instead(width, height).black(None)
    for plane, target in zip(planes, safe.planes, strict=True):
        smaller = cv2.resize(plane, target.shape[::-1], interpolation=cv2.INTER_AREA)
        target[:] = np.clip(np.rint(smaller), 0, 255)
    safe.drawn = pixels
    return safe
