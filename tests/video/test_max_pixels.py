"""A small file cannot ask for gigabytes: the number of pixels is read from the header, and limited."""

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from tests.media import Film
from tests.whole_frame import anonymize
from vidveil.app.jobs import Options, Status
from vidveil.cli.app import app
from vidveil.core.errors import UsageError

MEASURED = """
import re, sys
from pathlib import Path
from tests.whole_frame import anonymize
outcome = anonymize(sys.argv[1])[0]
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())  # getrusage counts the parent's, too
print(int(peak[1]) // 1024, outcome.error)
"""


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(path: Path, width: int, height: int, rows: int | None = None) -> Path:
    """All black; fewer rows than the header says, where `rows` says so."""
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(1 + 3 * width)) for _ in range(height if rows is None else rows))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", data + packer.flush()) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


@pytest.mark.parametrize("rows", [None, 3], ids=["whole", "header lies"])
def test_a_picture_of_256_million_pixels_is_refused_before_it_is_decoded(tmp_path, rows):
    path = png(tmp_path / "a.png", 16_000, 16_000, rows)
    assert path.stat().st_size < 1 << 20
    done = subprocess.run([sys.executable, "-c", MEASURED, path], capture_output=True, text=True, check=True)
    megabytes, error = done.stdout.strip().split(" ", 1)
    assert error == "shows 16000 × 16000 pixels, more than 100 million: --max-pixels 256000000 allows it"
    assert int(megabytes) < 250
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", ["jpg", "png", "bmp", "webp", "tiff", "mp4", "mkv", "ts", "avi", "h264"])
def test_whatever_the_format_the_size_is_reported_and_the_option_allows_it(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    if suffix in ("mp4", "mkv", "ts", "avi", "h264"):
        Film(frames=5).make(path)
    else:
        cv2.imwrite(str(path), np.full((48, 64, 3), 90, np.uint8))
    refused = anonymize(path, options=Options(max_pixels=3071))[0]
    assert str(refused.error) == "shows 64 × 48 pixels, more than 3,071: --max-pixels 3072 allows it"
    assert anonymize(path, options=Options(max_pixels=3072))[0].status is Status.DONE


def test_pictures_that_grow_midway_are_black(tmp_path):
    small, large = tmp_path / "s.ts", tmp_path / "l.ts"
    Film(frames=10).make(small)
    Film(frames=10, width=128, height=96).make(large)
    path = tmp_path / "both.ts"
    path.write_bytes(small.read_bytes() + large.read_bytes())
    outcome = anonymize(path, options=Options(max_pixels=64 * 48))[0]
    assert outcome.error is None
    assert (outcome.frames, outcome.hidden) == (20, 10)


def test_the_command_has_the_option_and_nonsense_is_refused(tmp_path):
    path = png(tmp_path / "a.png", 50, 40)
    words = ["anonymize", str(path), "--region", "frame", "--max-pixels"]
    assert CliRunner().invoke(app, [*words, "1999"]).exit_code == 1
    assert CliRunner().invoke(app, [*words, "1999", "--dry-run"]).exit_code == 1
    assert CliRunner().invoke(app, [*words, "0"]).exit_code == 2
    assert CliRunner().invoke(app, [*words, "2000"]).exit_code == 0
    with pytest.raises(UsageError, match="max_pixels is at least 1, not 0"):
        Options(max_pixels=0)
