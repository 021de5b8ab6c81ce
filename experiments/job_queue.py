"""A queue of `vidveil train` and `vidveil evaluate`, several at a time: small networks leave an accelerator idle.

Jobs that a job needs come before it. Results are copied to a folder of the repository as they come; per-clip values
stay in the runs. Run again, it continues where it stopped. A job may have several commands: one process runs them, so
that anonymized clips and compiled kernels are made once. Jobs may also share a process. A process that runs out of
accelerator memory next to others waits and is started again when fewer are running. On NVIDIA cards, processes run in
turn unless MPS is running: start that first (`nvidia-cuda-mps-control -d`).
"""

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidveil.core.recipe import as_values, find, read
from vidveil.core.recipe_keys import differing_keys

POLL_SECONDS = 5.0
"""How often finished runs of a process with several jobs are looked for: other jobs may wait for them."""
OUT_OF_MEMORY = ("out of memory", "ALLOC_FAILED")
LOG_TAIL = 20_000  # bytes
TRIES = 3
GROUPS = ("strong", "clips", "train")
"""Prefixes of row names that `--only` takes as well."""
RESULT = {"train": "checkpoint/checkpoint.json", "evaluate": "results.json"}
"""Command → the file that a finished run of it has."""
Words = tuple[str, ...]
"""A command, without `vidveil`."""


@dataclass(frozen=True)
class Job:
    name: str
    commands: tuple[Words, ...]
    """Run one after the other. Each has a `name=` of its own; the first is the job's."""
    needs: tuple[str, ...] = ()
    row: str = ""
    """Its name without the world, the split and the seed; of trainings, `train-` and the mode."""
    together: str = ""
    """Jobs with the same word here share a process, as far as they can start when it does."""

    @property
    def runs(self) -> dict[str, Words]:
        """Run name → its command."""
        return {name_of(words): words for words in self.commands}

    def done(self, runs: Path) -> bool:
        return all((runs / name / RESULT[words[0]]).is_file() for name, words in self.runs.items())


def name_of(words: Words) -> str:
    return next(word.removeprefix("name=") for word in words if word.startswith("name="))


def run(jobs: Sequence[Job], runs: Path, logs: Path, into: Path | None) -> set[str]:
    """Run jobs in one process. Returns the names of those that are done."""
    environment = {"OMP_NUM_THREADS": "1"} | os.environ | {"VIDVEIL_RUNS": str(runs)}
    commands = [words for job in jobs for words in job.commands]
    command = [sys.executable, __file__, json.dumps(commands)]
    if len(commands) == 1:
        resume = ["--resume"] if (runs / jobs[0].name).is_dir() else []
        command = [sys.executable, "-m", "vidveil", *commands[0], *resume]
    with (logs / f"{jobs[0].name}.log").open("a") as log:
        subprocess.run(command, stdout=log, stderr=log, env=environment, check=False)
    done = [job for job in jobs if job.done(runs)]
    for job in done:
        results = runs / job.name / "results.json"
        if into is not None and job.commands[0][0] == "evaluate":
            write_json(into / f"{job.name}.json", read_json(results), indent=None)
    return {job.name for job in done}


def run_all(commands: Sequence[Sequence[str]]) -> bool:
    """Run commands in this process, one after the other. Finished runs are skipped, interrupted ones resumed, errors
    printed. Returns whether all succeeded."""
    from vidveil.app.run_recipe import evaluate, train
    from vidveil.data.store.anonymized import forgotten_at_the_end
    from vidveil.training.runs import runs_folder

    succeeded = True
    with forgotten_at_the_end():
        for verb, recipe, *overrides in commands:
            folder = runs_folder() / name_of(tuple(overrides))
            if (folder / RESULT[verb]).is_file():
                continue
            start = time.monotonic()
            try:
                (train if verb == "train" else evaluate)(recipe, *overrides, resume=folder.is_dir())
            except Exception:  # the others may still succeed
                succeeded = False
                traceback.print_exc()
                continue
            print(f"{folder.name}: done after {time.monotonic() - start:.0f} s", flush=True)
    return succeeded


