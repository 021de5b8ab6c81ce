"""Sources in, anonymized files and their manifests out; one job a file, and a failure of one never touches another.

A job writes under a temporary name (`.NAME.vidveil.part`), and takes the real name only when everything is on disk:
manifest first, video last. Whatever interrupts it leaves no file that could be taken for a finished one.
"""

import errno
import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Protocol

from av.error import FFmpegError

from vidveil.app.earlier import drawn_from_tracks, look_for_earlier, manifest_path
from vidveil.app.manifest import Manifest, Order, read_manifest
from vidveil.app.naming import name_outputs, names_a_file, output_folders
from vidveil.app.pipeline import Options, process
from vidveil.app.renamed import new_map_note, rename_outputs
from vidveil.app.sharing import check_key, shareable
from vidveil.app.task import Task, with_detection
from vidveil.app.unfinished import listed, remove_unfinished
from vidveil.core.atomic import commit, part_of, temporary, to_disk
from vidveil.core.bounded import is_folder
from vidveil.core.errors import InputError, OutputError, UsageError, VidveilError
from vidveil.core.file_hash import file_hash
from vidveil.core.user_key import key_file, make_key, read_key
from vidveil.core.version import __version__
from vidveil.methods import DEFAULT, Anonymizer, load
from vidveil.methods.masking.masker import masker_in
from vidveil.video.read import Reader
from vidveil.video.sources import Refusal, Source, find

__all__ = ["Options", "Outcome", "Status", "Watcher", "anonymize"]


NAMES_STAY = "outputs keep the names of their sources, and so do their manifests: --rename gives random ones"


class Status(Enum):
    DONE = "done"
    INCOMPLETE = "incomplete"
    """Written, but the source broke off."""
    UP_TO_DATE = "up to date"
    WOULD_DO = "would be done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    status: Status
    output: Path | None = None
    error: VidveilError | None = None
    frames: int = 0
    hidden: int = 0
    found: str | None = None
    """What a mask left, and what was found and hidden, where somebody was looked for."""
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.error is None


class Watcher(Protocol):
    """Whoever shows progress. All calls come from one thread."""

    def note(self, line: str) -> None: ...
    def begin(self, name: str, length: int | None) -> None: ...
    def advance(self) -> None: ...
    def end(self, outcome: Outcome) -> None: ...


class _Nobody:
    def note(self, line: str) -> None: ...
    def begin(self, name: str, length: int | None) -> None: ...
    def advance(self) -> None: ...
    def end(self, outcome: Outcome) -> None: ...


def anonymize(
    *sources: str | Path,
    output: str | Path | None = None,
    method: str | Anonymizer = DEFAULT,
    region: str | None = None,
    guard: str | None = None,
    size: str | None = None,
    options: Options | None = None,
    watcher: Watcher | None = None,
) -> list[Outcome]:
    """Anonymize files, folders, globs, cameras and streams; an outcome for each, in order.

    `region` says where the method works: `frame`, `faces` (the default of methods that paint pictures), `people`, or an
    ONNX detector. `guard` hides faces or people on top of the method. Both may stand in `options.detection` instead.
    `size` is `original`, or `network`: what a network draws, at the size at which it draws (or `options.size`).

    With `options.rename` the outcomes come in the order of the outputs' random names.
    Does not raise for a file that fails: its outcome says so, and the others are done.
    """
    plain = load(method) if isinstance(method, str) else method
    options = options or Options()
    options = with_detection(options if size is None else replace(options, size=size), plain, region, guard)
    detection = options.detection
    watcher = watcher or _Nobody()
    found, refused, passed_over = find(map(str, sources))
    if passed_over:
        watcher.note(_passed_over(passed_over))
    target = None if output is None else str(output)
    _check_text("-o", target)
    if options.manifest_form == "share":
        if not options.renames and not names_a_file(target):
            watcher.note(NAMES_STAY)
        if not options.overwrite:
            check_key(output_folders(found, target), below=target is not None and not names_a_file(target))
    clashes: list[Refusal] = []
    if options.renames:
        new = options.rename_map and new_map_note(options.rename_map, output_folders(found, target))
        if new:
            watcher.note(f"warning: {new}")
        named = rename_outputs(found, target, options.rename_map, dry_run=options.dry_run)
    else:
        named, clashes = name_outputs(found, target)
    for option, shown in ("--preview", options.preview), ("--heatmap", options.heatmap):
        if shown is not None and output is not None and not names_a_file(str(output)):
            _check_outside(option, shown, Path(output))
    if options.preview is not None:
        _check_extra("--preview", options.preview, ".mp4", found, named)
    masker = masker_in(plain)
    if masker is not None:
        options = replace(options, device=str(masker.device))  # where its network is, whatever was said
    if options.heatmap is not None:
        if masker is None:
            raise UsageError(f"--heatmap shows scores of learned methods, and {plain.spec} has none")
        _check_extra("--heatmap", options.heatmap, ".mp4", found, named)
        if options.preview is not None and _same(options.preview, options.heatmap):
            raise UsageError("--heatmap and --preview name the same file")
    if detection.tracks_out is not None:
        _check_extra("--tracks-out", detection.tracks_out, ".jsonl", found, named)
    if len(found) > 1 and (detection.tracks_in is not None or detection.exceptions):
        raise UsageError("--tracks-in and --except take one source: tracks are numbered within a video")
    outcomes = []
    for refusal in (*refused, *clashes):
        outcomes.append(Outcome(refusal.name, Status.FAILED, error=refusal.error))
        watcher.end(outcomes[-1])
    precious = _files(source.path for source in found if not source.live)
    if detection.tracks_in is not None:
        precious |= _files([detection.tracks_in])
    task = Task(plain, options)
    if not options.dry_run:
        folders = [file.parent for _, path in named for file in (path, *task.extras)]
        left = remove_unfinished([*folders, *(source.path.parent for source, _ in named if not source.live)])
        if left:
            watcher.note(f"removed what an earlier run left unfinished: {_some(left)}")
    for source, path in named:
        outcomes.append(_guarded(source, path, precious, task, watcher))
        watcher.end(outcomes[-1])
    return outcomes


