"""`--method` finds the checkpoints that training writes, and refuses anything else in one sentence."""

import json

import pytest
import safetensors.torch
import torch

from tests.methods import made_checkpoint
from vidveil import __version__, load
from vidveil.core.errors import UsageError, WeightsError
from vidveil.models import checkpoint
from vidveil.models.checkpoint import ABOUT, WEIGHTS, find, is_above_chance


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    """A folder of runs of this test alone, and nothing of that name next to it."""
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


@pytest.fixture
def trained(runs):
    """The checkpoint of a run called mine."""
    folder = made_checkpoint.write(runs / "mine" / "checkpoint", made_checkpoint.network())
    (runs / "mine" / "recipe.json").write_text("{}")
    return folder


def change(folder, **entries):
    about = json.loads((folder / ABOUT).read_text())
    kept = {key: value for key, value in (about | entries).items() if value is not None}
    (folder / ABOUT).write_text(json.dumps(kept))


def test_a_checkpoint_is_found_by_run_by_folder_of_a_run_and_by_its_own_folder(trained):
    for name in ("mine", "runs/mine", str(trained.parent), str(trained)):
        found = find(name)
        assert found.folder.resolve() == trained.resolve()
        assert (found.method, found.name) == ("dual_cls", "mine")
    assert found.about["vidveil"] == __version__
    assert found.about["metrics"] == {"action_top1": 0.5}


def test_numbers_come_back_as_they_were_written(trained):
    wanted, found = made_checkpoint.network().state_dict(), find("mine").tensors()
    assert wanted.keys() == found.keys()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)
    assert sorted(path.name for path in trained.iterdir()) == [ABOUT, WEIGHTS]


def test_the_hash_is_of_the_weights_and_of_how_the_network_is_built(trained, tmp_path):
    first = find("mine").sha256
    change(trained, metrics={"action_top1": 0.9})
    assert find("mine").sha256 == first
    change(trained, network=made_checkpoint.network(privacy_weight=0.7).about())
    assert find("mine").sha256 != first
    other = made_checkpoint.network()
    with torch.no_grad():
        other.action_head.bias[0] += 1e-3
    assert find(str(made_checkpoint.write(tmp_path / "other", other))).sha256 != first


def test_the_name_is_the_runs_and_says_nothing_of_folders(trained, tmp_path):
    secret = tmp_path / "patients of doctor who"
    trained.rename(secret)
    assert find(str(secret)).name == "mine"
    assert load(f"dual_cls:{secret}").spec == "dual_cls:mine"
    assert "patients" not in str(load(str(secret)).weights)
    change(secret, recipe={"name": "/home/who/mine"})
    assert find(str(secret)).name == "mine"


def test_an_unknown_run_gets_a_suggestion(trained):
    assert trained.is_dir()
    with pytest.raises(UsageError, match=r"there is no checkpoint 'mien'.*did you mean mine\?"):
        find("mien")
    with pytest.raises(UsageError, match="there are mine"):
        find("something else")


def test_without_any_run_the_error_says_how_to_make_one():
    with pytest.raises(UsageError, match="`vidveil train` makes one"):
        find("mine")


def test_a_run_without_a_checkpoint_is_not_suggested(runs):
    (runs / "mine2").mkdir(parents=True)
    (runs / "mine2" / "recipe.json").write_text("{}")
    with pytest.raises(UsageError, match="vidveil train` makes one"):
        find("mine")


def test_a_recognizers_checkpoint_is_no_methods(trained):
    change(trained, network=None, method=None, layout=None)
    with pytest.raises(UsageError, match="holds a recognizer"):
        find("mine")
    with pytest.raises(UsageError, match="holds a recognizer"):
        load("mine")


def test_missing_weights_are_named(trained):
    (trained / WEIGHTS).unlink()
    with pytest.raises(WeightsError, match=r"lacks weights\.safetensors: copy the whole folder"):
        find("mine")


