"""SHA-256 of files, by which manifests and caches name them."""

import hashlib
from pathlib import Path
from threading import Event

from vidveil.core.bounded import open_regular

CHUNK = 1 << 20


def file_hash(path: Path, stop: Event | None = None) -> str:
    """SHA-256 of a file. InterruptedError as soon as `stop` is set."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(CHUNK):
            if stop is not None and stop.is_set():
                raise InterruptedError("no longer wanted")
            digest.update(chunk)
    return digest.hexdigest()
