"""Methods by name. METHOD is `NAME[:ARG]`, or several one after the other: `"blur:strong | stride:5"`.

A learned method is `NAME:CHECKPOINT`; the checkpoint alone will do, since it says what it is one of.
"""

from functools import partial
from typing import TYPE_CHECKING

from vidveil.core.anonymizer import Anonymized, Anonymizer, Chain
from vidveil.core.errors import UsageError
from vidveil.core.registry import DEFAULT, METHODS, Method
from vidveil.core.text import printable

if TYPE_CHECKING:
    from vidveil.methods.regional import FindRegions

__all__ = [
    "DEFAULT",
    "METHODS",
    "Anonymized",
    "Anonymizer",
    "Chain",
    "Method",
    "is_learned",
    "load",
    "works_on_features",
]


def is_learned(name: str) -> bool:
    """Whether what stands behind the colon of this method is a run or the folder of a checkpoint."""
    return METHODS[name].learned != "no"


def works_on_features(spec: str) -> bool:
    """Whether this method is for stored features: by its name, or since it is a checkpoint of one that is."""
    name = spec.partition(":")[0].strip()
    method = name if name in METHODS else _of_checkpoint(spec)
    return method is not None and method in METHODS and METHODS[method].learned == "on features"


def load(spec: str, *, region: str = "frame", find_regions: "FindRegions | None" = None) -> Anonymizer:
    """The method that `spec` describes, ready for use on clips.

    `region` says where it works: `frame`, `faces`, `people`, or the path of an ONNX detector. For files and streams
    leave it alone: `vidveil.anonymize` takes a region of its own. `find_regions` returns the regions of a clip; by
    default each clip is searched.
    """
    stages = [_load_one(part.strip()) for part in spec.split("|")]
    for stage in stages[1:]:
        if stage.preprocess is not None:
            raise UsageError(f"{stage.spec} applies {stage.preprocess.spec} by itself, and must come first")
    method = stages[0] if len(stages) == 1 else Chain(stages)
    return method if region == "frame" else _on_region(method, region, find_regions)


def _on_region(method: Anonymizer, region: str, find_regions: "FindRegions | None") -> Anonymizer:
    from vidveil.detect.settings import DetectionSettings, kind_of, regions_of
    from vidveil.methods.regional import in_regions, paints

    if not paints(method):
        raise UsageError(f"{method.spec} does not work on regions")
    source = DetectionSettings(region=region).region_source()
    assert source is not None
    bound = in_regions(method, {kind_of(region)}, find_regions or partial(regions_of, source=source))
    bound.weights = " + ".join(source.weights)
    return bound


def _load_one(spec: str) -> Anonymizer:
    if not spec:
        raise UsageError("a method is missing: write NAME[:ARG], or several with | between them")
    name, colon, argument = spec.partition(":")
    name = name.strip()
    if name not in METHODS and (method := _of_checkpoint(spec)) is not None:
        if method not in METHODS:
            raise UsageError(
                f"{spec} is a checkpoint of {printable(repr(method))}, a method that this vidveil does not have"
            )
        return _built(method, f"{method}:{spec}", spec)
    usage = METHODS.lookup(name).usage
    if colon and not argument.strip():
        raise UsageError(f"{spec}: something is missing after the colon; write {usage}")
    return _built(name, spec, argument.strip() or None)


def _built(name: str, spec: str, argument: str | None) -> Anonymizer:
    method = METHODS[name]
    if method.learned == "on features":  # named, so that it is found; but there is nothing that it could do to pixels
        raise UsageError(
            f"{name} works on stored features, not on video: `vidveil anonymize STORE --method {name}:RUN`, where "
            "STORE is what `vidveil extract` made, an HDF5 file, or .npy files"
        )
    if method.learned == "no":
        built: Anonymizer = method.build(spec, argument)
        return built
    if argument is None:
        raise UsageError(f"{name} needs a checkpoint{_where_from(name)}")
    from vidveil.models.checkpoint import find

    checkpoint = find(argument)
    if checkpoint.method != name:
        raise UsageError(f"{printable(argument, 300)} is a checkpoint of {printable(checkpoint.method)}, not of {name}")
    learned: Anonymizer = method.build(checkpoint)
    learned.limits = checkpoint.limits  # whatever its class, also of other packages
    if learned.weights is None:
        learned.weights = checkpoint.weights
    return learned


def _where_from(name: str) -> str:
    """Of which checkpoint, or what makes one."""
    from vidveil.core.recipe import names
    from vidveil.models.checkpoint import locate

    if locate(name) is not None:
        return f", such as that of the run {name}: {name}:{name}"
    run = f"{name}_puppets"
    return f": `vidveil train {run}`, then {name}:{run}" if run in names("train") else f": {name}:RUN"


def _of_checkpoint(spec: str) -> str | None:
    """The method that this is a checkpoint of, if it is one."""
    from vidveil.models.checkpoint import find, locate

    return None if locate(spec) is None else find(spec).method
