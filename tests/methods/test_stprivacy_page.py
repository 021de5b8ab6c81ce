"""The page about STPrivacy names code, commands and recipes that are there."""

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from tests.methods.test_dual_cls_page import commands, rows
from vidveil.core.recipe import find, names, read

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "methods" / "stprivacy.md").read_text(encoding="utf-8")
SYMBOL = re.compile(r"`([\w/]+)\.py:([\w.]+)`")


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(("file", "symbol"), sorted(set(SYMBOL.findall(TEXT))))
def test_what_the_page_says_is_in_a_file_is_there(file, symbol):
    module = import_module("vidveil." + file.replace("/", "."))
    named = attrgetter(symbol)(module)
    assert getattr(named, "__module__", module.__name__) == module.__name__, "it is only imported there"


@pytest.mark.parametrize("number", range(1, 14))
def test_every_equation_of_the_paper_has_its_place(number):
    places = [
        row[-1] for row in rows(section("The paper's equations, and where they are")) if row[0] == f"eq. {number}"
    ]
    assert len(places) == 1
    assert SYMBOL.search(places[0])


def test_every_command_has_a_recipe_that_takes_what_it_is_told():
    told = commands(TEXT)
    assert told
    for recipe, overrides in told:
        read(find(recipe), overrides)


def test_every_recipe_of_the_method_stands_on_the_page():
    told = set(re.findall(r"`(\w+)`", section("Use it")))
    assert {name for name in names() if name.startswith("stprivacy")} <= told


def test_programs_that_the_page_names_are_there():
    for program in re.findall(r"python (benchmarks/\w+\.py)", TEXT):
        assert (ROOT / program).is_file()