def _check_text(option: str, name: str | None) -> None:
    """Manifests are UTF-8, and FFmpeg opens no other name."""
    try:
        (name or "").encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the name after {option} is not valid UTF-8: give another one") from error


def _passed_over(files: list[Path]) -> str:
    return f"passed over as no video or image by their names, give them one by one to have them done: {_some(files)}"


def _some(files: list[Path]) -> str:
    return ", ".join(file.name for file in files[:5]) + (f" and {len(files) - 5:,} more" if len(files) > 5 else "")


def _check_outside(option: str, shown: Path, outputs: Path) -> None:
    if Path(os.path.realpath(shown.parent)).is_relative_to(os.path.realpath(outputs)):
        raise UsageError(f"{option} shows originals, and {shown.name} would lie among the outputs in {outputs}")


def _check_extra(
    option: str, preview: Path, suffix: str, found: list[Source], named: list[tuple[Source, Path]]
) -> None:
    if len(found) > 1:
        raise UsageError(f"{option} takes one source")
    _check_text(option, str(preview))
    folders = [path.parent for _, path in named]  # those are made
    if not is_folder(preview.parent) and not any(folder.is_relative_to(preview.parent) for folder in folders):
        raise UsageError(f"{option} {preview}: there is no folder {preview.parent}; make it first")
    if preview.suffix.lower() != suffix:
        raise UsageError(f"the name after {option} must end in {suffix}")
    files = [source.path for source in found if not source.live]
    files += [file for _, path in named for file in (path, manifest_path(path))]
    if any(_same(preview, file) for file in files):
        raise UsageError(f"{option} would replace the source or the output")


def _same(one: Path, other: Path) -> bool:
    """Whether two names are, or would be, of one file."""
    alike = os.path.realpath(one).casefold() == os.path.realpath(other).casefold()
    return alike or bool(_files([one]) & _files([other]))


def _files(paths: Iterable[Path]) -> set[tuple[int, int]]:
    """What two names of one file share, for each file that is there."""
    found = set()
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            found.add((status.st_dev, status.st_ino))
    return found


def _guarded(
    source: Source,
    path: Path,
    precious: set[tuple[int, int]],
    task: Task,
    watcher: Watcher,
) -> Outcome:
    options = task.options
    try:
        _check_targets(path, task.extras, precious)
        return _job(source, path, task, watcher)
    except VidveilError as error:
        return Outcome(source.label, Status.FAILED, path, error)
    except OSError as error:
        return Outcome(source.label, Status.FAILED, path, OutputError(_plain(error)))
    except FFmpegError as error:
        carried = options.audio != "drop" or options.metadata != "drop"
        hint = "; without --audio and --metadata it may work" if carried else ""
        reason = (error.strerror or type(error).__name__).lower()
        return Outcome(source.label, Status.FAILED, path, OutputError(f"cannot be written ({reason}){hint}"))
    except Exception as error:
        bug = VidveilError(f"internal error, please report it: {type(error).__name__}: {error}")
        bug.__cause__ = error
        return Outcome(source.label, Status.FAILED, path, bug)


