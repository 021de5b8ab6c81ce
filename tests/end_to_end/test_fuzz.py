"""Thousands of damaged files: the command neither dies nor hangs, says what failed, and never shows a raw picture.

VIDVEIL_FUZZ_SEED draws other files, VIDVEIL_FUZZ_FILES more of them. A failure names the command that makes its file
again.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.detect.onnx_writer import constant
from tests.end_to_end.command import COMMAND
from tests.end_to_end.mutations import HEIGHT, MARK, TILE, WHOLES, WIDTH, Mutant, draw, make_wholes

SEED = int(os.environ.get("VIDVEIL_FUZZ_SEED", "1"))
FILES = int(os.environ.get("VIDVEIL_FUZZ_FILES", "2800"))

DETAIL_LIMIT = 30.0
"""Of `detail`. Measured: raw luma over 130 and raw chroma over 45 in every tile; 11 at most after any method below."""
BLACK_LIMIT = 20
PSNR_LIMIT = 28.0
"""dB between what is hidden and any original picture, in any tile of the region: 30 is a leak. Measured: 30.9 in raw
tiles of a palette's colours, over 35 in others."""
FLAT = 20.0
"""Standard deviation of grey levels up to which a tile shows nothing. A whole one has 60 at least."""
FOUND = (12.0, 12.0, 52.0, 52.0)
"""Where a detector that sees somebody in every picture sees them, in its own picture of 64 pixels."""
REGION = slice(HEIGHT // 2 - TILE, HEIGHT // 2 + TILE), slice(WIDTH // 2 - TILE, WIDTH // 2 + TILE)
"""The middle of a picture: within FOUND, and so is that of a picture that is shown turned by a quarter."""


@dataclass(frozen=True)
class Order:
    method: str
    options: tuple[str, ...] = ()
    region: bool = False
    """Whether only a region that a detector finds is hidden."""

    def __str__(self) -> str:
        return " ".join((self.method, *self.options, *(["on a region"] if self.region else [])))

    @property
    def drops_all(self) -> bool:
        return not {"--audio", "--metadata"} & set(self.options)


KEEP_SOUND, DISTORT, KEEP_TAGS = ("--audio", "keep"), ("--audio", "distort"), ("--metadata", "keep")
EVERY_FRAME = ("--search-every", "0")  # whoever is looked for closely in between, this detector sees elsewhere
ORDERS = (
    Order("solid"),
    Order("pixelate:16"),
    Order("blur:strong"),
    Order("downsample:4"),
    Order("solid", KEEP_SOUND),
    Order("pixelate:16", DISTORT),
    Order("blur:strong", (*KEEP_SOUND, *KEEP_TAGS)),
    Order("downsample:4", KEEP_TAGS),
    Order("blur:strong | stride:3", DISTORT),
    Order("pixelate:16", ("--start", "0.1", "--end", "0.33")),
    Order("solid", ("--start", "0.2", *KEEP_SOUND, *KEEP_TAGS)),
    Order("stride:2 | pixelate:16", ("--end", "0.3", *KEEP_SOUND)),
    Order("blur:strong", EVERY_FRAME, region=True),
    Order("solid", (*KEEP_SOUND, *EVERY_FRAME), region=True),
)
BATCHES = 2 * len(ORDERS)
PER_BATCH = math.ceil(FILES / BATCHES)
BATCH_S = 90 + PER_BATCH // 4


Originals = NDArray[np.float64]
"""(pictures, 2 · TILE, 2 · TILE): the luma of the region in every picture of every undamaged file."""


@pytest.fixture(scope="module")
def wholes(tmp_path_factory) -> dict[str, bytes]:
    return make_wholes(tmp_path_factory.mktemp("wholes"))


@pytest.fixture(scope="module")
def originals(wholes, tmp_path_factory) -> Originals:
    folder = tmp_path_factory.mktemp("originals")
    found = []
    for name, content in wholes.items():
        (folder / name).write_bytes(content)
        found += [picture[0][REGION] for picture in planes(folder / name)]
    return np.stack(found).astype(np.float64)


@pytest.fixture(scope="module")
def unchanged(wholes, tmp_path_factory) -> dict[str, Path]:
    """Each undamaged file through `stride:1`, which leaves pictures as they are: what a leak would look like."""
    folder = tmp_path_factory.mktemp("unchanged")
    source, target = folder / "in", folder / "out"
    source.mkdir()
    for name, content in wholes.items():
        (source / name).write_bytes(content)
    code, lines = anonymize(source, target, Order("stride:1"), {})
    assert code == 0, lines
    made = [json.loads(path.read_text("utf-8")) for path in target.glob("*.json")]
    return {manifest["input"]["name"]: target / manifest["output"]["name"] for manifest in made}


@pytest.fixture(scope="module")
def detector(tmp_path_factory) -> Path:
    """Sees somebody in the middle of every picture, however damaged it is: what is tested is all that comes after."""
    path = tmp_path_factory.mktemp("detector") / "somebody.onnx"
    path.write_bytes(constant({"boxes": ((1, 4), FOUND), "scores": ((1,), (0.9,))}))
    path.with_suffix(".json").write_text(json.dumps({"layout": "boxes", "size": 64}))
    return path


@pytest.mark.timeout(2 * BATCH_S + 60)
@pytest.mark.parametrize("batch", range(BATCHES), ids=lambda b: f"{b}: {ORDERS[b % len(ORDERS)]}")
def test_damaged_files_never_crash_hang_or_leak(tmp_path, wholes, originals, detector, batch):
    order, source, target = ORDERS[batch % len(ORDERS)], tmp_path / "in", tmp_path / "out"
    source.mkdir()
    mutants = {}
    for mutant in (draw(wholes, SEED, batch, number) for number in range(PER_BATCH)):
        mutants[mutant.name] = mutant
        (source / mutant.name).write_bytes(mutant.content)

    code, lines = anonymize(source, target, order, mutants, detector)

    says = "\n".join(lines)
    assert "Traceback" not in says, says
    assert code in (0, 1), f"exit code {code} at {in_work(lines, mutants)}"

    errors = [name_in(line) for line in lines if line.startswith("error: ")]
    assert set(errors) <= mutants.keys(), says
    assert len(errors) == len(set(errors)), f"more than one error line for a file:\n{says}"
    assert code == bool(errors)

    problems = [f"{line}: {mutants[name_in(line)]}" for line in lines if "internal error" in line]
    left = {path.name: path for path in target.rglob("*")} if target.exists() else {}
    for mutant in mutants.values():
        stem = f"{Path(mutant.name).stem}_anonymized"
        video = next((left.pop(name) for s in (".mp4", ".jpg", ".png") if (name := stem + s) in left), None)
        notes = left.pop(f"{stem}.json", None)
        found = check(order, video, notes, mutant.name in errors, originals)
        problems += [f"{problem}: {mutant}" for problem in found]
    assert not left, f"files that nobody asked for: {sorted(left)}"
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("whole", WHOLES, ids=lambda whole: whole.name)
def test_the_check_finds_raw_pictures_in_every_tile(unchanged, whole):
    video = unchanged[whole.name]
    shown = list(planes(video))
    assert len(shown) == whole.frames
    for picture in shown:
        luma, *chroma = (detail(plane) for plane in picture)
        if whole.interlaced:  # a deinterlacer draws fine detail anew where it moves
            assert max(luma.max(), *(plane.max() for plane in chroma)) > 2 * DETAIL_LIMIT
        else:  # a leak of 8 × 8 pixels would be seen
            assert luma.min() > 4 * DETAIL_LIMIT
            assert min(plane.min() for plane in chroma) > DETAIL_LIMIT
        assert picture[0].max() > 2 * BLACK_LIMIT
    for method in ("solid", "blur:strong"):
        assert len(list(leaks(Order(method), video))) == whole.frames


@pytest.mark.parametrize("whole", WHOLES, ids=lambda whole: whole.name)
def test_the_check_finds_an_original_region_in_every_tile(unchanged, originals, whole):
    video = unchanged[whole.name]
    leaked = len(list(leaks(Order("blur:strong", region=True), video, originals=originals)))
    if whole.interlaced or whole.pix_fmt == "rgb8":  # a deinterlacer, or a palette, draws some of the tiles anew
        assert leaked > 0
        return
    assert leaked == whole.frames
    for picture in planes(video):
        region = picture[0][REGION]
        for y, x in ((0, 0), (0, TILE), (TILE, 0), (TILE, TILE)):  # one raw tile in a black region is enough
            spotted = np.zeros_like(region)
            spotted[y : y + TILE, x : x + TILE] = region[y : y + TILE, x : x + TILE]
            assert psnr(spotted, originals) > PSNR_LIMIT


@pytest.mark.parametrize("number", [0, 3, 8, 12])
def test_a_damaged_file_can_be_made_again_from_its_numbers(tmp_path, wholes, number):
    mutant = draw(wholes, SEED, 0, number)
    again = [sys.executable, "-m", "tests.end_to_end.mutations", str(SEED), "0", str(number), str(tmp_path)]
    subprocess.run(again, cwd=Path(__file__).parents[2], check=True, capture_output=True, timeout=60)
    assert (tmp_path / mutant.name).read_bytes() == mutant.content


def test_one_raw_tile_in_a_whole_video_is_found():
    smooth = np.full((48, 64), 128, np.uint8)
    assert detail(smooth).max() == 0
    for top, left in ((0, 0), (40, 56), (8, 24)):
        spotted = smooth.copy()
        spotted[top : top + TILE : 2, left : left + TILE : 2] = 60
        spotted[top + 1 : top + TILE : 2, left + 1 : left + TILE : 2] = 60
        assert detail(spotted).max() > DETAIL_LIMIT


def anonymize(
    source: Path, target: Path, order: Order, mutants: dict[str, Mutant], detector: Path | None = None
) -> tuple[int, list[str]]:
    """Exit code and the lines of stderr of the real command on a folder."""
    region = str(detector) if order.region else "frame"
    arguments = ["anonymize", str(source), "-o", str(target), "--method", order.method, "--region", region]
    log = target.with_suffix(".log")
    with log.open("wb") as stderr:
        try:
            done = subprocess.run(
                [*COMMAND, *arguments, *order.options, "--preset", "ultrafast", "--crf", "8"],
                stderr=stderr,
                stdout=subprocess.DEVNULL,
                timeout=BATCH_S,
                env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            )
        except subprocess.TimeoutExpired:
            pytest.fail(f"hangs at {in_work(read_lines(log), mutants)}")
    return done.returncode, read_lines(log)


def read_lines(log: Path) -> list[str]:
    return log.read_text("utf-8", "replace").splitlines()


def name_in(line: str) -> str:
    """The file that a line is about: `error: NAME: why`, `NAME -> OUT`."""
    return line.removeprefix("error: ").removeprefix("warning: ").split(": ")[0].split(" -> ")[0]


def in_work(lines: Sequence[str], mutants: dict[str, Mutant]) -> str:
    """The file that was being worked on when the last line was written: files go in order of their names."""
    ended = {name_in(line) for line in lines if line.startswith("error: ") or " -> " in line}
    last = max((number for number, name in enumerate(sorted(mutants)) if name in ended), default=-1)
    following = sorted(mutants)[last + 1 : last + 2]
    tail = "\n".join(lines[-30:])
    return f"{mutants[following[0]] if following else 'the end'}\n{tail}"


def check(order: Order, video: Path | None, notes: Path | None, failed: bool, originals: Originals) -> Iterator[str]:
    """What is wrong with the output of one file."""
    if video is None and not failed:
        yield "neither an output nor an error"
    if (video is None) != (notes is None):
        yield "an output without a manifest" if notes is None else "a manifest without an output"
    if video is None or notes is None:
        return
    manifest, content = json.loads(notes.read_text("utf-8")), video.read_bytes()
    if manifest["output"]["sha256"] != sha256(content).hexdigest():
        yield "the manifest is of another output"
    if failed != (manifest["incomplete"] is not None):
        yield "the manifest and the error line disagree"
    if order.drops_all and MARK.encode() in content:
        yield "a tag's value is in the output"
    try:
        yield from leaks(order, video, manifest["frames"]["written"], originals)
    except av.error.FFmpegError as error:
        yield f"the output cannot be read ({error})"


def leaks(order: Order, video: Path, frames: int | None = None, originals: Originals | None = None) -> Iterator[str]:
    """Pictures in an output that show more than the method lets through."""
    count = -1
    for count, picture in enumerate(planes(video)):
        if order.region:
            if picture[0].shape in ((HEIGHT, WIDTH), (HEIGHT - 1, WIDTH - 1)):  # of another size it lies elsewhere
                nearest = psnr(picture[0][REGION], originals)
                if nearest > PSNR_LIMIT:
                    yield f"frame {count} shows the region of an original, at {nearest:.1f} dB"
        elif "solid" in order.method:
            luma, *chroma = picture
            if luma.max() > BLACK_LIMIT or any(np.abs(plane.astype(int) - 128).max() > 4 for plane in chroma):
                yield f"frame {count} is not black"
        elif any(detail(plane).max() > limit_for(plane) for plane in picture):
            yield f"frame {count} shows detail of {[float(detail(plane).max()) for plane in picture]}"
    if frames not in (None, count + 1):
        yield f"{count + 1} frames where the manifest says {frames}"


def psnr(region: NDArray[np.uint8], originals: Originals) -> float:
    """How near the region is to that of any original picture, in dB, in the tile where it is nearest.

    Tiles of originals that a coarse codec or a fade left nearly flat show nothing, and are passed over.
    """
    squares = (region.astype(np.float64) - originals) ** 2  # (pictures, 2 · TILE, 2 · TILE)
    far = squares.reshape(-1, 2, TILE, 2, TILE).mean((2, 4))
    flat = originals.reshape(-1, 2, TILE, 2, TILE).std((2, 4)) < FLAT
    return float(10 * np.log10(255**2 / max(far[~flat].min(), 1e-9)))


def limit_for(plane: NDArray[np.uint8]) -> float:
    """In pictures of a few pixels a blur is as narrow, and leaves more; raw luma is far above this, too."""
    return DETAIL_LIMIT if min(plane.shape) >= 2 * TILE else 2 * DETAIL_LIMIT


def planes(video: Path) -> Iterator[list[NDArray[np.uint8]]]:
    """Y, U and V of each picture of each video stream."""
    with av.open(str(video)) as container:
        streams = len(container.streams.video)
    for number in range(streams):
        with av.open(str(video)) as container:
            for frame in container.decode(video=number):
                frame = frame if frame.format.name in ("yuv420p", "yuvj420p") else frame.reformat(format="yuv420p")
                sides = (frame.width, frame.height), *[((frame.width + 1) // 2, (frame.height + 1) // 2)] * 2
                yield [
                    np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[:h, :w]
                    for plane, (w, h) in zip(frame.planes, sides, strict=True)
                ]


def detail(plane: NDArray[np.uint8]) -> NDArray[np.float64]:
    """How finely each tile of 8 × 8 is drawn: the median of |a - b - c + d| over squares of four pixels ab/cd.

    A checkerboard of single pixels gives twice its contrast, straight edges such as those of a mosaic give nothing, and
    whatever was averaged over several pixels gives little.
    """
    x = plane.astype(np.int16)
    squares = np.abs(x[:-1, :-1] - x[:-1, 1:] - x[1:, :-1] + x[1:, 1:])
    height, width = squares.shape
    if min(height, width) < TILE:
        return np.median(squares)[None] if squares.size else np.zeros(1)
    found = []
    for top in {0, height % TILE}:  # from one corner and from the other, so that the last pixels count
        for left in {0, width % TILE}:
            cut = squares[top : top + height // TILE * TILE, left : left + width // TILE * TILE]
            tiles = cut.reshape(height // TILE, TILE, width // TILE, TILE).swapaxes(1, 2).reshape(-1, TILE * TILE)
            found.append(np.median(tiles, axis=1))
    return np.concatenate(found)
