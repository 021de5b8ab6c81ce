"""Nothing phones home: commands as a person runs them, in an empty home, with an eye on files and connections."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import vidveil
from tests.detect.onnx_writer import constant
from tests.media import Film
from vidveil.core.telemetry import OPT_OUT

pytestmark = pytest.mark.xdist_group("no telemetry")  # its fixtures take long: made by one worker

ROOT = Path(__file__).parents[2]
SMALL = ["data=puppets:share=0.02", "frames=2", "size=32", "batch=16", "epochs=1", "device=cpu"]
DETECTOR = constant({"boxes": ((1, 4), (20.0, 24.0, 60.0, 44.0)), "scores": ((1,), (0.9,))})
COMMANDS = {
    "anonymize": ["anonymize", "film.mp4", "--region", "plates.onnx", "--audio", "distort", "--tracks-out", "t.jsonl"],
    "train": ["train", "action_puppets", *SMALL, "tasks=[attributes]", "recognizer=resnet_tiny"],
    "evaluate": [
        *["evaluate", "noise_puppets", *SMALL, "attacker_epochs=1", "attackers=[resnet_tiny]", "utility=resnet_tiny"],
        *["permutations=50", "resamples=20"],
    ],
    "report": ["report", "noise_puppets", "-o", "page.md"],
    "doctor": ["doctor"],
    "fetch": ["fetch", "--help"],
}
WATCH = """
import sys

def _note(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"):
        address = arguments[0] if event.startswith("socket.geth") or event == "socket.getaddrinfo" else arguments[1]
        with open({log!r}, "a") as log:
            print(event, address, file=log)

sys.addaudithook(_note)
"""
LOOPBACK = ("127.0.0.1", "::1", "localhost", 'inet_addr("127.', 'inet_pton(AF_INET6, "::1"')


@dataclass
class Home:
    """A home folder in which nothing has ever run."""

    folder: Path
    failed: list[str] = field(default_factory=list)
    traced: bool = False

    def run(self, *command: str, **environment: str) -> None:
        words = [sys.executable, *command]
        if self.traced:
            traced = ["-f", "-qq", "--seccomp-bpf", "-A", "-o", str(self.folder / "strace")]
            words = ["strace", *traced, "-e", "trace=connect,sendto,sendmsg,sendmmsg", *words]
        done = subprocess.run(
            words,
            cwd=self.folder / "work",
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder / "home"),
                "TMPDIR": str(self.folder / "tmp"),
                "PYTHONPATH": os.pathsep.join(map(str, (self.folder / "watch", Path(vidveil.__file__).parents[1]))),
                "PYTHONDONTWRITEBYTECODE": "1",
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            }
            | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
        )
        if done.returncode:
            self.failed.append(f"{command}: {done.stderr[-2000:]}{done.stdout[-500:]}")

    def made(self) -> list[str]:
        """Files in the home folder, and folders that hold none."""
        home = self.folder / "home"
        return sorted(
            str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir() or not any(path.iterdir())
        )

    def left(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder / "tmp")) for path in (self.folder / "tmp").rglob("*"))

    def called(self) -> list[str]:
        """Connections of Python code outside this machine."""
        return _outside(self.folder / "sockets")

    def connected(self) -> list[str]:
        """The same of all code, as the system saw it."""
        return [line for line in _outside(self.folder / "strace") if "AF_INET" in line]


def _outside(log: Path) -> list[str]:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line for line in lines if not any(name in line for name in LOOPBACK)]


def home_in(folder: Path, *, traced: bool) -> Home:
    for name in ("home", "tmp", "work", "watch"):
        (folder / name).mkdir()
    (folder / "watch" / "sitecustomize.py").write_text(WATCH.format(log=str(folder / "sockets")))
    return Home(folder, traced=traced)


def can_trace() -> bool:
    """Containers may forbid it."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-f", "--seccomp-bpf", "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """After all commands."""
    home = home_in(tmp_path_factory.mktemp("used"), traced=can_trace())
    work = home.folder / "work"
    Film(frames=10, width=96, height=64, sound="aac").make(work / "film.mp4")
    (work / "plates.onnx").write_bytes(DETECTOR)
    (work / "plates.json").write_text('{"layout": "boxes", "size": 64}')
    for words in COMMANDS.values():
        home.run("-m", "vidveil", *words)
    return home


def test_the_watch_notes_a_connection(tmp_path):
    home = home_in(tmp_path, traced=False)
    home.run("-c", "import socket; s = socket.socket(); s.settimeout(0.01); s.connect_ex(('192.0.2.1', 9))")
    assert home.failed == []
    assert home.called() == ["socket.connect ('192.0.2.1', 9)"]


def test_every_command_runs_in_an_empty_home(used):
    assert used.failed == []
    assert (used.folder / "work" / "film_anonymized.mp4").exists()
    assert (used.folder / "work" / "page.md").exists()


def test_commands_leave_nothing_but_vidveils_own_cache(used):
    assert used.made()
    assert [name for name in used.made() if not name.startswith(".cache/vidveil/")] == []
    # torch makes this folder for compiled code, and only a compiled network puts something into it
    assert {name for name in used.left() if not name.startswith("torchinductor_")} == set()
    assert len(used.left()) <= 1


def test_no_command_connects_to_anywhere(used):
    assert used.called() == []


def test_no_library_below_python_connects_to_anywhere(used):
    if not used.traced:
        pytest.skip("strace is not here, or may not trace")
    assert used.connected() == []


@pytest.mark.parametrize("statement", ["import onnxruntime", "import openvino"])
def test_a_library_imported_after_vidveil_keeps_to_itself(tmp_path, statement):
    name = statement.split()[1]
    pytest.importorskip(name)
    home = home_in(tmp_path, traced=can_trace())
    home.run("-W", "error", "-c", f"import vidveil; {statement}", **dict.fromkeys(OPT_OUT, "no"))
    assert (home.failed, home.made(), home.left(), home.called(), home.connected()) == ([], [], [], [], [])


@pytest.mark.parametrize(
    ("before", "warned"),
    [("onnxruntime", True), ("onnxruntime, os; os.environ['ORT_DISABLE_TELEMETRY'] = '1'", False), ("av", False)],
)
def test_a_library_imported_before_vidveil_is_warned_of(tmp_path, before, warned):
    home = home_in(tmp_path, traced=False)
    (tmp_path / "watch" / "onnxruntime.py").touch()  # in its place: the real one would report
    home.run("-W", "error::UserWarning", "-c", f"import {before}; import vidveil")
    assert bool(home.failed) == warned
    assert not warned or "onnxruntime was imported before vidveil: telemetry may have begun" in home.failed[0]


def imports(path: Path) -> list[str]:
    """The first part of the name of each imported module, in the order of lines."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.lineno, node.module))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("pytest.importorskip", "import_module"):
            found += [(node.lineno, word.value) for word in node.args[:1] if isinstance(word, ast.Constant)]
    return [name.partition(".")[0] for _, name in sorted(found)]


def test_whoever_imports_a_library_that_would_report_imports_vidveil_first():
    reporting = {"onnxruntime", "openvino", "huggingface_hub", "transformers", "ray"}
    checked = set()
    for folder in ("tests", "benchmarks", "experiments"):  # whatever lies in the package comes after its __init__
        for path in sorted((ROOT / folder).rglob("*.py")):
            names = imports(path)
            first = next((i for i, name in enumerate(names) if name in reporting), None)
            if first is not None:
                checked.add(path.name)
                assert "vidveil" in names[:first], f"{path.relative_to(ROOT)} imports {names[first]} before vidveil"
    assert checked
