"""Where vidveil keeps what can be made or fetched again: weights, decoded videos; and its key (video/user_key.py)."""

import os
import sys
from pathlib import Path


def cache_folder(variable: str, name: str) -> Path:
    """What the environment's `variable` names, else `vidveil/NAME` in the user's folder for caches.

    RuntimeError, as from `Path.home`, where there is no home folder: an unknown user in a container.
    """
    if chosen := os.environ.get(variable):
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # the XDG rules say to pass over any other
        base = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return base / "vidveil" / name
