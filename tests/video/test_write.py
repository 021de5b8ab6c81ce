"""What the output carries: the times, the rotation, the shape of the input, and nothing that was not asked for."""

import json
import struct
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest

from tests.media import Film, detail, lumas, packets, times
from tests.whole_frame import anonymize
from vidveil.app.jobs import Options, Outcome, Status
from vidveil.core.frame import Frame
from vidveil.video.read import Reader
from vidveil.video.sources import find
from vidveil.video.write import Mp4Writer


def run(path, **options) -> Outcome:
    method = options.pop("method", "blur:strong")
    outcome = anonymize(path, method=method, options=Options(**options))[0]
    assert outcome.error is None, outcome.error
    assert outcome.output is not None
    return outcome


def manifest(outcome: Outcome) -> dict:
    return json.loads(outcome.output.with_suffix(".json").read_text())


EXACT_START = {"movie_timescale": "90000"}
FILMS = {
    "constant": Film(rate=30),
    "ntsc": Film(rate=Fraction(30000, 1001)),
    "film": Film(frames=48, rate=Fraction(24000, 1001)),
    "variable": Film(pts=[0, 7, 13, 40, 41, 100, 230, 231], time_base=Fraction(1, 1000)),
    "variable 90 kHz": Film(pts=[0, 3003, 6007, 12_345, 99_999, 100_001], time_base=Fraction(1, 90_000)),
    "late": Film(pts=[126_001 + 3003 * i for i in range(9)], time_base=Fraction(1, 90_000), options=EXACT_START),
    "no b-frames": Film(bframes=0),
    "microseconds": Film(pts=[0, 33_366, 66_733, 100_101], time_base=Fraction(1, 1_000_000)),
}  # fmt: skip


@pytest.mark.parametrize("film", FILMS.values(), ids=FILMS.keys())
def test_times_of_the_output_equal_those_of_the_input_exactly(tmp_path, film):
    path = film.make(tmp_path / "a.mp4")
    assert times(run(path, metadata="keep").output) == times(path)
    assert times(run(path, overwrite=True).output) == [time - times(path)[0] for time in times(path)]


@pytest.mark.parametrize("suffix", ["mkv", "avi", "mov", "flv", "webm"])
def test_times_survive_the_change_of_container(tmp_path, suffix):
    codec = {"avi": "mpeg4", "webm": "libvpx-vp9"}.get(suffix, "libx264")
    path = Film(codec=codec).make(tmp_path / f"a.{suffix}")
    assert times(run(path, metadata="keep").output) == times(path)


def test_every_picture_is_the_right_one_and_anonymized(tmp_path):
    path = Film(frames=24).make(tmp_path / "a.mp4")
    assert detail(lumas(path)).min() > 40
    out = lumas(run(path).output)
    assert detail(out).max() < 2
    brightness = lumas(path).mean((1, 2))
    assert np.all(np.diff(brightness) > 3)  # no two pictures are alike
    assert np.allclose(out.mean((1, 2)), brightness, atol=1.5)


def test_the_last_frame_keeps_its_length(tmp_path):
    path = Film(frames=10, rate=10).make(tmp_path / "a.mp4")
    with av.open(str(path)) as a, av.open(str(run(path).output)) as b:
        before, after = (container.streams.video[0] for container in (a, b))
        assert after.duration * after.time_base == before.duration * before.time_base


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_rotation_stays_a_tag(tmp_path, degrees):
    path = Film(rotation=degrees).make(tmp_path / "a.mp4")
    outcome = run(path)
    with av.open(str(path)) as a, av.open(str(outcome.output)) as b:
        before, after = next(a.decode(video=0)), next(b.decode(video=0))
        assert after.rotation == before.rotation != 0
        assert (after.width, after.height) == (before.width, before.height)
    assert manifest(outcome)["video"]["turned"] is True


def test_mirroring_stays_a_tag(tmp_path):
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.set_display_rotation(90, hflip=True)
        for _ in range(5):
            output.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        output.mux(stream.encode(None))
    with av.open(str(path)) as a, av.open(str(run(path).output)) as b:
        first, second = (bytes(next(c.decode(video=0)).side_data["DISPLAYMATRIX"]) for c in (a, b))
    assert first == second


