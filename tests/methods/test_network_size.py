"""`--size network`: what STPrivacy draws, at the size at which it draws, to the bit."""

import json
import struct
from fractions import Fraction
from types import SimpleNamespace

import av
import cv2
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import vidveil
from tests import media
from tests.detect.stage import TURNS, matrix_of
from tests.methods.known_masks import frames
from tests.methods.stprivacy.test_anonymizer import CELL, FRAMES, SIZE, breaking, kept, reasons_of
from vidveil import load
from vidveil.app import pipeline
from vidveil.app.jobs import Options, Status
from vidveil.app.task import unstretched
from vidveil.cli.app import app
from vidveil.core.anonymizer import Chain, FrameMethod
from vidveil.core.errors import UsageError
from vidveil.core.yuv import yuv
from vidveil.detect.settings import DetectionSettings
from vidveil.methods.learned.anonymizer import tuned
from vidveil.methods.learned.windows import frames_of, small_picture
from vidveil.video.write import MAX_RATIO, pixel_shape

BROKEN = "could not be anonymized (RuntimeError)"


pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture
def method(runs):
    kept(runs, data="ucf101_5")
    return load("stprivacy:mine")


@pytest.fixture
def written(monkeypatch):
    """The frames that are handed to the writers of files."""
    seen = []
    for kind in ("Mp4Writer", "ImageWriter"):
        original = getattr(pipeline, kind)

        def write(self, frame, original=original):
            seen.append(frame)
            original.write(self, frame)

        monkeypatch.setattr(pipeline, kind, type(kind, (original,), {"write": write}))
    return seen


