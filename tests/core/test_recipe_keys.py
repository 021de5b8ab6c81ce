"""Keys of recipes: explained by what stands in their dataclasses, and read under the names of earlier versions."""

import hashlib
import json
import shlex
from dataclasses import dataclass
from typing import Literal

import pytest
import yaml
from typer.testing import CliRunner

from tests.methods import made_checkpoint
from vidveil.cli.app import app
from vidveil.core import recipe_keys
from vidveil.core.errors import RecipeError, UsageError, WeightsError
from vidveil.core.recipe import as_values, find, names, read
from vidveil.core.recipe_keys import RENAMED_KEYS, about, choices, keys, with_current_names, with_old_names
from vidveil.core.version import __version__
from vidveil.methods import load
from vidveil.methods.trained import training_fingerprint
from vidveil.models import checkpoint
from vidveil.training.checkpoints import Checkpoint
from vidveil.training.options import Options
from vidveil.training.runs import Run


@dataclass(frozen=True, kw_only=True)
class Base:
    """Not of a key."""

    plain: int = 1
    documented: int = 2
    """About this key,
    in two lines."""
    again: int = 3
    """Of the base."""


@dataclass(frozen=True, kw_only=True)
class Derived(Base):
    again: int = 4
    """Of the derived class."""
    words: tuple[Literal["a", "b"], ...] = ("a",)


def test_each_key_has_the_sentence_below_it_and_the_nearest_counts():
    assert about(Derived) == {"documented": "About this key, in two lines.", "again": "Of the derived class."}
    assert [key.name for key in keys(Derived())] == ["plain", "documented", "again", "words"]


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
def test_words_to_choose_from_are_found_in_lists_and_next_to_none(hint, expected):
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


def test_a_name_after_anything_else_is_refused():
    done = CliRunner().invoke(app, ["ls", "runs", "mine"])
    assert isinstance(done.exception, UsageError)
    assert "`ls recipes NAME`" in str(done.exception)


OLD = {"after": "figure:14", "company": 0.4, "credit_weight": [1, 0], "trunk_lr": 0.1, "train_on": "credit"}
CURRENT = {
    "preprocess": "figure:14",
    "shown_share": 0.4,
    "attribution_weight": [1, 0],
    "backbone_lr": 0.1,
    "train_on": "attribution",
}


@pytest.fixture
def _unnoted():
    """As in a process that has not named an old key yet."""
    recipe_keys._note.cache_clear()
    yield
    recipe_keys._note.cache_clear()


@pytest.mark.usefixtures("_unnoted")
def test_a_recipe_with_old_names_is_read_as_one_with_current_names_and_each_is_noted_once(tmp_path, capsys):
    mine = tmp_path / "mine.yaml"
    mine.write_text(yaml.safe_dump({"verb": "train", "method": "dual_cls", "data": "puppets"} | OLD, sort_keys=False))
    found = as_values(read(mine))
    assert {key: found[key] for key in CURRENT} == CURRENT
    read(mine)
    notes = capsys.readouterr().err.splitlines()
    assert [tuple(line.split("`")[1::2]) for line in notes] == [
        ("after", "preprocess"),
        ("company", "shown_share"),
        ("credit_weight", "attribution_weight"),
        ("trunk_lr", "backbone_lr"),
        ("train_on: credit", "train_on: attribution"),
    ]
    assert all("the old name still works in this version, but not the next" in line for line in notes)


@pytest.mark.usefixtures("_unnoted")
def test_old_names_work_on_the_command_line_over_current_ones_in_the_file(tmp_path, capsys):
    mine = tmp_path / "mine.yaml"
    mine.write_text("verb: train\nmethod: dual_cls\ndata: puppets\nshown_share: 0.9\ntrain_on: heads\n")
    found = read(mine, ["company=0.4", "train_on=credit"])
    assert (found.shown_share, found.train_on) == (0.4, "attribution")
    assert capsys.readouterr().err.count("note:") == 2


@pytest.mark.parametrize(
    ("lines", "overrides"), [("company: 0.4\nshown_share: 0.5\n", ()), ("", ("shown_share=0.5", "company=0.4"))]
)
def test_an_old_and_a_new_name_of_the_same_key_are_an_error(tmp_path, lines, overrides):
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"verb: train\nmethod: dual_cls\ndata: puppets\n{lines}")
    with pytest.raises(RecipeError, match=r"mine\.yaml: company is the old name of shown_share: give one of the two"):
        read(mine, overrides)


@pytest.mark.parametrize("name", names())
def test_recipes_use_current_names_and_hashes_are_taken_over_old_ones(name):
    written = yaml.safe_load(find(name).read_text())
    assert with_current_names(written) == written
    values = as_values(read(find(name)))
    hashed = with_old_names(values)
    assert not hashed.keys() & set(RENAMED_KEYS.values())
    assert hashed.get("train_on") != "attribution"
    assert with_current_names(hashed, note=False) == values


def test_what_is_hashed_keeps_the_names_of_the_first_version():
    assert with_old_names(CURRENT) == OLD
    assert with_old_names({"backbone": ["recognizer."], "lr": 1e-3}) == {"trunk": ["recognizer."], "lr": 1e-3}


def test_the_fingerprint_of_a_training_is_taken_over_old_names():
    recipe = read(find("dual_cls_puppets"))
    values = with_old_names(as_values(recipe)) | {"vidveil": __version__}
    for free in ("device", "checkpoint_seconds", "compile", "graphs", "name"):
        del values[free]
    expected = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    assert training_fingerprint(recipe) == expected


@pytest.mark.usefixtures("_unnoted")
def test_a_run_that_was_begun_under_old_names_is_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))
    Run.create("mine", OLD).fail("stopped")
    Run.create("mine", CURRENT, resume=True).finish()
    assert "note:" not in capsys.readouterr().err  # who resumes it cannot change what it once wrote
    Run.create("other", OLD).fail("stopped")
    with pytest.raises(UsageError, match=r"shown_share was 0\.4, is 0\.5"):
        Run.create("other", CURRENT | {"shown_share": 0.5}, resume=True)


def test_a_training_that_was_begun_under_old_names_is_resumed():
    about = {"fingerprint": "f", "batches": 1, "options": Options(backbone_lr=0.1).fixed()}
    stored = about | {"state": {}, "options": with_old_names(about["options"])}
    assert {"trunk", "trunk_lr"} <= stored["options"].keys()
    Checkpoint({}, stored).check_fits(about, {}, None)


@pytest.mark.usefixtures("_unnoted")
def test_an_old_checkpoint_is_read_with_current_names_and_without_a_note(tmp_path, capsys):
    folder = made_checkpoint.write(tmp_path / "checkpoint", made_checkpoint.network(), after="figure:14")
    described = json.loads((folder / checkpoint.ABOUT).read_text())
    del described["recipe"]["preprocess"]
    (folder / checkpoint.ABOUT).write_text(json.dumps(described | {"layout": 1}))
    assert load(str(folder)).preprocess.spec == "figure:14"
    assert "note:" not in capsys.readouterr().err  # nobody can change it
    (folder / checkpoint.ABOUT).write_text(json.dumps(described | {"layout": 2}))
    with pytest.raises(WeightsError, match="does not say what is applied before its network"):
        load(str(folder))
    described["recipe"]["preprocess"] = "raw"
    (folder / checkpoint.ABOUT).write_text(json.dumps(described | {"layout": 1}))
    with pytest.raises(WeightsError, match="is damaged: after is the old name of preprocess"):
        checkpoint.find(str(folder))
