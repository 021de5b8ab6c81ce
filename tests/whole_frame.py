"""Anonymizing without looking for anybody: what tests of reading and writing want."""

import json
from functools import partial
from typing import Any

import vidveil
from vidveil.app.jobs import Outcome

anonymize = partial(vidveil.anonymize, region="frame")
WHOLE_FRAME = ("--region", "frame")


def anonymize_one(*source: Any, **options: Any) -> Outcome:
    (outcome,) = anonymize(*source, **options)
    return outcome


def manifest_of(outcome: Outcome) -> dict[str, Any]:
    assert outcome.output is not None
    found: dict[str, Any] = json.loads(outcome.output.with_suffix(".json").read_text())
    return found
