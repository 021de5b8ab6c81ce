"""The moments that a person should look at, put into words.

A guard notes in the manifest where it may have failed somebody. contact_sheet.py shows those moments.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidveil.app.manifest import Manifest, load_manifest
from vidveil.core.bounded import is_file, is_folder, reason
from vidveil.core.errors import InputError
from vidveil.core.file_hash import file_hash
from vidveil.core.frame import Box
from vidveil.video.sources import MARK, SHEET

MEANING = {
    "lost mid-picture": "somebody was no longer found, and not at the edge: may be visible afterwards",
    "born mid-picture": "somebody was found for the first time, and not at the edge: may be visible before",
    "gap": "nobody was found between two sightings, and the box was drawn from those: it may lie beside them",
    "sudden change of size": "the box grew or shrank at once: part of somebody may lie outside",
    "low score": "the detector was unsure: the box may be in the wrong place, or end too early",
    "hidden whole": "somebody was lost, so the whole frame was hidden: nobody shows, nor does anything else",
}
"""What there is to look for; the most serious first."""
LONGEST = 1e9
"""Seconds: of any video, and of its clock."""
UNKNOWN = "not known to this version of vidveil"
WHAT_TO_DO = (
    "Look at the sheet, and at the video around those times. Where somebody shows, anonymize again:",
    "  --tracks-out FILE writes the tracks down; correct them, and give them back with --tracks-in FILE",
    "  --on-lost hide hides the whole frame wherever somebody was lost",
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A place where somebody may be visible."""

    what: str
    track: int | None
    kind: str
    first: int
    last: int
    start: float
    """Seconds on the output's clock, of the first frame and of the last."""
    end: float
    box: Box | None
    """On the upright picture, at the middle of the moment."""

    @classmethod
    def told(cls, of: dict[str, Any]) -> "Moment":
        """From a manifest. Raises what Python raises where it is not as docs/manifest.md says."""
        box = None if of["box"] is None else tuple(map(float, of["box"]))
        start, end = float(of["from"]), float(of["to"])
        if not all(map(math.isfinite, (start, end, *(box or ())))) or (box is not None and len(box) != 4):
            raise ValueError("not a time or not a box")
        track = None if of["track"] is None else int(of["track"])
        what, kind = str(of["what"]), str(of["kind"])
        found = cls(what, track, kind, int(of["first"]), int(of["last"]), start, end, box)
        whole = all(type(of[key]) is int for key in ("first", "last")) and type(of["track"]) in (int, type(None))
        if not whole or not max(abs(start), abs(end)) <= LONGEST:
            raise ValueError("a frame or a track is no number, or no video is that long")
        return found

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2

    @property
    def who(self) -> str:
        return f"({self.kind})" if self.track is None else f"track {self.track} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Review:
    path: Path
    manifest: Manifest
    moments: tuple[Moment, ...]
    """In order of time."""
    left_out: int
    """Moments that the guard met and did not write down."""
    trouble: str | None
    """What is wrong with the output beside the manifest."""
    drawable: bool
    """Whether the output is there, and may be shown."""

    @property
    def output(self) -> Path:
        return self.path.with_name(self.manifest.output["name"])

    @property
    def sheet(self) -> Path:
        return self.path.with_name(self.path.stem.removesuffix(MARK) + SHEET)

    @property
    def count(self) -> int:
        return len(self.moments) + self.left_out


