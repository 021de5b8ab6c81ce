"""What the command says about data: how much of it is here, and what of it cannot be decoded."""

import json
import os
import subprocess
import sys

import pytest

from tests.data.made_weizmann import spoil, weizmann

QUICK = ["recognizer=r3d_tiny", "frames=4", "size=16", "batch=32", "epochs=1", "device=cpu"]


@pytest.fixture
def place(tmp_path):
    weizmann(tmp_path / "sets")
    return tmp_path


def vidveil(place, *words):
    environment = os.environ | {"VIDVEIL_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1", "COLUMNS": "400"}
    command = [sys.executable, "-m", "vidveil", *words, "--data", "sets"]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=250)


def test_the_list_says_how_much_of_a_set_is_here(place):
    (place / "sets/weizmann/action3/person5.mp4").unlink()
    lines = {line.split()[0]: line for line in vidveil(place, "ls", "data").stdout.splitlines()}
    assert lines["weizmann[:people=0|1|2"].endswith("part: 89 of 90 videos")
    assert "missing: no UCF-101" in lines["ucf101[:1|2|3]"]


def test_one_set_is_listed_with_the_layout_of_its_folder(place):
    text = " ".join(vidveil(place, "ls", "data", "hmdb51:2").stdout.split())
    assert text.startswith("hmdb51[:1|2|3] missing: no hmdb51 and no testTrainMulti_7030_splits in sets")
    assert "For example hmdb51/brush_hair/CLIP.avi, testTrainMulti_7030_splits/brush_hair_test_split1.txt" in text
    assert "did you mean hmdb51?" in vidveil(place, "ls", "data", "HMDB51").stderr


def test_training_goes_on_without_what_cannot_be_decoded_unless_it_is_strict(place):
    names = spoil(place / "sets/weizmann")
    words = ["train", "action_puppets", "data=weizmann:people=0", "name=some", *QUICK]
    refused = vidveil(place, *words, "--strict")
    assert refused.returncode == 1
    assert "3 of 90 videos cannot be decoded, and --strict allows none" in refused.stderr
    assert names[0] in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (place / "runs").exists()
    done = vidveil(place, *words)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stderr.splitlines() if "left out" in line)
    assert line.startswith("weizmann:people=0: 3 of 90 videos cannot be decoded and are left out: ")
    assert all(name in line for name in names)
    data = json.loads((place / "runs/some/results.json").read_text())["data"]
    assert data["left_out"] == 3
    assert sum(data["clips"].values()) == 87


def test_an_evaluation_is_as_strict(place):
    spoil(place / "sets/weizmann")
    refused = vidveil(place, "evaluate", "raw_puppets", "data=weizmann:people=0", "controls=[]", "--strict")
    assert refused.returncode == 1
    assert "--strict allows none" in refused.stderr
