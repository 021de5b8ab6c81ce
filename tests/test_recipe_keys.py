"""Keys of recipes, explained by what stands in their dataclasses."""

from dataclasses import dataclass
from typing import Literal

import pytest
from typer.testing import CliRunner

from vidveil.cli.app import app
from vidveil.errors import UsageError
from vidveil.recipe import find, names, read
from vidveil.recipe_keys import about, choices, keys


@dataclass(frozen=True, kw_only=True)
class Base:
    """Not of a key."""

    plain: int = 1
    told: int = 2
    """About told,
    in two lines."""
    again: int = 3
    """Of the base."""


@dataclass(frozen=True, kw_only=True)
class Made(Base):
    again: int = 4
    """Of the one that is made of it."""
    words: tuple[Literal["a", "b"], ...] = ("a",)


def test_each_key_has_the_sentence_below_it_and_the_nearest_counts():
    assert about(Made) == {"told": "About told, in two lines.", "again": "Of the one that is made of it."}
    assert [key.name for key in keys(Made())] == ["plain", "told", "again", "words"]


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (Literal["a", "b"], ("a", "b")),
        (Literal["a"] | None, ("a",)),
        (tuple[Literal["a", "b"], ...], ("a", "b")),
        (int | None, ()),
        (tuple[float, ...], ()),
    ],
)
def test_words_to_choose_from_are_found_in_lists_and_beside_none(hint, expected):
    assert choices(hint) == expected


@pytest.mark.parametrize("name", names())
def test_every_recipe_can_be_explained_and_read_back_as_it_is_printed(name):
    done = CliRunner().invoke(app, ["ls", "recipes", name])
    assert done.exit_code == 0, done.output
    words = [line.partition("   of ")[0] for line in done.output.splitlines()[3:] if not line.startswith("    ")]
    assert read(find(name), words) == read(find(name))


def test_a_name_behind_anything_else_is_refused():
    done = CliRunner().invoke(app, ["ls", "runs", "mine"])
    assert isinstance(done.exception, UsageError)
    assert "vidveil ls recipes mine" in str(done.exception)
