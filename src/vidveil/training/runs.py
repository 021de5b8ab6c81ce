"""Runs: `runs/NAME` holds everything that one `train` or `evaluate` wrote.

    runs/NAME/recipe.json       the recipe
    runs/NAME/machine.json      the machine that it ran on
    runs/NAME/state.json        running, done, failed or interrupted; since when, and why
    runs/NAME/log.jsonl         what happened, one line per event
    runs/NAME/tensorboard/      curves
    runs/NAME/fits/LABEL/       checkpoints of one training
    runs/NAME/results.json      the results

A name is used once: a second run of it is refused, unless it resumes one that was not finished. A process holds a lock
on its run, which the system releases when the process dies: `running` without a lock means that it was killed.

Under torchrun the process of rank 0 owns the run; the others write nothing.
"""

import fcntl
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from types import TracebackType
from typing import Any, BinaryIO, Self

from rich.console import Console

from vidveil.core.atomic import open_lock, write_bytes
from vidveil.core.bounded import is_file, open_regular, read_json_object
from vidveil.core.errors import OutputError, UsageError, VidveilError
from vidveil.core.machine import describe
from vidveil.core.recipe_keys import differing_keys, with_current_names
from vidveil.core.text import close_to, printable
from vidveil.training.log import Log, file_name
from vidveil.training.plan import current_dry_run


def runs_folder() -> Path:
    """`runs` in the current folder, or the folder in VIDVEIL_RUNS."""
    return Path(os.environ.get("VIDVEIL_RUNS") or "runs").expanduser()


def training_of_run(run: str, label: str) -> Path:
    """The folder of a training that another run finished. UsageError if that run is not done, or has no such one."""
    if not (runs_folder() / run / "results.json").is_file():
        raise UsageError(f"the run {run} is not finished: finish it first, or leave out raw=")
    folder = runs_folder() / run / "fits" / file_name(label)
    if not folder.is_dir():
        raise UsageError(f"the run {run} has no training {folder.name}: leave out raw=")
    return folder


