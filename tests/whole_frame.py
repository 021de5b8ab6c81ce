"""Anonymizing without looking for anybody: what tests of reading and writing want."""

from functools import partial

import vidveil

anonymize = partial(vidveil.anonymize, region="frame")
WHOLE_FRAME = ("--region", "frame")
