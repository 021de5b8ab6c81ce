"""The real command, as people run it, and as the world interrupts it."""

import contextlib
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.camera import camera
from tests.end_to_end.command import COMMAND
from tests.media import Film, detail, lumas
from tests.unprivileged import without_root_powers
from tests.whole_frame import WHOLE_FRAME


def vidveil(*words: object, **how) -> subprocess.CompletedProcess[str]:
    if words[0] == "anonymize":
        words = (*words, *WHOLE_FRAME)
    return subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120, check=False, **how)


def names(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_the_first_line_names_method_weights_and_device(tmp_path):
    done = vidveil("anonymize", Film().make(tmp_path / "a.mp4"))
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == "method blur:strong, weights none, device cpu"
    assert done.stdout == ""
    assert names(tmp_path) == {"a.mp4", "a_anonymized.mp4", "a_anonymized.json"}


def test_bad_files_are_one_line_each_and_the_others_are_done(tmp_path):
    whole = Film(frames=50).make(tmp_path / "good.mp4").read_bytes()
    bad = {"empty.mp4": b"", "half.mp4": whole[:2000], "text.mp4": b"hello\n" * 500}
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
    done = vidveil("anonymize", tmp_path)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == 1
    for line, name, reason in zip(errors, bad, ("is empty", "is not a video", "is not a video"), strict=True):
        assert line.startswith(f"error: {name}: {reason}")
    assert (tmp_path / "good_anonymized.mp4").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--method", "blurr"], "did you mean blur"),
        (["--device", "cuda:7"], "no such CUDA device"),
        (["--device", "tpu"], "is no device"),
        (["--start", "soon"], "is no time"),
        (["--start", "2", "--end", "1"], "before the start"),
        (["--preset", "warp"], "no preset"),
    ],
)
def test_a_senseless_call_is_one_line_and_writes_nothing(tmp_path, words, says):
    path = Film().make(tmp_path / "a.mp4")
    done = vidveil("anonymize", path, *words)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert names(tmp_path) == {"a.mp4"}


def test_a_method_that_hides_nothing_says_so(tmp_path):
    done = vidveil("anonymize", Film().make(tmp_path / "a.mp4"), "--method", "stride:5")
    assert done.returncode == 0
    assert "leaves the pictures as they are" in done.stderr


def test_odd_names_are_fine_and_broken_ones_are_reported(tmp_path):
    odd = [b"a [bold] b.mp4", "größe — ‘x’.mp4".encode(), b"line\nbreak.mp4", b"-o.mp4", b"broken \xff\xfe.mp4"]
    for name in odd:
        Film().make(tmp_path / "a.mp4").rename(os.fsdecode(os.path.join(os.fsencode(tmp_path), name)))  # noqa: PTH118
    done = vidveil("anonymize", tmp_path)
    assert len(list(tmp_path.glob("*_anonymized.mp4"))) == 4
    assert "a [bold] b.mp4" in done.stderr
    assert done.returncode == 1
    assert "error: broken ??.mp4: its name is not valid UTF-8: rename it" in done.stderr


def killed_halfway(folder: Path, signal_: int) -> subprocess.Popen[bytes]:
    """Start on a folder, wait until the second file is being written, and send a signal."""
    with (folder.parent / "stderr").open("w") as stderr:
        process = subprocess.Popen([*COMMAND, "anonymize", str(folder), *WHOLE_FRAME], stderr=stderr)
    deadline = time.monotonic() + 60
    part = folder / ".b_anonymized.mp4.vidveil.part"
    while time.monotonic() < deadline and process.poll() is None:
        if part.exists() and part.stat().st_size > 0:
            break
        time.sleep(0.002)
    process.send_signal(signal_)
    process.wait(30)
    return process


def films(folder: Path) -> None:
    folder.mkdir()
    for name, frames in (("a", 10), ("b", 700), ("c", 20)):
        Film(frames=frames, width=320, height=240).make(folder / f"{name}.mp4")


