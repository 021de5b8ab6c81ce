"""Names of the previous version, which are still understood in this one: of options, of keywords and in manifests."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from vidveil.core.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")

FIELDS = {"guard": "also_hide", "guard_with": "also_hide_with", "exceptions": "leave_visible"}
"""Of detection settings."""
KNOBS = {"after": "preprocess"}
FRAMES = {"times_mended": "times_corrected"}
OPTIONS = {"--guard": "--also-hide", "--guard-with": "--also-hide-with", "--except": "--leave-visible"}


def renamed_note(old: str, new: str) -> str:
    return f"{old} is now called {new}; the next version no longer knows {old}"


def with_old_keyword(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which also takes `also_hide` by its old name, with a warning."""

    @wraps(function)
    def renamed(*args: P.args, **keywords: P.kwargs) -> R:
        if "guard" in keywords and "also_hide" in keywords:
            raise UsageError("guard is the old name of also_hide: give one of the two")
        if "guard" in keywords:
            warnings.warn(renamed_note("guard", "also_hide"), FutureWarning, stacklevel=2)
            keywords["also_hide"] = keywords.pop("guard")
        return function(*args, **keywords)

    return renamed


def manifest_with_current_names(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest of layout 2, which had `guard` for `detection` and `order.lookout` for `order.detection`."""
    found = {("detection" if name == "guard" else name): value for name, value in manifest.items()}
    if isinstance(found.get("order"), dict):
        order = dict(found["order"])
        if "lookout" in order:
            order["detection"] = _renamed(order.pop("lookout"), FIELDS)
        if "knobs" in order:
            order["knobs"] = _renamed(order["knobs"], KNOBS)
        found["order"] = order
    if "frames" in found:
        found["frames"] = _renamed(found["frames"], FRAMES)
    detection = found.get("detection")
    if isinstance(detection, dict) and isinstance(detection.get("moments"), list):
        moments = [_first_seen(moment) for moment in detection["moments"]]
        found["detection"] = detection | {"moments": moments}
    return found


def order_with_old_names(order: dict[str, Any]) -> dict[str, Any]:
    """The order of a manifest, as layout 2 had it."""
    values = dict(order)
    values["lookout"] = _renamed(values.pop("detection"), {new: old for old, new in FIELDS.items()})
    values["knobs"] = _renamed(values["knobs"], {new: old for old, new in KNOBS.items()})
    return values


def _first_seen(moment: Any) -> Any:
    is_old = isinstance(moment, dict) and moment.get("what") == "born mid-picture"
    return moment | {"what": "first seen mid-picture"} if is_old else moment


def _renamed(settings: Any, names: dict[str, str]) -> Any:
    if not isinstance(settings, dict):  # nobody was looked for, or the manifest is damaged
        return settings
    return {names.get(name, name): value for name, value in settings.items()}
