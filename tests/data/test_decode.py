"""Files to arrays, by either decoder."""

import os
from pathlib import Path

import av
import numpy as np
import pytest

from tests.media import Film, level
from vidveil.core.errors import DataError, UsageError
from vidveil.data import decode as module
from vidveil.data.decode import decode, decode_all, decoder
from vidveil.data.store import decoded as cache
from vidveil.data.store.decoded import decoded
from vidveil.data.store.files import FailedVideo

REAL = Path(os.environ.get("VIDVEIL_DATA", "nowhere"))
both = pytest.mark.parametrize("by", ["av", "opencv"])


def levels(video):
    return video.mean((1, 2, 3)).round().astype(int).tolist()


@pytest.fixture
def film(tmp_path):
    return Film(frames=12).make(tmp_path / "film.mp4")


@both
def test_every_frame_comes_in_order(film, by):
    video = decode(film, by=by)
    assert video.shape == (12, 48, 64, 3)
    assert video.dtype == np.uint8
    np.testing.assert_allclose(levels(video), [level(i) for i in range(12)], atol=2)


@both
def test_every_nth_frame_up_to_a_limit(film, by):
    np.testing.assert_allclose(levels(decode(film, every=3, by=by)), [level(i) for i in (0, 3, 6, 9)], atol=2)
    np.testing.assert_allclose(levels(decode(film, every=2, limit=3, by=by)), [level(i) for i in (0, 2, 4)], atol=2)


