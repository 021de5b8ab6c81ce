"""A queue of `vidveil train` and `vidveil evaluate`, several at a time: small networks leave an accelerator idle.

What a job needs stands before it. Results are copied to a folder of the repository as they come; what single clips got
stays in the runs. Run again, it goes on where it was. A job may be several evaluations of the same videos, of one split
each, say: one process does them, and makes anonymized clips once. Jobs may share a process, too: an accelerator looks
for its fastest kernels once a process. Who finds no memory on it beside the others waits, and goes on when there are
fewer of them. On NVIDIA's cards processes take turns unless MPS runs: start that first (`nvidia-cuda-mps-control -d`).
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

from vidveil.core.recipe import as_values, find, read

POLL = 5.0  # seconds between looks at what a process of several jobs has finished: others may wait for it
CROWDED = ("out of memory", "ALLOC_FAILED")
"""What a process says last that found no room on an accelerator."""
TAIL = 20_000  # bytes of a log
TRIES = 3
GROUPS = ("strong", "clips", "train")
"""What all such jobs' names begin with: `--only` takes these words, too."""


@dataclass(frozen=True)
class Job:
    name: str
    words: tuple[str, ...]
    """After `vidveil`."""
    needs: tuple[str, ...] = ()
    makes: str = "results.json"
    of: str = ""
    """Its name without the world, the split and the seed; of trainings, `train-` and the mode."""
    also: tuple[tuple[str, ...], ...] = ()
    """Further evaluations, each as `words`, with a `name=` of its own."""
    together: str = ""
    """Evaluations of the same word here are done by one process, as many as can begin when it does."""

    @property
    def runs(self) -> dict[str, tuple[str, ...]]:
        """What makes each run."""
        further = {word.removeprefix("name="): words for words in self.also for word in words if word[:5] == "name="}
        return {self.name: self.words} | further

    def done(self, runs: Path) -> bool:
        return all((runs / name / self.makes).is_file() for name in self.runs)


def run(jobs: Sequence[Job], runs: Path, logs: Path, into: Path | None) -> set[str]:
    """In one process; the names of those that are done."""
    environment = {"OMP_NUM_THREADS": "1"} | os.environ | {"VIDVEIL_RUNS": str(runs)}
    first, *others = jobs
    command = [sys.executable, "-m", "vidveil", *first.words, *(["--resume"] if (runs / first.name).is_dir() else [])]
    if others or first.also:
        command = [sys.executable, __file__, json.dumps([words for job in jobs for words in job.runs.values()])]
    with (logs / f"{first.name}.log").open("a") as log:
        subprocess.run(command, stdout=log, stderr=log, env=environment, check=False)
    done = [job for job in jobs if job.done(runs)]
    for job in done:
        if into is not None and job.makes == "results.json":
            into.mkdir(parents=True, exist_ok=True)
            results = json.loads((runs / job.name / "results.json").read_text())
            (into / f"{job.name}.json").write_text(json.dumps(results) + "\n")  # one line: nobody reads it
    return {job.name for job in done}


def evaluate_all(commands: Sequence[Sequence[str]]) -> bool:
    """One after the other. What is finished is left alone, what was interrupted goes on, what fails is told; whether
    all went well."""
    from vidveil.app.run_recipe import evaluate
    from vidveil.data.store.anonymized import forgotten_at_the_end
    from vidveil.training.runs import runs_folder

    well = True
    with forgotten_at_the_end():
        for _, recipe, *overrides in commands:
            folder = runs_folder() / next(word[5:] for word in overrides if word[:5] == "name=")
            if (folder / "results.json").is_file():
                continue
            began = time.monotonic()
            try:
                found = evaluate(recipe, *overrides, resume=folder.is_dir())
            except Exception:  # whatever it was, others may do
                well = False
                traceback.print_exc()
                continue
            points = [(point.keep, round(point.metrics["linkage_rank1"].value, 3)) for point in found.points]
            print(f"{folder.name}: {points} after {time.monotonic() - began:.0f} s", flush=True)
    return well


