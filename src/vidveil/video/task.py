"""What a run does to every source: a method, where it works, and who is looked for."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vidveil.errors import UsageError
from vidveil.guard.watch import TRACKS, Lookout, Watch, kind_of
from vidveil.methods import Anonymizer, load
from vidveil.methods.anonymizer import Chain, FrameMethod
from vidveil.methods.masker import masker_in
from vidveil.methods.regional import InRegions, in_regions, paints
from vidveil.video.pipeline import Options


@dataclass(slots=True)
class Task:
    """The method as the user named it, and what came of it: bound to regions, guarded, with somebody on the watch."""

    named: Anonymizer
    options: Options
    method: Anonymizer = field(init=False)
    watch: Watch | None = field(init=False)

    def __post_init__(self) -> None:
        self.watch = self.options.lookout.watch()
        self.method = _arranged(self.named, self.options.lookout)

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
        wanted = (self.options.preview, self.options.heatmap, self.options.lookout.tracks_out)
        return [path for path in wanted if path is not None]

    def __str__(self) -> str:
        lookout = self.options.lookout
        where = "" if lookout.region in (None, "frame") else f" on {kind_of(str(lookout.region))}"
        if lookout.tracks_in is not None:
            where += f" of {lookout.tracks_in.name}"
        guard = "" if lookout.guard == "none" else f", guard {lookout.guard_with} on {kind_of(lookout.guard)}"
        turned = {name.replace("_", " "): value for name, value in (self.knobs or {}).items() if value is not None}
        knobs = f" ({', '.join(f'{name} {value}' for name, value in turned.items())})" if turned else ""
        return (
            f"method {self.spec}{knobs}{where}{guard}, weights {self.weights or 'none'}, device {self.options.device}"
        )


def with_lookout(options: Options, method: Anonymizer, region: str | None = None, guard: str | None = None) -> Options:
    """The options, with the region that stands for none: faces, where a method paints pictures."""
    lookout = options.lookout
    wanted = region or lookout.region
    if lookout.tracks_in is not None and wanted is None:
        if not paints(method):
            raise UsageError(f"{method.spec} does not work on regions, and so not on tracks")
        wanted = TRACKS
    elif wanted is None:
        wanted = "faces" if paints(method) else "frame"
    elif wanted != "frame" and not paints(method):
        instead = ": leave out --region" if method.elsewhere else "; --guard hides them on top of any method"
        raise UsageError(f"{method.spec} does not work on regions{instead}")
    lookout = replace(lookout, region=wanted, guard=guard or lookout.guard)
    return replace(options, lookout=lookout)


def _arranged(method: Anonymizer, lookout: Lookout) -> Anonymizer:
    """The method where it shall work, and the guard on top of it."""
    recorded = lookout.tracks_in is not None  # a file of tracks says all that is hidden, whatever its kind
    if lookout.region not in (None, "frame"):
        method = in_regions(method, None if recorded else {kind_of(str(lookout.region))})
    if lookout.guard != "none":
        if method.elsewhere:
            why = "shows nothing where it was filmed, and a guard would hide the wrong places"
            raise UsageError(f"{method.spec} {why}: leave it out")
        cover = load(lookout.guard_with)
        if not isinstance(cover, FrameMethod):
            raise UsageError(f"{lookout.guard_with} cannot hide a region: blur, pixelate or solid can")
        method = Chain([method, InRegions(cover, None if recorded else {kind_of(lookout.guard)})])
    return method
