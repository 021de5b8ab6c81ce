"""What other packages add by entry points is found next to what is built in."""

import importlib
import sys

import pytest

from tests import command
from tests.evaluation.toy import toy
from vidveil.core import registry
from vidveil.core.errors import UsageError
from vidveil.core.registry import METHODS, PROTOCOLS, TASKS, TRAININGS, Registry
from vidveil.data.catalogue import DATA
from vidveil.methods import load
from vidveil.models.recognizers import RECOGNIZERS
from vidveil.tasks import make_task
from vidveil.training.recipe import TrainRecipe

MODULE = """
from vidveil.core.registry import Method
from vidveil.data.catalogue import Dataset
from vidveil.methods.classical import Solid
from vidveil.tasks.attributes import Attributes

BLACK = Method(Solid, "night", "all black")
FOOTAGE = Dataset(reader="plugged_in:read", usage="footage", summary="nothing yet")

class Looks(Attributes):
    name = "plugged in"

def looks(data, device, label_smoothing):
    return Looks(data, device, label_smoothing)
"""
ENTRY_POINTS = """
[vidveil.methods]
night = plugged_in:BLACK
broken = plugged_in:MISSING
bare = plugged_in:Solid
blur = plugged_in:BLACK

[vidveil.datasets]
footage = plugged_in:FOOTAGE

[vidveil.tasks]
looks = plugged_in:looks
"""
TABLES = (METHODS, TRAININGS, PROTOCOLS, TASKS, DATA, RECOGNIZERS)


@pytest.fixture
def _plugged_in(tmp_path, monkeypatch):
    """An installed package with a method, a broken one, one that takes a built-in name, a dataset and a task."""
    (tmp_path / "plugged_in.py").write_text(MODULE)
    about = tmp_path / "plugged_in-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged-in\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    kept = [dict(table._entries) for table in TABLES]
    for table in TABLES:
        table.__dict__.pop("_others", None)
    yield
    for table, entries in zip(TABLES, kept, strict=True):
        table.__dict__.pop("_others", None)
        table._entries = entries
    sys.modules.pop("plugged_in", None)


@pytest.mark.usefixtures("_plugged_in")
def test_methods_datasets_and_tasks_of_another_package_are_found_by_name():
    assert load("night").spec == "night"
    assert DATA.lookup("footage").usage == "footage"
    assert TrainRecipe(name="x", data="puppets", tasks=("looks",)).tasks == ("looks",)
    assert make_task("looks", toy(), "cpu", 0.0).name == "plugged in"


@pytest.mark.usefixtures("_plugged_in")
def test_no_package_replaces_what_is_built_in():
    assert METHODS["blur"].where == "vidveil.methods.classical:Blur"


@pytest.mark.usefixtures("_plugged_in")
def test_a_package_that_cannot_be_loaded_is_named_and_hides_no_other_method():
    with pytest.raises(UsageError, match="the method broken of the package plugged-in cannot be loaded"):
        load("broken")
    listed = command.vidveil("ls", "methods").stdout
    assert "broken" in listed
    assert "error: the method broken of the package plugged-in cannot be loaded" in listed
    assert "all black" in listed
    assert "blur:weak|strong|N" in listed
    assert "error: the method bare of the package plugged-in is no Method" in listed


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.noun)
def test_every_entry_points_to_something_that_is_there(table: Registry):
    for name, entry in table.items():
        if table is METHODS:
            assert callable(entry.build), name
        elif table in (TRAININGS, PROTOCOLS):
            assert callable(registry.resolve(entry.recipe)), name
            assert callable(registry.resolve(entry.run)), name
        elif table is TASKS:
            assert callable(registry.resolve(entry)), name
        elif table is DATA:
            assert callable(entry.load), name
        else:
            module = entry.module if "." in entry.module else f"vidveil.models.recognizers.{entry.module}"
            assert callable(registry.resolve(f"{module}:{name}")), name


def test_an_unknown_task_in_a_recipe_is_refused_with_a_suggestion():
    with pytest.raises(Exception, match=r"no task is called 'acton'; did you mean action\?"):
        TrainRecipe(name="x", data="puppets", tasks=("acton",))
