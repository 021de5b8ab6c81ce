"""The grammar of methods."""

import pytest

from tests.methods import made_checkpoint
from vidveil import load
from vidveil.core.anonymizer import Chain
from vidveil.core.errors import UsageError
from vidveil.methods import DEFAULT, METHODS, classical

LEARNED = {"dual_cls", "stprivacy"}


@pytest.fixture
def runs(runs):
    """With one that left a checkpoint."""
    made_checkpoint.write(runs / "mine" / "checkpoint", made_checkpoint.network())
    (runs / "mine" / "recipe.json").write_text("{}")
    return runs


@pytest.mark.parametrize("name", sorted(METHODS.keys() - LEARNED - {"splavu"}))
def test_every_method_that_has_nothing_to_learn_can_be_had_by_its_name_alone(name):
    assert load(name).spec == name


@pytest.mark.parametrize("name", sorted(LEARNED))
def test_a_learned_method_asks_for_its_checkpoint(name):
    with pytest.raises(UsageError, match=f"{name} needs a checkpoint: `vidveil train {name}_puppets`, then"):
        load(name)


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


@pytest.mark.parametrize("spec", ["stride:5 | recast:14", "recast:14 | stride:5", "blur:weak | recast:14"])
def test_a_chain_is_cautioned_against_for_what_paints_last(spec):
    assert load(spec).caution(720).startswith("recast:14 has blocks small enough to show a face")


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
        ("blur:heavy", "the short side in σ; or weak or strong"),
        ("blur:1", "a whole number from 2 to 64"),
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


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("spec", ["dual_cls:mine", " dual_cls : mine ", "mine", "runs/mine", "dual_cls:runs/mine"])
def test_a_checkpoint_is_a_method_with_or_without_the_name_of_its_kind(spec):
    method = load(spec)
    assert method.spec == "dual_cls:mine"
    assert method.weights.startswith("mine ")


@pytest.mark.usefixtures("runs")
def test_a_checkpoint_can_be_one_of_several():
    chain = load("mine | stride:5")
    assert [stage.spec for stage in chain.stages] == ["dual_cls:mine", "stride:5"]


def test_a_checkpoint_of_another_method_is_refused_by_its_name(runs):
    made_checkpoint.write(runs / "other" / "checkpoint", made_checkpoint.network(), "other", method="vita")
    with pytest.raises(UsageError, match="other is a checkpoint of vita, not of dual_cls"):
        load("dual_cls:other")
    with pytest.raises(UsageError, match="other is a checkpoint of 'vita', a method that this vidveil does not"):
        load("other")


@pytest.mark.usefixtures("runs")
def test_a_checkpoint_that_is_not_there_gets_a_suggestion():
    with pytest.raises(UsageError, match=r"there is no checkpoint 'mime'.*did you mean mine\?"):
        load("dual_cls:mime")


def test_a_method_wins_over_a_run_of_its_name(runs):
    made_checkpoint.write(runs / "blur" / "checkpoint", made_checkpoint.network(), "blur")
    assert isinstance(load("blur"), classical.Blur)
    assert load("dual_cls:blur").spec == "dual_cls:blur"