def network_drew(method, raw):
    """(T, size, size, 3) in bytes: what the network draws of each window; the first counts, less what any of them
    drops."""
    small = np.stack([small_picture(frame, SIZE) for frame in raw], 1)  # (3, T, size, size)
    drawn, stays = {}, np.ones((len(raw), SIZE // CELL, SIZE // CELL), bool)
    for window in method.plan.windows(len(raw)):
        video, mask, _ = method.draw(torch.from_numpy(small[:, list(window.samples)])[None])
        for frame, layer, picture in frames_of(window, method.plan.depth):
            stays[frame] &= mask[0, layer].numpy()
            drawn.setdefault(frame, (video[0, :, picture] * 255).round().byte().movedim(0, -1).numpy())
    shown = stays.repeat(CELL, 1).repeat(CELL, 2)[..., None]
    assert 0 < shown.mean() < 1
    return np.stack([drawn[i] for i in range(len(raw))]) * shown


def anonymized(film, *words):
    return CliRunner().invoke(app, ["anonymize", str(film), "--method", "stprivacy:mine", *words])


def manifest(path):
    return json.loads(path.with_suffix(".json").read_text())


# ---- frames


@pytest.mark.parametrize("count", [1, FRAMES, 30])
@pytest.mark.parametrize(("width", "height"), [(64, 48), (33, 21), (16, 100)])
def test_every_frame_is_to_the_bit_what_the_network_drew(method, count, width, height):
    raw = list(frames(count, width, height))
    safe = list(method.unstretched().stream(iter(raw)))
    assert reasons_of(safe) == [None] * count
    for frame, wanted in zip(safe, network_drew(method, raw), strict=True):
        assert (frame.width, frame.height) == (SIZE, SIZE)
        assert np.array_equal(frame.rgb(), wanted)


@pytest.mark.parametrize("name", TURNS)
def test_turned_pictures_come_out_upright_and_without_a_turn(method, name):
    raw = list(frames(9, 64, 48, matrix_of(name)))
    safe = list(method.unstretched().stream(iter(raw)))
    for frame, wanted in zip(safe, network_drew(method, raw), strict=True):
        assert frame.matrix is None
        assert np.array_equal(frame.rgb(), wanted)


@pytest.mark.parametrize("full", [False, True])
def test_the_planes_are_those_pixels_with_colours_of_two_by_two(method, full):
    raw = list(frames(6))
    for frame in raw:
        frame.full_range = full
    black = 0 if full else 16
    for frame in method.unstretched().stream(iter(raw)):
        planes = yuv(frame.rgb().astype(np.float32) / 255, 2, full_range=full)
        means = planes.reshape(3, SIZE // 2, 2, SIZE // 2, 2).mean((2, 4))
        assert np.array_equal(frame.planes[0], np.rint(planes[0]))
        for found, wanted in zip(frame.planes[1:], means[1:], strict=True):
            assert np.abs(found - wanted).max() <= 0.501
        hidden = ~frame.heat.kept.repeat(CELL, 0).repeat(CELL, 1)
        assert hidden.any()
        assert (frame.planes[0][hidden] == black).all()
        assert all((plane[hidden[::2, ::2]] == 128).all() for plane in frame.planes[1:])


class Fragile(FrameMethod):
    """A stage before the network, which fails on one frame."""

    def hide(self, frame):
        if frame.index == 2:
            raise RuntimeError
        return super().hide(frame)

    def paint(self, source, target, _, /):
        np.copyto(target, source)


def test_frames_that_fail_are_black_at_that_size_whatever_failed(method):
    raw = list(frames(24))
    raw[14].picture, raw[14].lost = None, "could not be decoded"
    chain = unstretched(Chain([Fragile("fragile"), breaking(method, 2)]))  # of windows 0-7, 4-11, 8-15 …
    safe = list(chain.stream(iter(raw)))
    reasons = {2: BROKEN, 14: "could not be decoded"} | dict.fromkeys(range(4, 12), BROKEN)
    assert {frame.index: frame.hidden for frame in safe if frame.hidden} == reasons
    assert {(f.width, f.height, f.picture.width, f.picture.height) for f in safe} == {(SIZE,) * 4}
    for frame in safe:
        assert (frame.rgb().max() == 0) == (frame.index in reasons)


def test_frames_of_several_sizes_come_out_at_one(method):
    raw = [*frames(6, 64, 48), *frames(6, 33, 21)]
    for i, frame in enumerate(raw):
        frame.index = i
    assert {frame.picture.width for frame in method.unstretched().stream(iter(raw))} == {SIZE}


def test_turned_knobs_do_not_change_the_size_and_the_method_itself_stays_as_it_was(method):
    small = tuned(method.unstretched(), keep=0.5)
    assert small.knobs["keep"] == 0.5
    assert next(small.stream(frames(4))).width == SIZE
    assert next(method.stream(frames(4))).width == 64


# ---- files


def test_a_file_has_the_networks_size_and_the_writer_gets_what_was_drawn(method, tmp_path, written):
    ticks = [0, 40, 90, 100, 180, 240, 300, 410, 420, 500, 590, 600]
    film = media.Film(pts=ticks, time_base=Fraction(1, 1000)).make(tmp_path / "film.mp4")
    done = anonymized(film, "--size", "network")
    assert done.exit_code == 0, done.output
    assert "at the network's size" in done.output
    made = tmp_path / "film_anonymized.mp4"
    assert media.lumas(made).shape == (12, SIZE, SIZE)
    assert media.times(made) == media.times(film)
    with pipeline.Reader(pipeline.Source(pipeline.Kind.VIDEO, str(film), film.name)) as reader:
        raw = list(reader)
    for frame, wanted in zip(written, network_drew(method, raw), strict=True):
        assert np.array_equal(frame.rgb(), wanted)
    notes = manifest(made)
    assert (notes["video"]["width"], notes["video"]["height"], notes["order"]["size"]) == (SIZE, SIZE, "network")
    assert notes["frames"]["written"] == 12


@pytest.mark.usefixtures("method")
@pytest.mark.parametrize("codec", [("libx264", "yuv420p"), ("mjpeg", "yuvj420p")])  # black is 16, or 0
def test_every_pixel_keeps_its_own_colour_in_the_file(tmp_path, written, codec):
    film = media.Film(frames=8, codec=codec[0], pix_fmt=codec[1]).make(tmp_path / "film.mov")
    assert anonymized(film, "--size", "network", "--crf", "1").exit_code == 0
    with av.open(str(tmp_path / "film_anonymized.mp4")) as container:
        shown = [frame.to_ndarray(format="rgb24").astype(int) for frame in container.decode(video=0)]
    assert len(shown) == len(written) == 8
    for found, frame in zip(shown, written, strict=True):
        away = np.abs(found - frame.drawn).mean()
        halved = np.abs(frame.picture.to_ndarray(format="rgb24").astype(int) - frame.drawn).mean()
        assert away < 2.5
        assert away < halved / 3


@pytest.mark.usefixtures("method")
@pytest.mark.parametrize("rotation", [0, 90, 180])
@pytest.mark.parametrize("ratio", [None, Fraction(16, 11)])
def test_players_show_it_upright_in_the_originals_shape(tmp_path, rotation, ratio):
    film = media.Film(frames=4, width=64, height=40, rotation=rotation, ratio=ratio).make(tmp_path / "film.mp4")
    assert anonymized(film, "--size", "network").exit_code == 0
    wide, high = 64 * (ratio or Fraction(1)), 40
    with av.open(str(tmp_path / "film_anonymized.mp4")) as container:
        frame = next(container.decode(video=0))
        assert container.streams.video[0].sample_aspect_ratio == (high / wide if rotation == 90 else wide / high)
        assert (frame.rotation, frame.width, frame.height) == (0, SIZE, SIZE)
    assert manifest(tmp_path / "film_anonymized.mp4")["video"]["turned"] is False


@pytest.mark.parametrize("size", [(64, 48), (48, 64), (50, 50), (16384, 2), (2, 16384), (1919, 1079), (12001, 7993)])
@pytest.mark.parametrize("ratio", [None, Fraction(4999, 5003)])
def test_the_shape_of_pixels_fits_into_a_file_and_is_true(size, ratio):
    reader = SimpleNamespace(size=size, matrix=None, pixel_shape=ratio)
    found = pixel_shape(reader, SIZE, SIZE) or Fraction(1)
    assert 0 < found.numerator <= MAX_RATIO
    assert found.denominator <= MAX_RATIO
    wanted = (ratio or 1) * Fraction(*size)
    assert Fraction(1, MAX_RATIO) > wanted or wanted > MAX_RATIO or abs(found / wanted - 1) < 0.001


@pytest.mark.usefixtures("method")
def test_an_output_of_another_size_is_done_again_and_one_of_the_same_is_not(tmp_path):
    film = media.Film(frames=4).make(tmp_path / "film.mp4")

    def run(**options):
        (outcome,) = vidveil.anonymize(film, method="stprivacy:mine", **options)
        return outcome.status, media.lumas(outcome.output).shape[1:]

    assert run() == (Status.DONE, (48, 64))
    assert run(size="network") == (Status.DONE, (SIZE, SIZE))
    assert run(options=Options(size="network")) == (Status.UP_TO_DATE, (SIZE, SIZE))
    assert run(size="original") == (Status.DONE, (48, 64))
    notes = tmp_path / "film_anonymized.json"
    earlier = json.loads(notes.read_text())
    del earlier["order"]["size"]  # as in manifests from before there were sizes
    notes.write_text(json.dumps(earlier))
    assert run()[0] is Status.UP_TO_DATE
    assert run(size="network")[0] is Status.DONE


def test_a_picture_is_drawn_to_the_bit(method, tmp_path, written):
    rng = np.random.default_rng(0)
    photo = tmp_path / "photo.png"
    cv2.imwrite(str(photo), cv2.resize(rng.integers(0, 256, (6, 8, 3), np.uint8), (80, 60)))
    done = anonymized(photo, "--size", "network")
    assert done.exit_code == 0, done.output
    with pipeline.Reader(pipeline.Source(pipeline.Kind.IMAGE, str(photo), photo.name)) as reader:
        (wanted,) = network_drew(method, list(reader))
    made = cv2.imread(str(tmp_path / "photo_anonymized.png"))
    assert np.array_equal(made[..., ::-1], wanted)
    assert np.array_equal(written[0].rgb(), wanted)
    assert manifest(tmp_path / "photo_anonymized.png")["video"]["width"] == SIZE


def test_a_turned_photo_is_upright_once(method, tmp_path, written):
    rng = np.random.default_rng(0)
    jpeg = cv2.imencode(".jpg", cv2.resize(rng.integers(0, 256, (6, 8, 3), np.uint8), (80, 60)))[1].tobytes()
    exif = b"Exif\0\0" + struct.pack("<2sHIHHHIHHI", b"II", 42, 8, 1, 0x0112, 3, 1, 6, 0, 0)  # a quarter turn
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + jpeg[2:])
    assert anonymized(photo, "--size", "network").exit_code == 0
    with pipeline.Reader(pipeline.Source(pipeline.Kind.IMAGE, str(photo), photo.name)) as reader:
        raw = list(reader)
    assert raw[0].matrix is not None
    (wanted,) = network_drew(method, raw)
    assert np.array_equal(written[0].rgb(), wanted)
    made = cv2.imread(str(tmp_path / "photo_anonymized.jpg"))[..., ::-1]
    turned = [np.abs(made.astype(int) - np.rot90(wanted, quarter)).mean() for quarter in range(4)]
    assert np.argmin(turned) == 0
    assert turned[0] < 1.5  # with colours of two by two pixels it would be 4.9


@pytest.mark.usefixtures("method")
@pytest.mark.parametrize("rotation", [0, 90])
def test_a_heatmap_lies_over_the_original_as_ever(tmp_path, rotation):
    film = media.Film(frames=9, rotation=rotation).make(tmp_path / "film.mp4")
    for size in ("original", "network"):
        done = anonymized(film, "--size", size, "--heatmap", f"{size}.mp4")
        assert done.exit_code == 0, done.output
    assert (tmp_path / "original.mp4").read_bytes() == (tmp_path / "network.mp4").read_bytes()


@pytest.mark.usefixtures("method")
def test_frames_may_be_left_out_of_it(tmp_path, written):
    film = media.Film(frames=12).make(tmp_path / "film.mp4")
    done = anonymized(film, "--method", "stprivacy:mine | stride:4", "--size", "network")
    assert done.exit_code == 0, done.output
    assert media.lumas(tmp_path / "film_anonymized.mp4").shape == (3, SIZE, SIZE)
    assert all(frame.drawn is not None for frame in written)


# ---- what it is not for


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "blur:strong"], "blur:strong does not: leave it out"),
        (["--method", "solid | stride:5"], "for networks that draw"),
        (["--method", "stprivacy:filmed"], "stprivacy:filmed does not"),
        (["--method", "stprivacy:mine | blur:weak"], "blur:weak would change it"),
        (["--method", "blur:weak | stprivacy:mine"], "say --region frame"),
        (["--preview", "look.mp4"], "--preview shows original and result side by side"),
        (["--also-hide", "faces"], "--also-hide says where somebody is in the original"),
        (["--tracks-out", "t.jsonl"], "--tracks-out says where somebody is in the original"),
        (["--tracks-in", "t.jsonl"], "--tracks-in says where somebody is in the original"),
        (["--leave-visible", "3"], "--leave-visible says where somebody is in the original"),
        (["--region", "people"], "not on people: say --region frame"),
        (["--method", "splavu:mine"], "leave out --size"),
    ],
)
@pytest.mark.usefixtures("method")
def test_what_cannot_work_with_it_is_refused_before_anything_is_written(runs, tmp_path, words, message):
    kept(runs, "filmed", data="ucf101_5", anonymize=False)
    film = media.Film(frames=4).make(tmp_path / "film.mp4")
    done = anonymized(film, "--size", "network", *words)
    assert done.exit_code == 1
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
    assert not list(tmp_path.glob("film_*"))


