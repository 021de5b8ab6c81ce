"""The moments that a person should look at, as text.

Detection notes in the manifest where it may have missed somebody. contact_sheet.py shows those moments.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vidveil.app.manifest import Manifest, load_manifest
from vidveil.core.bounded import is_file, is_folder, reason
from vidveil.core.errors import InputError
from vidveil.core.file_hash import file_hash
from vidveil.detect.moments import Moment
from vidveil.video.sources import MARK, SHEET

MEANING = {
    "lost mid-picture": "somebody was no longer found, and not at the edge: may be visible afterwards",
    "first seen mid-picture": "somebody was found for the first time, and not at the edge: may be visible before",
    "gap": "nobody was found between two sightings, and the box was drawn from those: it may be in the wrong place",
    "sudden change of size": "the box grew or shrank at once: part of somebody may lie outside",
    "low score": "the detector was unsure: the box may be in the wrong place, or end too early",
    "hidden whole": "somebody was lost, so the whole frame was hidden: nobody shows, nor does anything else",
}
"""What moments there are; the most serious first."""
UNKNOWN = "not known to this version of vidveil"
WHAT_TO_DO = (
    "Look at the sheet, and at the video around those times. Where somebody shows, anonymize again:",
    "  --tracks-out FILE writes the tracks down; correct them, and give them back with --tracks-in FILE",
    "  --on-lost hide hides the whole frame wherever somebody was lost",
)


@dataclass(frozen=True, slots=True)
class Review:
    path: Path
    manifest: Manifest
    moments: tuple[Moment, ...]
    """In order of time."""
    left_out: int
    """Moments beyond those that the manifest lists."""
    trouble: str | None
    """What is wrong with the output next to the manifest."""
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
    """The review of a manifest; `word` is the manifest or the output next to it."""
    if is_folder(word):
        raise InputError("is a folder: give manifests")
    path = word if word.suffix.lower() == ".json" else word.with_suffix(".json")
    if not is_file(path):
        raise InputError("no such file" if path == word else f"there is no manifest {path.name} next to it")
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
            raise ValueError("an output lies next to its manifest, and a run of frames has a first and a last")
        if manifest.detection is not None:
            moments = sorted(map(Moment.from_dict, manifest.detection["moments"]), key=lambda m: (m.start, m.end))
            left_out = manifest.detection["moments_left_out"]
        if not isinstance((manifest.order.detection or {}).get("leave_visible") or [], list):
            raise ValueError("tracks left visible are a list")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{called}is damaged") from error
    trouble, drawable = _compare(path.with_name(name), manifest)
    return Review(path, manifest, tuple(moments), left_out, trouble, drawable)


def _compare(output: Path, manifest: Manifest) -> tuple[str | None, bool]:
    if not is_file(output):
        return f"{output.name} is not next to its manifest: there is nothing to draw a sheet from", False
    found = file_hash(output)
    if found == manifest.output["sha256"]:
        return None, True
    if manifest.form == "share":  # nobody can tell whether this is the original
        return f"{output.name} is not the output that this manifest for sharing is of: no sheet is drawn from it", False
    if found == manifest.input["sha256"]:  # somebody put the manifest next to the source, and -o gave both one name
        return f"{output.name} is the original, not the output: no sheet is drawn from it", False
    return f"{output.name} was changed since: what follows may not fit it; look before you share a sheet of it", True


def describe(review: Review) -> Iterator[str]:
    """The moments and the black frames, line by line."""
    found, name = review.manifest.detection, review.manifest.output["name"]
    if found is None:
        method = review.manifest.order.method
        yield f"{name}: nothing was looked for ({method} works on the whole frame), so there are no moments to look at"
    else:
        looked_for = " and ".join(found["looked_for"]) or "nothing"
        tracks = f"{found.get('tracks', '?')} tracks in {found['frames_with_regions']} frames"
        settings = review.manifest.order.detection or {}
        if settings.get("tracks_in"):
            yield f"{name}: drawn from a tracks file, {tracks}; nobody was looked for, so look at the video itself"
        else:
            yield f"{name}: looked for {looked_for}, found {tracks}"
        if settings.get("leave_visible"):
            yield f"left visible on purpose: track {', '.join(map(str, settings['leave_visible']))}"
        width = max((len(moment.what) for moment in review.moments), default=0)
        wide = max((len(moment.who) for moment in review.moments), default=0)
        for moment in review.moments:
            span = f"{clock(moment.start)}-{clock(moment.end)}"
            yield f"{span}  {moment.what:{width}}  {moment.who:{wide}}  {_frames(moment.first, moment.last)}"
    for run in review.manifest.hidden:
        yield f"{_frames(run.get('first'), run.get('last'))} black: {run.get('why')}"
    if found is not None and not (review.manifest.order.detection or {}).get("tracks_in"):
        yield _summary(review)


def _frames(first: int | None, last: int | None) -> str:
    return f"frame {first}" if first == last else f"frames {first}-{last}"


def _summary(review: Review) -> str:
    if not review.count:
        return "no moments to look at (somebody who was never found would not be listed either)"
    counts = Counter(moment.what for moment in review.moments)
    parts = [f"{counts[what]} {what}" for what in sorted(counts, key=_rank)]
    if review.left_out:
        parts.append(f"{review.left_out} not written down")
    return f"{review.count} {'moment' if review.count == 1 else 'moments'} to look at: {', '.join(parts)}"


def explain(reviews: Sequence[Review]) -> Iterator[str]:
    """What the kinds of moments mean, and what to do."""
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
    """0 for the most serious. A kind that this version does not know may be anything."""
    return list(MEANING).index(what) + 1 if what in MEANING else 0


def most_serious(moments: Iterable[Moment], limit: int) -> list[Moment]:
    """At most `limit` of them, in order of time; of one kind, the longest."""
    serious = sorted(moments, key=lambda m: (_rank(m.what), m.start - m.end))[:limit]
    return sorted(serious, key=lambda m: (m.start, m.end))
