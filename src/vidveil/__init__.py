"""vidveil: removes from video what identifies people, keeps what a task needs, and reports exactly what it did.

    import vidveil
    vidveil.anonymize("clip.mp4")                      # writes clip_anonymized.mp4 and its manifest
    blur = vidveil.load("blur:strong")                 # the method alone
    blur.anonymize(clip).video                         # clip: float tensor (3, T, H, W) in [0, 1]
    vidveil.evaluate("blur_puppets", "seeds=[0,1,2]")  # what attackers still get: a recipe, with fields to change

Importing this module loads nothing heavy; each name below is fetched when it is first used. It also forbids the
telemetry of all libraries that are loaded later: import it before onnxruntime and openvino.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vidveil.core import telemetry
from vidveil.core.errors import VidveilError
from vidveil.core.version import __version__

telemetry.forbid()  # first: so far only the standard library and these two modules are imported

if TYPE_CHECKING:
    from vidveil.app.jobs import anonymize
    from vidveil.app.run_recipe import evaluate
    from vidveil.methods import Anonymizer, load

__all__ = ["Anonymizer", "VidveilError", "__version__", "anonymize", "evaluate", "load"]

_HOME = {
    "Anonymizer": "vidveil.methods",
    "anonymize": "vidveil.app.jobs",
    "evaluate": "vidveil.app.run_recipe",
    "load": "vidveil.methods",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vidveil' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