def work(waiting: list[Job], done: set[str], runs: Path, workers: int, until: float, into: Path | None) -> set[str]:
    """Does them, as far as time goes; those that failed, or could not begin for that."""
    logs = runs / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    began, running = time.monotonic(), dict[Future[set[str]], list[Job]]()
    waiting = [job for job in waiting if job.name not in done]
    failed: set[str] = set()
    tried: Counter[str] = Counter()
    length: dict[Path, int] = {}  # of logs, when the process began that writes them now
    with ThreadPoolExecutor(workers) as pool:
        while waiting or running:
            for job in list(waiting):
                if job not in waiting:  # it began beside another
                    continue
                if broken := failed & set(job.needs):
                    waiting.remove(job)
                    failed.add(job.name)
                    print(f"          {job.name}: left out, it needs {', '.join(sorted(broken))}", flush=True)
                elif len(running) < workers and done >= set(job.needs) and time.monotonic() - began < until:
                    begun = side_by_side(job, waiting, done)
                    waiting = [other for other in waiting if other not in begun]
                    log = logs / f"{begun[0].name}.log"
                    length[log] = log.stat().st_size if log.is_file() else 0
                    running[pool.submit(run, begun, runs, logs, into)] = begun
                    names = ", ".join(each.name for each in begun)
                    print(f"{time.monotonic() - began:6.0f} s  {names}: begun, see {log}", flush=True)
            if not running:
                break
            ready = wait(running, POLL, FIRST_COMPLETED).done
            beside = len(running) - 1  # of each of those that ended, however many at once
            done |= {job.name for begun in running.values() for job in begun if len(begun) > 1 and job.done(runs)}
            for future in ready:
                ended = running.pop(future)
                error = future.exception()
                made = set() if error else future.result()
                log = logs / f"{ended[0].name}.log"
                squeezed = not made >= {job.name for job in ended} and beside > 0 and crowded(log, length.pop(log, 0))
                workers = max(workers - squeezed, 1)
                for job in ended:
                    tried[job.name] += 1
                    state = "done"
                    if job.name in made:
                        done.add(job.name)
                    elif squeezed and tried[job.name] < TRIES:
                        waiting.insert(0, job)
                        state = f"found no memory, goes on later beside {workers - 1} others"
                    else:
                        failed.add(job.name)
                        state = f"FAILED, {error or f'see {log}'}"
                    print(f"{time.monotonic() - began:6.0f} s  {job.name}: {state}", flush=True)
    for job in waiting:
        print(f"          {job.name}: not begun")
    return failed


def crowded(log: Path, start: int) -> bool:
    """Whether among the last that a process said was that there is no room for it; its log begins there."""
    said = log.read_bytes()[start:][-TAIL:].decode(errors="replace") if log.is_file() else ""
    return any(word in said for word in CROWDED)


def side_by_side(job: Job, waiting: Sequence[Job], done: set[str]) -> list[Job]:
    """The job, and all that share its process and need nothing that is not done by then."""
    begun, ready = [job], done | {job.name}
    for other in waiting if job.together else ():
        if other.together == job.together and other is not job and ready >= set(other.needs):
            begun.append(other)
            ready.add(other.name)
    return begun


def made_otherwise(job: Job, runs: Path) -> bool:
    """Whether a finished run of a name is another command's: a rehearsal's, say."""
    for name, (_, recipe, *overrides) in job.runs.items():
        wanted = json.loads(json.dumps(as_values(read(find(recipe), overrides))))
        if json.loads((runs / name / "recipe.json").read_text()) != wanted:
            return True
    return False


def wanted(all_jobs: list[Job], words: list[str]) -> list[Job]:
    """Those that are asked for, in the order of asking, and before them all that they need."""
    strange = [word for word in words if not any(_asked(job, word) for job in all_jobs)]
    if strange:
        known = dict.fromkeys(job.of for job in all_jobs)
        groups = [word for word in GROUPS if any(of.startswith(f"{word}-") for of in known)]
        raise SystemExit(f"there is no {strange[0]!r}; there are: {', '.join([*groups, *known])}")
    by_name = {job.name: job for job in all_jobs}
    found: dict[str, Job] = {}

    def ask(job: Job) -> None:
        for name in job.needs:
            ask(by_name[name])
        found.setdefault(job.name, job)

    for word in words:
        for job in all_jobs:
            if _asked(job, word):
                ask(job)
    return list(found.values())


def _asked(job: Job, word: str) -> bool:
    return word in (job.of, job.name) or (word in GROUPS and job.of.startswith(f"{word}-"))


def options_of(parser: argparse.ArgumentParser, rows: str = "random,moving") -> None:
    """`rows` is an example of what can be asked for."""
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of finished and unfinished runs")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--until", type=float, default=float("inf"), help="seconds after which no process is begun")
    parser.add_argument(
        "--only",
        default="",
        help=f"{rows}: these rows or runs in this order, and what they need; train: all such",
    )
    parser.add_argument(
        "--list", action="store_true", help="the commands, and which are done (other: by another command)"
    )


def go_on(all_jobs: Sequence[Job], options: argparse.Namespace, results: Path | None) -> None:
    """What `--only` and `--list` ask for: does the jobs, or says them."""
    done = {job.name for job in all_jobs if job.done(options.runs)}
    strange = {job.name for job in all_jobs if job.name in done and made_otherwise(job, options.runs)}
    asked = wanted(list(all_jobs), options.only.split(",")) if options.only else list(all_jobs)
    if options.list:
        for job in asked:
            state = "other" if job.name in strange else "done" if job.name in done else ""
            for words in job.runs.values():
                print(f"{state:5}", "vidveil", *words)
        return
    if in_the_way := [job.name for job in asked if job.name in strange]:
        raise SystemExit(
            f"{in_the_way[0]} in {options.runs} was made by another command: take other --runs, or remove it"
        )
    if work(asked, done, options.runs, options.workers, options.until, results):
        raise SystemExit(1)


if __name__ == "__main__":
    sys.exit(not evaluate_all(json.loads(sys.argv[1])))
