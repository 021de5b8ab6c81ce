"""Progress: plain lines at intervals off a terminal, bars on one, nothing from the Python API."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from threading import Thread
from time import sleep

import pytest
from rich.console import Console

from vidveil.core import progress as reporting
from vidveil.core.progress import counted, phase, say, span


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when a test says so."""
    now = [1000.0]
    monkeypatch.setattr(reporting, "monotonic", lambda: now[0])

    def passes(seconds: float) -> None:
        now[0] += seconds

    return passes


class Lines(io.StringIO):
    """Waits for what another thread prints."""

    def wait(self, count: int) -> list[str]:
        for _ in range(1000):
            if self.getvalue().count("\n") >= count:
                break
            sleep(0.005)
        return self.getvalue().splitlines()


@contextmanager
def working(command: str) -> Iterator[Lines]:
    """What it prints on stderr, which is no terminal."""
    with redirect_stderr(Lines()) as file, reporting.reporting(command):
        yield file


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(reporting, "INTERVAL", 0.01)


def test_a_line_is_due_every_thirty_seconds():
    assert reporting.INTERVAL == 30


def test_what_is_counted_is_reported_with_its_share_its_speed_and_the_time_left(clock):
    with phase("clip.mp4", 9000, "frames") as one:
        assert one.describe() == "clip.mp4: 0 of 9,000 frames, 0 %, 0 s so far"
        clock(30)
        one.done = 1240
        assert one.describe() == "clip.mp4: 1,240 of 9,000 frames, 13 %, 41 fps, 3 min left"
        one.done = 9000
        assert one.describe() == "clip.mp4: 9,000 of 9,000 frames, 100 %, 300 fps"


def test_what_has_no_known_end_is_reported_with_what_is_done(clock):
    with phase("camera", None, "frames") as one:
        clock(60)
        assert one.describe() == "camera, 60 s so far"
        one.done = 1500
        assert one.describe() == "camera: 1,500 frames, 25 fps, 60 s so far"


def test_the_speed_of_what_goes_on_after_an_interruption_is_that_of_now(clock):
    with phase("run", 100, "steps", done=50) as one:
        clock(10)
        one.done = 60
        one.note = "epoch 2/4"
        assert one.describe() == "run: 60 of 100 steps, 60 %, 40 s left; epoch 2/4"


@pytest.mark.parametrize(("seconds", "words"), [(3.2, "3 s"), (99, "99 s"), (180, "3 min"), (9000, "2.5 h")])
def test_times_are_short_words(seconds, words):
    assert span(seconds) == words


@pytest.mark.usefixtures("often")
def test_what_cannot_be_counted_is_reported_by_its_name():
    with working("evaluate") as stderr, phase("permutation tests"):
        lines = stderr.wait(2)
    assert lines[0] == "evaluate: permutation tests, 0 s so far"
    assert len(lines) >= 2


@pytest.mark.usefixtures("often")
def test_a_command_that_names_no_phase_is_reported_all_the_same():
    with working("evaluate") as stderr:
        assert stderr.wait(1)[0] == "evaluate: 0 s so far"


def test_nothing_is_printed_before_its_time_and_other_lines_count(clock):
    with working("evaluate") as stderr:
        reporter = reporting._reporter
        clock(29)
        assert not reporter.due()
        clock(1)
        assert reporter.due()
        say("a line")
        assert not reporter.due()
        clock(29)
        reporting.console().print("another line")
        clock(29)
        assert not reporter.due()
    assert stderr.getvalue() == "a line\nanother line\n"


@pytest.mark.usefixtures("often")
def test_the_innermost_phase_is_reported():
    with working("evaluate") as stderr, phase("outer", 3, "clips"):
        for _ in counted(range(1), "inner", 1, "videos"):
            assert stderr.wait(1)[0].startswith("inner: 0 of 1 videos")


@pytest.mark.usefixtures("often")
def test_names_bring_no_control_characters_into_files():
    with working("anonymize") as stderr, phase("a\x1b[31m\r\n\udcffb.mp4", 9, "frames"):
        line = stderr.wait(1)[0]
        say("\x1b]0;title\x07")
    assert line.startswith("a?[31m???b.mp4: 0 of 9 frames")
    assert re.fullmatch(r"[\x20-\x7e\n]*", stderr.getvalue())


@pytest.mark.usefixtures("often")
def test_environments_that_force_colours_bring_no_control_characters_into_files(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with working("train") as stderr:
        reporting.console().print("plain", style="red")
        with phase("training", 2, "steps"):
            stderr.wait(2)
    assert "\x1b" not in stderr.getvalue()


@pytest.mark.usefixtures("often")
def test_the_python_interface_is_silent():
    with redirect_stderr(io.StringIO()) as stderr, phase("decoding", 3):
        sleep(0.05)
    assert stderr.getvalue() == ""


@pytest.mark.usefixtures("often")
def test_only_the_first_process_of_torchrun_reports(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with working("train") as stderr, phase("training"):
        sleep(0.05)
    assert stderr.getvalue() == ""


@pytest.mark.usefixtures("often")
def test_a_reader_of_stderr_that_is_gone_stops_nothing():
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    with redirect_stderr(Gone()), reporting.reporting("train"), phase("training"):
        sleep(0.03)


def test_a_terminal_gets_bars_that_are_gone_in_the_end(monkeypatch):
    monkeypatch.setattr(reporting, "TICK", 0.01)
    file = Lines()
    terminal = Console(file=file, force_terminal=True, width=100)
    with reporting.reporting("anonymize", terminal), phase("clip.mp4", 90, "frames") as one:
        one.done = 40
        for _ in range(200):
            if "40/90" in file.getvalue():
                break
            sleep(0.01)
    assert "clip.mp4" in file.getvalue()
    assert "40/90" in file.getvalue()
    assert file.getvalue().endswith("\x1b[2K")  # the line is empty again
    assert "so far" not in file.getvalue()


def test_nothing_is_left_of_phases_that_fail():
    with pytest.raises(KeyboardInterrupt), reporting.reporting("train"), phase("training"):
        raise KeyboardInterrupt
    assert reporting._phases == []
    assert reporting._reporter is None


def test_phases_of_several_threads_do_not_disturb_each_other():
    def work() -> None:
        for _ in range(200):
            with phase("a", 2) as one:
                one.done += 1

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reporting._phases == []
