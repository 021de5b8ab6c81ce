"""Hash of the code that made a cached result, so that results of other code are never reused."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def code_of(*patterns: str) -> str:
    """Hash of the files of this package that match."""
    root = Path(__file__).parents[1]
    found = {pattern: sorted(root.glob(pattern)) for pattern in patterns}
    if missing := [pattern for pattern, files in found.items() if not files]:
        raise ValueError(f"no file of vidveil is called {' or '.join(missing)}: a change of it would go unnoticed")
    files = sorted(file for each in found.values() for file in each)
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