def run_queue(
    waiting: list[Job], done: set[str], runs: Path, workers: int, until: float, into: Path | None
) -> set[str]:
    """Run jobs until time is up. Returns those that failed, and those that need a failed one."""
    logs = runs / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    start, running = time.monotonic(), dict[Future[set[str]], list[Job]]()
    waiting = [job for job in waiting if job.name not in done]
    failed: set[str] = set()
    tries: Counter[str] = Counter()
    log_sizes: dict[Path, int] = {}  # when the process that writes them now was started
    with ThreadPoolExecutor(workers) as pool:
        while waiting or running:
            for job in list(waiting):
                if job not in waiting:  # it was started together with another one
                    continue
                if broken := failed & set(job.needs):
                    waiting.remove(job)
                    failed.add(job.name)
                    print(f"          {job.name}: left out, it needs {', '.join(sorted(broken))}", flush=True)
                elif len(running) < workers and done >= set(job.needs) and time.monotonic() - start < until:
                    started = same_process(job, waiting, done)
                    waiting = [other for other in waiting if other not in started]
                    log = logs / f"{started[0].name}.log"
                    log_sizes[log] = log.stat().st_size if log.is_file() else 0
                    running[pool.submit(run, started, runs, logs, into)] = started
                    names = ", ".join(each.name for each in started)
                    print(f"{time.monotonic() - start:6.0f} s  {names}: started, see {log}", flush=True)
            if not running:
                break
            ready = wait(running, POLL_SECONDS, FIRST_COMPLETED).done
            others = len(running) - 1  # next to each of those that ended, however many at once
            done |= {job.name for jobs in running.values() for job in jobs if len(jobs) > 1 and job.done(runs)}
            for future in ready:
                ended = running.pop(future)
                error = future.exception()
                finished = set() if error else future.result()
                log = logs / f"{ended[0].name}.log"
                no_memory = (
                    not finished >= {job.name for job in ended}
                    and others > 0
                    and ran_out_of_memory(log, log_sizes.pop(log, 0))
                )
                workers = max(workers - no_memory, 1)
                for job in ended:
                    tries[job.name] += 1
                    state = "done"
                    if job.name in finished:
                        done.add(job.name)
                    elif no_memory and tries[job.name] < TRIES:
                        waiting.insert(0, job)
                        state = f"out of memory, tried again next to {workers - 1} others"
                    else:
                        failed.add(job.name)
                        state = f"FAILED, {error or f'see {log}'}"
                    print(f"{time.monotonic() - start:6.0f} s  {job.name}: {state}", flush=True)
    for job in waiting:
        print(f"          {job.name}: not started")
    return failed


def ran_out_of_memory(log: Path, start: int) -> bool:
    """Whether the end of a log, from `start` on, reports missing memory."""
    text = log.read_bytes()[start:][-LOG_TAIL:].decode(errors="replace") if log.is_file() else ""
    return any(words in text for words in OUT_OF_MEMORY)


def same_process(job: Job, waiting: Sequence[Job], done: set[str]) -> list[Job]:
    """The job, and all that share its process and need nothing that is not done by then."""
    started, ready = [job], done | {job.name}
    for other in waiting if job.together else ():
        if other.together == job.together and other is not job and ready >= set(other.needs):
            started.append(other)
            ready.add(other.name)
    return started


def has_other_recipe(job: Job, runs: Path) -> bool:
    """Whether a finished run of the same name was made by another command: a rehearsal, say."""
    for name, (_, recipe, *overrides) in job.runs.items():
        wanted = json.loads(json.dumps(as_values(read(find(recipe), overrides))))
        if differing_keys(read_json(runs / name / "recipe.json"), wanted):
            return True
    return False


def select(all_jobs: Sequence[Job], words: list[str]) -> list[Job]:
    """The jobs that are asked for, in the order of asking, each after what it needs."""
    unknown = [word for word in words if not any(_matches(job, word) for job in all_jobs)]
    if unknown:
        rows = dict.fromkeys(job.row for job in all_jobs)
        groups = [word for word in GROUPS if any(row.startswith(f"{word}-") for row in rows)]
        raise SystemExit(f"there is no {unknown[0]!r}; there are: {', '.join([*groups, *rows])}")
    by_name = {job.name: job for job in all_jobs}
    selected: dict[str, Job] = {}

    def add(job: Job) -> None:
        for name in job.needs:
            add(by_name[name])
        selected.setdefault(job.name, job)

    for word in words:
        for job in all_jobs:
            if _matches(job, word):
                add(job)
    return list(selected.values())


def _matches(job: Job, word: str) -> bool:
    return word in (job.row, job.name) or (word in GROUPS and job.row.startswith(f"{word}-"))


def add_options(parser: argparse.ArgumentParser, rows: str = "random,moving") -> None:
    """`rows` is an example for the help of `--only`."""
    add = parser.add_argument
    add("--runs", type=Path, default=Path("runs"), help="folder of finished and unfinished runs")
    add("--workers", type=int, default=1, help="processes at a time")
    add("--until", type=float, default=float("inf"), help="seconds after which no process is started")
    add("--only", default="", help=f"{rows}: these rows or runs in this order, and what they need; train: all such")
    add("--list", action="store_true", help="the commands, and which are done (other: by another command)")


def run_or_list(all_jobs: Sequence[Job], options: argparse.Namespace, results: Path | None = None) -> None:
    """Run the jobs that `--only` selects, or print them with `--list`."""
    done = {job.name for job in all_jobs if job.done(options.runs)}
    other = {job.name for job in all_jobs if job.name in done and has_other_recipe(job, options.runs)}
    selected = select(all_jobs, options.only.split(",")) if options.only else list(all_jobs)
    if options.list:
        for job in selected:
            state = "other" if job.name in other else "done" if job.name in done else ""
            for words in job.commands:
                print(f"{state:5}", "vidveil", *words)
        return
    if blocking := [job.name for job in selected if job.name in other]:
        raise SystemExit(f"{blocking[0]} in {options.runs} was made by another command: use other --runs, or remove it")
    if run_queue(selected, done, options.runs, options.workers, options.until, results):
        raise SystemExit(1)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, content: Any, indent: int | None = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=indent) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(not run_all(json.loads(sys.argv[1])))
