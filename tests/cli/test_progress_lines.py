"""Every long command prints lines while it works and there is no terminal, and one line when it is interrupted."""

import re
import signal
import subprocess
import sys
from functools import partial
from time import sleep

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from tests import command, media
from tests.app.manifests import moment, write_manifest
from tests.data.features import made
from tests.data.readers.test_make_ucf101_5 import download  # noqa: F401
from tests.weights.packages import make_wheel, open_shop
from vidveil.app.demo import draw_video
from vidveil.cli import demo, doctor
from vidveil.cli.reported import reported
from vidveil.core import progress as reporting
from vidveil.training.runs import Run

FEW = ["data=puppets:share=0.05", "frames=4", "size=32", "batch=16", "epochs=1", "warmup_epochs=0", "device=cpu"]
QUICK = ["attacker_epochs=1", "attackers=[resnet_tiny]", "attack=[attributes]", "permutations=20", "resamples=20"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def place(shared, tmp_path, monkeypatch):
    """A folder to work in. What is drawn, decoded and trained is shared by all tests here."""
    monkeypatch.setattr(reporting, "INTERVAL", 0.002)
    monkeypatch.setenv("VIDVEIL_CACHE", str(shared / "cache"))
    monkeypatch.setenv("VIDVEIL_RUNS", str(shared / "runs"))
    monkeypatch.setattr(doctor, "_product", lambda: 0)  # takes seconds
    monkeypatch.setattr(doctor, "_try_it", lambda: sleep(0.05))
    monkeypatch.setenv("FORCE_COLOR", "1")  # as some CI services do
    monkeypatch.chdir(tmp_path)
    return tmp_path


def vidveil(*words: object) -> Result:
    done = command.vidveil(*words)
    assert done.exit_code == 0, done.output
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stderr)
    return done


def has(done: Result, line: str) -> bool:
    return re.search(f"^{line}", done.stderr, re.MULTILINE) is not None


def test_anonymize_counts_frames(place):
    clip = media.Film(frames=60).make(place / "cl\x1bip.mp4")
    done = vidveil("anonymize", clip, "--region", "frame")
    assert has(done, r"cl\?ip\.mp4: \d+ of 60 frames, \d+ %, ")


def test_anonymize_counts_vectors_of_stores(place, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(place / "runs"))
    made.adapter(place / "runs")
    made.store(place / "raw")
    assert has(
        vidveil("anonymize", "raw", "--method", "splavu:safe"), r"(raw: \d+ of 13 vectors|anonymize: raw, \d+ s)"
    )


@pytest.mark.usefixtures("place")
def test_train_counts_clips_that_are_drawn_and_steps():
    done = vidveil("train", "action_puppets", "name=lines", *FEW)
    assert has(done, r"drawing puppets:share=0.05: \d+ of 192 clips, \d+ %, ")
    assert has(done, r"lines: \d+ of \d+ steps, \d+ %, ")


@pytest.mark.usefixtures("place")
def test_evaluate_and_report_name_what_they_do():
    done = vidveil("evaluate", "blur_puppets", "name=evaluated", *FEW, *QUICK)
    assert has(done, r"painting puppets:share=0.05 after blur:strong: \d+ of 192 clips, ")
    assert has(done, r"blur:strong attributes resnet_tiny .*seed 0: \d+ of \d+ steps, ")
    assert has(done, r"evaluate: attributes: permutation tests and intervals, \d+ s so far")
    assert has(vidveil("report", "evaluated", "-o", "page.md"), r"report: drawing the trade-off, \d+ s so far")


