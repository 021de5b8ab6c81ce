"""Names of the previous version, which are still understood in this one: of options, of keywords and in manifests."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

FIELDS = {"guard": "also_hide", "guard_with": "also_hide_with", "exceptions": "leave_visible"}
"""Of detection settings."""
OPTIONS = {"--guard": "--also-hide", "--guard-with": "--also-hide-with", "--except": "--leave-visible"}


def renamed_note(old: str, new: str) -> str:
    return f"{old} is now called {new}; the next version no longer knows {old}"


def with_old_keyword(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which also takes `also_hide` by its old name, with a warning."""

    @wraps(function)
    def renamed(*args: P.args, **keywords: P.kwargs) -> R:
        if "guard" in keywords:
            warnings.warn(renamed_note("guard", "also_hide"), FutureWarning, stacklevel=2)
            keywords["also_hide"] = keywords.pop("guard")
        return function(*args, **keywords)

    return renamed


def manifest_with_current_names(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest of layout 2, which had `guard` for `detection` and `order.lookout` for `order.detection`."""
    found = {("detection" if name == "guard" else name): value for name, value in manifest.items()}
    if isinstance(found.get("order"), dict) and "lookout" in found["order"]:
        order = dict(found["order"])
        order["detection"] = _renamed(order.pop("lookout"), FIELDS)
        found["order"] = order
    return found


def order_with_old_names(order: dict[str, Any]) -> dict[str, Any]:
    """The order of a manifest, as layout 2 had it."""
    values = dict(order)
    values["lookout"] = _renamed(values.pop("detection"), {new: old for old, new in FIELDS.items()})
    return values


def _renamed(settings: Any, names: dict[str, str]) -> Any:
    if not isinstance(settings, dict):  # nobody was looked for, or the manifest is damaged
        return settings
    return {names.get(name, name): value for name, value in settings.items()}
