"""A file is there whole or not at all, nobody's file is touched on the way, and nothing is left of a killed writer."""

import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from vidveil.core import atomic
from vidveil.core.errors import OutputError

SOURCE = Path(atomic.__file__).parents[1]


def write_file(path: Path) -> None:
    with atomic.new_file(path) as file:
        file.write(b"new")


def write_path(path: Path) -> None:
    with atomic.new_path(path) as part:
        part.write_bytes(b"new")


def write_claimed(path: Path) -> None:
    with atomic.temporary(path) as part:
        part.write_bytes(b"new")
        atomic.commit(part, path)


WRITERS = [write_file, write_path, write_claimed, lambda path: atomic.write_text(path, "new")]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("there", [False, True])
def test_a_file_takes_its_name_when_it_is_whole(tmp_path, write, there):
    if there:
        (tmp_path / "a").write_bytes(b"old and longer")
    write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == {"a"}


@pytest.mark.parametrize("write", WRITERS)
def test_a_link_in_the_place_of_a_file_is_replaced_and_what_it_leads_to_stays(tmp_path, write):
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "a").symlink_to("victim")
    write(tmp_path / "a")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert (tmp_path / "a").read_bytes() == b"new"
    assert not (tmp_path / "a").is_symlink()


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("name", ["x" * 251 + ".mp4", "ü" * 127, "y" * 255])
def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path, write, name):
    write(tmp_path / name)
    assert names(tmp_path) == {name}
    other = name[:-5] + "z" + name[-4:]
    assert atomic.part_of(tmp_path / name) != atomic.part_of(tmp_path / other)


@pytest.mark.parametrize("write", WRITERS)
def test_a_disk_that_is_full_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, write):
    (tmp_path / "a").write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == {"a"}


def test_an_error_half_way_leaves_the_old_folder_and_no_other(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "old").touch()

    def write() -> None:
        with atomic.new_folder(tmp_path / "set") as part:
            (part / "new").touch()
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert names(tmp_path) == {"set"}
    assert names(tmp_path / "set") == {"old"}


def test_a_folder_replaces_the_one_that_has_its_name(tmp_path):
    for name in ("first", "second"):
        with atomic.new_folder(tmp_path / "set") as part:
            (part / name).touch()
    assert names(tmp_path) == {"set"}
    assert names(tmp_path / "set") == {"second"}


def test_a_private_file_is_never_readable_by_others(tmp_path):
    with atomic.new_file(tmp_path / "key", 0o600):
        (part,) = tmp_path.iterdir()
        assert part.stat().st_mode & 0o077 == 0
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


KILLED = """
import sys, time
from pathlib import Path
from vidveil.core import atomic
from vidveil.core.errors import OutputError
with atomic.{kind}(Path(sys.argv[1])) as part:
    Path(sys.argv[2]).touch()
    time.sleep(60)
"""


def running(tmp_path: Path, kind: str) -> "subprocess.Popen[bytes]":
    ready = tmp_path.parent / f"{tmp_path.name} ready"
    process = subprocess.Popen([sys.executable, "-c", KILLED.format(kind=kind), str(tmp_path / "a"), str(ready)])
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("kind", ["temporary", "new_file", "new_path", "new_folder"])
def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path, kind):
    process = running(tmp_path, kind)
    try:
        (left,) = tmp_path.iterdir()
        assert atomic.is_part(left.name, "a")
        assert atomic.remove_stale(tmp_path) == []
        assert left.exists()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert atomic.remove_stale(tmp_path, "b") == []
    assert atomic.remove_stale(tmp_path, "a") == [left]
    assert names(tmp_path) == set()


@pytest.fixture(params=["link", "hard link", "folder", "pipe"])
def not_ours(tmp_path, request) -> Path:
    """Something of somebody else's at the temporary name of `a`."""
    precious, part = tmp_path / "precious", atomic.part_of(tmp_path / "a")
    precious.write_text("precious")
    make = {
        "link": lambda: part.symlink_to(precious),
        "hard link": lambda: part.hardlink_to(precious),
        "folder": part.mkdir,
        "pipe": lambda: os.mkfifo(part),
    }
    make[request.param]()
    return part


def test_what_only_has_a_temporary_name_is_neither_written_to_nor_taken_for_stale(tmp_path, not_ours):
    with pytest.raises(OutputError, match="in the way"), atomic.temporary(tmp_path / "a"):
        pass
    assert atomic.remove_stale(tmp_path) == []
    assert names(tmp_path) == {"precious", not_ours.name}
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_name_without_the_dot_is_not_temporary(tmp_path):
    (tmp_path / "a.vidveil.part").touch()
    assert atomic.remove_stale(tmp_path) == []
    assert names(tmp_path) == {"a.vidveil.part"}


def test_a_temporary_file_is_gone_unless_it_was_renamed(tmp_path):
    with atomic.temporary(tmp_path / "a") as part:
        part.write_text("x")
        assert names(tmp_path) == {".a.vidveil.part"}
    assert names(tmp_path) == set()
    with atomic.temporary(tmp_path / "a") as part:
        part.write_text("x")
        part.replace(tmp_path / "a")
        part.write_text("somebody else's")
    assert names(tmp_path) == {"a", ".a.vidveil.part"}


def test_of_many_who_want_a_name_one_has_it_at_a_time(tmp_path):
    path = tmp_path / "a.mp4"
    inside, most, wins, others = 0, 0, 0, []
    end = time.monotonic() + 2

    def hammer(number: int) -> None:
        nonlocal inside, most, wins
        while time.monotonic() < end:
            try:
                with atomic.temporary(path) as part:
                    inside += 1
                    most = max(most, inside)
                    part.write_text("whole")
                    wins += 1
                    inside -= 1
                    if number % 2:
                        part.replace(path)
            except Exception as error:
                others.append(str(error))

    threads = [threading.Thread(target=hammer, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert wins > 20
    assert set(others) <= {"a.mp4 is being written by another process"}
    assert names(tmp_path) == {"a.mp4"}
    assert path.read_text() == "whole"


@pytest.mark.parametrize("open_", [atomic.open_lock, atomic.open_log])
def test_locks_and_logs_follow_no_link_and_empty_nothing(tmp_path, open_):
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / ".lock").symlink_to("victim")
    with pytest.raises(OSError):
        open_(tmp_path / ".lock")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    open_(tmp_path / "victim").close()
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_no_other_module_makes_temporary_names_or_renames_files():
    """`weights_download` and `export` work in temporary folders of the system's, which no other user can enter."""
    found = [
        f"{path.relative_to(SOURCE)}:{at}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path != Path(atomic.__file__)
        for at, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"os\.(replace|rename)|\.rename\(|mkstemp|mkdtemp|NamedTemporaryFile|\.part\"|~\{os\.getpid", line)
    ]
    assert found == []
