"""Recipes: one flat YAML file each, read strictly into a frozen dataclass that documents every field.

    recipe = read(find("raw_puppets"), ["seeds=[0,1,2]"])

The first key, `verb`, says which command a recipe is for. An unknown key or a value of the wrong kind is an error that
names the file, the key and what was probably meant. `key=value` on the command line overrides a field; values are
written as in YAML.
"""

import math
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

from vidveil.core.bounded import YAML_BYTES, is_there, parse_real, parse_yaml, read_text, reason
from vidveil.core.errors import RecipeError
from vidveil.core.recipe_keys import with_current_names
from vidveil.core.registry import PROTOCOLS, TRAININGS, Registry, Runnable, resolve
from vidveil.core.text import close_to, printable

LARGEST = 2**32 - 1
"""The largest whole number: random generators take no larger seeds, and no other value is as large."""
VERBS: dict[str, tuple[str, str, Registry[Runnable]]] = {
    "evaluate": ("protocol", "attack", PROTOCOLS),
    "train": ("method", "recognizer", TRAININGS),
}
"""For each verb: the key that chooses what to run, its default, and the table of choices."""
FOLDER = Path(__file__).parents[1] / "recipes"
ONE_AS_WORD = "method"
"""The key whose single value is stored without a list, as it was when it could not have several."""


def names(verb: str | None = None) -> list[str]:
    """Names of the recipes that come with vidveil; with `verb`, of those for this command."""
    found = sorted(FOLDER.glob("*.yaml"))
    return [path.stem for path in found if verb is None or f"\nverb: {verb}\n" in _text(path)]


def find(name: str) -> Path:
    """The path of a recipe by its name, or that of a user's own YAML file."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not is_there(path):
            raise RecipeError(f"there is no recipe at {printable(path)}")
        return path
    if name not in names():
        hint = close_to(name, names(), "`vidveil ls recipes` lists them.")
        raise RecipeError(
            f"no recipe is called {_shown(name)}; {hint} A recipe of your own is the path of a .yaml file"
        )
    return FOLDER / f"{name}.yaml"


def header(path: Path) -> str:
    """The first line of the opening comment: what the recipe does and what to expect."""
    first = _text(path).partition("\n")[0]
    return first.lstrip("# ").strip() if first.startswith("#") else ""


def read_for(verb: str, path: Path, overrides: Sequence[str] = ()) -> Any:
    """`read`, for a recipe of this verb. RecipeError for one of another verb."""
    recipe = read(path, overrides)
    if (other := verb_of(recipe)) != verb:
        raise RecipeError(f"{path.name} is a recipe for `vidveil {other}`, not for `vidveil {verb}`")
    return recipe


def verb_of(recipe: Any) -> str:
    """The command that carries it out."""
    return str(recipe.verb)


def runner_of(recipe: Any) -> Any:
    """The function that runs a recipe: it takes the recipe, and root, resume, strict and console by keyword."""
    key, default, table = VERBS[verb_of(recipe)]
    return resolve(table[getattr(recipe, key, default)].run)


def read(path: Path, overrides: Sequence[str] = ()) -> Any:
    """The recipe as the dataclass of its verb, with overrides applied and all values checked."""
    try:
        values = parse_yaml(_text(path))
    except ValueError as error:
        raise RecipeError(f"{path.name} {error}") from error
    if not isinstance(values, dict):
        raise RecipeError(f"{path.name} must be lines of `key: value`")
    try:
        changed = with_current_names(values) | with_current_names(dict(_override(text) for text in overrides))
    except RecipeError as error:
        raise RecipeError(f"{path.name}: {error}") from None
    verb = changed.pop("verb", None)
    if not isinstance(verb, str) or verb not in VERBS:
        raise RecipeError(f"{path.name} must begin with `verb: {'` or `verb: '.join(VERBS)}`, not {_shown(verb)}")
    key, default, table = VERBS[verb]
    chosen = changed.get(key, default)
    if not isinstance(chosen, str) or chosen not in table:
        raise RecipeError(f"{path.name}: {key} must be {' or '.join(table)}, not {_shown(chosen)}")
    changed.setdefault("name", path.stem)
    return build(resolve(table[chosen].recipe), changed, path.name)


def build(kind: type[Any], values: dict[str, Any], where: str) -> Any:
    """`kind(**values)`, after checking every key and the type of every value. RecipeError begins with `where`."""
    known = {field.name: field for field in fields(kind)}
    hints = typing.get_type_hints(kind)
    for key in values:
        if key not in known:
            raise RecipeError(f"{where}: nothing is called {_shown(key)}; {close_to(str(key), known)}")
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise RecipeError(f"{where}: {name} is missing")
    for name in ("seed", "seeds", "data_seed"):
        given = values.get(name)
        if any(type(seed) is int and seed < 0 for seed in (given if isinstance(given, list | tuple) else [given])):
            raise RecipeError(f"{where}: {name} must be 0 or more")
    try:
        return kind(**{key: _as(hints[key], value, f"{where}: {key}") for key, value in values.items()})
    except RecipeError as error:
        raise RecipeError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None


def as_values(recipe: Any) -> dict[str, Any]:
    """For results and checkpoints: plain values that JSON can hold."""
    return {key: _plain(key, value) for key, value in asdict(recipe).items()}


def _plain(key: str, value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return value[0] if key == ONE_AS_WORD and len(value) == 1 else list(value)


def _text(path: Path) -> str:
    try:
        return read_text(path, YAML_BYTES)
    except (OSError, ValueError) as error:
        raise RecipeError(f"{printable(path.name)} {reason(error)}") from error


def _shown(value: object) -> str:
    """A value as messages show it."""
    return printable(repr(value))


def _override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise RecipeError(f"{_shown(text)}: write key=value, as in seeds=[0,1,2]")
    try:
        if re.fullmatch(r"\s*[\w.-]+:\s*", value):  # to YAML that would be a mapping
            raise RecipeError(f"{_shown(text)}: something is missing after the colon")
        return key.strip(), parse_yaml(value) if value.strip() else ""  # a shell removes the quotes of raw=''
    except ValueError as error:
        raise RecipeError(f"{_shown(text)}: the value {error}") from error


def _as(hint: Any, value: Any, where: str) -> Any:
    """`value` converted to the type of the hint: an int may stand for a float, a list becomes a tuple."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value in (None, "") and type(None) in arguments:
            return None
        (inner,) = [part for part in arguments if part is not type(None)]
        return _as(inner, value, where)
    if origin is typing.Literal:
        if value not in arguments:
            raise RecipeError(f"{where} must be {' or '.join(map(str, arguments))}, not {_shown(value)}")
        return value
    if origin is tuple:
        listed = value if isinstance(value, list) else [value]  # one value may stand for a list of one
        return tuple(_as(arguments[0], item, where) for item in listed)
    if hint is float and isinstance(value, str):
        try:  # YAML reads 1e-3 as text
            value = parse_real(value)
        except ValueError as error:
            raise RecipeError(f"{where} must be a number, not {_shown(value)}") from error
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if hint is float and isinstance(value, float) and math.isnan(value):
        raise RecipeError(f"{where} must be a number, not {value}")
    if hint is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if hint is int and type(value) is int and abs(value) > LARGEST:
        raise RecipeError(f"{where} must be at most {LARGEST:,}, not {printable(value)}")
    if type(value) is not hint:
        kind = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}.get(hint, str(hint))
        raise RecipeError(f"{where} must be {kind}, not {_shown(value)}")
    return value
