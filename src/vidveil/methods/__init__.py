"""Methods by name. METHOD is `NAME[:ARG]`, or several one after the other: `"blur:strong | stride:5"`.

A learned method is `NAME:CHECKPOINT`; the checkpoint alone will do, since it says what it is one of.
"""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from vidveil.core.anonymizer import Anonymized, Anonymizer, Chain
from vidveil.core.errors import UsageError
from vidveil.core.text import printable
from vidveil.methods import classical
from vidveil.methods.figure import Figure
from vidveil.methods.motion import Motion
from vidveil.methods.recast import Recast

if TYPE_CHECKING:
    from vidveil.methods.regional import Watcher

__all__ = ["DEFAULT", "METHODS", "Anonymized", "Anonymizer", "Chain", "Method", "is_learned", "load"]

DEFAULT = "blur:strong"


@dataclass(frozen=True, slots=True)
class Method:
    build: Callable[[str, str | None], Anonymizer]
    """From the method as written and what stands behind its colon."""
    usage: str
    summary: str


def _learned(spec: str, argument: str | None) -> Anonymizer:
    """A method with weights of its own."""
    name = spec.partition(":")[0].strip()
    if argument is None:
        raise UsageError(f"{name} needs a checkpoint: `vidveil train {name}_puppets`, then {name}:{name}_puppets")
    from vidveil.models.checkpoint import find

    checkpoint = find(argument)
    if checkpoint.method != name:
        raise UsageError(f"{printable(argument, 300)} is a checkpoint of {printable(checkpoint.method)}, not of {name}")
    built: Anonymizer = import_module(f"vidveil.methods.{name}_anonymizer").load(checkpoint)
    return built


def _on_features(spec: str, argument: str | None) -> Anonymizer:  # noqa: ARG001
    """Named, so that it is found; but there is nothing that it could do to pixels."""
    name = spec.partition(":")[0].strip()
    raise UsageError(
        f"{name} works on stored features, not on video: `vidveil anonymize STORE --method {name}:RUN`, where STORE is "
        "what `vidveil extract` made, an HDF5 file, or .npy files"
    )


METHODS = {
    "blur": Method(
        classical.Blur, "blur:weak|strong|N", "Gaussian blur, σ a 32nd, 16th or N-th of the frame (default strong)"
    ),
    "pixelate": Method(classical.Pixelate, "pixelate:N", "mosaic of blocks of N pixels (default 16)"),
    "downsample": Method(
        classical.Downsample, "downsample:N", "N times fewer pixels each way, drawn at the old size (default 2)"
    ),
    "solid": Method(classical.Solid, "solid", "black: what remains is the length of the video"),
    "motion": Method(
        Motion, "motion:N", "what changed since the frame before, in grey, in blocks of N pixels (default 1)"
    ),
    "figure": Method(
        Figure, "figure:N", "what moves, in the middle and at one size, in N blocks along the short side (default 8)"
    ),
    "recast": Method(
        Recast, "recast:N,D", "a figure of N blocks (5), turned by up to D degrees (40) and stretched, by lot"
    ),
    "dual_cls": Method(
        _learned, "dual_cls:RUN|FOLDER", "two tokens decide tubelet by tubelet what may stay (train it first)"
    ),
    "stprivacy": Method(
        _learned,
        "stprivacy:RUN|FOLDER",
        "what an action does not need is dropped, the rest drawn anew (train it first)",
    ),
    "splavu": Method(
        _on_features, "splavu:RUN|FOLDER", "an adapter of stored features, not of pixels (train it first)"
    ),
    "stride": Method(classical.Stride, "stride:N", "every N-th frame, unchanged: combine it with another (default 5)"),
}


def is_learned(name: str) -> bool:
    """Whether what stands behind the colon of this method is a run or the folder of a checkpoint."""
    return METHODS[name].build in (_learned, _on_features)


def load(spec: str, *, region: str = "frame", watch: "Watcher | None" = None) -> Anonymizer:
    """The method that `spec` describes, ready for use on clips.

    `region` says where it works: `frame`, `faces`, `people`, or the path of an ONNX detector. For files and streams
    leave it alone: `vidveil.anonymize` takes a region of its own. `watch` knows where that is in a clip; by default
    each clip is searched.
    """
    stages = [_load_one(part.strip()) for part in spec.split("|")]
    if again := next((stage for stage in stages[1:] if getattr(stage, "after", None)), None):
        raise UsageError(f"{again.spec} goes through {again.after.spec} by itself, and must come first")  # type: ignore[attr-defined]
    method = stages[0] if len(stages) == 1 else Chain(stages)
    return method if region == "frame" else _on_region(method, region, watch)


def _on_region(method: Anonymizer, region: str, watcher: "Watcher | None") -> Anonymizer:
    from vidveil.detect.watch import Lookout, kind_of, regions_of
    from vidveil.methods.regional import in_regions, paints

    if not paints(method):
        raise UsageError(f"{method.spec} does not work on regions")
    watch = Lookout(region=region).watch()
    assert watch is not None
    bound = in_regions(method, {kind_of(region)}, watcher or partial(regions_of, watch=watch))
    bound.weights = " + ".join(watch.weights)
    return bound


def _checkpoint(spec: str) -> str | None:
    """The method that this is a checkpoint of, if it is one."""
    from vidveil.models.checkpoint import find, locate

    return None if locate(spec) is None else find(spec).method


def _load_one(spec: str) -> Anonymizer:
    if not spec:
        raise UsageError("a method is missing: write NAME[:ARG], or several with | between them")
    name, colon, argument = spec.partition(":")
    name = name.strip()
    if name not in METHODS and (checkpoint := _checkpoint(spec)) is not None:
        if checkpoint not in METHODS:
            raise UsageError(
                f"{spec} is a checkpoint of {printable(repr(checkpoint))}, a method that this vidveil does not have"
            )
        return METHODS[checkpoint].build(f"{checkpoint}:{spec}", spec)
    if name not in METHODS:
        close = get_close_matches(name[:100], METHODS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(METHODS)}"
        raise UsageError(f"no method is called {printable(repr(name))}; {hint}")
    if colon and not argument.strip():
        raise UsageError(f"{spec}: something is missing after the colon; write {METHODS[name].usage}")
    return METHODS[name].build(spec, argument.strip() or None)
