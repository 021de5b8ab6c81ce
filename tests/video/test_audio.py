"""Sound: dropped unless asked for, copied to the bit, or made unrecognisable."""

import json
from fractions import Fraction

import av
import numpy as np
import pytest

from tests.media import Film, packets
from vidveil import anonymize
from vidveil.video.audio import Vocoder
from vidveil.video.jobs import Options

RATE = 48_000


def run(path, audio):
    outcome = anonymize(path, options=Options(audio=audio))[0]
    assert outcome.error is None, outcome.error
    return outcome.output


def sound_of(path):
    with av.open(str(path)) as container:
        return np.concatenate([f.to_ndarray().reshape(-1) for f in container.decode(audio=0)])


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("a.mp4", "aac"),
        ("a.mkv", "aac"),
        ("a.mkv", "flac"),
        ("a.mkv", "libopus"),
        ("a.avi", "libmp3lame"),
        ("a.mkv", "ac3"),
    ],
)
def test_kept_sound_is_the_same_to_the_bit_and_at_the_same_time(tmp_path, name, codec):
    video = "mpeg4" if name.endswith("avi") else "libx264"
    path = Film(frames=50, codec=video, sound=codec).make(tmp_path / name)
    before, after = packets(path), packets(run(path, "keep"))
    assert [payload for _, payload in after] == [payload for _, payload in before]
    assert max(abs(a - b) for (a, _), (b, _) in zip(before, after, strict=True)) <= Fraction(1, 1000)
    if name.endswith("mp4"):
        assert after == before


def test_sound_that_comes_first_in_the_file_is_kept_too(tmp_path):
    path = Film(frames=50, sound="aac", sound_first=True).make(tmp_path / "a.mkv")
    assert [p for _, p in packets(run(path, "keep"))] == [p for _, p in packets(path)]


@pytest.mark.parametrize(("name", "codec"), [("a.mkv", "pcm_s16le"), ("a.wmv", "wmav2"), ("a.mkv", "pcm_u8")])
def test_sound_that_mp4_cannot_carry_becomes_aac_and_is_recorded(tmp_path, name, codec):
    path = Film(frames=50, sound=codec, codec="wmv2" if name.endswith("wmv") else "libx264").make(tmp_path / name)
    output = run(path, "keep")
    with av.open(str(output)) as container:
        assert container.streams.audio[0].codec_context.name == "aac"
    kept = json.loads(output.with_suffix(".json").read_text())["kept"]
    assert kept["reencoded"] == [f"{codec} to aac"]
    before, after = sound_of(path), sound_of(output)
    assert abs(len(before) - len(after)) < 4096


def test_a_video_without_sound_needs_no_special_flag(tmp_path):
    for audio in ("drop", "keep", "distort"):
        path = Film().make(tmp_path / f"{audio}.mp4")
        with av.open(str(run(path, audio))) as container:
            assert not container.streams.audio


def voice(pitch: float, tract: float, seconds: float = 4.0) -> np.ndarray:
    """A sung vowel that swells: harmonics of a pitch through the resonances of a throat of some length."""
    t = np.arange(int(seconds * RATE)) / RATE
    sound = np.zeros_like(t)
    for k in range(1, int(6000 / pitch)):
        f = k * pitch
        gain = sum(np.exp(-(((f - c * tract) / 120) ** 2)) for c in (700, 1200, 2600))
        sound += gain * np.sin(2 * np.pi * f * t + k)
    return (sound / np.abs(sound).max() * (0.55 + 0.45 * np.sin(2 * np.pi * 3 * t))).astype(np.float32)


def spectrum(sound: np.ndarray) -> np.ndarray:
    return np.abs(np.fft.rfft(sound * np.hanning(len(sound))))


def harmonicity(sound: np.ndarray, pitch: float) -> float:
    """Energy at the harmonics of a pitch over that between them."""
    power, hz = spectrum(sound) ** 2, RATE / len(sound)
    at = np.concatenate([power[int(k * pitch / hz) - 3 : int(k * pitch / hz) + 4] for k in range(3, 15)])
    between = np.concatenate(
        [power[int((k + 0.5) * pitch / hz) - 3 : int((k + 0.5) * pitch / hz) + 4] for k in range(3, 15)]
    )
    return float(at.mean() / (between.mean() + 1e-12))


def distorted(sound: np.ndarray) -> np.ndarray:
    vocoder = Vocoder(RATE)
    pieces = [vocoder.feed(piece) for piece in np.array_split(sound, 37)]
    return np.concatenate([*pieces, vocoder.flush()])


def test_distortion_leaves_no_pitch():
    for pitch in (110.0, 190.0):
        raw = voice(pitch, 1.0)
        assert harmonicity(raw, pitch) > 1000
        assert harmonicity(distorted(raw), pitch) < 3


def test_distortion_brings_different_voices_to_the_same_spectrum():
    speakers = [voice(100, 0.88), voice(220, 1.15)]

    def timbre(sound):
        bands = np.array_split(spectrum(sound[RATE:])[: int(5000 * len(sound[RATE:]) / RATE)], 24)
        energy = np.log([np.mean(b**2) + 1e-9 for b in bands])
        return energy - energy.mean()

    apart = np.linalg.norm(timbre(speakers[0]) - timbre(speakers[1]))
    left = np.linalg.norm(timbre(distorted(speakers[0])) - timbre(distorted(speakers[1])))
    assert left < 0.25 * apart


def test_distortion_keeps_length_and_rhythm():
    raw = voice(140, 1.0)
    raw[: RATE // 2] = 0
    out = distorted(raw)
    assert len(out) == len(raw)
    assert np.abs(out[: RATE // 4]).max() < 0.01
    assert np.sqrt(np.mean(out[RATE:] ** 2)) > 0.01
    assert np.abs(out).max() < 1.0


def test_distorted_sound_in_a_file_is_not_the_original(tmp_path):
    path = Film(frames=75, sound="aac").make(tmp_path / "a.mp4")
    before, after = sound_of(path), sound_of(run(path, "distort"))
    assert abs(len(before) - len(after)) < 4096
    assert harmonicity(before[: 2 * RATE], 440 / 3) > 0  # the tone is there
    peak = np.argmax(spectrum(before[RATE : 2 * RATE]))
    power = spectrum(after[RATE : 2 * RATE]) ** 2
    assert power[peak - 2 : peak + 3].sum() < 0.2 * power.sum()


def test_sound_of_a_live_source_is_refused_in_plain_words():
    outcome = anonymize("rtsp://127.0.0.1:1/x", options=Options(audio="keep"))[0]
    assert "live source" in str(outcome.error)
