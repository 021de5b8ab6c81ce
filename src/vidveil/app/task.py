"""What a run does to every source: a method, where it works, and who is looked for."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vidveil.app.pipeline import Options
from vidveil.core.anonymizer import Chain, FrameMethod
from vidveil.core.errors import UsageError
from vidveil.detect.settings import TRACKS, DetectionSettings, RegionSource, kind_of
from vidveil.methods import Anonymizer, load
from vidveil.methods.masking.masker import masker_in
from vidveil.methods.regional import InRegions, in_regions, paints


@dataclass(slots=True)
class Task:
    """The method as the user named it, and what came of it: bound to regions, guarded, with somebody on the watch."""

    named: Anonymizer
    options: Options
    method: Anonymizer = field(init=False)
    watch: RegionSource | None = field(init=False)

    def __post_init__(self) -> None:
        self.watch = self.options.detection.watch()
        method = self.named if self.options.size == "original" else unstretched(self.named)
        self.method = _arranged(method, self.options.detection)

    @property
    def spec(self) -> str:
        return self.named.spec

    @property
    def weights(self) -> str | None:
        """Everything learned that has a part in the output."""
        learned = [self.named.weights] if self.named.weights else []
        learned += self.watch.weights if self.watch else []
        return " + ".join(learned) or None

    @property
    def knobs(self) -> dict[str, Any] | None:
        """How a learned method is set."""
        masker = masker_in(self.named)
        return None if masker is None else masker.knobs

    @property
    def extras(self) -> list[Path]:
        """What is written beside output and manifest."""
        wanted = (self.options.preview, self.options.heatmap, self.options.detection.tracks_out)
        return [path for path in wanted if path is not None]

    def __str__(self) -> str:
        detection = self.options.detection
        where = "" if detection.region in (None, "frame") else f" on {kind_of(str(detection.region))}"
        if detection.tracks_in is not None:
            where += f" of {detection.tracks_in.name}"
        guard = "" if detection.guard == "none" else f", guard {detection.guard_with} on {kind_of(detection.guard)}"
        turned = {name.replace("_", " "): value for name, value in (self.knobs or {}).items() if value is not None}
        knobs = f" ({', '.join(f'{name} {value}' for name, value in turned.items())})" if turned else ""
        size = "" if self.options.size == "original" else f" at the {self.options.size}'s size"
        learned = f"weights {self.weights or 'none'}, device {self.options.device}"
        return f"method {self.spec}{knobs}{where}{size}{guard}, {learned}"


def with_detection(
    options: Options, method: Anonymizer, region: str | None = None, guard: str | None = None
) -> Options:
    """The options, with the region that stands for none: faces, where a method paints pictures."""
    detection = options.detection
    if options.size == "network":
        region = _over_the_whole_frame(options, method, region, guard)
    elif (masker := masker_in(method)) is not None and not masker.stretched:
        raise UsageError(f"{method.spec} draws at the network's size here: say size='network', or load it anew")
    wanted = region or detection.region
    if detection.tracks_in is not None and wanted is None:
        if not paints(method):
            raise UsageError(f"{method.spec} does not work on regions, and so not on tracks")
        wanted = TRACKS
    elif wanted is None:
        wanted = "faces" if paints(method) else "frame"
    elif wanted != "frame" and not paints(method):
        instead = ": leave out --region" if method.elsewhere else "; --guard hides them on top of any method"
        raise UsageError(f"{method.spec} does not work on regions{instead}")
    detection = replace(detection, region=wanted, guard=guard or detection.guard)
    return replace(options, detection=detection)


def _over_the_whole_frame(options: Options, method: Anonymizer, region: str | None, guard: str | None) -> str:
    """The one region of pictures of the network's size. Refuses what a user cannot have with them."""
    unstretched(method)
    detection = options.detection
    if options.preview is not None:
        raise UsageError(
            "--preview shows original and result side by side, and with --size network they have two sizes: "
            "take the preview without it, in a run of its own"
        )
    places = {
        "--guard": (guard or detection.guard) != "none",
        "--tracks-in": detection.tracks_in is not None,
        "--tracks-out": detection.tracks_out is not None,
        "--except": bool(detection.exceptions),
    }
    given = [name for name, there in places.items() if there]
    if given:
        why = "says where somebody is in the original, and with --size network the output has another size"
        raise UsageError(f"{given[0]} {why}: leave out one of the two")
    wanted = region or detection.region or ("faces" if paints(method) else "frame")
    if wanted != "frame":
        raise UsageError(f"--size network works on the whole frame, and not on {kind_of(wanted)}: say --region frame")
    return wanted


def unstretched(method: Anonymizer) -> Anonymizer:
    """The method, with what its network draws at the network's size. Refuses those that do not end with a drawing."""
    from vidveil.methods.stprivacy.anonymizer import Drawer  # PyTorch loads here

    stages = method.stages if isinstance(method, Chain) else (method,)
    drawn = False
    for stage in stages:
        if isinstance(stage, Drawer):
            drawn = True
        elif drawn and not stage.unchanged:
            why = f"is what the network draws, and {stage.spec} would change it afterwards"
            raise UsageError(f"what --size network writes {why}: leave out one of the two")
    if not drawn:
        why = f"and {method.spec} does not: leave it out"
        raise UsageError(f"--size network is for networks that draw (--method stprivacy:RUN), {why}")
    small = [stage.unstretched() if isinstance(stage, Drawer) else stage for stage in stages]
    return Chain(small) if isinstance(method, Chain) else small[0]


def _arranged(method: Anonymizer, detection: DetectionSettings) -> Anonymizer:
    """The method where it shall work, and the guard on top of it."""
    recorded = detection.tracks_in is not None  # a file of tracks says all that is hidden, whatever its kind
    if detection.region not in (None, "frame"):
        method = in_regions(method, None if recorded else {kind_of(str(detection.region))})
    if detection.guard != "none":
        if method.elsewhere:
            why = "shows nothing where it was filmed, and a guard would hide the wrong places"
            raise UsageError(f"{method.spec} {why}: leave it out")
        cover = load(detection.guard_with)
        if not isinstance(cover, FrameMethod):
            raise UsageError(f"{detection.guard_with} cannot hide a region: blur, pixelate or solid can")
        method = Chain([method, InRegions(cover, None if recorded else {kind_of(detection.guard)})])
    return method
