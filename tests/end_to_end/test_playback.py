"""What others see in an output: a browser plays it, and ffprobe finds nothing in it but pictures."""

import json
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest

from tests.end_to_end.command import COMMAND
from tests.end_to_end.mutations import FINE, RATE, SOUND_RATE, X264, Whole, hum, pictures
from tests.methods.stprivacy.test_anonymizer import kept

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FFPROBE = shutil.which("ffprobe")


def anonymize(source: Path, *options: str) -> Path:
    """The output of the real command."""
    folder = source.parent / "out"
    arguments = ["anonymize", str(source), "-o", str(folder), "--region", "frame", *options]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (video,) = (path for path in folder.iterdir() if path.suffix != ".json")
    return video


# A browser plays it.

SECONDS = 2
PLAY = """async (source) => {
    const video = document.querySelector("video")
    const events = []
    const until = (name) => new Promise((resolve, reject) => {
        video.addEventListener(name, resolve, { once: true })
        video.addEventListener("error", () => reject(new Error(`${video.error.code}: ${video.error.message}`)))
    })
    const step = async (name, begin) => { const reached = until(name); await begin(); await reached; events.push(name) }
    await step("loadeddata", () => { video.src = source })
    const found = { duration: video.duration, width: video.videoWidth, height: video.videoHeight }
    await step("seeked", () => { video.currentTime = video.duration / 2 })
    found.middle = video.currentTime
    await step("seeked", () => { video.currentTime = 0 })
    video.playbackRate = 4
    await step("ended", () => video.play())
    found.end = video.currentTime
    found.frames = video.getVideoPlaybackQuality().totalVideoFrames
    found.sound = video.webkitAudioDecodedByteCount
    return found
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e .[dev]")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM, args=[*flags, "--autoplay-policy=no-user-gesture-required"]
        )
        yield chromium
        chromium.close()


def play(browser: Any, video: Path) -> dict[str, float]:
    """What the browser made of it: metadata, a seek to the middle, then all of it at four times the speed."""
    (video.parent / "page.html").write_text("<!doctype html><video preload=auto></video>")
    page = browser.new_page()
    page.set_default_timeout(20_000)
    try:
        page.goto((video.parent / "page.html").as_uri())
        return page.evaluate(PLAY, video.name)
    finally:
        page.close()


SILENT = (
    Whole(name="clip.mp4", codec="libx264", codec_options=X264),
    Whole(name="clip.mkv", codec="ffv1", pix_fmt="yuv444p"),
    Whole(name="deep.mkv", codec="ffv1", pix_fmt="yuv420p10le"),
    Whole(name="clip.avi", codec="mpeg4", codec_options=FINE),
    Whole(name="clip.mov", codec="mjpeg", pix_fmt="yuvj422p", codec_options=FINE),
    Whole(name="clip.gif", codec="gif", pix_fmt="rgb8"),
    Whole(name="clip.ts", codec="libx264", codec_options={**X264, "x264-params": "tff=1"}, interlaced=True),
    Whole(name="odd.mkv", codec="ffv1", size=(63, 47)),
)


@pytest.mark.parametrize("whole", SILENT, ids=lambda whole: f"{whole.name}, {whole.pix_fmt}")
def test_a_browser_plays_the_output_from_one_end_to_the_other(tmp_path, browser, whole):
    found = play(browser, anonymize(replace(whole, frames=SECONDS * RATE).make(tmp_path)))
    assert found["duration"] == pytest.approx(SECONDS, abs=0.02)
    assert (found["width"], found["height"]) == (64, 48)  # odd sizes are padded
    assert found["middle"] == pytest.approx(SECONDS / 2, abs=0.02)
    assert found["end"] == pytest.approx(SECONDS, abs=0.05)
    assert found["frames"] > 0
    assert found["sound"] == 0


@pytest.mark.parametrize(("rotation", "size"), [(90, (48, 64)), (180, (64, 48)), (-90, (48, 64))])
def test_a_browser_shows_a_turned_video_upright(tmp_path, browser, rotation, size):
    whole = Whole(name="turned.mp4", codec="libx264", codec_options=X264, rotation=rotation, frames=SECONDS * RATE)
    found = play(browser, anonymize(whole.make(tmp_path)))
    assert (found["width"], found["height"]) == size
    assert found["duration"] == pytest.approx(SECONDS, abs=0.02)


def test_a_browser_shows_what_a_network_drew_in_the_shape_of_the_original(tmp_path, browser, monkeypatch):
    kept(tmp_path / "runs", stride=3)
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    whole = Whole(name="turned.mp4", codec="libx264", codec_options=X264, rotation=90, frames=SECONDS * RATE)
    video = anonymize(whole.make(tmp_path), "--method", "stprivacy:mine", "--size", "network")
    found = play(browser, video)
    assert found["width"] / found["height"] == pytest.approx(48 / 64, abs=0.03)  # of 32 × 32 pixels
    assert found["end"] == pytest.approx(SECONDS, abs=0.05)
    assert found["frames"] > 0


@pytest.mark.parametrize("treatment", ["keep", "distort"])
@pytest.mark.parametrize(
    ("name", "codec", "sound"),
    [("clip.mp4", "libx264", "aac"), ("clip.webm", "libvpx", "libopus"), ("clip.mkv", "ffv1", "pcm_s16le")],
)
def test_a_browser_plays_the_sound_that_was_kept(tmp_path, browser, name, codec, sound, treatment):
    whole = Whole(name=name, codec=codec, sound=sound, frames=SECONDS * RATE)
    found = play(browser, anonymize(whole.make(tmp_path), "--audio", treatment))
    assert found["duration"] == pytest.approx(SECONDS, abs=0.1)  # sound comes in whole packets
    assert found["middle"] == pytest.approx(found["duration"] / 2, abs=0.02)
    assert found["end"] == pytest.approx(found["duration"], abs=0.05)
    assert found["sound"] > 0


def test_a_browser_plays_a_piece_that_was_cut_out(tmp_path, browser):
    whole = Whole(name="clip.mp4", codec="libx264", codec_options=X264, sound="aac", frames=3 * RATE)
    video = anonymize(whole.make(tmp_path), "--start", "0.5", "--end", "2.5", "--audio", "keep")
    found = play(browser, video)
    assert found["duration"] == pytest.approx(2, abs=0.1)
    assert found["sound"] > 0


# Nothing in it but pictures.

GPS = "+48.8584+002.2945"
SECRETS = ("Quillfeather", GPS, "48.8584", "2019-07-14", "01:02:03:04")
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
TAGS = {
    "title": "Quillfeather title",
    "comment": "Quillfeather comment",
    "artist": "Quillfeather artist",
    "ward": "Quillfeather custom",
    "service_name": "Quillfeather service",
    "location": f"{GPS}/",
    "creation_time": "2019-07-14T09:26:53.000000Z",
    "timecode": "01:02:03:04",
}
CHAPTER = {"id": 0, "start": 0, "end": 200, "time_base": Fraction(1, 1000), "metadata": {"title": "Quillfeather"}}


def talkative(
    path: Path, *, subtitles: str | None = None, data: str | None = None, attached: bool = False, sound: bool = False
) -> Path:
    """A video that carries all it can: tags on everything, chapters, subtitles, data, a font and a cover."""
    options = {"movflags": "use_metadata_tags"} if path.suffix in (".mp4", ".mov") else {}
    with av.open(str(path), "w", options=options) as output:
        output.metadata.update(TAGS)
        output.set_chapters([CHAPTER])
        video = output.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        voice = [output.add_stream("aac", rate=SOUND_RATE, layout="mono")] if sound else []
        others = [output.add_mux_stream(subtitles)] if subtitles else []
        others += [output.add_data_stream(data)] if data else []
        for stream in (video, *voice, *others):
            stream.metadata.update({"handler_name": "Quillfeather handler", "title": "Quillfeather track"})
        if attached:
            output.add_attachment("Quillfeather.ttf", "font/ttf", b"Quillfeather font")
            output.add_attachment("cover.png", "image/png", labelled_png())
        for i, frame in enumerate(pictures(10, 64, 48)):
            frame.pts, frame.time_base = i, Fraction(1, RATE)
            output.mux(video.encode(frame))
        output.mux(video.encode(None))
        for stream in voice:
            output.mux(list(hum(stream, 10 / RATE)))
        for stream in others:
            text = f"Quillfeather was at {GPS}".encode()
            packet = av.Packet(len(text).to_bytes(2, "big") + text if subtitles == "mov_text" else text)
            packet.stream, packet.time_base, packet.duration = stream, Fraction(1, 1000), 100
            packet.pts = packet.dts = 120
            output.mux(packet)
    return path


def labelled_png() -> bytes:
    """A picture with text behind its header."""
    encoder = av.CodecContext.create("png", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.time_base = 64, 48, "rgb24", Fraction(1, RATE)
    (frame,) = pictures(1, 64, 48)
    png = b"".join(bytes(packet) for packet in (*encoder.encode(frame.reformat(format="rgb24")), *encoder.encode(None)))
    chunk = b"tEXt" + b"Comment\0Quillfeather at " + GPS.encode()
    checksum = zlib.crc32(chunk).to_bytes(4, "big")
    return png[:33] + (len(chunk) - 4).to_bytes(4, "big") + chunk + checksum + png[33:]


def labelled_jpeg(folder: Path) -> Path:
    """A photograph with EXIF, a comment, and something behind its end, as phones append."""
    path = Whole(name="photo.jpg", codec="mjpeg", pix_fmt="yuvj420p", frames=1, options={"update": "1"}).make(folder)
    text = f"Quillfeather {GPS}".encode()
    tiff = b"MM\0*" + (8).to_bytes(4, "big") + b"\0\1"  # one entry: 0x010e, the description, of 7-bit text
    tiff += b"\x01\x0e\0\2" + len(text).to_bytes(4, "big") + (26).to_bytes(4, "big") + bytes(4) + text
    segments = b"".join(
        marker + (len(payload) + 2).to_bytes(2, "big") + payload
        for marker, payload in ((b"\xff\xe1", b"Exif\0\0" + tiff), (b"\xff\xfe", text))
    )
    plain = path.read_bytes()
    path.write_bytes(plain[:2] + segments + plain[2:] + text)
    return path


def labelled_bitstream(folder: Path) -> Path:
    """H.264 whose pictures carry user data (as dashcams store speed and place) and closed captions."""
    path = Whole(name="raw.h264", codec="libx264", codec_options={**X264, "bf": "0"}).make(folder)
    place = bytes(range(16, 32)) + f"Quillfeather {GPS}".encode()
    caption = b"\xb5\0\x31GA94\x03\x4a\xff" + b"".join(b"\xfc" + GPS[i : i + 2].encode() for i in range(0, 16, 2))
    caption = caption.replace(b"\x4a", b"\x48", 1) + b"\xff"
    sei = b"".join(
        b"\0\0\0\1\x06" + bytes([kind, len(payload)]) + payload + b"\x80"
        for kind, payload in ((5, place), (4, caption))
    )
    plain = path.read_bytes()
    for picture in (b"\0\0\1\x65", b"\0\0\1\x41"):
        plain = plain.replace(picture, sei + picture)
    path.write_bytes(plain)
    return path


TALKATIVE = {
    "mp4 with subtitles, GPS track, time code": {"subtitles": "mov_text", "data": "bin_data", "sound": True},
    "mov with subtitles": {"subtitles": "mov_text", "sound": True},
    "mkv with subtitles, font, cover": {"subtitles": "subrip", "attached": True, "sound": True},
    "ts with KLV data": {"data": "klv", "sound": True},
    "flv": {"sound": True},
    "avi": {},
    "asf": {},
}


def source(folder: Path, kind: str) -> Path:
    if kind not in TALKATIVE:
        return labelled_bitstream(folder)
    return talkative(folder / f"a.{kind.split()[0]}", **TALKATIVE[kind])


def probe(path: Path) -> dict[str, Any]:
    if FFPROBE is None:
        pytest.skip("ffprobe is not installed: apt-get install ffmpeg")
    shown = ["-show_format", "-show_streams", "-show_chapters", "-of", "json"]
    done = subprocess.run([FFPROBE, "-v", "error", *shown, str(path)], capture_output=True, text=True, check=True)
    assert not done.stderr
    return json.loads(done.stdout)


def assert_says_nothing(video: Path, kinds: list[str]) -> None:
    """No tag but what MP4 itself needs, these streams and no other, no chapter."""
    found = probe(video)
    assert [stream["codec_type"] for stream in found["streams"]] == kinds
    assert found["chapters"] == []
    assert found["format"]["tags"].keys() == {"major_brand", "minor_version", "compatible_brands"}
    handlers = {"video": "VideoHandler", "audio": "SoundHandler"}
    for stream in found["streams"]:
        allowed = {"language": "und", "handler_name": handlers[stream["codec_type"]], "vendor_id": "[0][0][0][0]"}
        assert stream["tags"].items() <= allowed.items()


def secrets_in(path: Path) -> set[str]:
    content = path.read_bytes()
    return {secret for secret in SECRETS if any(secret.encode(encoding) in content for encoding in ENCODINGS)}


def assert_holds_no_secret(video: Path) -> None:
    assert not secrets_in(video)
    assert not secrets_in(video.with_suffix(".json"))


@pytest.mark.parametrize("kind", [*TALKATIVE, "h264 with user data and captions"])
def test_ffprobe_finds_one_stream_and_no_tag_in_the_output(tmp_path, kind):
    path = source(tmp_path, kind)
    assert {"Quillfeather", GPS} <= secrets_in(path) or kind == "avi"  # which has no place for a place
    video = anonymize(path)
    assert_says_nothing(video, ["video"])
    assert_holds_no_secret(video)


@pytest.mark.parametrize("treatment", ["keep", "distort"])
@pytest.mark.parametrize("kind", [kind for kind, streams in TALKATIVE.items() if "sound" in streams])
def test_kept_sound_brings_no_tag_with_it(tmp_path, kind, treatment):
    video = anonymize(source(tmp_path, kind), "--audio", treatment)
    assert_says_nothing(video, ["video", "audio"])
    assert_holds_no_secret(video)


def test_an_image_keeps_no_exif_comment_or_trailer(tmp_path):
    photo = labelled_jpeg(tmp_path)
    assert photo.read_bytes().count(GPS.encode()) == 3
    assert_holds_no_secret(anonymize(photo))


def test_an_image_keeps_no_text_chunk(tmp_path):
    picture = tmp_path / "picture.png"
    picture.write_bytes(labelled_png())
    with av.open(str(picture)) as container:
        assert container.streams.video[0].width == 64
    assert_holds_no_secret(anonymize(picture))
