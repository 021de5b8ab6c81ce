"""A random key of this user, with which tokens in shared manifests are computed.

    token = HMAC-SHA256(key, what it is of)

Without the key nobody can verify a guess of a file's name or hash.
"""

import hmac
import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from vidveil.core.atomic import write_bytes
from vidveil.core.cache import cache_folder
from vidveil.core.errors import UsageError

LENGTH = 32


def key_file() -> Path:
    try:
        return cache_folder("VIDVEIL_KEYS", "keys") / "manifests.key"
    except RuntimeError as error:
        raise UsageError("there is no home folder for the key of manifests for sharing: set VIDVEIL_KEYS") from error


def read_key() -> bytes | None:
    """The key, or None if there is no file. UsageError for a file that is no key, or that others may read."""
    path = key_file()
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"the key {path} cannot be read ({(error.strerror or str(error)).lower()})") from error
    with os.fdopen(number, "rb") as file:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or found.st_size != LENGTH:
            raise UsageError(f"{path} is no key: put the right one back, or remove it")
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise UsageError(f"the key {path} is not yours alone: chmod 600 it, or remove it")
        return file.read(LENGTH)


def make_key() -> bytes:
    """The key, created if there is none. Processes that create it at the same time all get the same key."""
    path = key_file()
    key = read_key()
    if key is not None:
        return key
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_bytes(draft, secrets.token_bytes(LENGTH), 0o600)
        try:
            with suppress(FileExistsError):  # another process was faster
                os.link(draft, path)
        finally:
            draft.unlink()
    except OSError as error:
        raise UsageError(f"the key {path} cannot be written ({(error.strerror or str(error)).lower()})") from error
    key = read_key()
    assert key is not None
    return key


def token(key: bytes, *of: object) -> str:
    return hmac.digest(key, json.dumps(of, sort_keys=True).encode(), "sha256").hex()
