"""Sources in, anonymized files and their manifests out; one job per file, and a failure of one never touches another.

A job writes under a temporary name (`.NAME.vidveil.part`), and takes the real name only when everything is on disk:
manifest first, video last. Whatever interrupts it leaves no file that could be taken for a finished one.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from vidveil.app.earlier import look_for_earlier, manifest_path
from vidveil.app.manifest import Order, read_manifest
from vidveil.app.naming import name_outputs, names_a_file, output_folders
from vidveil.app.old_names import with_old_keyword
from vidveil.app.options import Options
from vidveil.app.outcome import Outcome, Status, failure, outcome_of
from vidveil.app.pipeline import Parts, process
from vidveil.app.renamed import new_map_note, rename_outputs
from vidveil.app.sharing import check_key, shareable
from vidveil.app.targets import check_extra_files, check_targets, check_text, file_ids
from vidveil.app.task import Task, task_of
from vidveil.app.unfinished import listed, remove_unfinished
from vidveil.app.user_key import key_file, make_key, read_key
from vidveil.core.atomic import commit, temporary, to_disk
from vidveil.core.errors import InputError, UsageError
from vidveil.core.file_hash import file_hash
from vidveil.core.version import __version__
from vidveil.methods import DEFAULT, Anonymizer, load
from vidveil.video.read import Reader
from vidveil.video.sources import Refusal, Source, find

__all__ = ["Options", "Outcome", "Status", "Watcher", "anonymize", "run"]


NAMES_STAY = "outputs keep the names of their sources, and so do their manifests: --rename gives random ones"


class Watcher:
    """Is called with what happens, always from one thread. Subclasses show it; this one shows nothing."""

    def note(self, line: str) -> None: ...
    def warn(self, line: str) -> None:
        self.note(f"warning: {line}")

    def begin(self, name: str, length: int | None) -> None: ...
    def advance(self) -> None: ...
    def end(self, outcome: Outcome) -> None: ...


@with_old_keyword
def anonymize(
    *sources: str | Path,
    output: str | Path | None = None,
    method: str | Anonymizer = DEFAULT,
    region: str | None = None,
    also_hide: str | None = None,
    size: str | None = None,
    options: Options | None = None,
    watcher: Watcher | None = None,
) -> list[Outcome]:
    """Anonymize files, folders, globs, cameras and streams; an outcome for each, in order.

    `region` says where the method works: `frame`, `faces` (the default of methods that paint pictures), `people`, or an
    ONNX detector. `also_hide` hides faces or people on top of the method. Both may stand in `options.detection`
    instead. `size` is `original`, or `network`: what a network draws, at the size at which it draws (or
    `options.size`).

    With `options.rename` the outcomes come in the order of the outputs' random names.
    Does not raise for a file that fails: its outcome has the error, and the others are done.
    """
    options = options or Options()
    detection = options.detection
    detection = replace(detection, region=region or detection.region, also_hide=also_hide or detection.also_hide)
    options = replace(options, size=size or options.size, detection=detection)
    task = task_of(load(method) if isinstance(method, str) else method, options)
    return run(task, sources, output, watcher or Watcher())


def run(task: Task, sources: Sequence[str | Path], output: str | Path | None, watcher: Watcher) -> list[Outcome]:
    """Carry out the task on all sources."""
    options, detection = task.options, task.options.detection
    found, refused, passed_over = find(map(str, sources))
    if passed_over:
        watcher.note(
            "passed over as no video or image by their names, give them one by one to have them done: "
            + _first_names(passed_over)
        )
    target = None if output is None else str(output)
    check_text("-o", target)
    if options.manifest_form == "share":
        if not options.renames and not names_a_file(target):
            watcher.note(NAMES_STAY)
        if not options.overwrite:
            check_key(output_folders(found, target), below=target is not None and not names_a_file(target))
    clashes: list[Refusal] = []
    if options.renames:
        new = options.rename_map and new_map_note(options.rename_map, output_folders(found, target))
        if new:
            watcher.warn(new)
        named = rename_outputs(found, target, options.rename_map, dry_run=options.dry_run)
    else:
        named, clashes = name_outputs(found, target)
    check_extra_files(task, found, named, target)
    for shown in filter(None, (options.preview, options.heatmap)):
        watcher.warn(f"{shown.name} will show what is hidden: do not share it")
    if len(found) > 1 and (detection.tracks_in is not None or detection.leave_visible):
        raise UsageError("--tracks-in and --leave-visible take one source: tracks are numbered within a video")
    outcomes = []
    for refusal in (*refused, *clashes):
        outcomes.append(Outcome(refusal.name, Status.FAILED, error=refusal.error))
        watcher.end(outcomes[-1])
    precious = file_ids(source.path for source in found if not source.live)
    if detection.tracks_in is not None:
        precious |= file_ids([detection.tracks_in])
    if not options.dry_run:
        folders = [file.parent for _, path in named for file in (path, *task.extras)]
        left = remove_unfinished([*folders, *(source.path.parent for source, _ in named if not source.live)])
        if left:
            watcher.note(f"removed what an earlier run left unfinished: {_first_names(left)}")
    for source, path in named:
        try:
            check_targets(path, task.extras, precious)
            outcomes.append(_job(source, path, task, watcher))
        except Exception as error:
            outcomes.append(failure(source, path, error, options))
        watcher.end(outcomes[-1])
    return outcomes


def _first_names(files: list[Path]) -> str:
    return ", ".join(file.name for file in files[:5]) + (f" and {len(files) - 5:,} more" if len(files) > 5 else "")


def _job(source: Source, path: Path, task: Task, watcher: Watcher) -> Outcome:
    options = task.options
    if source.live and options.audio != "drop":
        raise UsageError("the sound of a live source cannot be kept")
    order = _order(task)
    before = _size_and_time(source)
    earlier = look_for_earlier(source, path, order, options, task.extras)
    if earlier.done is not None:
        return replace(outcome_of(source, path, earlier.done), status=Status.UP_TO_DATE)
    if options.dry_run:
        if earlier.replaced is not None:
            watcher.note(f"{path.name} would be replaced: {earlier.replaced}")
        return _dry_run(source, path, options)
    key = _key(watcher) if options.manifest_form == "share" else None
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(listed([path, manifest_path(path), *task.extras]))
        part = stack.enter_context(temporary(path))
        notes = stack.enter_context(temporary(manifest_path(path)))
        extras = {extra: stack.enter_context(temporary(extra)) for extra in task.extras}
        # Again: another process may have been here before the lock.
        earlier = look_for_earlier(source, path, order, options, task.extras)
        if earlier.done is not None:
            return replace(outcome_of(source, path, earlier.done), status=Status.UP_TO_DATE)
        if earlier.replaced is not None:
            watcher.note(f"{path.name} will be replaced when this is done: {earlier.replaced}")
        parts = Parts(
            part,
            preview=extras.get(options.preview) if options.preview else None,
            heatmap=extras.get(options.heatmap) if options.heatmap else None,
            tracks=extras.get(options.detection.tracks_out) if options.detection.tracks_out else None,
        )
        manifest = process(source, parts, order, task, partial(watcher.begin, source.label), watcher.advance)
        if _size_and_time(source) != before:
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
    return outcome_of(source, path, manifest)


def _order(task: Task) -> Order:
    options = task.options
    return Order(
        method=task.spec,
        weights=task.weights,
        audio=options.audio,
        metadata=options.metadata,
        start=None if options.start is None else str(options.start),
        end=None if options.end is None else str(options.end),
        preset=options.preset,
        crf=options.crf,
        detection=options.detection.as_dict(),
        vidveil=__version__,
        knobs=task.knobs,
        size=options.size,
    )


def _key(watcher: Watcher) -> bytes:
    """The key for manifests for sharing. If it had to be made, the watcher is notified."""
    is_new = read_key() is None
    key = make_key()
    if is_new:
        watcher.note(
            f"a key for manifests for sharing was made: {key_file()}; without it no output that has one can be "
            "resumed: keep a copy, and give it to nobody"
        )
    return key


def _dry_run(source: Source, path: Path, options: Options) -> Outcome:
    with Reader(source, start=options.start, end=options.end, max_pixels=options.max_pixels) as reader:
        return Outcome(source.label, Status.WOULD_DO, path, frames=reader.info.length or 0)


def _size_and_time(source: Source) -> tuple[int, int] | None:
    """Changes if the source changes; None for live sources."""
    if source.live:
        return None
    try:
        found = source.path.stat()
    except OSError as error:
        raise InputError(f"cannot be opened ({(error.strerror or str(error)).lower()})") from error
    return found.st_size, found.st_mtime_ns