def _plain(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full: nothing was written"
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return "the output's folder cannot be written to"
    if error.errno == errno.ENAMETOOLONG:
        return "the name of the output or of its manifest is too long: give a shorter one with -o"
    return f"cannot be written ({(error.strerror or str(error) or type(error).__name__).lower()})"


def _check_targets(path: Path, extras: list[Path], precious: set[tuple[int, int]]) -> None:
    """Nothing that this job writes or renames may be a source of this run, whatever --overwrite says."""
    for target in (path, manifest_path(path), *extras):
        for file in (target, part_of(target)):
            if _files([file]) & precious:
                raise OutputError(f"{file.name} is a source of this run and would be replaced")
        if target.is_dir():
            raise OutputError(f"{target.name} is a folder")


def _job(source: Source, path: Path, task: Task, watcher: Watcher) -> Outcome:
    options, method = task.options, task.method
    if source.live and options.audio != "drop":
        raise UsageError("the sound of a live source cannot be kept")
    order = Order(
        method=task.spec,
        weights=task.weights,
        audio=options.audio,
        metadata=options.metadata,
        start=None if options.start is None else str(options.start),
        end=None if options.end is None else str(options.end),
        preset=options.preset,
        crf=options.crf,
        detection=options.detection.told(),
        vidveil=__version__,
        knobs=task.knobs,
        size=options.size,
    )
    before = _fingerprint(source)
    earlier = look_for_earlier(source, path, order, options, task.extras)
    if earlier.done is not None:
        return _up_to_date(source, path, earlier.done)
    if options.dry_run:
        if earlier.replaced is not None:
            watcher.note(f"{path.name} would be replaced: {earlier.replaced}")
        return _dry_run(source, path, options)
    key = None
    if options.manifest_form == "share":
        is_new = read_key() is None
        key = make_key()
        if is_new:
            watcher.note(
                f"a key for manifests for sharing was made: {key_file()}; without it no output that has one can be "
                "resumed: keep a copy, and give it to nobody"
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(listed([path, manifest_path(path), *task.extras]))
        part = stack.enter_context(temporary(path))
        notes = stack.enter_context(temporary(manifest_path(path)))
        extras = {extra: stack.enter_context(temporary(extra)) for extra in task.extras}
        # Again: another process may have been here before the lock.
        earlier = look_for_earlier(source, path, order, options, task.extras)
        if earlier.done is not None:
            return _up_to_date(source, path, earlier.done)
        if earlier.replaced is not None:
            watcher.note(f"{path.name} will be replaced when this is done: {earlier.replaced}")
        manifest = process(
            source,
            part,
            extras.get(options.preview) if options.preview else None,
            extras.get(options.heatmap) if options.heatmap else None,
            extras.get(options.detection.tracks_out) if options.detection.tracks_out else None,
            order,
            method,
            task.watch,
            options,
            partial(watcher.begin, source.label),
            watcher.advance,
        )
        if _fingerprint(source) != before:
            raise InputError("changed while it was being read: nothing was written")
        manifest.output = {"name": path.name, "sha256": file_hash(part), "bytes": part.stat().st_size}
        if options.manifest_form != "none":
            file = None if source.live else source.path
            written = manifest if key is None else shareable(manifest, key, file, path.parent)
            written.write(notes)
        to_disk(part)  # before any of them has its name
        for extra, made in extras.items():
            commit(made, extra)
        if options.manifest_form != "none":
            commit(notes, manifest_path(path))
        elif read_manifest(manifest_path(path)) is not None:  # of the output that is replaced: it names the source
            manifest_path(path).unlink()
        commit(part, path)
    return _outcome(source, path, manifest)


def _up_to_date(source: Source, path: Path, manifest: Manifest) -> Outcome:
    return replace(_outcome(source, path, manifest), status=Status.UP_TO_DATE)


def _outcome(source: Source, path: Path, manifest: Manifest) -> Outcome:
    error = None if manifest.incomplete is None else InputError(f"{manifest.incomplete}; what is there was anonymized")
    return Outcome(
        source.label,
        Status.DONE if error is None else Status.INCOMPLETE,
        path,
        error,
        frames=manifest.frames["written"],
        hidden=manifest.frames["hidden"],
        found=_found(manifest),
        warnings=tuple(manifest.warnings),
    )


def _found(manifest: Manifest) -> str | None:
    mask = f"the mask left {manifest.mask['kept_area']:.2f} of the picture" if manifest.mask else None
    return "; ".join(filter(None, (_guarded_by(manifest), mask))) or None


def _guarded_by(manifest: Manifest) -> str | None:
    guard = manifest.guard
    if guard is None:
        return None
    what = " and ".join(guard["looked_for"]) or "nothing"
    if drawn_from_tracks(manifest.order):
        what = "tracks"
    moments = len(guard["moments"]) + guard["moments_left_out"]
    look = f", {moments} moment{'s' if moments > 1 else ''} to look at (vidveil review)" if moments else ""
    found = "" if what == "tracks" else " found and"
    return f"{what}{found} hidden in {guard['frames_with_regions']} of them{look}"


def _dry_run(source: Source, path: Path, options: Options) -> Outcome:
    with Reader(source, start=options.start, end=options.end, max_pixels=options.max_pixels) as reader:
        return Outcome(source.label, Status.WOULD_DO, path, frames=reader.info.length or 0)


def _fingerprint(source: Source) -> tuple[int, int] | None:
    if source.live:
        return None
    try:
        found = source.path.stat()
    except OSError as error:
        raise InputError(f"cannot be opened ({(error.strerror or str(error)).lower()})") from error
    return found.st_size, found.st_mtime_ns
