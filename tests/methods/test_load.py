"""The grammar of methods."""

import pytest

from vidveil import load
from vidveil.errors import UsageError
from vidveil.methods import DEFAULT, METHODS, classical
from vidveil.methods.anonymizer import Chain


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_had_by_its_name_alone(name):
    assert load(name).spec == name


def test_the_default_is_a_method():
    assert isinstance(load(DEFAULT), classical.Blur)


@pytest.mark.parametrize(
    ("spec", "attribute", "value"),
    [
        ("pixelate:24", "block", 24),
        ("downsample:4", "factor", 4),
        ("stride:7", "step", 7),
        (" blur : weak ", "share", 1 / 32),
    ],
)
def test_an_argument_follows_the_colon(spec, attribute, value):
    assert getattr(load(spec), attribute) == value


def test_several_methods_follow_one_another():
    chain = load("blur:strong | stride:5")
    assert isinstance(chain, Chain)
    assert [stage.spec for stage in chain.stages] == ["blur:strong", "stride:5"]
    assert chain.caution(720) is None


def test_leaving_frames_out_does_not_hide_anybody():
    for spec in ("stride:5", "stride:5 | stride:2"):
        assert "leaves the pictures as they are" in load(spec).caution(720)


def test_blocks_that_are_small_for_the_frame_are_cautioned_against():
    for spec in ("pixelate:16", "downsample:8", "downsample:8 | stride:2"):
        assert "may be recognised by eye" in load(spec).caution(1080)
    for spec in ("pixelate:34", "downsample:34", "pixelate:2 | blur:strong", "solid", "blur:strong"):
        assert load(spec).caution(1080) is None


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("blurr", "did you mean blur?"),
        ("mosaic", "there are blur"),
        ("", "a method is missing"),
        ("blur:strong |", "a method is missing"),
        ("blur:", "missing after the colon"),
        ("blur:heavy", "one of weak, strong"),
        ("pixelate:1", "from 2 to"),
        ("pixelate:-3", "whole number"),
        ("pixelate:x", "whole number"),
        ("pixelate:15", "must be even"),
        ("downsample:1.5", "whole number"),
        ("stride:0", "from 1 to"),
        ("solid:red", "takes nothing"),
        ("pixelate:²", "whole number"),
    ],
)
def test_mistakes_are_explained(spec, says):
    with pytest.raises(UsageError, match=r"^[^\n]*$") as caught:
        load(spec)
    assert says in str(caught.value)
