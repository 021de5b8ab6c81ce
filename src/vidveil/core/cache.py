"""Where vidveil keeps files that can be made or fetched again (weights, decoded videos), and its key.

Results that some code computed are kept with its hash, so that those of other code are never used.
"""

import functools
import hashlib
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


@functools.cache
def code_of(*patterns: str) -> str:
    """Hash of the files of this package that match."""
    root = Path(__file__).parents[1]
    found = {pattern: sorted(root.glob(pattern)) for pattern in patterns}
    if missing := [pattern for pattern, files in found.items() if not files]:
        raise ValueError(f"no file of vidveil is called {' or '.join(missing)}: a change of it would go unnoticed")
    files = sorted(file for each in found.values() for file in each)
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
