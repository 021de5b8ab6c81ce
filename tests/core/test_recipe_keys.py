"""Keys of recipes, explained by what stands in their dataclasses."""

import shlex
from dataclasses import dataclass
from typing import Literal

import pytest
from typer.testing import CliRunner

from vidveil.cli.app import app
from vidveil.core.errors import UsageError
from vidveil.core.recipe import find, names, read
from vidveil.core.recipe_keys import about, choices, keys


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
    assert read(find(name), shown(done.output)) == read(find(name))


def shown(output):
    """KEY=VALUE of each key, as a shell would take them apart."""
    lines = [line.partition("   of ")[0] for line in output.splitlines()[3:] if not line.startswith("    ")]
    words = [shlex.split(line) for line in lines]
    assert all(len(each) == 1 for each in words)
    return [word for (word,) in words]


def test_a_long_value_and_a_recipe_without_a_header_are_shown_as_they_can_be_given(tmp_path):
    keeps = [round(0.99 - 0.01 * i, 2) for i in range(40)]
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"verb: evaluate\ndata: puppets\nmethod: random\nkeep: {keeps}\n")
    output = CliRunner().invoke(app, ["ls", "recipes", str(mine)]).output
    assert output.startswith(str(mine))
    assert read(mine, shown(output)).keep == tuple(keeps)


@pytest.mark.parametrize("name", names())
def test_every_key_has_its_sentence(name):
    assert [key.name for key in keys(read(find(name))) if not key.about] == []


def test_a_name_behind_anything_else_is_refused():
    done = CliRunner().invoke(app, ["ls", "runs", "mine"])
    assert isinstance(done.exception, UsageError)
    assert "vidveil ls recipes mine" in str(done.exception)
