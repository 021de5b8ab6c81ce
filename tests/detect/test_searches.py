"""Looks that do not return in time, or that nobody waits for any more."""

import signal
import subprocess
import sys
import threading
from time import monotonic, sleep

import numpy as np
import pytest

from tests.detect.endless import endless_kernel, endless_loop
from tests.detect.hiding import hide
from tests.detect.stage import YELLOW, Discs, Head, film, still, turned, walk
from vidveil.app.jobs import Status
from vidveil.core.errors import DetectorError
from vidveil.detect import searches, settings
from vidveil.detect.onnx_network import Network
from vidveil.detect.searches import Searches, StoppedError

PICTURE = np.zeros((64, 64, 3), np.uint8)
ENDLESS = {"loop": endless_loop, "kernel": endless_kernel}


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(searches, "TIME_LIMIT", 0.3)


def plates(folder, name):
    path = folder / "plates.onnx"
    path.write_bytes(ENDLESS[name]())
    path.with_suffix(".json").write_text('{"layout": "boxes", "size": 64}')
    return path


class Slow(Discs):
    """Does not return while it sees yellow, until `go_on` is set."""

    def __init__(self):
        super().__init__()
        self.go_on = threading.Event()
        self.given_up = []

    def run(self, picture):
        try:
            return super().run(picture)
        except RuntimeError:
            self.go_on.wait(60)
            raise

    def give_up(self, thread):
        self.given_up.append(thread)
        self.go_on.set()


def yellow():
    picture = PICTURE.copy()
    picture[..., :2] = 200
    return picture


@pytest.mark.usefixtures("short")
def test_a_look_that_takes_too_long_is_a_failed_search(tmp_path, monkeypatch):
    monkeypatch.setitem(settings.DETECTORS, "discs", Slow)
    done = hide(film(Head(walk(60, 80, 30), turned((0.78, 0.82), hue=YELLOW)), frames=50), tmp_path)
    assert not done.bad
    why = "could not be searched (the detector did not return within 0.3 seconds)"
    assert done.manifest["hidden"] == [{"first": 16, "last": 24, "why": why}]


@pytest.mark.usefixtures("short")
def test_the_detector_is_notified_of_a_search_that_is_given_up_and_its_thread_ends():
    slow, looks = Slow(), Searches([])
    before = threading.active_count()
    with pytest.raises(DetectorError, match="did not return"):
        looks.look(slow, yellow())
    assert len(slow.given_up) == 1
    assert len(looks.look(slow, PICTURE)) == 0  # by another thread
    looks.stop()
    until = monotonic() + 10
    while threading.active_count() > before and monotonic() < until:
        sleep(0.01)
    assert threading.active_count() == before


def test_what_is_stopped_is_waited_for_no_longer():
    slow, looks = Slow(), Searches([])
    threading.Timer(0.2, looks.stop).start()
    began = monotonic()
    with pytest.raises(StoppedError):
        looks.look(slow, yellow())
    with pytest.raises(StoppedError):
        looks.look(slow, PICTURE)
    assert monotonic() - began < 10
    assert len(slow.given_up) == 1


@pytest.mark.usefixtures("short")
def test_an_endless_loop_ends_the_file_and_ends_itself(tmp_path):
    running = threading.active_count()
    outcome = hide(film(Head(still(100, 80))), tmp_path, region=str(plates(tmp_path, "loop"))).outcome
    assert outcome.status is Status.FAILED
    assert str(outcome.error) == (
        "5 searches in a row failed: the detector of plates did not return within 0.3 seconds; "
        "check in plates.json whether a smaller `size` will do"
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.mp4", "plates.json", "plates.onnx"]
    until = monotonic() + 20
    while threading.active_count() > running and monotonic() < until:
        sleep(0.01)
    assert threading.active_count() <= running


@pytest.fixture
def endless(tmp_path):
    path = tmp_path / "loop.onnx"
    path.write_bytes(endless_loop())
    return Network(path)


def test_a_network_whose_runs_do_not_end_is_not_run_again(endless, monkeypatch):
    monkeypatch.setattr("vidveil.detect.onnx_network.MOST_GIVEN_UP", 0)
    with pytest.raises(DetectorError, match="did not return from earlier pictures"):
        endless(np.zeros((1, 3, 64, 64), np.float32))


def test_a_run_that_was_given_up_before_it_began_does_not_begin(endless):
    endless.give_up(threading.current_thread())
    with pytest.raises(DetectorError, match="did not return"):
        endless(np.zeros((1, 3, 64, 64), np.float32))


@pytest.mark.parametrize(("name", "number"), [("loop", signal.SIGINT)])
def test_the_command_can_be_interrupted_while_a_detector_does_not_return(tmp_path, name, number):
    source = film(Head(still(100, 80))).make(tmp_path / "film.mp4")
    command = [sys.executable, "-m", "vidveil", "anonymize", str(source), "--region", str(plates(tmp_path, name))]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while len(list(tmp_path.iterdir())) == 3:  # until it writes
            assert process.poll() is None
            sleep(0.02)
        sleep(0.5)
        process.send_signal(number)
        began = monotonic()
        _, message = process.communicate(timeout=searches.TIME_LIMIT - 5)
    finally:
        process.kill()
    assert monotonic() - began < 15  # one second, where nobody else is at work
    assert process.returncode == 130, message
    assert "interrupted" in message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.mp4", "plates.json", "plates.onnx"]


def test_a_kernel_that_never_ends_keeps_neither_the_file_nor_the_command_from_ending(tmp_path):
    source = film(frames=20).make(tmp_path / "film.mp4")
    main = "from vidveil.cli import main; from vidveil.detect import searches; searches.TIME_LIMIT = 0.3; main()"
    command = [sys.executable, "-c", main, "anonymize", str(source), "--region", str(plates(tmp_path, "kernel"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "film.mp4: 5 searches in a row failed: the detector of plates did not return" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.mp4", "plates.json", "plates.onnx"]
