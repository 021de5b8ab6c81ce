"""The page about measuring does not claim numbers that the code does not give."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "measuring.md"


def test_the_worked_example_is_what_the_code_says():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried > 10
    assert not failed