@pytest.mark.parametrize("size", [(63, 48), (64, 47), (63, 47), (17, 9)])
def test_odd_sizes_are_padded_to_even_and_recorded(tmp_path, size):
    path = Film(width=size[0], height=size[1], codec="ffv1").make(tmp_path / "a.mkv")
    outcome = run(path, method="pixelate:8")
    padded = [size[0] + size[0] % 2, size[1] + size[1] % 2]
    assert lumas(outcome.output).shape[1:] == (padded[1], padded[0])
    assert manifest(outcome)["video"]["padded_to"] == padded
    assert (manifest(outcome)["video"]["width"], manifest(outcome)["video"]["height"]) == size


def test_the_shape_of_pixels_stays(tmp_path):
    path = Film(ratio=Fraction(16, 11)).make(tmp_path / "a.mp4")
    with av.open(str(run(path).output)) as container:
        assert container.streams.video[0].sample_aspect_ratio == Fraction(16, 11)


def test_colours_are_tagged_as_in_the_input(tmp_path):
    tags = dict.fromkeys(("color_trc", "color_primaries", "colorspace", "color_range"), 1)
    path = Film(color=tags).make(tmp_path / "a.mp4")
    with av.open(str(run(path).output)) as container:
        frame = next(container.decode(video=0))
        assert (frame.colorspace, frame.color_trc, frame.color_primaries, frame.color_range) == (1, 1, 1, 1)


def test_full_range_video_keeps_its_brightness(tmp_path):
    path = Film(codec="mjpeg", pix_fmt="yuvj422p", width=64).make(tmp_path / "a.mov")
    outcome = run(path)
    with av.open(str(path)) as a, av.open(str(outcome.output)) as b:
        before, after = (next(c.decode(video=0)).to_ndarray(format="rgb24").mean() for c in (a, b))
    assert abs(before - after) < 3


def test_ten_bit_video_becomes_eight_bit_with_a_warning(tmp_path):
    outcome = run(Film(pix_fmt="yuv420p10le").make(tmp_path / "a.mkv"))
    with av.open(str(outcome.output)) as container:
        assert container.streams.video[0].pix_fmt == "yuv420p"
    assert any("10-bit" in warning for warning in outcome.warnings)
    assert detail(lumas(outcome.output)).max() < 2


@pytest.mark.parametrize("options", [{}, {"audio": "keep"}, {"metadata": "keep"}])
def test_the_index_comes_before_the_pictures_so_that_playing_starts_at_once(tmp_path, options):
    data = run(Film(sound="aac").make(tmp_path / "a.mp4"), **options).output.read_bytes()
    assert data[4:8] == b"ftyp"
    assert data.index(b"moov") < data.index(b"mdat")


def test_by_default_nothing_but_the_picture_remains(tmp_path):
    secret = {"title": "Ward 7", "location": "+48.8584+002.2945/", "comment": "Mrs X"}
    secret |= {"creation_time": "2024-05-06T07:08:09Z"}
    options = {"movflags": "use_metadata_tags"}
    film = Film(sound="aac", tags=secret, chapters=3, gps=True, subtitles=True, options=options)
    path = film.make(tmp_path / "a.mp4")
    outcome = run(path)
    with av.open(str(path)) as container:
        kinds = {stream.type for stream in container.streams}
        assert kinds >= {"video", "audio", "data", "subtitle"}
        assert len(container.chapters()) == 3
    with av.open(str(outcome.output)) as container:
        assert [stream.type for stream in container.streams] == ["video"]
        assert set(container.metadata) == {"major_brand", "minor_version", "compatible_brands"}
        assert not container.chapters()
    dropped = manifest(outcome)["dropped"]
    assert secret.keys() <= set(dropped["tags"])
    assert {name.split()[0] for name in dropped["streams"]} == {"audio", "data", "subtitle"}
    assert dropped["chapters"] == 3
    for value in ("Ward 7", "48.8584", "Mrs X", "07:08:09", "secret"):
        assert value.encode() not in outcome.output.read_bytes()
        assert value not in outcome.output.with_suffix(".json").read_text()


def test_metadata_can_be_kept(tmp_path):
    film = Film(tags={"title": "Ward 7", "location": "+48.8584+002.2945/"}, chapters=2, subtitles=True)
    outcome = run(film.make(tmp_path / "a.mp4"), metadata="keep")
    with av.open(str(outcome.output)) as container:
        assert container.metadata["title"] == "Ward 7"
        assert container.metadata["location"].startswith("+48.8584")
        assert [chapter["metadata"]["title"] for chapter in container.chapters()] == ["secret 0", "secret 1"]
        assert "subtitle" in {stream.type for stream in container.streams}
        assert "audio" not in {stream.type for stream in container.streams}
    kept, dropped = (set(manifest(outcome)[fate]["tags"]) for fate in ("kept", "dropped"))
    assert {"title", "location"} <= kept
    assert not {"title", "location"} & dropped
    assert "handler_name" in dropped  # of a stream, not of the file


