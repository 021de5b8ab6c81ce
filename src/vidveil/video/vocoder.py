"""Distorted sound: when somebody speaks stays audible, the voice does not."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]


class Vocoder:
    """Noise with the envelope of the sound: when somebody speaks is kept, the voice is not.

    Pitch, harmonics and the shape of the spectrum, by which voices are recognised, are discarded and not just altered,
    so unlike with a shift of pitch there is nothing to shift back. Of about every 20 ms one level remains, relative to
    that of the last seconds. More `bands` would keep more of the words, and more of the voice: with six, an attacker
    trained on distorted speech still identified half of the speakers (benchmarks/voices.py).
    """

    LOW, HIGH = 150.0, 6000.0
    LEVEL_S = 3.0
    """Seconds over which the level is normalised, so that a loud voice sounds like a soft one."""

    def __init__(self, rate: int, bands: int = 1) -> None:
        self._size = 1 << round(np.log2(rate * 0.032))
        self._hop = self._size // 2
        self._window = np.sin(np.pi * (np.arange(self._size) + 0.5) / self._size).astype(np.float32)
        self._noise = np.random.default_rng(0)  # the same noise each time: it carries no information
        frequencies = np.fft.rfftfreq(self._size, 1 / rate)
        edges = np.geomspace(self.LOW, min(self.HIGH, rate / 2), bands + 1)
        self._bands = [np.flatnonzero((frequencies >= a) & (frequencies < b)) for a, b in pairwise(edges)]
        self._fade = float(np.exp(-self._hop / rate / self.LEVEL_S))
        self._smooth = np.zeros(bands)
        self._level = np.full(bands, 1e-4)
        self._input = np.zeros(self._hop, np.float32)  # half a window of silence, so that there is no delay
        self._tail = np.zeros(self._hop, np.float32)
        self._skip = self._hop

    def feed(self, samples: Samples) -> Samples:
        """The samples that are finished; `flush` returns the rest."""
        self._input = np.concatenate([self._input, samples])
        done = []
        while len(self._input) >= self._size:
            done.append(self._step(self._input[: self._size]))
            self._input = self._input[self._hop :]
        out = np.concatenate(done) if done else np.zeros(0, np.float32)
        skipped = min(self._skip, len(out))
        self._skip -= skipped
        return out[skipped:]

    def flush(self) -> Samples:
        left = len(self._input)  # samples that are not returned yet
        return self.feed(np.zeros(self._size, np.float32))[:left]

    def _step(self, piece: Samples) -> Samples:
        spectrum = np.abs(np.fft.rfft(piece * self._window))
        levels = np.array([np.sqrt(np.mean(spectrum[band] ** 2)) for band in self._bands])
        self._smooth += 0.5 * (levels - self._smooth)
        self._level = np.maximum(self._fade * self._level + (1 - self._fade) * self._smooth, 1e-4)
        gains = np.minimum(self._smooth / self._level, 4.0)
        drawn = np.zeros(len(spectrum), complex)
        for band, gain in zip(self._bands, gains, strict=True):
            drawn[band] = gain * np.exp(2j * np.pi * self._noise.random(len(band)))
        sound = (np.fft.irfft(drawn, self._size) * self._window * (0.04 * self._size**0.5)).astype(np.float32)
        out: Samples = self._tail + sound[: self._hop]
        self._tail = sound[self._hop :]
        return out
