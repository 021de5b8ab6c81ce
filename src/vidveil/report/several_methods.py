"""Results of a run with several methods, one part per method: a curve, or a row of a comparison, is of one method."""

from collections.abc import Sequence
from dataclasses import replace

from vidveil.evaluation.results import Point, Results


def methods_of(results: Results) -> list[str]:
    """The methods that a run was asked for, without raw."""
    asked = results.recipe.get("method", [])
    listed = [asked] if isinstance(asked, str) else asked
    return [str(method) for method in listed if method != "raw"] if isinstance(listed, list) else []


def by_method(results: Results) -> list[Results]:
    """The same results, once per method, called `RUN/METHOD`; a run with one method as it is."""
    methods = methods_of(results)
    if len(methods) < 2:
        return [results]
    return [
        replace(results, name=f"{results.name}/{method}", points=_points_of(method, results.points, methods))
        for method in methods
    ]


def _points_of(method: str, points: Sequence[Point], methods: Sequence[str]) -> list[Point]:
    """Also those of what was recovered after it, whose names go on after its own: `METHOD inverted by pairs`."""

    def owner(name: str) -> str:
        return max((one for one in methods if name == one or name.startswith(f"{one} ")), key=len, default="")

    return [point for point in points if owner(point.method) == method]
