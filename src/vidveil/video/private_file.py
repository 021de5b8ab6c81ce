"""Files that only their owner may read."""

import os
import secrets
from pathlib import Path

MODE = 0o600


def write_private(path: Path, data: bytes) -> None:
    """Write the whole file, or none of it. It is readable by its owner alone from its first byte on."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.vidveil.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, MODE), "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