def test_damaged_weights_are_an_error_that_names_the_file(trained):
    data = (trained / WEIGHTS).read_bytes()
    for damage in (b"", data[:100], data[: len(data) // 2]):
        (trained / WEIGHTS).write_bytes(damage)
        with pytest.raises(WeightsError, match=r"weights\.safetensors is no readable safetensors file"):
            load("mine")


@pytest.mark.parametrize(
    "network",
    [
        {"actions": 7},
        {"side": 64},
        {"privacy_attention": "detector"},
        {"output": "decode", "fusion": False},
    ],
)
def test_weights_of_another_network_are_refused(trained, network):
    change(trained, network=made_checkpoint.network(**network).about())
    with pytest.raises(WeightsError, match=r"does not hold a dual_cls network of this version[^\n]*$"):
        load("mine")


def test_the_json_is_written_last(tmp_path, monkeypatch):
    """Killed while the numbers are written, there is nothing that could be taken for a checkpoint."""

    def dies(_, path):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(safetensors.torch, "save_file", dies)
    with pytest.raises(KeyboardInterrupt):
        made_checkpoint.write(tmp_path / "new", made_checkpoint.network())
    assert not (tmp_path / "new" / ABOUT).exists()
    assert not (tmp_path / "new" / WEIGHTS).exists()


def test_writing_again_while_the_old_one_is_there_never_leaves_half_of_it(trained, monkeypatch):
    def dies(_, path):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(safetensors.torch, "save_file", dies)
    with pytest.raises(KeyboardInterrupt):
        made_checkpoint.write(trained, made_checkpoint.network())
    assert checkpoint.find("mine").tensors().keys() == made_checkpoint.network().state_dict().keys()


def test_a_run_that_a_recipe_would_make_is_named_with_its_command(monkeypatch, tmp_path):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))
    with pytest.raises(UsageError, match="`vidveil train splavu_puppets` makes it"):
        find("splavu_puppets")


def test_a_network_near_chance_level_in_every_action_metric_has_learned_nothing():
    floors = {"action_top1": 0.2, "masked_top1": 0.2, "action_kept": 0.1}
    assert not is_above_chance({"action_top1": 0.21, "masked_top1": 0.24, "action_kept": 0.9}, floors)
    assert is_above_chance({"action_top1": 0.21, "masked_top1": 0.5}, floors)
    assert is_above_chance({"action_cmap": 0.7}, {"action_cmap": 0.6})
    assert is_above_chance({"tubelets_kept": 0.4}, {})  # nothing was measured


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"network": {}}, "does not hold a dual_cls network of this version: budget|actions is missing"),
        ({"network": []}, "network is a list, not an object"),
        ({"metrics": {"action_top1": "high"}}, r"metrics\.action_top1 is text, not a number"),
        ({"metrics": []}, "metrics is a list, not an object"),
        ({"method": 3}, "method is a number, not text"),
        ({"recipe": {"name": 3}}, "does not say which recipe made it"),
        ({"recipe": {"name": "mine", "preprocess": "raw", "stride": -1}}, "stride is -1"),
        ({"recipe": {"name": "mine", "preprocess": "raw", "stride": [2]}}, r"stride is \[2\]"),
        ({"recipe": None}, "does not say which recipe made it"),
        ({"recipe": {"data": "puppets"}}, "does not say which recipe made it"),
        ({"layout": "x" * 5000}, "has layout xxx"),
        ({"layout": 99}, "has layout 99; this vidveil reads 1 and 2"),
        ({"network": "large"}, "network is text, not an object"),
        ({"network": made_checkpoint.network().about() | {"rotary": True}}, "rotary"),
    ],
)
def test_a_checkpoint_that_was_edited_is_one_line_that_names_it(trained, entries, says):
    change(trained, **entries)
    with pytest.raises(WeightsError, match=says) as caught:
        load("mine")
    assert "checkpoint" in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("key", ["actions", "frames", "side"])
@pytest.mark.parametrize("value", [-1, 0, 10**9, 10**18, True, 2.5, "x", None, [1]])
def test_a_network_of_an_impossible_size_is_refused_and_not_built(trained, key, value):
    network = json.loads((trained / ABOUT).read_text())["network"]
    change(trained, network=network | {key: value})
    with pytest.raises(WeightsError, match="does not hold a dual_cls network of this version"):
        load("mine")


@pytest.mark.parametrize(
    "content",
    [b"[1e400]", b"[" * 100_000, b'{"network": ' + b"9" * 5000 + b"}", b"\0", b"[]", b"", b'{"layout": 1', b"\xff\xfe"],
)
def test_a_file_that_is_no_json_object_is_an_error_in_one_line(trained, content):
    (trained / ABOUT).write_bytes(content)
    with pytest.raises(WeightsError, match=r"checkpoint\.json (is|holds)") as caught:
        load("mine")
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_a_name_that_no_folder_can_have_is_no_checkpoint():
    for name in ("x" * 300, "a\0b", "x/" * 5000):
        assert checkpoint.locate(name) is None
        with pytest.raises(UsageError, match="there is no checkpoint"):
            find(name)
