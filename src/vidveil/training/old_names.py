"""Names that options and recipes had in earlier versions, so that a run begun by one of those can be resumed.

Files of runs may hold either name. Hashes are taken over the old ones: they must not change with a name.
"""

from collections.abc import Mapping
from typing import Any

OLD_NAMES = {"backbone": "trunk", "backbone_lr": "trunk_lr"}
"""Present name → old name."""
PRESENT_NAMES = {old: present for present, old in OLD_NAMES.items()}


def with_old_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """For hashes."""
    return {OLD_NAMES.get(name, name): value for name, value in values.items()}


def with_present_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """For what was read from a file."""
    return {PRESENT_NAMES.get(name, name): value for name, value in values.items()}