@both
def test_large_pictures_become_smaller_and_small_ones_stay(film, by):
    assert decode(film, short_side=24, limit=1, by=by).shape == (1, 24, 32, 3)
    assert decode(film, short_side=100, limit=1, by=by).shape == (1, 48, 64, 3)


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_both_decoders_show_a_turned_video_the_right_way_up(tmp_path, turn):
    """A bright left half, stored as it is and turned on display."""
    path = _half_bright(tmp_path / "film.mp4", turn)
    one, other = decode(path, by="av"), decode(path, by="opencv")
    assert one.shape == other.shape == ((4, 48, 64, 3) if turn % 180 == 0 else (4, 64, 48, 3))
    assert np.abs(one.astype(int) - other).mean() < 2
    stored = np.zeros((48, 64))
    stored[:, :32] = 200
    assert np.abs(np.rot90(stored, turn // 90) - one[0, ..., 1]).mean() < 6


def _half_bright(path: Path, turn: int) -> Path:
    import av

    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=25, options={"crf": "5"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        if turn:
            stream.set_display_rotation(turn)
        for _ in range(4):
            picture = np.zeros((48, 64, 3), np.uint8)
            picture[:, :32] = 200
            output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24").reformat(format="yuv420p")))
        output.mux(stream.encode(None))
    return path


@both
@pytest.mark.parametrize("content", [b"", b"no video at all" * 100], ids=["empty", "text"])
def test_what_is_no_video_is_an_error_with_its_name(tmp_path, by, content):
    (tmp_path / "odd.mp4").write_bytes(content)
    with pytest.raises(DataError, match=r"odd\.mp4 (cannot be decoded|holds no)") as error:
        decode(tmp_path / "odd.mp4", by=by)
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match=r"gone\.mp4 is not there"):
        decode(tmp_path / "gone.mp4", by=by)


def test_the_decoder_is_chosen_by_the_user_or_by_what_is_there(monkeypatch):
    monkeypatch.delenv("VIDVEIL_DECODER", raising=False)
    assert decoder() == "av"
    monkeypatch.setenv("VIDVEIL_DECODER", "opencv")
    assert decoder() == "opencv"
    monkeypatch.setenv("VIDVEIL_DECODER", "vlc")
    with pytest.raises(UsageError, match="av or opencv, not 'vlc'"):
        decoder()
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.setenv("VIDVEIL_DECODER", "av")
    with pytest.raises(UsageError, match="pip install av"):
        decoder()
    monkeypatch.delenv("VIDVEIL_DECODER")
    assert decoder() == "opencv"


def test_many_files_come_in_order_and_a_bad_one_says_why_in_its_place(tmp_path):
    paths = [Film(frames=2 + i % 5).make(tmp_path / f"{i}.mp4") for i in range(9)]
    assert [len(video) for video in decode_all(paths)] == [2 + i % 5 for i in range(9)]
    paths[4].write_bytes(b"broken")
    paths[7].write_bytes(b"")
    found = list(decode_all(paths))
    assert [len(found[i]) for i in (3, 5, 6, 8)] == [5, 2, 3, 5]
    failed = {i: one.why for i, one in enumerate(found) if isinstance(one, FailedVideo)}
    assert failed == {4: "it is damaged or no video", 7: "it is empty"}


def test_a_file_that_cannot_be_read_is_no_damaged_video(tmp_path, monkeypatch):
    path = Film(frames=3).make(tmp_path / "a.mp4")

    def refuses(*_, **__):
        raise DataError(f"{path} cannot be decoded: it is damaged or no video")

    def no_more_files(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(module, "decode", refuses)
    monkeypatch.setattr(type(path), "open", no_more_files)
    with pytest.raises(DataError, match=r"a\.mp4 cannot be read: too many open files"):
        list(decode_all([path]))


def test_a_set_is_decoded_once_and_again_when_a_file_changes(tmp_path, monkeypatch):
    files = ["a.mp4", "b.mp4"]
    for i, file in enumerate(files):
        Film(frames=3 + i).make(tmp_path / file)
    calls = []
    monkeypatch.setattr(cache, "decode_all", lambda *args, **how: calls.append(1) or decode_all(*args, **how))
    first = decoded("toy", tmp_path, files)
    assert decoded("toy", tmp_path, files).fingerprint == first.fingerprint
    assert len(calls) == 1
    Film(frames=9).make(tmp_path / "b.mp4")
    assert decoded("toy", tmp_path, files).shapes[1][0] == 9
    assert decoded("toy", tmp_path, files, limit=2).shapes[1][0] == 2
    assert len(calls) == 3
    assert len([path for path in (tmp_path / "cache").iterdir() if path.is_dir()]) == 3


def test_a_listed_file_that_is_missing_and_a_full_disk_are_reported_before_decoding(tmp_path):
    with pytest.raises(DataError, match=r"toy: .*a\.mp4 is listed but not there"):
        decoded("toy", tmp_path, ["a.mp4"])
    Film(frames=2).make(tmp_path / "a.mp4")
    with pytest.raises(DataError, match=r"take about 1000000000 GB and .* set VIDVEIL_CACHE"):
        decoded("toy", tmp_path, ["a.mp4"], expected_bytes=10**18)


@pytest.mark.skipif(not (REAL / "ucf101_5").is_dir(), reason="VIDVEIL_DATA is not set")
@pytest.mark.parametrize("folder", ["ucf101_5", "weizmann", "surveillance_fight"])
def test_both_decoders_agree_on_real_videos(folder):
    for path in sorted((REAL / folder).glob("*/*.mp4"))[::120]:
        one, other = (decode(path, limit=10, by=by) for by in ("av", "opencv"))
        assert one.shape == other.shape
        assert np.abs(one.astype(int) - other).mean() < 2


@pytest.mark.parametrize(
    ("ending", "codec", "by"), [("avi", "mpeg4", "av"), ("avi", "mpeg4", "opencv"), ("mkv", "libx264", "av")]
)
def test_a_copy_that_was_cut_off_is_no_whole_video(tmp_path, ending, codec, by):
    """Both have their headers in front, and decode up to where they end."""
    whole = Film(frames=60, width=64, height=48, codec=codec, bframes=0).make(tmp_path / f"whole.{ending}")
    assert len(decode(whole, by=by)) == 60
    cut = tmp_path / f"cut.{ending}"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 6 // 10])
    with pytest.raises(DataError, match=r"breaks off after [\d.]+ of [\d.]+ (frames|s)$"):
        decode(cut, by=by)
    assert len(decode(cut, by=by, limit=5)) == 5  # all that was asked for is there


@both
def test_an_avi_of_pictures_that_are_shown_longer_is_whole(tmp_path, by):
    """Its header counts each of them as often as it is repeated."""
    path = tmp_path / "slow.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for i, time in enumerate([*range(10), *range(20, 40)]):  # 0.4 s without a picture
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 8 * i, np.uint8), format="rgb24")
            frame.pts = time
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert len(decode(path, by=by)) >= 30


def test_a_part_of_a_film_that_hides_what_comes_before_is_whole(tmp_path):
    """MP4s that were cut out without encoding hold frames that no one is to see, and their headers count them."""
    film = Film(frames=60, width=64, height=48).make(tmp_path / "film.mp4")
    with av.open(str(film)) as source, av.open(str(tmp_path / "part.mp4"), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is None:
                continue
            packet.pts -= 20 * packet.duration
            packet.dts -= 20 * packet.duration
            packet.stream = stream
            target.mux(packet)
    assert len(decode(tmp_path / "part.mp4", by="av")) == 40
