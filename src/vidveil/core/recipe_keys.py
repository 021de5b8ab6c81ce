"""The keys of a recipe: values, the sentence under each in its dataclass, and names that earlier versions had."""

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from vidveil.core.errors import RecipeError
from vidveil.core.progress import say
from vidveil.core.text import printable

RENAMED_KEYS = {
    "trunk_lr": "backbone_lr",
    "after": "preprocess",
    "company": "shown_share",
    "credit_weight": "attribution_weight",
}
"""Old key → new key, of recipes.

Old ones are read for one more version: in recipes, on the command line, in runs that are resumed and in checkpoints.
"""
RENAMED_OPTIONS = RENAMED_KEYS | {"trunk": "backbone"}
"""The same of the options of training, which are stored with its state: some are no keys of a recipe."""
RENAMED_VALUES = {"train_on": {"credit": "attribution"}}
"""Key → old value → new value."""


FREE = ("checkpoint_seconds", "device", "compile", "graphs")
"""Keys that may change between a run and its resumption: what it trains does not depend on them."""
ADDED_KEYS: Mapping[str, Any] = {"region": "frame", "keep": [], "privacy_weight": None, "fill": None}
"""Keys that some recipes did not have in earlier versions, with the value for what was done then."""


def differing_keys(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Keys in which two stored recipes, which may be of different versions, are those of different runs."""
    keys = (before.keys() | now.keys()) - set(FREE)
    return sorted(key for key in keys if before.get(key, ADDED_KEYS.get(key)) != now.get(key, ADDED_KEYS.get(key)))


def with_current_names(
    values: Mapping[str, Any], *, note: bool = True, renamed: Mapping[str, str] = RENAMED_KEYS
) -> dict[str, Any]:
    """A recipe's keys and values under their current names. With `note`, a line on stderr names each old one, once.

    RecipeError where a key is given under its old and its new name.
    """
    current: dict[str, Any] = {}
    for given, value in values.items():
        key = renamed.get(given, given)
        if key != given and key in values:
            raise RecipeError(f"{printable(given)} is the old name of {key}: give one of the two")
        new = RENAMED_VALUES.get(key, {}).get(value, value) if isinstance(value, str) else value
        if note and key != given:
            _note(given, key)
        if note and new != value:
            _note(f"{key}: {value}", f"{key}: {new}")
        current[key] = new
    return current


def with_old_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a recipe, or options of training, under their old names.

    For hashes: they must not change with a name, or no old run could resume.
    """
    old_keys = {new: old for old, new in RENAMED_OPTIONS.items()}
    old_values = {key: {new: old for old, new in renamed.items()} for key, renamed in RENAMED_VALUES.items()}
    return {
        old_keys.get(key, key): old_values.get(key, {}).get(value, value) if isinstance(value, str) else value
        for key, value in values.items()
    }


@cache
def _note(old: str, new: str) -> None:
    say(f"note: in recipes, `{old}` is now called `{new}`; the old name still works in this version, but not the next")


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    value: Any
    choices: tuple[str, ...]
    """The words to choose from, if its type is a Literal."""
    about: str
    """Its documentation, a sentence or two; empty if there is none."""


def keys(recipe: Any) -> list[Key]:
    """The keys of a recipe, in the order of its fields."""
    kind = type(recipe)
    hints, sentences = typing.get_type_hints(kind), about(kind)
    return [
        Key(field.name, getattr(recipe, field.name), choices(hints[field.name]), sentences.get(field.name, ""))
        for field in fields(kind)
    ]


def about(kind: type[Any]) -> dict[str, str]:
    """The docstring under each field of a dataclass and its bases; a subclass overrides its bases."""
    found: dict[str, str] = {}
    for part in reversed(kind.__mro__[:-1]):
        found |= dict(_documented(part))
    return found


def _documented(kind: type[Any]) -> Iterator[tuple[str, str]]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    for field, below in zip(body.body, body.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(sentence))):
                yield name, " ".join(sentence.split())


def choices(hint: Any) -> tuple[str, ...]:
    """The words of a Literal, also within a tuple or next to None."""
    if typing.get_origin(hint) is typing.Literal:
        return tuple(map(str, typing.get_args(hint)))
    if typing.get_origin(hint) in (tuple, typing.Union, types.UnionType):
        return next(filter(None, map(choices, typing.get_args(hint))), ())
    return ()
