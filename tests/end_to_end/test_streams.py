"""Cameras and streams on the loopback interface, and their outages."""

import contextlib
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.camera import camera
from tests.detect.stage import Discs
from tests.media import Film, detail, level, lumas, picture, times
from vidveil.app.jobs import Options, Outcome, Status, anonymize
from vidveil.detect.detections import Cells
from vidveil.detect.settings import DETECTORS

WHOLE_FRAME = ["--method", "blur:strong", "--region", "frame"]
SERVER = ["/usr/bin/python3", str(Path(__file__).with_name("rtsp_server.py"))]
PACKAGES = "gir1.2-gst-rtsp-server-1.0 python3-gi gstreamer1.0-plugins-base gstreamer1.0-plugins-good"
GOP = 12
BEFORE, AFTER = range(GOP), range(GOP, 2 * GOP)
"""What the camera shows before and after the outage: key pictures are `level(0)` and `level(12)`."""


def can_serve() -> bool:
    with contextlib.suppress(OSError):
        return subprocess.run(SERVER, capture_output=True, check=False).returncode == 0
    return False


rtsp = pytest.mark.skipif(not can_serve(), reason=f"no RTSP server here: apt-get install {PACKAGES}")


def units(path: Path, shown: range, size: tuple[int, int] = (160, 120)) -> Path:
    """H.264 for `rtsp_server.py`: parameter sets, then a group of pictures."""
    encoder = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height = size
    encoder.pix_fmt, encoder.time_base, encoder.framerate = "yuv420p", Fraction(1, 25), Fraction(25)
    encoder.options = {"preset": "veryfast", "crf": "10", "bf": "0", "x264-params": f"keyint={GOP}:scenecut=0"}
    frames: list[av.VideoFrame | None] = []
    for i, number in enumerate(shown):
        frame = av.VideoFrame.from_ndarray(picture(number, *size), "rgb24")
        frames.append(frame.reformat(format="yuv420p", dst_colorspace="ITU709"))
        frames[-1].pts = i
    pictures = [bytes(packet) for frame in (*frames, None) for packet in encoder.encode(frame)]
    parts = re.split(rb"(?=\x00\x00\x00\x01)|(?<!\x00)(?=\x00\x00\x01)", pictures[0])
    parameters = b"".join(part for part in parts if re.match(rb"\x00{2,3}\x01[\x67\x68]", part))
    path.write_bytes(b"".join(struct.pack(">I", len(unit)) + unit for unit in (parameters, *pictures)))
    return path