def read_review(word: Path) -> Review:
    """What a manifest tells; `word` is the manifest or the output beside it."""
    if is_folder(word):
        raise InputError("is a folder: give manifests")
    path = word if word.suffix.lower() == ".json" else word.with_suffix(".json")
    if not is_file(path):
        raise InputError("no such file" if path == word else f"there is no manifest {path.name} beside it")
    called = "" if path == word else f"its manifest {path.name} "
    try:
        manifest = load_manifest(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{called}{reason(error)}") from error
    name = manifest.output["name"]
    if path != word and name != word.name:
        raise InputError(f"the manifest {path.name} belongs to {name}")
    moments: list[Moment] = []
    left_out = 0
    try:
        if Path(name).name != name or not all(isinstance(run, dict) for run in manifest.hidden):
            raise ValueError("an output lies beside its manifest, and a run of frames has a first and a last")
        if manifest.guard is not None:
            moments = sorted(map(Moment.told, manifest.guard["moments"]), key=lambda m: (m.start, m.end))
            left_out = manifest.guard["moments_left_out"]
        if not isinstance((manifest.order.detection or {}).get("exceptions") or [], list):
            raise ValueError("tracks left visible are a list")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{called}is damaged") from error
    trouble, drawable = _compare(path.with_name(name), manifest)
    return Review(path, manifest, tuple(moments), left_out, trouble, drawable)


def _compare(output: Path, manifest: Manifest) -> tuple[str | None, bool]:
    if not is_file(output):
        return f"{output.name} is not beside its manifest: there is nothing to draw a sheet from", False
    found = file_hash(output)
    if found == manifest.output["sha256"]:
        return None, True
    if manifest.form == "share":  # nobody can tell whether this is the original
        return f"{output.name} is not the output that this manifest for sharing is of: no sheet is drawn from it", False
    if found == manifest.input["sha256"]:  # somebody put the manifest beside the source, and -o gave both one name
        return f"{output.name} is the original, not the output: no sheet is drawn from it", False
    return f"{output.name} was changed since: what follows may not fit it; look before you share a sheet of it", True


def tell(review: Review) -> Iterator[str]:
    """The moments and the black frames, line by line."""
    guard, name = review.manifest.guard, review.manifest.output["name"]
    if guard is None:
        method = review.manifest.order.method
        yield f"{name}: nothing was looked for ({method} works on the whole frame), so there are no moments to look at"
    else:
        looked_for = " and ".join(map(str, guard.get("looked_for", ())))
        found = f"{guard.get('tracks', '?')} tracks in {guard.get('frames_with_regions', '?')} frames"
        detection = review.manifest.order.detection or {}
        if detection.get("tracks_in"):
            yield f"{name}: drawn from a tracks file, {found}; nobody was looked for, so look at the video itself"
        else:
            yield f"{name}: looked for {looked_for or 'nothing'}, found {found}"
        if detection.get("exceptions"):
            yield f"left visible on purpose: track {', '.join(map(str, detection['exceptions']))}"
        width = max((len(moment.what) for moment in review.moments), default=0)
        wide = max((len(moment.who) for moment in review.moments), default=0)
        for moment in review.moments:
            span = f"{clock(moment.start)}-{clock(moment.end)}"
            yield f"{span}  {moment.what:{width}}  {moment.who:{wide}}  {_frames(moment.first, moment.last)}"
    for run in review.manifest.hidden:
        yield f"{_frames(run.get('first'), run.get('last'))} black: {run.get('why')}"
    if guard is not None and not (review.manifest.order.detection or {}).get("tracks_in"):
        yield _sum(review)


def _frames(first: int | None, last: int | None) -> str:
    return f"frame {first}" if first == last else f"frames {first}-{last}"


def _sum(review: Review) -> str:
    if not review.count:
        return "no moments to look at (somebody who was never found would not be listed either)"
    counts = Counter(moment.what for moment in review.moments)
    parts = [f"{counts[what]} {what}" for what in sorted(counts, key=_rank)]
    if review.left_out:
        parts.append(f"{review.left_out} not written down")
    return f"{review.count} {'moment' if review.count == 1 else 'moments'} to look at: {', '.join(parts)}"


def explain(reviews: Sequence[Review]) -> Iterator[str]:
    """What the words in the lists mean, and what to do."""
    found = sorted({moment.what for review in reviews for moment in review.moments}, key=_rank)
    width = max(map(len, found), default=0)
    for what in found:
        yield f"{what:{width}}  {MEANING.get(what, UNKNOWN)}"
    if any(review.count for review in reviews):
        yield from WHAT_TO_DO


def clock(seconds: float) -> str:
    """0:00:04.367"""
    minutes, thousandths = divmod(round(max(seconds, 0.0) * 1000), 60_000)
    return f"{minutes // 60}:{minutes % 60:02}:{thousandths // 1000:02}.{thousandths % 1000:03}"


def _rank(what: str) -> int:
    """0 for the most serious. What nobody knows may be anything."""
    return list(MEANING).index(what) + 1 if what in MEANING else 0


def most_serious(moments: Iterable[Moment], limit: int) -> list[Moment]:
    """At most `limit` of them, in order of time; of one kind, the longest."""
    serious = sorted(moments, key=lambda m: (_rank(m.what), m.start - m.end))[:limit]
    return sorted(serious, key=lambda m: (m.start, m.end))