def test_extract_counts_videos(place):
    (place / "mine").mkdir()
    for name in ("a.mp4", "b.mp4"):
        media.Film(frames=9, width=80, height=48).make(place / "mine" / name)
    made.run(place / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIDVEIL_RUNS", str(place / "runs"))
        done = vidveil("extract", "mine", "--encoder", "run:mine", "--device", "cpu")
    assert has(done, r"features of mine: \d+ of 2 videos, \d+ %")


def test_fetch_names_what_is_fetched(place, monkeypatch):
    make_wheel(open_shop(place, monkeypatch))
    assert has(vidveil("fetch", "toy"), r"fetch: fetching toy, \d+ s so far")


def test_review_names_the_manifest_that_is_read_and_the_sheet_that_is_drawn(place):
    output = media.Film(frames=20).make(place / "clip_anonymized.mp4")
    done = vidveil("review", write_manifest(output, moment(first=2, last=6, rate=25)))
    assert has(done, r"review: drawing clip_review.png, \d+ s so far")


@pytest.mark.usefixtures("place")
def test_demo_names_its_attacks(monkeypatch):
    monkeypatch.setattr(demo, "PEOPLE", 2)
    monkeypatch.setattr(demo, "METHODS", (("pixelate:16", "frame"),))
    monkeypatch.setattr(demo, "draw_video", partial(draw_video, frames=10))
    done = vidveil("demo")
    assert has(done, r"demo: anonymizing visitor.mp4, \d+ s so far")
    assert has(done, r"demo: attack on pixelate:16, frame, \d+ s so far")


@pytest.mark.usefixtures("place")
def test_doctor_names_its_checks():
    assert has(vidveil("doctor"), r"doctor: end to end, \d+ s so far")


def test_data_make_counts_videos(place, download):  # noqa: F811
    done = vidveil("data", "make", "ucf101_5", "--from", download, "--data", place / "sets")
    assert has(done, r"ucf101_5: \d+ of 45 videos, \d+ %, ")


def interrupted(verb, hint: str = ""):
    made = typer.Typer()
    made.command()(reported("verb", hint)(verb))
    return CliRunner().invoke(made, [])


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_is_one_line_and_exit_code_130(signal_):
    def verb() -> None:
        signal.raise_signal(signal_)

    before = signal.getsignal(signal.SIGTERM)
    done = interrupted(verb, "run again to go on")
    assert (done.exit_code, done.stderr) == (130, "interrupted: run again to go on\n")
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interruption_within_exec_is_exit_code_130_too(tmp_path):
    """`python -m` itself would end by SIGINT then."""
    code = "import typer; from vidveil.cli.reported import reported; "
    code += "typer.run(reported('verb')(lambda: exec('raise KeyboardInterrupt')))"
    (tmp_path / "stopped.py").write_text(code)
    done = subprocess.run([sys.executable, "-m", "stopped"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.usefixtures("place")
def test_a_run_that_is_interrupted_says_how_to_go_on():
    def verb() -> None:
        with Run.create("some", {}):
            raise KeyboardInterrupt

    done = interrupted(verb)
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr.endswith("interrupted: the same command with --resume goes on with run 'some'\n")


@pytest.mark.parametrize(
    ("words", "inside"),
    [
        (["anonymize", "clip.mp4"], "vidveil.methods.load"),
        (["train", "action_puppets", "name=never", *FEW], "vidveil.evaluation.protocols.recognizer.load_data"),
        (["evaluate", "raw_puppets", "name=never", *FEW], "vidveil.evaluation.protocols.clips.load_data"),
        (["extract", "puppets", "--encoder", "run:mine"], "vidveil.cli.extract.load_encoder"),
        (["report", "."], "vidveil.evaluation.results.locate"),
        (["review", "clip.json"], "vidveil.cli.review.read_review"),
        (["demo"], "vidveil.cli.demo.draw_video"),
        (["doctor"], "vidveil.cli.doctor._try_it"),
        (["ls"], "vidveil.cli.ls._methods"),
        (["fetch", "centerface"], "vidveil.cli.fetch.weights"),
        (["data", "make", "ucf101_5", "--from", ".", "--data", "."], "vidveil.cli.data.make_ucf101_5"),
    ],
)
@pytest.mark.usefixtures("place")
def test_ctrl_c_ends_every_command_with_one_line(words, inside, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reporting, "INTERVAL", 30)
    monkeypatch.setattr(inside, stop)
    done = command.vidveil(*words)
    assert done.exit_code == 130
    assert re.fullmatch(r"interrupted(: [^\n]*)?\n", done.stderr), done.stderr
