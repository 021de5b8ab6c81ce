"""Networks that draw: pictures in, pictures of the same size out.

    video  →  windows of the network's frames at the network's size (`windows`)  →  draw
           →  each frame at the video's own size (bilinear), black wherever a hidden cell touches a pixel
           →  or `unstretched`: at the network's size, upright, every pixel as it was drawn

No pixel of the video is shown. Windows overlap: a frame is drawn by the first that covers it, and if the network has a
mask, a cell is hidden if any window hides it. Frames that are not in the network's input repeat the drawn one before
them. A network of single pictures (`frames` is 1) draws each picture once: windows do not overlap.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from vidveil.core.anonymizer import Anonymized
from vidveil.core.errors import UsageError
from vidveil.core.frame import Frame, SafeFrame
from vidveil.core.rotation import turn_of
from vidveil.methods.learned.anonymizer import LearnedAnonymizer
from vidveil.methods.learned.cells import CellDecision, decisions, laid_over, spread
from vidveil.methods.learned.clips import as_float
from vidveil.methods.learned.drawings import drawn_alone, drawn_over, resized
from vidveil.methods.learned.stream import StreamSegment
from vidveil.methods.learned.windows import Window, frames_of, squashed_clips, stored

if TYPE_CHECKING:
    from torch import Tensor


class Drawing(NamedTuple):
    """What a network drew of windows."""

    video: "Tensor"
    """(B, 3, frames, size, size) in [0, 1], black where it hides."""
    kept: "Tensor | None" = None
    """(B, L, h, w) bool: its mask, if it has one."""
    scores: "Tensor | None" = None
    """(B, L, h, w) float, next to each mask: higher is more worth keeping."""


class ImageToImage(LearnedAnonymizer):
    """A network that maps clips (B, 3, frames, size, size) in [0, 1] to clips of the same shape: `forward`.

    One with knobs or a mask overrides `ask`.
    """

    draws = True

    def __init__(self, spec: str, network: Any, **options: Any) -> None:
        """The options are those of `LearnedAnonymizer`."""
        super().__init__(spec, network, **options)
        self.plan = replace(self.plan, single=network.frames == 1)

    @property
    def drawn_at(self) -> int | None:
        size: int = self.network.size
        return size

    def caution(self, short_side: int) -> str | None:  # noqa: ARG002
        what = "every pixel" if self.tubelet is None else "what it keeps"
        return f"{self.spec} draws {what}: measure with `vidveil evaluate` how much that reveals about people"

    def ask(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Drawing:
        """The network's answer for clips of its own shape, on its device; knobs are None where they are its own."""
        for knob, value in (("keep", keep), ("privacy_weight", privacy_weight)):
            if value is not None:
                raise UsageError(f"{self.spec} has no {knob}: leave it out")
        return Drawing(self.network(clips))

    def draw(self, clips: "Tensor", keep: float | None = None, privacy_weight: float | None = None) -> Drawing:
        """Windows as the network draws them, checked. Single pictures of a window, of any number, are a batch."""
        single = self.plan.single
        pictures = clips.transpose(1, 2).flatten(0, 1).unsqueeze(2) if single else clips  # (B·n, 3, 1, size, size)
        keep = self.keep if keep is None else keep
        privacy_weight = self.privacy_weight if privacy_weight is None else privacy_weight
        with torch.no_grad():
            split = torch.split(pictures, self.network.at_once)
            parts = [self.ask(part.to(self.device), keep, privacy_weight) for part in split]
            video = torch.cat([part.video for part in parts])
            if video.shape != pictures.shape:
                raise ValueError(f"the network drew {tuple(video.shape)} instead of {tuple(pictures.shape)}")
            if not video.isfinite().all():
                raise ValueError("the network drew values that are not numbers")
            video = video.float().clamp(0, 1)
            masks = self._masks(parts, len(pictures))
        if not single:
            return Drawing(video, *masks)
        return Drawing(
            video.view(len(clips), -1, *video.shape[1:]).squeeze(3).transpose(1, 2),
            *(None if mask is None else mask.view(len(clips), -1, *mask.shape[2:]) for mask in masks),
        )

    def _masks(self, parts: list[Drawing], count: int) -> "tuple[Tensor, Tensor] | tuple[None, None]":
        if self.tubelet is None:
            return None, None
        found = [(part.kept, part.scores) for part in parts if part.kept is not None and part.scores is not None]
        if len(found) < len(parts):
            raise ValueError("the network drew without its mask")
        kept, scores = (torch.cat(each) for each in zip(*found, strict=True))
        times, height, width = self.tubelet
        size = self.network.size
        wanted = (count, self.network.frames // times, size // height, size // width)
        if tuple(kept.shape) != wanted or kept.dtype != torch.bool or tuple(scores.shape) != wanted:
            raise ValueError(f"the network decided about {tuple(kept.shape)} tubelets instead of {wanted}")
        if scores.isnan().any():
            raise ValueError("a score of the network is not a number")
        return kept, scores.float()

    def process(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Anonymized:
        video, kept, scores = self.drawn(as_float(clips), keep, privacy_weight)
        height, width = clips.shape[-2:]
        if kept is None or scores is None:
            return Anonymized(resized(video, height, width))
        mask = laid_over(kept, height, width)  # (B, T, H, W)
        if self.fill == "mask":  # to evaluate how much masks alone reveal
            shown = mask.float().unsqueeze(1).expand(clips.shape)
        else:
            shown = resized(video, height, width) * mask.unsqueeze(1)
        return Anonymized(shown, mask, spread(scores, height, width))

    def drawn(self, video: "Tensor", keep: float | None, privacy_weight: float | None) -> Drawing:
        """The video as drawn (B, 3, T, size, size); kept or not, and scores, of cells at frames (B, T, h, w)."""
        count, _, length = video.shape[:3]
        windows = self.plan.windows(length)
        small = squashed_clips(video, self.network.size)  # (B, 3, T, size, size)
        clips = torch.cat([small[:, :, list(window.samples)] for window in windows])  # (windows · B, 3, frames, …)
        pictures, kept, scores = self.draw(clips, keep, privacy_weight)
        shown = torch.zeros_like(small)
        all_kept = lowest = None
        if kept is not None and scores is not None:
            all_kept = torch.ones(count, length, *kept.shape[-2:], dtype=torch.bool, device=kept.device)
            lowest = torch.full(all_kept.shape, torch.inf, device=kept.device)
        done: set[int] = set()
        for number, window in enumerate(windows):
            own = slice(number * count, (number + 1) * count)
            for frame, layer, picture in frames_of(window, self.plan.depth):
                if kept is not None and scores is not None and all_kept is not None and lowest is not None:
                    all_kept[:, frame] &= kept[own, layer]
                    lowest[:, frame] = torch.minimum(lowest[:, frame], scores[own, layer])
                if frame not in done:
                    shown[:, :, frame] = pictures[own, :, picture]
                    done.add(frame)
        return Drawing(shown, all_kept, lowest)

    def segment(self) -> "DrawnSegment":
        return DrawnSegment(self)


@dataclass(frozen=True, slots=True)
class DrawnFrame:
    picture: NDArray[np.float32]
    """(3, size, size), upright."""
    cells: CellDecision | None


class DrawnSegment(StreamSegment[DrawnFrame]):
    """Each frame is shown as the first of its windows drew it."""

    def __init__(self, method: ImageToImage) -> None:
        super().__init__(method)
        self._method = method

    def results(self, clip: "Tensor", window: Window) -> Iterator[tuple[int, DrawnFrame]]:
        video, kept, scores = self._method.draw(clip)
        pictures = video[0].cpu().numpy()  # (3, frames, size, size)
        cells = None if kept is None or scores is None else decisions(kept[0], scores[0])
        for number, layer, picture in frames_of(window, self._plan.depth):
            yield number, DrawnFrame(pictures[:, picture], None if cells is None else cells[layer])

    def combined(self, first: DrawnFrame, second: DrawnFrame) -> DrawnFrame:
        if first.cells is None or second.cells is None:
            return first
        return DrawnFrame(first.picture, first.cells.and_also(second.cells))

    def shown(self, frame: Frame, result: DrawnFrame) -> SafeFrame:
        picture, cells = result.picture.transpose(1, 2, 0), result.cells  # (size, size, 3)
        heat = None if cells is None else cells.on(frame, preprocessed=self._method.preprocess is not None)
        if self._method.stretched:
            safe = drawn_over(frame, stored(picture, turn_of(frame)), None if heat is None else heat.kept)
        else:
            safe = drawn_alone(frame, picture, None if cells is None else cells.kept)
        if heat is not None:
            safe.heat = heat
        return safe

    def already_black(self, frame: SafeFrame, why: str) -> SafeFrame:
        return frame if self._method.stretched else self.black(frame, why)

    def black(self, frame: Frame, why: str) -> SafeFrame:
        """At the size of all other frames: a file has one."""
        return (frame if self._method.stretched else frame.instead(self._size, self._size)).black(why)
