"""Dataclasses from the values of an untrusted file, with every name and every type checked.

    from_values(Order, {"method": "solid", …})

A mismatch is a `ValueError` with a reason of one line, for example `frames is text, not a number`.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

from vidveil.core.bounded import kind_of
from vidveil.core.text import printable

T = TypeVar("T")
PLAIN = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def from_values(kind: type[T], values: object, *, null: bool = False) -> T:
    """`kind(**values)`. Lists become tuples and objects dataclasses where the fields say so. With `null`, a number may
    be null, which results write for what could not be measured."""
    if not isinstance(values, Mapping):
        raise ValueError(f"holds {kind_of(values)} in the place of an object")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := next((name for name in values if name not in known), None):
        raise ValueError(f"{printable(repr(unknown))} is unknown; there are {', '.join(sorted(known))}")
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{name} is missing")
    hints = typing.get_type_hints(kind)
    return kind(**{name: typed(value, hints[name], name, null) for name, value in values.items()})


def typed(value: Any, hint: Any, name: str, null: bool = False) -> Any:
    """`value` converted to its type hint; `name` is for the message."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or (value is None and (hint is type(None) or (null and hint is float))):
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (inner,) = [part for part in arguments if part is not type(None)]
        return typed(value, inner, name, null)
    if origin is typing.Literal:
        if not any(value == one and type(value) is type(one) for one in arguments):
            raise ValueError(f"{name} is {' or '.join(map(repr, arguments))}, not {printable(repr(value))}")
        return value
    if origin in (list, tuple) and isinstance(value, list | tuple):
        made = [typed(item, arguments[0], f"an entry of {name}", null) for item in value]
        return made if origin is list else tuple(made)
    if isinstance(origin, type) and issubclass(dict, origin) and isinstance(value, dict):
        return {key: typed(item, arguments[1], f"{name}.{printable(key, 40)}", null) for key, item in value.items()}
    if is_dataclass(hint):
        return from_values(typing.cast(Any, hint), value, null=null)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        wanted = PLAIN.get(hint, "a list" if origin in (list, tuple) else "an object")
        raise ValueError(f"{name} is {kind_of(value)}, not {wanted}")
    return value
