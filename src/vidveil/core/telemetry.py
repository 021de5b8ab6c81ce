"""Disable the telemetry of all libraries that vidveil may load.

`forbid` runs when vidveil is imported, before any of these libraries: each reads its switch once, while it is imported
or initialized. If one was imported before, its telemetry cannot be undone, so there is a warning.

    library          without this                                                  switch
    onnxruntime      1.29 and newer: a device id in ~/.cache, events to Microsoft  ORT_DISABLE_TELEMETRY=1
    openvino         a client id in ~/intel, each import to Google Analytics       openvino_telemetry blocked
    huggingface_hub  a session id and versions of libraries with each download     HF_HUB_DISABLE_TELEMETRY=1
    ray              usage reports every hour                                      RAY_USAGE_STATS_ENABLED=0
"""

import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path

from vidveil.core.cache import cache_folder

OPT_OUT = {
    "ORT_DISABLE_TELEMETRY": "1",
    "ORT_TELEMETRY_DISABLED": "1",  # in onnxruntime's development; no release up to 1.31.1 reads it
    "HF_HUB_DISABLE_TELEMETRY": "1",  # transformers reads it, too
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Environment variables that forbid telemetry, and the values that do. Child processes inherit them."""

BLOCKED = "openvino_telemetry"
"""OpenVINO has no variable for it, but sends nothing where this package cannot be imported."""


def forbid() -> None:
    """Forbid telemetry for this process and its children, whatever the environment said before.

    Warns of libraries that were imported earlier with telemetry enabled.
    """
    early = []
    if "onnxruntime" in sys.modules and os.environ.get("ORT_DISABLE_TELEMETRY", "").lower() not in ("1", "true"):
        early.append("onnxruntime")
    if sys.modules.get(BLOCKED) is not None:
        early.append("openvino")
    os.environ.update(OPT_OUT)
    sys.modules.setdefault(BLOCKED, None)  # type: ignore[arg-type]  # from here on importing it is an ImportError
    _keep_matplotlib_in_our_cache()
    if early:
        warnings.warn(
            f"{' and '.join(early)} was imported before vidveil: telemetry may have begun, and cannot be stopped in "
            "this process; import vidveil first",
            stacklevel=3,
        )


def _keep_matplotlib_in_our_cache() -> None:
    """Let matplotlib store its list of fonts in vidveil's cache, unless the user has settings for matplotlib."""
    with suppress(RuntimeError):  # no home folder: matplotlib takes a temporary one
        config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "matplotlib"
        if not config.exists() and not (Path.home() / ".matplotlib").exists():
            os.environ["MPLCONFIGDIR"] = str(cache_folder("MPLCONFIGDIR", "matplotlib"))
