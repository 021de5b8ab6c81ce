"""What a method says about itself reaches whoever shares an output, however methods are combined."""

import pytest

from vidveil.core.anonymizer import Anonymizer, Chain
from vidveil.methods import load
from vidveil.methods.regional import InRegions


class Stated(Anonymizer):
    """A learned method that does nothing but speak."""

    def __init__(self, spec, *limits, draws=False, caution=None, before=None):
        super().__init__(spec)
        self.limits, self.draws, self.said_caution, self.preprocess = limits, draws, caution, before

    def anonymize(self, clip, *, keep=None, privacy_weight=None): ...
    def stream(self, frames): ...

    def caution(self, _):
        return self.said_caution


def test_methods_without_weights_have_no_warnings():
    assert load("blur:strong").warnings() == []
    assert load("blur:strong").knobs is load("blur:strong").device is None


def test_warnings_are_those_of_all_stages_once_each_and_of_what_comes_before():
    first = Stated("a", "is weak", before=Stated("b", "is old"))
    assert first.warnings() == ["b is old", "a is weak"]
    assert Chain([Chain([first]), first, load("solid"), Stated("c", "x", "y")]).warnings() == [
        "b is old", "a is weak", "c x", "c y",
    ]  # fmt: skip


def test_a_method_in_regions_passes_its_warnings_on():
    blur = load("blur:strong")
    blur.limits = ("was made up",)
    assert InRegions(blur).warnings() == ["blur:strong was made up"]


@pytest.mark.parametrize(("draws", "caution"), [(True, "look"), (False, None)])
def test_what_hides_on_top_silences_a_caution_unless_it_is_about_a_drawing(draws, caution):
    chain = Chain([Stated("a", draws=draws, caution="look"), Stated("b")])
    assert chain.caution(100) == caution
    assert chain.draws == draws
    assert Chain([chain, Stated("c")]).caution(100) == caution
    assert Chain([Stated("a", caution="one"), Stated("b", caution="two")]).caution(100) == "two"
