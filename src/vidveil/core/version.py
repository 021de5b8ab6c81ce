"""The version of vidveil, which manifests, checkpoints and caches name."""

__version__ = "0.1.0"
