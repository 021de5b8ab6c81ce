"""vidveil and deface, each run as a command; what they hide, as tracks files, kept by the content of the clip.

deface lives in an environment of its own, which is made where it is missing: it wants another OpenCV than vidveil.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from composed_clips.scoring import Tracks

DEFACE = "1.5.0"
WANTED = (f"deface=={DEFACE}", "onnx", "onnxruntime")
BACKENDS = ("onnxrt", "opencv")
DRIVER = Path(__file__).parent / "deface_driver.py"


def cache_folder() -> Path:
    """Of this benchmark: clips, masks, deface. Everything in it can be made again."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "vidveil" / "benchmarks"


@dataclass(frozen=True)
class Deface:
    environment: Path

    @staticmethod
    def ready(environment: Path) -> "Deface":
        """In this environment, made now if there is none."""
        found = Deface(environment)
        if not (environment / "bin" / "deface").exists():
            print(
                f"making an environment for deface {DEFACE} (once, some hundred megabytes)", file=sys.stderr, flush=True
            )
            venv.create(environment, with_pip=True)
            install = [str(found.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *WANTED]
            subprocess.run(install, check=True)
        if found.versions().get("deface") != DEFACE:
            sys.exit(f"error: the environment given holds another deface than {DEFACE}")
        return found

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    def versions(self) -> dict[str, str]:
        names = ("deface", "numpy", "onnxruntime", "opencv-python", "imageio-ffmpeg")
        code = f"from importlib.metadata import version; [print(n, version(n)) for n in {names}]"
        printed = subprocess.run([str(self.python), "-c", code], capture_output=True, text=True).stdout
        return dict(line.split() for line in printed.splitlines())

    def command(self, source: Path, target: Path, backend: str) -> list[str]:
        return [str(self.environment / "bin" / "deface"), str(source), "-o", str(target), "--backend", backend]

    def tracks(self, clip: Path, kept: Path) -> Tracks:
        """What it hides by default. The same on every machine but for rounding, so it is kept."""
        path = kept / f"deface_{DEFACE}_{content(clip)}.jsonl"
        if not path.exists():
            kept.mkdir(parents=True, exist_ok=True)
            command = [str(self.python), str(DRIVER), str(clip.absolute()), str(path), "--backend", "onnxrt"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"error: deface failed\n{done.stderr}")
        return Tracks.read(path)


def vidveil_command(source: Path, target: Path, region: str = "faces", tracks: Path | None = None) -> list[str]:
    words = [sys.executable, "-m", "vidveil", "anonymize", str(source), "-o", str(target), "--overwrite"]
    words += ["--method", "blur:strong", "--region", region]
    return words if tracks is None else [*words, "--tracks-out", str(tracks)]


def vidveil_tracks(clip: Path, region: str = "faces", keep: Path | None = None) -> Tracks:
    """Run anew each time: it is what is being measured. `keep` is a file to copy the tracks to."""
    with tempfile.TemporaryDirectory(prefix="vidveil-bench-") as name:
        path = Path(name) / "tracks.jsonl"
        command = vidveil_command(clip, Path(name) / "out.mp4", region, path)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"error: vidveil failed\n{done.stderr}")
        if keep is not None:
            keep.parent.mkdir(parents=True, exist_ok=True)
            keep.write_bytes(path.read_bytes())
        return Tracks.read(path)


def content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:24]
