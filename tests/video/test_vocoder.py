"""Distortion: rhythm stays, voices do not."""

import numpy as np

from vidveil.video.vocoder import Vocoder

RATE = 48_000


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
