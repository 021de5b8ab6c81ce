"""Words on the command line that nobody types by accident: each is one line of an error, and never a traceback."""

import os
import sys

import pytest

from tests.media import Film
from vidveil.cli.app import main

LONG, NUL = "x" * 300, "a\0b"
FOLDERS = "/".join(["x"] * 3000)
CLIP = ("anonymize", "clip.mp4")


@pytest.fixture
def run_command(tmp_path, monkeypatch, capfd):
    """The exit code of a command, and what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIDVEIL_TRACEBACK", raising=False)
    monkeypatch.setenv("VIDVEIL_RUNS", "runs")
    Film(frames=2).make(tmp_path / "clip.mp4")

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["vidveil", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return end.value.code, capfd.readouterr().err

    return run


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((*CLIP, "--start", "9" * 5000), "is no time"),
        ((*CLIP, "--end", "9" * 400), "is no time"),
        ((*CLIP, "--start", "1:" + "9" * 5000), "is no time"),
        ((*CLIP, "--keep", "1e400"), "keep"),
        ((*CLIP, "--keep", "nan"), "keep"),
        ((*CLIP, "--hide-for", "1e400"), "hide_for"),
        ((*CLIP, "--delay", "nan"), "delay"),
        ((*CLIP, "--crf", "9" * 5000), "--crf"),
        ((*CLIP, "--leave-visible", "9" * 5000), "--leave-visible"),
        ((*CLIP, "--preset", "x\n" * 5000), "no preset"),
        ((*CLIP, "--device", "x\n" * 5000), "is no device"),
        *(
            ((*CLIP, option, word), what)
            for option, what in (
                ("--method", "no method is"),
                ("--region", "looked for"),
                ("--also-hide", "looked for"),
            )
            for word in (LONG, NUL, FOLDERS, "a\nb", "x" * 100_000, "\x1b[31m")
        ),
        ((*CLIP, "--method", f"dual_cls:{LONG}"), "no checkpoint"),
        ((*CLIP, "--method", f"dual_cls:{NUL}"), "no checkpoint"),
        ((*CLIP, "--method", "blur:" + "9" * 5000), "whole number"),
        ((*CLIP, "--region", f"{LONG}.onnx"), "file name too long"),
        ((*CLIP, "--region", f"{NUL}.onnx"), "null byte"),
        ((*CLIP, "--tracks-in", LONG), "cannot be read"),
        ((*CLIP, "--tracks-in", "pipe"), "cannot be read (it is not a regular file)"),
        (("train", f"{LONG}.yaml"), "no recipe"),
        (("train", NUL), "no recipe"),
        (("train", "action_puppets", "seed=" + "9" * 5000), "a number of 5000 digits"),
        (("evaluate", "raw_puppets", f"seeds=[{'9' * 5000}]"), "a number of 5000 digits"),
        (("train", "action_puppets", "seed=99999999999999999999"), "does not fit into 64 bits"),
        (("train", "action_puppets", "seed=4294967296"), "seed must be at most 4,294,967,295"),
        (("train", "action_puppets", "data_seed=-1"), "data_seed must be 0 or more"),
        (("evaluate", "raw_puppets", "seeds=[0,-1]"), "seeds must be 0 or more"),
        ((*CLIP, "--start", "0:99"), "after a colon there are less than 60"),
        (("train", "action_puppets", "lr=1e400"), "lr must be a number"),
        (("train", "action_puppets", "lr=.nan"), "lr must be a number"),
        (("train", "action_puppets", "data=" + "[" * 2000), "nested too deeply"),
        (("train", "action_puppets", "name=" + LONG), "is no name for a run"),
        (("train", "action_puppets", "x\n" * 3000 + "=1"), "nothing is called"),
        (("evaluate", "raw_puppets", "fill=" + "x" * 5000), "fill must be"),
        (("report", LONG), "no results"),
        (("report", NUL), "no results"),
        (("review", "x" * 300), "no manifest"),
        (("ls", "data", "x" * 5000), "no dataset is called"),
        (("extract", LONG, "--encoder", "i3"), "no encoder is called"),
        (("extract", "puppets", "--encoder", f"run:{LONG}"), "no finished run"),
        (("extract", "puppets", "--encoder", f"run:{NUL}"), "run"),
    ],
)  # fmt: skip
def test_a_strange_word_is_one_line_that_says_what_is_wrong(run_command, tmp_path, words, what):
    os.mkfifo(tmp_path / "pipe")
    code, message = run_command(*words)
    lines = message.splitlines()
    assert code in (1, 2)
    assert what in message, message[:500]
    assert sum("error: " in line.lower() for line in lines) == 1
    assert "Traceback" not in message
    assert "bug" not in message
    assert all(len(line) <= 1100 and line.isprintable() for line in message.split("\n"))
    assert not list(tmp_path.glob("clip_*"))


RECIPES = {
    "latin": ("verb: train\ndata: é\n".encode("latin-1"), "is not UTF-8 text"),
    "nul": (b"verb: train\ndata: \0\n", "is not YAML"),
    "long": (b"verb: train\n" + b"#" * 1_000_000, "has 1,000,012 bytes, more than the 65,536"),
    "word": (b"verb: " + b"x" * 50_000, "must begin with"),
    "list": (b"- verb\n", "must be lines"),
    "key": (b"verb: train\n" + b"x" * 900 + b": 1\n", "nothing is called"),
}


@pytest.mark.parametrize("kind", RECIPES)
def test_a_recipe_that_makes_no_sense_is_one_line_that_names_it(run_command, tmp_path, kind):
    content, what = RECIPES[kind]
    (tmp_path / "mine.yaml").write_bytes(content)
    code, message = run_command("train", "mine.yaml")
    (line,) = message.splitlines()
    assert code == 1
    assert line.startswith("error: mine.yaml")
    assert what in line
    assert len(line) < 400


def test_what_no_command_foresaw_is_one_line_too(run_command, monkeypatch):
    import vidveil.app.run_recipe

    def fails(*_: object) -> None:
        raise RecursionError("x\n" * 5000)

    monkeypatch.setattr(vidveil.app.run_recipe, "find", fails)
    code, message = run_command("train", "action_puppets")
    (line,) = message.splitlines()
    assert code == 1
    assert line.startswith("error: RecursionError: x?x?")
    assert "this is a bug" in line
    assert len(line) < 1100


def test_the_traceback_is_there_for_who_asks(run_command, monkeypatch):
    import vidveil.app.run_recipe

    monkeypatch.setattr(vidveil.app.run_recipe, "find", lambda *_: {}["x"])
    monkeypatch.setenv("VIDVEIL_TRACEBACK", "1")
    with pytest.raises(KeyError):
        run_command("train", "action_puppets")