class Server:
    """An RTSP camera that can be killed."""

    def __init__(self, port: int, path: Path) -> None:
        self.process = subprocess.Popen([*SERVER, str(port), str(path)], stdout=subprocess.PIPE, text=True)
        self.wait_for("listening")

    def wait_for(self, word: str) -> float:
        """The time at which the server says so."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == word
        return time.monotonic()

    def kill(self) -> float:
        self.process.kill()
        self.process.wait()
        return time.monotonic()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def recorder(url: str, output: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "vidveil", "anonymize", url, "-o", str(output), *WHOLE_FRAME, *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def wait_until_it_writes(output: Path) -> None:
    part = output.with_name(f".{output.name}.vidveil.part")
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 0):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def greys(pictures: np.ndarray) -> np.ndarray:
    """The number that each picture had in `tests.media.picture`, from its blurred grey."""
    means = pictures.mean((1, 2))
    known = np.array([16 + level(i) * 219 / 255 for i in (*BEFORE, *AFTER)])
    away = np.abs(means[:, None] - known)
    assert away.min(1).max() < 2, "a picture that the camera never showed"
    return away.argmin(1)


def check(output: Path) -> tuple[list[float], np.ndarray]:
    """Times and numbers of the pictures; none of them raw, half-decoded or made up."""
    pictures = lumas(output)
    assert detail(pictures).max() < 2
    assert pictures[:, 8:-8, 8:-8].std((1, 2)).max() < 3  # flat, as each one was
    seconds = [float(t) for t in times(output)]
    assert len(seconds) == len(pictures)
    assert (np.diff(seconds) > 0).all()
    return seconds, greys(pictures)


def check_outage(output: Path, true_gap: float) -> None:
    seconds, numbers = check(output)
    first_after = int(np.argmax(numbers >= GOP))
    assert first_after > GOP
    assert (numbers[:first_after] < GOP).all()
    assert (numbers[first_after:] >= GOP).all()
    assert len(numbers) - first_after > GOP
    assert numbers[0] == 0  # both times it was joined midway, and nothing shown before a key picture
    assert numbers[first_after] == GOP
    steps = np.diff(seconds)
    assert int(np.argmax(steps)) == first_after - 1
    assert true_gap - 0.5 < steps.max() < true_gap + 1.0  # a key picture comes every half second
    assert np.delete(steps, first_after - 1).mean() == pytest.approx(0.04, rel=0.1)


@rtsp
@pytest.mark.timeout(120)
def test_a_recording_goes_on_in_the_same_file_when_the_server_was_killed_and_is_back(tmp_path):
    output, port = tmp_path / "door.mp4", free_port()
    before, after = units(tmp_path / "before", BEFORE), units(tmp_path / "after", AFTER, size=(192, 144))
    with Server(port, before) as server, recorder(f"rtsp://127.0.0.1:{port}/door", output) as process:
        wait_until_it_writes(output)
        time.sleep(2)
        killed = server.kill()
        with Server(port, after) as server:
            back = server.wait_for("playing")
            time.sleep(3)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=30)
    assert process.returncode == 0, stderr
    assert "the stream was interrupted 1 time, for " in stderr
    assert "later sizes were brought to the first" in stderr
    assert f" {len(times(output))} frames" in stderr  # none was lost between encoder and file
    check_outage(output, back - killed)


@rtsp
@pytest.mark.timeout(180)
def test_a_minute_with_an_outage_in_the_middle_lasts_a_minute(tmp_path):
    output, port = tmp_path / "door.mp4", free_port()
    before, after = units(tmp_path / "before", BEFORE), units(tmp_path / "after", AFTER)
    url = f"rtsp://127.0.0.1:{port}/door"
    with Server(port, before) as server, recorder(url, output, "--end", "60") as process:
        wait_until_it_writes(output)
        time.sleep(25)
        killed = server.kill()
        time.sleep(5)
        with Server(port, after) as server:
            back = server.wait_for("playing")
            _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    check_outage(output, back - killed)
    seconds, numbers = check(output)
    assert 59 < seconds[-1] < 60.5  # a stream's clock may begin a little before its first timestamp is known
    assert len(numbers) == pytest.approx(25 * (60 - np.diff(seconds).max()), rel=0.05)


@rtsp
@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.timeout(120)
def test_an_interrupt_during_an_outage_closes_the_file_at_once(tmp_path, signal_):
    output, port = tmp_path / "door.mp4", free_port()
    with (
        Server(port, units(tmp_path / "before", BEFORE)) as server,
        recorder(f"rtsp://127.0.0.1:{port}/door", output) as process,
    ):
        wait_until_it_writes(output)
        time.sleep(2)
        server.kill()
        time.sleep(2)
        process.send_signal(signal_)
        sent = time.monotonic()
        _, stderr = process.communicate(timeout=30)
        took = time.monotonic() - sent
    assert process.returncode == 0, stderr
    assert "error" not in stderr
    assert took < 5  # on a busy machine; the wait itself ends at once
    _, numbers = check(output)
    assert len(numbers) > GOP
    assert f" {len(numbers)} frames" in stderr  # none was lost between encoder and file
    assert (numbers < GOP).all()


def record(url: str, output: Path, *, reconnect: float) -> Outcome:
    (outcome,) = anonymize(
        url, output=output, method="blur:strong", region="frame", options=Options(reconnect=reconnect)
    )
    return outcome


def test_a_camera_that_resets_the_connection_is_joined_again(tmp_path):
    film = Film(frames=75, width=160, height=120, gop=5).make(tmp_path / "a.ts").read_bytes()
    with camera(film, film, seconds=3) as url:
        outcome = record(url, tmp_path / "door.mp4", reconnect=3)
    assert outcome.status is Status.INCOMPLETE
    assert "was lost" in str(outcome.error)
    assert any("interrupted 1 time" in line for line in outcome.warnings)
    pictures = lumas(tmp_path / "door.mp4")
    assert 140 < len(pictures) < 150  # what may have been cut off midway is left out
    assert detail(pictures).max() < 2
    steps = np.diff([float(t) for t in times(tmp_path / "door.mp4")])
    assert (steps > 0).all()
    assert (steps > 0.4).sum() == 1


def test_without_reconnecting_a_lost_camera_is_an_error_at_once_and_leaves_a_valid_file(tmp_path):
    film = Film(frames=100, width=160, height=120).make(tmp_path / "a.ts").read_bytes()
    began = time.monotonic()
    with camera(film[: len(film) * 2 // 3], film) as url:
        outcome = record(url, tmp_path / "door.mp4", reconnect=0)
    assert time.monotonic() - began < 10
    assert outcome.status is Status.INCOMPLETE
    assert "was lost" in str(outcome.error)
    assert not any("interrupted" in line for line in outcome.warnings)
    pictures = lumas(tmp_path / "door.mp4")
    assert 20 < len(pictures) < 100
    assert detail(pictures).max() < 2


def test_a_recording_whose_detector_fails_ends_there_and_keeps_what_was_safe(tmp_path, monkeypatch):
    class Breaks(Discs):
        searches = 0

        def run(self, picture):
            Breaks.searches += 1
            if Breaks.searches > 4:
                return Cells(np.array([np.nan]), np.zeros((1, 4)).__getitem__)
            return super().run(picture)

    monkeypatch.setitem(DETECTORS, "discs", Breaks)
    film = Film(frames=100, width=160, height=120).make(tmp_path / "a.ts").read_bytes()
    with camera(film) as url:
        (outcome,) = anonymize(url, output=tmp_path / "door.mp4", region="discs", options=Options(reconnect=0))
    assert outcome.status is Status.INCOMPLETE
    assert "was ended: 5 searches in a row failed: the detector of discs returned scores" in str(outcome.error)
    assert 0 < len(lumas(tmp_path / "door.mp4")) < 100


def test_a_stream_that_was_never_there_is_not_waited_for(tmp_path):
    began = time.monotonic()
    (outcome,) = anonymize(f"tcp://127.0.0.1:{free_port()}", output=tmp_path / "door.mp4", options=Options())
    assert outcome.status is Status.FAILED
    assert "cannot be reached" in str(outcome.error)
    assert time.monotonic() - began < 10
