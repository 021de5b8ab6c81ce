"""Names of tags: well-known ones are written out, those that people made up are counted."""

import json
from pathlib import Path

import av
import pytest

from tests.media import Film
from tests.whole_frame import anonymize
from vidveil.app.jobs import Options, Status
from vidveil.video.tag_names import codec_tag, is_known, known_and_others


def matroska(path: Path, file: dict[str, str], stream: dict[str, str] | None = None) -> Path:
    """Matroska keeps every name, whatever it is."""
    Film(tags=file, format="matroska").make(path)
    if stream:
        other = path.with_name("other.mkv")
        path.rename(other)
        with av.open(str(other)) as source, av.open(str(path), "w", format="matroska") as target:
            target.metadata.update(source.metadata)
            copy = target.add_stream_from_template(source.streams.video[0])
            copy.metadata.update(stream)
            for packet in source.demux(source.streams.video[0]):
                if packet.dts is not None:
                    packet.stream = copy
                    target.mux(packet)
        other.unlink()
    return path


def manifest_of(outcome) -> dict:
    return json.loads(outcome.output.with_suffix(".json").read_text())


@pytest.mark.parametrize("metadata", ["drop", "keep"])
def test_a_name_that_somebody_made_up_is_counted_and_not_written(tmp_path, metadata):
    path = matroska(tmp_path / "a.mkv", {"Patient Jane": "1", "title": "x"}, {"Ward Seven": "y", "language": "eng"})
    (outcome,) = anonymize(path, options=Options(metadata=metadata))
    manifest = manifest_of(outcome)
    assert "Jane" not in json.dumps(manifest)
    assert "ward" not in json.dumps(manifest).lower()
    known, counts = ("kept", (1, 1)) if metadata == "keep" else ("dropped", (2, 0))
    assert "title" in manifest[known]["tags"]
    assert "language" in manifest["dropped"]["tags"]
    assert (manifest["dropped"]["unknown_tags"], manifest["kept"]["unknown_tags"]) == counts


def test_a_name_that_somebody_gave_to_a_tag_of_a_chapter_is_counted(tmp_path):
    path = Film(chapters=2, format="matroska").make(tmp_path / "a.mkv")
    (outcome,) = anonymize(path)
    assert "chapter title" in manifest_of(outcome)["dropped"]["tags"]
    assert not is_known("chapter Patient Jane")


@pytest.mark.parametrize(
    "name",
    """title title-eng TITLE creation_time location location-eng com.apple.quicktime.location.ISO6709
    com.apple.quicktime.model com.android.version com.android.capture.fps handler_name vendor_id encoder
    HANDLER_NAME DURATION BPS-eng _STATISTICS_TAGS _STATISTICS_WRITING_APP-eng NUMBER_OF_FRAMES
    iTunNORM iTunSMPB TSSE TLEN WM/EncodingTime
    timecode media_type hd_video ORIGINAL/ARTIST LEAD_PERFORMER comment rotate make model service_name""".split(),
)
def test_what_formats_and_cameras_write_is_known(name):
    assert is_known(name)


@pytest.mark.parametrize(
    "name",
    ["Patient Jane", "jane", "title-jane", "title-", "-eng", "com.apple.quicktime.Jane", "com.apple.", "title/Jane",
     "/", "", "chapter ", "title title", "Patient_Jane-eng"],
)  # fmt: skip
def test_what_anybody_may_have_written_is_not(name):
    assert not is_known(name)
    assert known_and_others([name, "title"]) == (("title",), 1)


def test_the_tag_of_a_codec_that_nobody_knows_is_not_written(tmp_path):
    path = Film(gps=True).make(tmp_path / "a.mp4")
    data = path.read_bytes()
    assert data.count(b"gpmd")
    path.write_bytes(data.replace(b"gpmd", b"Jane"))
    (outcome,) = anonymize(path)
    assert "Jane" not in json.dumps(manifest_of(outcome))
    assert "data" in manifest_of(outcome)["dropped"]["streams"]
    assert codec_tag("gpmd") == "gpmd"


def test_a_manifest_from_before_unknown_tags_were_counted_is_read(tmp_path):
    path = Film(tags={"title": "x"}).make(tmp_path / "a.mp4")
    (first,) = anonymize(path)
    notes = first.output.with_suffix(".json")
    manifest = manifest_of(first)
    del manifest["dropped"]["unknown_tags"], manifest["kept"]["unknown_tags"]
    notes.write_text(json.dumps(manifest))
    (again,) = anonymize(path)
    assert again.status is Status.UP_TO_DATE


def test_a_manifest_from_before_that_names_other_tags_does_not_stay(tmp_path):
    path = Film(frames=5).make(tmp_path / "a.mp4")
    (first,) = anonymize(path)
    manifest = manifest_of(first)
    manifest["dropped"]["tags"].append("Patient Jane")
    first.output.with_suffix(".json").write_text(json.dumps(manifest))
    (again,) = anonymize(path)
    assert again.status is Status.DONE
    assert "Jane" not in json.dumps(manifest_of(again))
