"""`vidveil train | evaluate | report | ls` as a person runs them, on a handful of built-in people."""

import json
import random
import signal
import subprocess
from pathlib import Path
from time import sleep

import pytest
from safetensors.numpy import load_file

from tests.end_to_end.command import COMMAND, environment, refusal, vidveil

pytestmark = pytest.mark.xdist_group("measuring")  # its fixtures take long: made by one worker

FEW = ["data=puppets:share=0.05", "frames=4", "size=32", "batch=16"]
QUICK = [*FEW, "epochs=1", "attacker_epochs=1", "permutations=200", "resamples=50"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("measuring")


@pytest.fixture(scope="module")
def evaluated(place):
    return vidveil(place, "evaluate", "blur_puppets", *QUICK, "attackers=[resnet_tiny]", "controls=[background]")


def test_an_evaluation_prints_each_number_with_its_floor(place, evaluated):
    assert "| action, top-1 |" in evaluated.stdout
    assert "floor" in evaluated.stdout
    results = json.loads((place / "runs/blur_puppets/results.json").read_text())
    assert results["raw"]["metrics"]["action_top1"]["retention"] == 1
    assert results["points"][0]["method"] == "blur:strong"
    assert results["controls"]["background_rank1"]["kind"] == "control"
    assert str(place) not in json.dumps(results)


@pytest.mark.usefixtures("evaluated")
def test_a_second_run_of_the_same_name_is_refused(place):
    assert "run 'blur_puppets' is done" in refusal(place, "evaluate", "blur_puppets", *QUICK)


@pytest.mark.usefixtures("evaluated")
def test_a_report_is_a_table_and_a_picture(place):
    assert "| action, top-1 |" in vidveil(place, "report", "blur_puppets").stdout
    vidveil(place, "report", "runs/blur_puppets", "-o", "page.md")
    assert (place / "page.md").read_text().endswith("![trade-off](page.png)\n")
    assert (place / "page.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("evaluated")
def test_lists_tell_what_is_there(place):
    assert "blur_puppets" in vidveil(place, "ls", "runs").stdout
    assert "done" in vidveil(place, "ls", "runs").stdout
    assert "raw_puppets" in vidveil(place, "ls", "recipes").stdout
    assert "built in" in vidveil(place, "ls", "data").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("evaluate", "raw_pupets"), "no recipe is called 'raw_pupets'; did you mean raw_puppets?"),
        (("evaluate", "raw_puppets", "method=blurr", *QUICK), "did you mean blur?"),
        (("evaluate", "raw_puppets", "utility=r3d_tinny", *QUICK), "did you mean r3d_tiny?"),
        (("evaluate", "raw_ucf101_5", "--data", "nowhere"), "nowhere is no folder"),
        (("train", "action_puppets", "device=cuda", *FEW), "no CUDA device"),
        (("report", "nothing"), "nothing"),
    ],
)
def test_a_mistake_is_one_line(place, words, message):
    assert message in refusal(place, *words)


def test_training_that_is_killed_and_resumed_gives_the_same_weights_to_the_bit(place):
    recipe = ["train", "action_puppets", *FEW, "epochs=6", "checkpoint_seconds=0"]
    vidveil(place, *recipe, "name=whole")
    whole = load_file(place / "runs/whole/checkpoint/weights.safetensors")
    command = [*COMMAND, *recipe, "name=killed"]
    moments = random.Random(4)
    for kill in range(2):
        more = ["--resume"] if kill else []
        process = subprocess.Popen([*command, *more], cwd=place, env=environment(place), stderr=subprocess.DEVNULL)
        while process.poll() is None and _steps(place) < kill + 1:
            sleep(0.05)
        sleep(moments.uniform(0, 1))
        process.send_signal(signal.SIGKILL)
        process.wait()
    vidveil(place, *recipe, "name=killed", "--resume")
    resumed = load_file(place / "runs/killed/checkpoint/weights.safetensors")
    assert whole.keys() == resumed.keys()
    assert all(whole[name].tobytes() == resumed[name].tobytes() for name in whole)


def test_training_that_is_asked_to_end_says_how_to_go_on(place):
    command = [*COMMAND, "train", "action_puppets", *FEW, "epochs=500", "name=asked"]
    process = subprocess.Popen(command, cwd=place, env=environment(place), stderr=subprocess.PIPE, text=True)
    while process.poll() is None and _steps(place, "asked") < 1:
        sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert "the same command with --resume goes on with run 'asked'" in process.communicate()[1]


def _steps(place: Path, run: str = "killed") -> int:
    """Epochs that a run has logged so far."""
    log = place / f"runs/{run}/log.jsonl"
    return log.read_text().count('"event": "epoch"') if log.is_file() else 0
