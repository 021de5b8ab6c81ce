"""Where vidveil keeps files that can be made or fetched again (weights, decoded videos), and its key."""

import os
import sys
from pathlib import Path


def cache_folder(variable: str, name: str) -> Path:
    """The folder that the environment `variable` names, else `vidveil/NAME` in the user's cache folder.

    RuntimeError, as from `Path.home`, if there is no home folder, as for an unknown user in a container.
    """
    if chosen := os.environ.get(variable):
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # the XDG rules: ignore relative paths
        base = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return base / "vidveil" / name
