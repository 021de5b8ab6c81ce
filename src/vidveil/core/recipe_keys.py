"""The keys of a recipe, what they are set to, and the sentence that stands under each in its dataclass."""

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    value: Any
    choices: tuple[str, ...]
    """What it may be, where that is a list of words."""
    about: str
    """A sentence or two; empty where the name says it."""


def keys(recipe: Any) -> list[Key]:
    """Of a recipe that was read, in the order in which they are documented."""
    kind = type(recipe)
    hints, sentences = typing.get_type_hints(kind), about(kind)
    return [
        Key(field.name, getattr(recipe, field.name), choices(hints[field.name]), sentences.get(field.name, ""))
        for field in fields(kind)
    ]


def about(kind: type[Any]) -> dict[str, str]:
    """The string under each field, of a dataclass and those it is made of; the nearest one counts."""
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
    """The words of a Literal, also of one within a tuple or beside None."""
    if typing.get_origin(hint) is typing.Literal:
        return tuple(map(str, typing.get_args(hint)))
    if typing.get_origin(hint) in (tuple, typing.Union, types.UnionType):
        return next(filter(None, map(choices, typing.get_args(hint))), ())
    return ()
