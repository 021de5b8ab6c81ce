"""What a run does to every source: a method, where it works, and who is looked for."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

from vidveil.app.options import Options
from vidveil.core.anonymizer import Chain, FrameMethod
from vidveil.core.errors import UsageError
from vidveil.detect.settings import TRACKS, DetectionSettings, RegionSource, kind_of
from vidveil.methods import Anonymizer, load
from vidveil.methods.learned.anonymizer import LearnedAnonymizer, learned_in
from vidveil.methods.regional import InRegions, in_regions, paints


@dataclass(frozen=True, slots=True)
class Task:
    """Made by `task_of`."""

    named: Anonymizer
    """The method as the user named it."""
    options: Options
    """With a region in every case, and the device on which the method runs."""
    method: Anonymizer
    """The named one, in the regions where it works, and with what else is hidden on top of it."""
    region_source: RegionSource | None

    @property
    def spec(self) -> str:
        return self.named.spec

    @property
    def weights(self) -> str | None:
        """Everything learned that has a part in the output."""
        learned = [self.named.weights] if self.named.weights else []
        learned += self.region_source.weights if self.region_source else []
        return " + ".join(learned) or None

    @property
    def knobs(self) -> dict[str, Any] | None:
        """How a learned method is set."""
        return self.named.knobs

    @property
    def extras(self) -> list[Path]:
        """Files that are written in addition to output and manifest."""
        wanted = (self.options.preview, self.options.heatmap, self.options.detection.tracks_out)
        return [path for path in wanted if path is not None]

    def __str__(self) -> str:
        detection = self.options.detection
        where = "" if detection.region in (None, "frame") else f" on {kind_of(str(detection.region))}"
        if detection.tracks_in is not None:
            where += f" of {detection.tracks_in.name}"
        also = ""
        if detection.also_hide != "none":
            also = f", {detection.also_hide_with} on {kind_of(detection.also_hide)}"
        turned = {name.replace("_", " "): value for name, value in (self.knobs or {}).items() if value is not None}
        knobs = f" ({', '.join(f'{name} {value}' for name, value in turned.items())})" if turned else ""
        size = "" if self.options.size == "original" else f" at the {self.options.size}'s size"
        learned = f"weights {self.weights or 'none'}, device {self.options.device}"
        return f"method {self.spec}{knobs}{where}{size}{also}, {learned}"


def task_of(method: Anonymizer, options: Options) -> Task:
    """The task of a run. Raises UsageError where the method cannot do what the options ask for."""
    learned = learned_in(method)
    if options.size == "network":
        bound = unstretched(method)
        region = _over_the_whole_frame(options, method)
    elif learned is not None and not learned.stretched:
        raise UsageError(f"{method.spec} draws at the network's size here: say size='network', or load it anew")
    else:
        bound, region = method, _region(options.detection, method)
    detection = replace(options.detection, region=region)
    options = replace(options, detection=detection)
    if method.device is not None:
        options = replace(options, device=str(method.device))  # where its network is, whatever the options say
    return Task(method, options, _bound(bound, detection), detection.region_source())


def _region(detection: DetectionSettings, method: Anonymizer) -> str:
    """Where the method works: by default on faces, if it paints pictures."""
    wanted = detection.region
    if detection.tracks_in is not None and wanted is None:
        if not paints(method):
            raise UsageError(f"{method.spec} does not work on regions, and so not on tracks")
        return TRACKS
    if wanted is None:
        return "faces" if paints(method) else "frame"
    if wanted != "frame" and not paints(method):
        instead = ": leave out --region" if method.elsewhere else "; --also-hide hides them on top of any method"
        raise UsageError(f"{method.spec} does not work on regions{instead}")
    return wanted


def _over_the_whole_frame(options: Options, method: Anonymizer) -> str:
    """`frame`, the one region of pictures of the network's size. Refuses what a user cannot have with them."""
    detection = options.detection
    if options.preview is not None:
        raise UsageError(
            "--preview shows original and result side by side, and with --size network they have two sizes: "
            "take the preview without it, in a run of its own"
        )
    places = {
        "--also-hide": detection.also_hide != "none",
        "--tracks-in": detection.tracks_in is not None,
        "--tracks-out": detection.tracks_out is not None,
        "--leave-visible": bool(detection.leave_visible),
    }
    given = [name for name, there in places.items() if there]
    if given:
        why = "says where somebody is in the original, and with --size network the output has another size"
        raise UsageError(f"{given[0]} {why}: leave out one of the two")
    wanted = detection.region or ("faces" if paints(method) else "frame")
    if wanted != "frame":
        raise UsageError(f"--size network works on the whole frame, and not on {kind_of(wanted)}: say --region frame")
    return wanted


def unstretched(method: Anonymizer) -> Anonymizer:
    """The method, with what its network draws at the network's size. Refuses those that do not end with a drawing."""
    stages = method.stages if isinstance(method, Chain) else (method,)
    drawn = False
    for stage in stages:
        if _draws_videos(stage):
            drawn = True
        elif drawn and not stage.unchanged:
            why = f"is what the network draws, and {stage.spec} would change it afterwards"
            raise UsageError(f"what --size network writes {why}: leave out one of the two")
    if not drawn:
        why = f"and {method.spec} does not: leave it out"
        raise UsageError(f"--size network is for networks that draw (--method stprivacy:RUN), {why}")
    small = [stage.unstretched() if _draws_videos(stage) else stage for stage in stages]
    return Chain(small) if isinstance(method, Chain) else small[0]


def _draws_videos(stage: Anonymizer) -> TypeGuard[LearnedAnonymizer]:
    return isinstance(stage, LearnedAnonymizer) and stage.drawn_at is not None


def _bound(method: Anonymizer, detection: DetectionSettings) -> Anonymizer:
    """The method in the regions where it works, and what else is hidden on top of it."""
    recorded = detection.tracks_in is not None  # a file of tracks lists all that is hidden, whatever its kind
    if detection.region not in (None, "frame"):
        method = in_regions(method, None if recorded else {kind_of(str(detection.region))})
    if detection.also_hide != "none":
        if method.elsewhere:
            why = "shows nothing where it was filmed, and --also-hide would hide the wrong places"
            raise UsageError(f"{method.spec} {why}: leave it out")
        cover = load(detection.also_hide_with)
        if not isinstance(cover, FrameMethod):
            raise UsageError(f"{detection.also_hide_with} cannot hide a region: blur, pixelate or solid can")
        method = Chain([method, InRegions(cover, None if recorded else {kind_of(detection.also_hide)})])
    return method
