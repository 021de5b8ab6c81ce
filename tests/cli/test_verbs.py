"""What a person sees of each verb."""

import os
import pty
import subprocess
import sys
from fractions import Fraction

import pytest

from tests.command import vidveil
from tests.media import Film
from vidveil import __version__, methods
from vidveil.cli import anonymize
from vidveil.cli.app import COMMANDS
from vidveil.core.errors import UsageError


def test_help_lists_all_commands_with_a_line_for_each():
    listed = vidveil().output.partition("Commands:\n")[2]
    assert [line.split(maxsplit=1) for line in listed.splitlines()] == [list(each) for each in COMMANDS.items()]


def test_help_has_examples_for_every_command_and_loads_no_torch():
    check = (
        "import sys; from typer.testing import CliRunner; from vidveil.cli.app import COMMANDS, app\n"
        "for name in COMMANDS:\n"
        "    done = CliRunner().invoke(app, [name, '--help'])\n"
        "    assert done.exit_code == 0 and f'vidveil {name} ' in done.output.partition('\\n')[2], name\n"
        "print([m for m in ('torch', 'lightning', 'transformers', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_anonymizing_by_a_method_that_learned_nothing_loads_no_torch(tmp_path):
    words = ["vidveil", "anonymize", str(Film(frames=2).make(tmp_path / "a.mp4")), "--region", "frame"]
    check = (
        f"import atexit, sys; sys.argv = {words!r}\n"
        "atexit.register(lambda: print('torch' in sys.modules))\n"
        "from vidveil.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert (tmp_path / "a_anonymized.mp4").exists()
    assert done.stdout == "False\n"


def test_version():
    assert vidveil("--version").output.strip() == f"vidveil {__version__}"


def test_ls_names_every_method():
    result = vidveil("ls", "methods")
    assert result.exit_code == 0
    for name in methods.METHODS:
        assert name in result.output


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1:30", 90), ("0:01:30.5", Fraction(181, 2)), ("0.04", Fraction(1, 25)), (None, None)],
)
def test_times_are_exact(text, seconds):
    assert anonymize._seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1:2:3:4", "1e3", "one", "1:", ".5"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(UsageError, match="is no time"):
        anonymize._seconds(text)


def test_doctor_says_that_all_is_well():
    result = vidveil("doctor")
    assert result.exit_code == 0, result.output
    assert "end to end     works" in result.output


def test_demo_ends_with_a_picture_and_a_number_with_its_floor(tmp_path):
    result = vidveil("demo", "-o", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    assert {p.name for p in (tmp_path / "demo").iterdir()} == {
        "visitor.mp4",
        "visitor_anonymized.mp4",
        "visitor_anonymized.json",
        "preview.mp4",
        "demo.png",
    }
    rows = [line.partition("%")[0].rsplit(maxsplit=1) for line in result.output.splitlines() if "(chance" in line]
    found = {name.strip(): float(share) for name, share in rows}
    assert found["raw"] > 80
    assert found["solid, frame"] == pytest.approx(100 / 24, abs=0.1)


def test_a_terminal_shows_progress_and_a_pipe_does_not(tmp_path):
    path = Film(frames=300, width=320, height=240).make(tmp_path / "a.mp4")
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    words = [sys.executable, "-m", "vidveil", "anonymize", str(path), "--region", "frame"]
    with subprocess.Popen(words, stderr=slave, env=environment) as process:
        os.close(slave)
        screen = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            screen += piece
    os.close(master)
    assert process.returncode == 0
    assert b"fps" in screen
    assert b"/300" in screen
    piped = subprocess.run([*words, "--overwrite"], capture_output=True, text=True, check=True)
    assert len(piped.stderr.splitlines()) == 3  # the method, what is replaced, the outcome
