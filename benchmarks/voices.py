"""Does `--audio distort` make voices unrecognisable? An attacker trained on distorted speech identifies speakers.

    apt-get install espeak-ng
    python benchmarks/voices.py                       two minutes; writes benchmarks/results/voices.json

Speech: espeak-ng, 24 of its voices, all reading the same 12 sentences, with equal volume. Attacker: spectra in 40 mel
bands, their cepstra's means, spreads and mean changes over a sentence, whitened by what varies within a speaker
(linear discriminant analysis), nearest speaker. It trains on sentences 1-8 and is tried on 9-12, each treatment by
itself: it adapts. A pitch shift (resampling by 0.8), what many tools offer, is there to compare with, and so are
vocoders of six bands and two, which leave more of the words. Synthetic voices read alike from sentence to sentence,
so identifying real people is harder than this; on the other hand a better attacker than this one can be built.
"""

import argparse
import json
import shutil
import subprocess
import sys
import wave
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.video.vocoder import Vocoder

Sound = NDArray[np.float32]
RATE = 22_050
VOICES = (
    "m1 m2 m3 m4 m5 m6 m7 m8 f1 f2 f3 f4 f5 adam belinda benjamin boris caleb david edward linda pablo quincy steph"
).split()
SENTENCES = (
    "The patient came in on Tuesday with a sore throat.",
    "Please bring the blue folder to the second floor.",
    "We will measure the temperature again in an hour.",
    "Nobody told me that the meeting had been moved.",
    "My brother lives near the station with his two dogs.",
    "It rained all morning, and the garden is under water.",
    "Could you spell your family name for me once more?",
    "The train to the coast leaves from platform nine.",
    "She put the letters on the table and went to bed.",
    "Every child in the class had drawn a different bird.",
    "Turn left after the bridge and follow the river.",
    "They have been working on this problem for years.",
)
TRAINED_ON = 8


def speak(voice: str, text: str) -> Sound:
    words = ["espeak-ng", "-v", f"en+{voice}", "--stdout", text]
    with wave.open(BytesIO(subprocess.run(words, capture_output=True, check=True).stdout)) as file:
        samples = np.frombuffer(file.readframes(1 << 30), np.int16).astype(np.float32)
    return np.asarray(samples / (np.sqrt(np.mean(samples**2)) + 1) * 0.1, np.float32)


def distorted(sound: Sound, bands: int = 1) -> Sound:
    vocoder = Vocoder(RATE, bands)
    return np.concatenate([vocoder.feed(sound), vocoder.flush()])


def shifted(sound: Sound) -> Sound:
    at = np.arange(0, len(sound) - 1, 0.8)
    return np.asarray(np.interp(at, np.arange(len(sound)), sound), np.float32)


TREATMENTS: dict[str, Callable[[Sound], Sound]] = {
    "raw": lambda sound: sound,
    "pitch shift": shifted,
    "six bands": partial(distorted, bands=6),
    "two bands": partial(distorted, bands=2),
    "distort": distorted,
}


def features(sound: Sound) -> NDArray[np.float64]:
    size, hop = 1024, 256
    windows = np.lib.stride_tricks.sliding_window_view(sound, size)[::hop] * np.hanning(size)
    power = np.abs(np.fft.rfft(windows)) ** 2  # (frames, bins)
    loud = power.sum(1) > 0.01 * np.median(power.sum(1))
    mel = np.log(power[loud] @ _mel(size) + 1e-6)
    cepstra = mel @ np.cos(np.pi / 40 * np.outer(np.arange(40) + 0.5, np.arange(20)))
    return np.concatenate([cepstra.mean(0), cepstra.std(0), np.abs(np.diff(cepstra, axis=0)).mean(0)])


def _mel(size: int) -> NDArray[np.float64]:
    frequencies = np.fft.rfftfreq(size, 1 / RATE)
    centres = 700 * (np.exp(np.linspace(np.log(1 + 80 / 700), np.log(1 + 8000 / 700), 42)) - 1)
    rising = (frequencies[:, None] - centres[:-2]) / (centres[1:-1] - centres[:-2])
    falling = (centres[2:] - frequencies[:, None]) / (centres[2:] - centres[1:-1])
    return np.asarray(np.maximum(0, np.minimum(rising, falling)))


def attack(found: NDArray[np.float64]) -> float:
    """Share of sentences given to the right speaker; `found` is (speakers, sentences, features)."""
    scale = found[:, :TRAINED_ON].std((0, 1)) + 1e-9
    found = found / scale
    centres = found[:, :TRAINED_ON].mean(1)
    within = (found[:, :TRAINED_ON] - centres[:, None]).reshape(-1, found.shape[-1])
    covariance = within.T @ within / len(within) + 0.1 * np.eye(found.shape[-1])
    whiten = np.linalg.cholesky(np.linalg.inv(covariance))
    tried = found[:, TRAINED_ON:] @ whiten
    distance = np.square(tried[:, :, None] - (centres @ whiten)[None, None]).sum(-1)
    return float((distance.argmin(-1) == np.arange(len(found))[:, None]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "voices.json")
    options = parser.parse_args()
    if shutil.which("espeak-ng") is None:
        sys.exit("error: espeak-ng is not installed (apt-get install espeak-ng)")
    speech = [[speak(voice, sentence) for sentence in SENTENCES] for voice in VOICES]
    found = {}
    for name, treat in TREATMENTS.items():
        found[name] = attack(np.array([[features(treat(sound)) for sound in row] for row in speech]))
        print(f"{name:12} {found[name]:6.1%}   (chance {1 / len(VOICES):.1%})")
    report = {"speakers": len(VOICES), "sentences": len(SENTENCES), "chance": 1 / len(VOICES), "recognised": found}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