def test_kill_9_leaves_no_output_and_the_next_run_gives_what_an_undisturbed_run_gives(tmp_path):
    disturbed, calm = tmp_path / "disturbed", tmp_path / "calm"
    films(disturbed)
    films(calm)
    process = killed_halfway(disturbed, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    left = names(disturbed)
    assert ".b_anonymized.mp4.vidveil.part" in left
    assert "a_anonymized.mp4" in left
    assert not left & {"b_anonymized.mp4", "b_anonymized.json", "c_anonymized.mp4"}
    resumed = vidveil("anonymize", disturbed)
    assert resumed.returncode == 0
    assert "a.mp4 -> " in resumed.stderr
    assert "up to date" in resumed.stderr
    assert vidveil("anonymize", calm).returncode == 0
    assert names(disturbed) == names(calm)
    for name in names(calm):
        assert (disturbed / name).read_bytes() == (calm / name).read_bytes(), name


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_cleans_up(tmp_path, signal_):
    films(tmp_path / "in")
    process = killed_halfway(tmp_path / "in", signal_)
    assert process.returncode == 130
    assert "interrupted" in (tmp_path / "stderr").read_text()
    left = names(tmp_path / "in")
    assert not any(name.endswith(".part") for name in left)
    assert "b_anonymized.mp4" not in left
    assert "a_anonymized.mp4" in left


def test_a_folder_that_cannot_be_written_to_is_reported(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    path = Film().make(folder / "a.mp4")
    folder.chmod(0o555)
    try:
        done = vidveil("anonymize", path, preexec_fn=without_root_powers)
    finally:
        folder.chmod(0o755)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: a.mp4: the output's folder cannot be written to"
    assert names(folder) == {"a.mp4"}


@contextlib.contextmanager
def small_disk(folder: Path):
    """A disk of 16 kB, where the system lets us have one."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path):
    path = Film(frames=3000, bframes=0).make(tmp_path / "big.mp4")
    Film(frames=3).make(tmp_path / "tiny.mp4")
    with small_disk(tmp_path / "disk"):
        done = vidveil("anonymize", path, tmp_path / "tiny.mp4", "-o", tmp_path / "disk")
        left = names(tmp_path / "disk")
    assert done.returncode == 1
    assert "error: big.mp4: the disk is full" in done.stderr
    assert left == {"tiny_anonymized.mp4", "tiny_anonymized.json"}


def test_a_limit_on_file_size_is_reported_and_leaves_nothing(tmp_path):
    path = Film(frames=200, width=320, height=240).make(tmp_path / "a.mp4")

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))

    done = vidveil("anonymize", path, "--crf", "1", preexec_fn=limit)
    assert done.returncode == 1
    assert "error: a.mp4: cannot be written (file too large)" in done.stderr
    assert names(tmp_path) == {"a.mp4"}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("97", "error: camera97: no such camera"),
        ("rtsp://admin:hunter2@127.0.0.1:9/door", "error: rtsp://127.0.0.1:9/door: cannot be reached"),
    ],
)
def test_a_camera_that_is_not_there_is_one_line_without_its_password(tmp_path, word, message):
    done = vidveil("anonymize", word, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert "hunter2" not in done.stderr
    assert names(tmp_path) == set()


def test_ctrl_c_ends_a_recording_properly(tmp_path):
    film = Film(frames=100, width=160, height=120).make(tmp_path / "a.ts").read_bytes()
    output = tmp_path / "door.mp4"
    part = tmp_path / ".door.mp4.vidveil.part"
    with camera(20 * film, seconds=80) as url:
        words = [*COMMAND, "anonymize", url, "-o", str(output), *WHOLE_FRAME]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (part.exists() and part.stat().st_size > 0):
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 0, stderr
    pictures = lumas(output)
    assert len(pictures) > 5
    assert detail(pictures).max() < 2
