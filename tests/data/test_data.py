"""Datasets by name: what is there, where it is looked for, and the errors when it is not there."""

import re
import subprocess
import sys

import pytest

from tests.data.made import InMemory, clip_set, noise
from tests.data.made_casia import casia_a
from vidveil.core.errors import DataError, UsageError
from vidveil.data import DATA, available, load_data, puppets

PLAIN = {"frames": 8, "size": 64}
OTHERS = [name for name in DATA if DATA[name].requires]


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch):
    monkeypatch.delenv("VIDVEIL_DATA", raising=False)


def test_listing_the_datasets_loads_nothing_heavy():
    heavy = ("torch", "numpy", "cv2", "av")
    check = f"import sys, vidveil.data as d; d.available('weizmann'); print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize("name", OTHERS)
def test_without_a_folder_one_line_says_what_is_needed_and_how_to_say_where(name, tmp_path, monkeypatch):
    needs = re.escape(DATA[name].requires[0][0])
    with pytest.raises(DataError, match=f"{name} is not built in: .*{needs}.* --data or VIDVEIL_DATA"):
        load_data(name, **PLAIN)
    with pytest.raises(DataError, match=f"nowhere is no folder: --data or VIDVEIL_DATA .*{needs}"):
        load_data(name, root=tmp_path / "nowhere", **PLAIN)
    monkeypatch.setenv("VIDVEIL_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"no {needs}.* in {tmp_path}: --data or VIDVEIL_DATA"):
        load_data(name, **PLAIN)


def test_a_name_that_nobody_knows_gets_a_suggestion():
    with pytest.raises(UsageError, match=r"no dataset is called 'weizman'; did you mean weizmann\?"):
        load_data("weizman", **PLAIN)
    with pytest.raises(UsageError, match="there are puppets, puppets_untrimmed"):
        load_data("qqq", **PLAIN)
    with pytest.raises(UsageError, match="missing after the colon"):
        load_data("weizmann:", **PLAIN)


def test_the_folder_comes_from_the_argument_before_the_environment(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    casia_a(here / "casia_a_gait.npz")
    monkeypatch.setenv("VIDVEIL_DATA", str(there))
    assert available("casia_a_gait") == f"missing: no casia_a_gait.npz in {there}"
    assert available("casia_a_gait", here) == "here"
    assert len(load_data("casia_a_gait:people", root=here, **PLAIN)) == 240


def test_what_a_set_lacks_is_named_though_some_of_it_is_there(tmp_path):
    (tmp_path / "PrivacyAttributes").mkdir()
    (tmp_path / "hmdb51").mkdir()
    missing = "no testTrainMulti_7030_splits and no hmdb51_privacy_attribute_label.pickle"
    assert available("pa_hmdb51", tmp_path) == f"missing: {missing} in {tmp_path}"
    with pytest.raises(DataError, match="no testTrainMulti_7030_splits or hmdb51/testTrain"):
        load_data("pa_hmdb51", frames=8, size=28, root=tmp_path)


def test_what_is_there_is_told_in_a_word(tmp_path):
    assert available("puppets") == "built in"
    assert available("weizmann") == "missing: give --data FOLDER or set VIDVEIL_DATA"
    (tmp_path / "weizmann").mkdir()
    (tmp_path / "weizmann" / "manifest.csv").write_text("")
    assert available("weizmann", tmp_path) == "empty: 0 of 90 videos, 10 of 10 classes have none"


def test_name_argument_size_and_seed_reach_the_reader(monkeypatch):
    got = {}
    clips = clip_set(InMemory(noise((1, 2, 2))))
    monkeypatch.setattr(puppets, "load", lambda argument, **options: got.update(options, argument=argument) or clips)
    assert load_data("puppets:rho=1,view=mask", frames=16, size=112, seed=7) is clips
    assert got == {"argument": "rho=1,view=mask", "frames": 16, "size": 112, "seed": 7, "root": None}
