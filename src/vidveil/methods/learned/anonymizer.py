"""What learned methods on pixels share: maskers, networks that draw pictures, renderers.

    clips (B, 3, T, H, W) of any length and size  →  preprocess  →  its device  →  process  →  checked, and back
    frames  →  preprocess  →  a segment (`stream`), which waits for the windows of the network's input

A method extends `LearnedAnonymizer` or one of the classes that do: `TubeletMasker`, `ImageToImage`. It then has
batches, devices, streams, knobs and warnings as every other one, and fails as they do: an output of the wrong shape, or
with values that are not numbers, is an error of a clip and a black frame of a stream.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from vidveil.core.anonymizer import Anonymized, Anonymizer, Chain, check_clip, refuse_knobs
from vidveil.core.errors import DeviceError, UsageError
from vidveil.core.frame import Frame, SafeFrame
from vidveil.core.tubelets import FILLS
from vidveil.methods import load
from vidveil.methods.learned.clips import check_clips, check_output
from vidveil.methods.learned.windows import Plan

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from vidveil.methods.learned.stream import StreamSegment

RAW = "raw"  # no preprocessing


class LearnedNetwork:
    """What a method knows about its network."""

    frames: int
    """Of its input."""
    size: int
    """Side of its square input, in pixels."""
    tubelet: tuple[int, int, int] | None = None
    """Frames, height, width of what a mask of it decides about; None: it has no mask."""
    own: Mapping[str, float] | None = MappingProxyType({})
    """Its own `keep` and `privacy_weight`, or those of the two that it has; None: not known."""
    stride = 1
    """Of a long video it is shown every so many-th frame."""
    preprocess = RAW
    """The method that is applied to videos before it."""
    at_once = 64
    """Windows of long clips in one call of it, or pictures if it sees single ones: fewer need less memory."""
    weights: str | None = None
    """Name and hash of its weights, for manifests."""
    limits: tuple[str, ...] = ()
    """What its checkpoint says against its weights (`Anonymizer.limits`)."""


class LearnedAnonymizer(Anonymizer):
    """A network at work on videos of any length and size.

    `weights`, `stride` and `preprocess` are the network's unless they are given; `keep` and `privacy_weight` are the
    network's own unless they are given, here or with a call. The output of `preprocess` is all that the network sees.
    """

    device: "torch.device"
    stretched = True
    """Whether frames of a stream have the video's size, or the network's. Clips keep their own."""

    def __init__(
        self,
        spec: str,
        network: Any,
        *,
        weights: str | None = None,
        fill: str = "black",
        stride: int | None = None,
        preprocess: str | None = None,
        keep: float | None = None,
        privacy_weight: float | None = None,
        device: str = "auto",
    ) -> None:
        """`network` is a `LearnedNetwork`, in most cases also an `nn.Module`. `fill` is for those with a mask."""
        super().__init__(spec)
        self.network = network
        self._check_knobs(keep, privacy_weight)
        if fill not in FILLS:
            raise UsageError(f"fill is {', '.join(FILLS[:-1])} or {FILLS[-1]}, not {fill!r}")
        stride = network.stride if stride is None else stride
        if stride < 1:
            raise UsageError(f"stride is 1 or more, not {stride}")
        self.stride = stride
        self.fill: str = fill
        self.preprocess = loaded_unless_raw(network.preprocess if preprocess is None else preprocess)
        self.elsewhere = self.preprocess is not None and self.preprocess.elsewhere
        self.weights = network.weights if weights is None else weights
        self.limits = network.limits
        self.keep, self.privacy_weight = keep, privacy_weight
        self.plan = Plan(network.frames, 1 if network.tubelet is None else network.tubelet[0], stride)
        self.device = placed(network, device)

    @property
    def tubelet(self) -> tuple[int, int, int] | None:
        """Frames, height, width of what its mask decides about, in the network's input; None: it has no mask."""
        found: tuple[int, int, int] | None = self.network.tubelet
        return found

    @property
    def drawn_at(self) -> int | None:
        """Side of the pictures that its network draws, if a stream may have them as they are."""
        return None

    @property
    def shows_everything(self) -> bool:
        """Whether it is set so that the output is the source."""
        return False

    @property
    def knobs(self) -> dict[str, Any] | None:
        """For the manifest. None: the network does not say what its own setting is."""
        own = self.network.own or {}
        given = {"keep": self.keep, "privacy_weight": self.privacy_weight}
        found = {
            name: own.get(name) if value is None else value
            for name, value in given.items()
            if self.tubelet is not None or name in own
        }
        if found.get("privacy_weight") == float("inf"):
            found["privacy_weight"] = "inf"  # JSON has no such number
        mask = {} if self.tubelet is None else {"fill": self.fill}
        before = {} if self.preprocess is None else {"preprocess": self.preprocess.spec}
        return {**found, **mask, "stride": self.stride, **before}

    def keeps(self, index: int) -> bool:
        return self.preprocess is None or self.preprocess.keeps(index)

    def tuned(self, keep: float | None, privacy_weight: float | None, device: str | None = None) -> Self:
        """The same network with other knobs; None leaves one as it is."""
        self._check_knobs(keep, privacy_weight)
        turned = copy(self)
        turned.keep = self.keep if keep is None else keep
        turned.privacy_weight = self.privacy_weight if privacy_weight is None else privacy_weight
        if device is not None:
            turned.device = placed(self.network, device)
        return turned

    def unstretched(self) -> Self:
        """The same, with frames of a stream at the network's size: upright, bit by bit as they were drawn."""
        if self.drawn_at is None:
            raise UsageError(f"{self.spec} does not draw videos, and has no other size to write them at")
        small = copy(self)
        small.stretched = False
        return small

    def alone(self) -> Self:
        """The same, for videos that were preprocessed already."""
        method = copy(self)
        method.preprocess = None
        return method

    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """A clip of any length and size.

        Where there is a mask, `mask` is (T, H, W) bool: the pixels that are kept. `scores` is (T, H, W) float: for each
        pixel the score of the tubelet in which its middle lies; where two windows overlap, the lower one.
        """
        import torch

        if not isinstance(clip, torch.Tensor) or clip.dtype != torch.uint8:
            check_clip(clip)
        done = self.anonymize_batch(clip[None], keep=keep, privacy_weight=privacy_weight)
        mask, scores = (None if each is None else each[0] for each in (done.mask, done.scores))
        return Anonymized(done.video[0], mask, scores)

    def anonymize_batch(
        self, clips: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """Clips of one shape: (B, 3, T, H, W), float in [0, 1] or uint8. All that is returned has a leading B.

        The video has the type and device of the clips. Clips as long as the network's need one call of it. ValueError
        if what the network returns cannot be shown.
        """
        import torch

        check_knobs(keep, privacy_weight)
        check_clips(clips)
        if self.preprocess is not None:
            clips = self._preprocessed(clips)
        with torch.no_grad():
            found = self.process(clips.to(self.device), keep, privacy_weight)
            check_output(found, clips)
            video = found.video
            if clips.dtype == torch.uint8 and video.dtype != torch.uint8:
                video = (video * 255).round()
        there = clips.device
        mask, scores = (None if each is None else each.to(there) for each in (found.mask, found.scores))
        return Anonymized(video.to(there, clips.dtype), mask, scores)

    @abstractmethod
    def process(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Anonymized:
        """Clips on the method's device, after `preprocess`: (B, 3, T, H, W), float in [0, 1] or uint8. Returns a video
        of that shape in [0, 1], or in bytes of bytes; mask and scores are optional."""

    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        """Frames come out when the windows that cover them are complete: `plan.span` frames later, or fewer."""
        if self.fill not in ("black", "mean"):
            raise UsageError(
                f"{self.spec}: the fill {self.fill} needs a whole clip, which a stream does not have; take black"
            )
        return self._stream(frames if self.preprocess is None else self.preprocess.stream(frames))

    def _stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        segment = self.segment()
        for frame in frames:
            if frame.after_gap:  # frames before an outage say nothing about those after it
                yield from segment.end()
                segment = self.segment()
            yield from segment.take(frame)
        yield from segment.end()

    @abstractmethod
    def segment(self) -> "StreamSegment[Any]":
        """What takes the frames of a stream up to the next gap."""

    def _check_knobs(self, keep: float | None, privacy_weight: float | None) -> None:
        check_knobs(keep, privacy_weight)
        own = self.network.own
        for knob, value in (("keep", keep), ("privacy_weight", privacy_weight)):
            if value is not None and own is not None and knob not in own:
                raise UsageError(f"{self.spec} has no {knob}: leave it out")

    def _preprocessed(self, clips: "Tensor") -> "Tensor":
        """The clips after `preprocess`, in their own type."""
        import torch

        assert self.preprocess is not None
        whole = clips.dtype == torch.uint8
        shown = torch.stack([self.preprocess.anonymize(clip.float() / 255 if whole else clip).video for clip in clips])
        return (shown * 255).round().to(torch.uint8) if whole else shown


def check_knobs(keep: float | None, privacy_weight: float | None) -> None:
    if keep is not None and not 0 < keep <= 1:
        raise UsageError(f"keep is a share in (0, 1], got {keep:g}")
    if privacy_weight is not None and not privacy_weight >= 0:
        raise UsageError(f"the privacy weight is 0 or more, got {privacy_weight:g}")


def learned_in(method: Anonymizer) -> LearnedAnonymizer | None:
    """The method, or the first stage of it, that is learned; None if there is none with the class that they share."""
    if isinstance(method, Chain):  # hiding faces on top makes a chain of a chain
        return next(filter(None, map(learned_in, method.stages)), None)
    return method if isinstance(method, LearnedAnonymizer) else None


def tuned(
    method: Anonymizer, keep: float | None = None, privacy_weight: float | None = None, device: str | None = None
) -> Anonymizer:
    """The method with other knobs. Methods without knobs refuse them."""
    if learned_in(method) is None:
        refuse_knobs(method.spec, keep, privacy_weight)
        return method
    if isinstance(method, Chain):
        stages = method.stages
        return Chain([s if learned_in(s) is None else tuned(s, keep, privacy_weight, device) for s in stages])
    assert isinstance(method, LearnedAnonymizer)
    return method.tuned(keep, privacy_weight, device)


def loaded_unless_raw(spec: str) -> Anonymizer | None:
    """The method that is applied before a network."""
    if spec == RAW:
        return None
    method = load(spec)
    if method.unchanged:
        raise UsageError(f"preprocess: {spec} leaves pictures as they are; take one that hides, or raw")
    if method.weights is not None or learned_in(method) is not None:
        raise UsageError(f"preprocess: {spec} is learned itself; take one that is not, or raw")
    return method


def placed(network: Any, device: str) -> "torch.device":
    """The device of the network, with the network on it."""
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    there = torch.device(device)
    if there.type == "cuda" and (there.index or 0) >= torch.cuda.device_count():
        raise DeviceError(f"device {device}: no such CUDA device here; auto takes what there is")
    if isinstance(network, torch.nn.Module):
        network.to(there).eval()
    return there
