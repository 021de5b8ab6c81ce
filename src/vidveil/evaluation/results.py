"""`results.json`: what an evaluation found, for people and other programs. docs/results.md describes the layout.

A result is a list of points, one per setting of the method; raw video stands next to them. A point has metrics, and
every metric carries its floor, its interval, each seed's value and who measured it: a number never travels alone.
"""

import json
import math
from collections.abc import Container
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from vidveil.core.atomic import write_text
from vidveil.core.bounded import RESULTS_BYTES, RESULTS_VALUES, is_file, read_json_object, reason
from vidveil.core.errors import DataError, RecipeError
from vidveil.core.recipe_keys import with_current_names
from vidveil.core.text import printable
from vidveil.core.typed import from_values
from vidveil.data.description import UTILITY_METRICS, UtilityMetric
from vidveil.training.runs import runs_folder

LAYOUT = 1
LONGEST = 500
"""Characters of a word in results."""
ByView = dict[str, dict[str, dict[str, float]]]
Kind = Literal["utility", "leakage", "gap", "control", "truth"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    kind: Kind
    value: float
    """Mean over seeds, on test."""
    seeds: list[float]
    """Each seed's value, in the order of the recipe."""
    interval: list[float]
    """95 %, cluster bootstrap over test people, of the mean over seeds."""
    floor: float
    """What knowing nothing gives: the mean under permuted labels with the same scores."""
    floor_range: list[float]
    """95 % of what permuted labels give."""
    floor_analytic: float
    """The same from counts alone: largest class, prevalence, expected hit of a random neighbour."""
    measured_by: str
    """The recognizer or attacker behind the value, chosen on validation."""
    p: float | None = None
    """Share of permutations of the labels that reach the value; null where nothing is permuted."""
    raw: float | None = None
    """The same metric on raw video, by its own strongest attacker."""
    raw_interval: list[float] | None = None
    excess: float | None = None
    """Leakage: (value − floor) / (raw − raw's floor): 1 as leaky as raw video, 0 at the floor."""
    excess_interval: list[float] | None = None
    retention: float | None = None
    """Utility: value / raw."""
    retention_interval: list[float] | None = None
    change: float | None = None
    """value − raw, on the same test people."""
    change_interval: list[float] | None = None
    """95 %, of the paired difference: both numbers in each draw of people."""
    others: dict[str, dict[str, float]] = field(default_factory=dict)
    """Every attacker that tried: `{"test": …, "val": …}`."""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One setting of a method."""

    method: str
    keep: float | None
    metrics: dict[str, Metric]
    attribute_excess: float | None = None
    """Over the measurable attributes together: sum of (value − floor) over sum of (raw − floor). Of many: of cMAP."""
    attribute_excess_interval: list[float] | None = None
    not_measurable: list[str] = field(default_factory=list)
    """Attributes whose raw value is too near its floor to say anything; `cmap` where that is so of many together."""
    constant: list[str] = field(default_factory=list)
    """Attributes that are the same in all test clips: left out."""
    by_view: ByView = field(default_factory=dict)
    """Of gaits: rank-1 by condition, view of the probe and view of the gallery."""
    kept_as_filmed: bool | None = None
    """Whether what a mask keeps is shown as it was filmed, and not drawn anew or after another method; None where there
    is no mask, and in results of earlier versions."""
    verdict: str = ""

    @property
    def utility(self) -> Metric | None:
        """How well the action is predicted, where that was measured."""
        name = utility_in(self.metrics)
        return None if name is None else self.metrics[name]


@dataclass(frozen=True, kw_only=True)
class Results:
    name: str
    recipe: dict[str, Any]
    data: dict[str, Any]
    """Name, fingerprint, clips and people in each split."""
    machine: dict[str, Any]
    seconds: float
    raw: Point
    points: list[Point]
    """The method at each of its settings; empty where raw video itself was asked for."""
    controls: dict[str, Metric] = field(default_factory=dict)
    cost: dict[str, dict[str, float]] = field(default_factory=dict)
    """A network: parameters, seconds of training."""
    layout: int = LAYOUT

    def write(self, path: Path) -> None:
        values = asdict(self)
        values["recipe"] = {key: _setting(value) for key, value in self.recipe.items()}
        text = json.dumps(_plain(values), indent=1, allow_nan=False)
        write_text(path, text + "\n")


def locate(run: str) -> Path:
    """The results of a run: by its name, its folder, or the file itself."""
    path = Path(run)
    if path.suffix == ".json":
        return path
    folders = [path, runs_folder() / run]
    return next((folder for folder in folders if is_file(folder / "results.json")), folders[-1]) / "results.json"


def read(path: Path) -> Results:
    """DataError with one line about whatever is wrong with the file. Old names of recipe keys become the current ones,
    with a note."""
    try:
        values = _shown(read_json_object(path, RESULTS_BYTES, RESULTS_VALUES))
        if values.get("layout") != LAYOUT:
            layout = printable(values.get("layout"))
            raise DataError(f"{printable(path, 300)} has layout {layout}, this vidveil reads {LAYOUT}")
        return from_values(Results, _known(values), null=True)
    except FileNotFoundError:
        raise DataError(f"there are no results at {printable(path, 300)}") from None
    except (OSError, ValueError, RecipeError) as error:
        why = reason(error) if isinstance(error, OSError) else f"is not a result of `vidveil evaluate` ({error})"
        raise DataError(f"{printable(path, 300)} {why}") from error


def utility_in(names: Container[str]) -> UtilityMetric | None:
    """Which number of the action is among these."""
    return next((name for name in UTILITY_METRICS if name in names), None)


def _shown(value: Any) -> Any:
    """Words may have been edited, and are printed in tables."""
    if isinstance(value, dict):
        return {printable(key, LONGEST): _shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return printable(value, LONGEST) if isinstance(value, str) else value


def _known(values: dict[str, Any]) -> dict[str, Any]:
    """What a later vidveil may have added is passed over."""
    found: dict[str, Any] = _named(Results, values)
    for key in ("raw", "points", "controls"):
        if key not in found:
            raise ValueError(f"{key} is missing")
    found["raw"] = _point(found["raw"])
    if isinstance(found["points"], list):
        found["points"] = [_point(point) for point in found["points"]]
    found["controls"] = _metrics(found["controls"])
    if isinstance(found.get("recipe"), dict):
        found["recipe"] = with_current_names(found["recipe"])
    return found


def _point(values: Any) -> Any:
    found = _named(Point, values)
    return found | {"metrics": _metrics(found.get("metrics"))} if isinstance(found, dict) else found


def _metrics(values: Any) -> Any:
    return {name: _named(Metric, metric) for name, metric in values.items()} if isinstance(values, dict) else values


def _named(kind: type, values: Any) -> Any:
    """The entries that a dataclass has a field for."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in values.items() if name in names} if isinstance(values, dict) else values


def _setting(value: Any) -> Any:
    """A knob may be at infinity, which JSON does not know: then it is a word, which a recipe may hold."""
    return "inf" if isinstance(value, float) and math.isinf(value) and value > 0 else value


def _plain(value: Any) -> Any:
    """JSON knows no NaN: what could not be measured is null. Six digits are more than any of these figures has."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return None if not math.isfinite(value) else float(f"{value:.6g}")
    return value