def test_a_cover_picture_is_never_kept(tmp_path):
    path = tmp_path / "a.mkv"
    Film().make(tmp_path / "plain.mkv")
    with av.open(str(tmp_path / "plain.mkv")) as plain, av.open(str(path), "w") as output:
        target = output.add_stream_from_template(plain.streams.video[0])
        output.add_attachment("cover.jpg", "image/jpeg", b"\xff\xd8\xff\xe0" + b"RAWFACE" * 20)
        for packet in plain.demux(plain.streams.video[0]):
            if packet.size:
                packet.stream = target
                output.mux(packet)
    for metadata in ("drop", "keep"):
        outcome = run(path, metadata=metadata, overwrite=True)
        assert b"RAWFACE" not in outcome.output.read_bytes()
        assert manifest(outcome)["dropped"]["streams"]


def test_the_writer_refuses_what_no_anonymizer_made(tmp_path):
    (source,), _, _ = find([str(Film().make(tmp_path / "a.mp4"))])
    with Reader(source) as reader:
        frame = next(iter(reader))
        assert isinstance(frame, Frame)
        with pytest.raises(TypeError, match="only what an anonymizer made"):
            Mp4Writer(tmp_path / "b.mp4", reader).write(frame)
    assert not (tmp_path / "b.mp4").exists()


def test_stride_keeps_the_times_of_what_it_keeps(tmp_path):
    path = Film(frames=23, rate=25).make(tmp_path / "a.mp4")
    outcome = run(path, method="blur:strong | stride:5")
    assert times(outcome.output) == times(path)[::5]
    with av.open(str(path)) as a, av.open(str(outcome.output)) as b:
        assert a.duration == b.duration


def test_a_preview_shows_both_and_leaves_the_output_alone(tmp_path):
    path = Film(frames=10).make(tmp_path / "a.mp4")
    plain = run(path).output.read_bytes()
    outcome = run(path, preview=tmp_path / "look.mp4", overwrite=True)
    assert outcome.output.read_bytes() == plain
    both = lumas(tmp_path / "look.mp4")
    assert both.shape == (10, 48, 128)
    assert detail(both[:, :, :64]).min() > 40
    assert detail(both[:, :, 64:]).max() < 3


def test_the_same_run_twice_gives_the_same_bytes(tmp_path):
    path = Film(frames=40, width=160, height=120, sound="aac").make(tmp_path / "a.mp4")
    first = run(path, audio="distort").output.read_bytes()
    assert run(path, audio="distort", overwrite=True).output.read_bytes() == first


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_turned_as_its_exif_asks(tmp_path, orientation):
    shown = np.kron(np.random.default_rng(0).integers(40, 220, (3, 4, 1)), np.ones((16, 16, 3))).astype(np.uint8)
    jpeg = cv2.imencode(".jpg", shown, [cv2.IMWRITE_JPEG_QUALITY, 98])[1].tobytes()
    tiff = struct.pack("<2sHIHHHIHHI", b"II", 42, 8, 1, 0x0112, 3, 1, orientation, 0, 0)
    exif = b"Exif\0\0" + tiff
    path = tmp_path / "photo.jpg"
    path.write_bytes(jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + jpeg[2:])
    wanted = cv2.imread(str(path))  # turns by EXIF
    result = cv2.imread(str(run(path, method="pixelate:2").output))
    assert result.shape == wanted.shape
    assert np.abs(result.astype(int) - wanted).mean() < 4


def test_start_and_end_cut_the_output_and_its_sound(tmp_path):
    path = Film(frames=75, rate=25, sound="aac").make(tmp_path / "a.mp4")
    outcome = run(path, start=Fraction(1), end=Fraction(2), audio="keep")
    assert outcome.status is Status.DONE
    assert times(outcome.output) == [Fraction(i, 25) for i in range(25)]
    sound = packets(outcome.output)
    assert 0.9 < sum(1 for _ in sound) * 1024 / 48_000 < 1.1
    assert {payload for _, payload in sound} <= {payload for _, payload in packets(path)}