@pytest.mark.usefixtures("method")
def test_a_filtered_whole_frame_may_be_drawn_from(tmp_path):
    film = media.Film(frames=4).make(tmp_path / "film.mp4")
    done = anonymized(film, "--method", "blur:weak | stprivacy:mine", "--region", "frame", "--size", "network")
    assert done.exit_code == 0, done.output
    assert media.lumas(tmp_path / "film_anonymized.mp4").shape == (4, SIZE, SIZE)


def test_python_refuses_the_same(method, tmp_path):
    film = media.Film(frames=4).make(tmp_path / "film.mp4")
    with pytest.raises(UsageError, match="size is original or network, not 'small'"):
        vidveil.anonymize(film, method=method, size="small")
    with pytest.raises(UsageError, match="for networks that draw"):
        vidveil.anonymize(film, size="network")
    with pytest.raises(UsageError, match="say size='network'"):
        vidveil.anonymize(film, method=method.unstretched())
    with pytest.raises(UsageError, match="--also-hide says where"):
        vidveil.anonymize(film, method=method, size="network", also_hide="people")
    options = Options(detection=DetectionSettings(tracks_in=tmp_path / "t.jsonl"))
    with pytest.raises(UsageError, match="--tracks-in says where"):
        vidveil.anonymize(film, method=method, size="network", options=options)


def test_files_of_other_methods_are_as_before(tmp_path):
    film = media.Film(frames=4, rotation=90, ratio=Fraction(16, 11)).make(tmp_path / "film.mp4")
    (outcome,) = vidveil.anonymize(film, method="blur:strong", region="frame")
    assert outcome.ok
    notes = manifest(outcome.output)
    assert (notes["video"]["width"], notes["video"]["turned"], notes["order"]["size"]) == (64, True, "original")