class Run:
    """A run that this process works on. As a context manager it ends as finished, or as failed with the reason."""

    def __init__(self, folder: Path, lock: BinaryIO | None, log: Log) -> None:
        self.folder, self.log = folder, log
        self.name = folder.name
        self._lock = lock
        self._started = str(_read(folder / "state.json").get("started", _now()))

    @classmethod
    def create(
        cls,
        name: str,
        recipe: dict[str, Any],
        *,
        resume: bool = False,
        accelerator: str = "cpu",
        console: Console | None = None,
    ) -> Self:
        """Begin a run, or with `resume` continue one that was not finished; the recipe must then be the same."""
        folder = _folder_of(name)
        if int(os.environ.get("RANK", "0")) > 0:
            return cls(folder, None, Log())
        cls.may_begin(name, recipe, resume=resume)
        recipe = json.loads(json.dumps(recipe))  # as it will be read back: tuples become lists
        lock = _take_lock(folder)
        try:
            if (folder / "recipe.json").exists():
                _check_may_resume(folder, recipe, resume)  # again: another process may have begun before the lock
            else:
                write_bytes(folder / "recipe.json", _json(recipe))
            write_bytes(folder / "machine.json", _json(describe(accelerator)))
            run = cls(folder, lock, Log(folder, console))
        except BaseException as error:
            lock.close()
            if isinstance(error, OSError):
                raise _cannot_write(folder, error) from error
            raise
        run._write_state("running")
        run.log.write("run resumed" if resume else "run started", run=name)
        return run

    @classmethod
    def may_begin(cls, name: str, recipe: dict[str, Any], *, resume: bool = False) -> None:
        """Raise what `create` would: called early, so that a taken name is reported before videos are decoded."""
        folder = _folder_of(name)
        if int(os.environ.get("RANK", "0")) > 0:
            return
        if resume and not folder.is_dir():
            hint = close_to(name, [info.name for info in list_runs()], "without --resume it starts")
            raise UsageError(f"there is no run {name!r} to resume in {folder.parent}; {hint}")
        if (folder / "recipe.json").exists():
            _check_may_resume(folder, json.loads(json.dumps(recipe)), resume)

    def part(self, label: str) -> Path:
        """The folder of checkpoints of one training of this run."""
        return self.folder / "fits" / file_name(label)

    def finish(self) -> None:
        self._end("done", "")

    def fail(self, reason: str) -> None:
        self._end("failed", reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self.finish()
        elif isinstance(error, KeyboardInterrupt):
            error.add_note(f"the same command with --resume goes on with run {self.name!r}")
            self._end("interrupted", "stopped by Ctrl-C")
        else:
            self.fail(str(error) if isinstance(error, VidveilError) else f"{type(error).__name__}: {error}")

    def _end(self, state: str, reason: str) -> None:
        if self._lock is None:
            return
        self._write_state(state, reason)
        self.log.write("run " + state, run=self.name, reason=reason)
        self.log.close()
        self._lock.close()
        self._lock = None

    def _write_state(self, state: str, reason: str = "") -> None:
        content = {"state": state, "reason": reason, "started": self._started, "changed": _now()}
        try:
            write_bytes(self.folder / "state.json", _json(content))
        except OSError as error:
            raise _cannot_write(self.folder, error) from error


@dataclass(frozen=True)
class RunInfo:
    """A row of `vidveil ls runs`."""

    name: str
    state: str
    """running, done, failed, interrupted, or unknown where the files cannot be read."""
    reason: str
    started: str
    """UTC, as ISO 8601."""
    recipe: dict[str, Any]
    has_results: bool


def list_runs() -> list[RunInfo]:
    """All runs, the oldest first."""
    folders = [path.parent for path in runs_folder().glob("*/recipe.json")]
    return sorted((_info(folder) for folder in folders), key=lambda info: (info.started, info.name))


def _info(folder: Path) -> RunInfo:
    stored = _read(folder / "state.json")
    state, reason = printable(stored.get("state", "unknown"), 40), printable(stored.get("reason", ""), 200)
    if state == "running" and not _is_locked(folder):
        state, reason = "interrupted", "killed, or the machine went down"
    results = is_file(folder / "results.json")
    return RunInfo(folder.name, state, reason, str(stored.get("started", "")), _read(folder / "recipe.json"), results)


def _check_may_resume(folder: Path, recipe: dict[str, Any], resume: bool) -> None:
    done = _read(folder / "state.json").get("state") == "done"
    if not resume:
        way = "" if done else "continue it with --resume, "
        how = "is done" if done else "exists and is not finished"
        raise UsageError(f"run {folder.name!r} {how}: {way}choose another name by name=…, or delete {folder}")
    if done:
        raise UsageError(f"run {folder.name!r} is done: there is nothing to resume; choose another name by name=…")
    before = with_current_names(_read(folder / "recipe.json"), note=False)
    if differ := differing_keys(before, recipe):
        was = ", ".join(
            f"{key} was {printable(repr(before.get(key)))}, is {printable(repr(recipe.get(key)))}" for key in differ
        )
        raise UsageError(f"run {folder.name!r} cannot be resumed with another recipe: {was}")


def _folder_of(name: str) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,99}", name):
        raise UsageError(
            f"{printable(repr(name))} is no name for a run: use letters, digits and _ . = + -, at most 100 of them"
        )
    dry = current_dry_run()
    return (runs_folder() if dry is None else dry.folder) / name


def _take_lock(folder: Path) -> BinaryIO:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open_lock(folder / ".lock")
    except OSError as error:
        raise _cannot_write(folder, error) from error
    for _ in range(20):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(0.02)  # `list_runs` in another process holds the lock for a moment
        else:
            return lock
    lock.close()
    raise UsageError(f"run {folder.name!r} is in use by another process; choose another name by name=…")


def _is_locked(folder: Path) -> bool:
    try:
        with open_regular(folder / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json_object(path, finite=False)
    except (OSError, ValueError):
        return {}


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _cannot_write(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"{folder} cannot be written to: {(error.strerror or type(error).__name__).lower()}")
