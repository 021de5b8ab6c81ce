"""Hundreds of damaged manifests, tracks, recipes, checkpoints, detectors and stores: the command neither dies nor
hangs, says in one line what is wrong, and writes nowhere but where it should.

VIDVEIL_FUZZ_SMALL_SEED draws other mutants, VIDVEIL_FUZZ_SMALL_FILES more of them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.data.features import made as features
from tests.detect.onnx_writer import constant
from tests.end_to_end.small_files import SUBJECTS
from tests.media import Film
from tests.methods import made_checkpoint
from tests.report.made_up import point, results
from vidveil.app.jobs import anonymize
from vidveil.data.store.videos import VideoStore

SEED = int(os.environ.get("VIDVEIL_FUZZ_SMALL_SEED", "1"))
FILES = int(os.environ.get("VIDVEIL_FUZZ_SMALL_FILES", "152"))
BATCH_S = 120 + FILES // 2


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    home: Path = tmp_path_factory.mktemp("small") / "home"
    return make_home(home)


def make_home(home: Path) -> Path:
    """A folder with one whole file of each kind."""
    home.mkdir()
    Film(width=64, height=48, frames=4).make(home / "clip.mp4")
    line = {"time": 0.0, "track": 1, "kind": "faces", "box": [8.0, 8.0, 30.5, 40.0], "shape": "ellipse", "score": 0.5}
    header = {"tracks": 1, "width": 64, "height": 48, "frames": 4}
    lines = [header, *({"frame": i, **line, "source": "detected"} for i in range(4))]
    (home / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    (home / "plates.onnx").write_bytes(constant({"boxes": ((1, 4), (8, 8, 40, 40)), "scores": ((1,), (0.9,))}))
    (home / "plates.json").write_text('{"layout": "boxes", "size": 64, "classes": null, "fixed": true, "start": 0.3}')
    (done,) = anonymize(str(home / "clip.mp4"), method="solid", region=str(home / "plates.onnx"))
    assert done.ok
    manifest = home / "clip_anonymized.json"
    found = json.loads(manifest.read_text())
    moment = {"what": "gap", "track": 1, "kind": "plates", "first": 1, "last": 2, "from": 0.04, "to": 0.08}
    found["detection"]["moments"] = [moment | {"box": [8, 8, 40, 40]}]
    manifest.write_text(json.dumps(found))
    (home / "mine.yaml").write_text(
        "# A recipe.\nverb: train\ndata: puppets\nrecognizer: r3d_tiny\ntasks: [action]\nepochs: 2\nlr: 1e-3\n"
    )
    runs = home / "runs"
    (runs / "done").mkdir(parents=True)
    (runs / "done/recipe.json").write_text('{"name": "done"}')
    (runs / "done/state.json").write_text('{"state": "done", "reason": "", "started": "2026-01-01T00:00:00+00:00"}')
    results("done", [point("blur:strong")]).write(runs / "done/results.json")
    made_checkpoint.write(runs / "mine/checkpoint", made_checkpoint.network())
    features.adapter(runs)
    features.store(home / "store", 3)
    vectors = features.vectors(12)
    np.save(home / "a.npy", vectors)
    np.savez(home / "a.npz", v=vectors, w=vectors[:3])
    with h5py.File(home / "a.h5", "w") as file:
        file["v0"] = vectors
        file.create_dataset("group/v1", data=vectors, chunks=(4, 8), compression="gzip")
    VideoStore.write(home / "videos", [np.zeros((2, 8, 8, 3), np.uint8)], {"data": "made"})
    return home


@pytest.mark.timeout(2 * BATCH_S)
@pytest.mark.parametrize("torch", [False, True], ids=["video", "torch"])
def test_damaged_small_files_neither_crash_nor_hang_nor_write_elsewhere(tmp_path, home, torch):
    numbers = [n for n in range(FILES) if SUBJECTS[n % len(SUBJECTS)].torch == torch]
    report = tmp_path / "report"
    command = [sys.executable, "-m", "tests.end_to_end.small_files", str(SEED), json.dumps(numbers), str(report)]
    place = {"VIDVEIL_RUNS": "runs", "VIDVEIL_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    paths = os.pathsep.join([str(Path.cwd()), *filter(None, sys.path)])
    done = subprocess.run(
        command,
        cwd=home,
        env=os.environ | place | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=BATCH_S,
    )
    lines = report.read_text().splitlines() if report.is_file() else []
    assert done.returncode == 0, f"{done.stderr[-2000:]}\nwhile: {lines[-40:]}"
    assert sum(line.startswith("  code") for line in lines) == len(numbers)
    bad = [i for i, line in enumerate(lines) if line.startswith("  ") and not line.startswith("  code")]
    assert not bad, "\n".join(line for i in bad for line in lines[max(i - 1, 0) : i + 1])
