"""Settings of the H.264 encoder. This module loads nothing: `vidveil anonymize --help` shows them."""

PRESETS = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
PRESET = "veryfast"
CRF = 20
