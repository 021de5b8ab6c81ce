"""The table of dual-CLS on the built-in people: every mode, every control, all keep rates, three seeds.

    python benchmarks/dual_cls_table.py --rho 0 --workers 10              trains and judges; run again to go on
    python benchmarks/dual_cls_table.py --rho 0 --only strong             several attackers, and longer trained ones
    python benchmarks/dual_cls_table.py --rho 0 --list                    the commands: done, or by another one
    python benchmarks/dual_cls_table.py --rho 0 --draw                    tables and pictures from finished runs

A queue of `vidveil train` and `vidveil evaluate`, several at a time: small networks leave an accelerator idle. What a
job needs stands before it. Results are copied to benchmarks/results/dual_cls/ as they come; what single clips got stays
in the runs, and tables are drawn of runs.

Modes have the same shares: a straight line over a curve that sags lies above it, and more so the longer it is. What
loses its use at other shares has some more of them there. The wide table has one attacker, whose like plays f_B where a
mode is trained against one, and one recognizer, whose like plays f_T. For the claim: `strong`, several attackers.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from vidveil.recipe import as_values, find, read

RESULTS = Path(__file__).parent / "results" / "dual_cls"
SEEDS = (0, 1, 2)
SHARES = (0.885, 0.8, 0.7, 0.4, 0.1)
"""Of all tubelets that stay; the first becomes 0.89, since each selection rounds up."""
MORE = {"moving": (0.25,), "centre": (0.25,), "action-alone": (0.25, 0.05)}
"""These lose their use late."""
STRONG_SHARES = {
    "best": (0.885, 0.8, 0.7, 0.4), "random": (0.95, 0.885, 0.8, 0.7), "moving": (0.4, 0.25, 0.1),
    "action-alone": (0.25, 0.1, 0.05),
}  # fmt: skip
"""For several attackers: those about the retention that is asked for."""
SHARP = "smooth=false"
MODES = {
    "credit": ["train_on=credit", "privacy_attention=plain", "head_weight=0.1", "credit_weight=[1,1]", "smooth=true"],
    "both": ["train_on=both", "privacy_attention=plain", "head_weight=0.1", "credit_weight=[1,1]", "smooth=true"],
    "pixels-detector": ["train_on=pixels", "privacy_attention=detector", "head_weight=1", SHARP],
    "pixels-reversed": ["train_on=pixels", "privacy_attention=reversed", "head_weight=1", SHARP],
    "heads-detector": ["train_on=heads", "privacy_attention=detector", "privacy_weight=0.5", SHARP],
    "paper": ["train_on=heads", "privacy_attention=reversed", "privacy_weight=0.5", SHARP],
    "reference": ["train_on=heads", "privacy_attention=reversed", "reference=true", "privacy_weight=0.5", SHARP],
}
BEST = "credit"
ABLATIONS = {
    "both-fading": ["train_on=both", "privacy_attention=plain", "head_weight=0.1", "credit_weight=[1,0]", SHARP],
    "credit-sharp": ["train_on=credit", "privacy_attention=plain", "head_weight=0.1", "credit_weight=[1,1]", SHARP],
}
"""At rho 0 alone: what the parts of the best mode are worth."""
LEARNING = ["epochs=50", "batch=64", "validate_every=50", "checkpoint_seconds=600"]
JUDGING = [
    "epochs=16", "attacker_epochs=16", "validate_every=2", "batch=96", "lr=3e-3", "attacker_lr=[3e-3]",
    "attackers=[resnet_tiny]", "checkpoint_seconds=600",
]  # fmt: skip
STRONG = ["attackers=[resnet_tiny,resnet_tiny:raw]", "attacker_epochs=32"]
SIZES = ("", "1.5", "2", "3")
"""Of masks of faces: with them they, too, have a knob."""
POINTS = {
    **{f"faces{size}": ["method=solid", f"region=faces{size and ':'}{size}"] for size in SIZES},
    "people": ["method=solid", "region=people"],
    "downsample2": ["method=downsample:2"],
    "downsample4": ["method=downsample:4"],
}
PICTURED = ("pixels-reversed", "paper", "random", "moving", "oracle", "action-alone", "faces")
"""Beside the best mode, in a picture that can be read."""


@dataclass(frozen=True)
class Job:
    name: str
    words: tuple[str, ...]
    """After `vidveil`."""
    needs: tuple[str, ...] = ()
    makes: str = "results.json"
    of: str = ""
    """Its name without the world and the seed; of trainings, `train-` and the mode."""

    def done(self, runs: Path) -> bool:
        return (runs / self.name / self.makes).is_file()


def jobs(rho: str, world: int, learning: list[str], judging: list[str]) -> list[Job]:
    """All of them for one world, what others wait for first."""
    end = f"-rho{rho}" + (f"-world{world}" if world else "")
    about = [f"data=puppets:rho={rho}", f"data_seed={world}"]
    seeds = "seeds=[" + ",".join(map(str, SEEDS)) + "]"
    words = ("evaluate", "control_puppets", "method=raw", "keep=[]", seeds, f"name=raw{end}")
    raw = Job(f"raw{end}", (*words, *judging, *about), of="raw")
    found = [raw]

    def judge(name: str, words: list[str], needs: tuple[str, ...] = (), strong: bool = False) -> None:
        before, extra = (f"strong-raw{end}", STRONG) if strong else (raw.name, [])
        command = ("evaluate", "control_puppets", *words, seeds, "tidy=true", f"raw={before}", f"name={name}{end}")
        found.append(Job(f"{name}{end}", (*command, *judging, *extra, *about), (before, *needs), of=name))

    for name, point in POINTS.items():
        judge(name, [*point, "keep=[]"])  # finding people takes processors long
    modes = MODES | (ABLATIONS if rho == "0" and not world else {})
    for mode, how in modes.items():
        for seed in SEEDS:
            name = f"train-{mode}{end}-{seed}"
            command = ("train", "dual_cls_puppets", *how, f"seed={seed}", f"name={name}", *learning, *about)
            found.append(Job(name, command, makes="checkpoint/checkpoint.json", of=f"train-{mode}"))
    for control in ("random", "moving", "centre", "oracle"):
        judge(control, [f"method={control}", _keeps(_shares(control))])
    rates = _keeps(SHARES, selections=3)
    curves: list[tuple[str, str, list[str]]] = [
        *((mode, mode, [rates]) for mode in modes),
        ("action-alone", BEST, [_keeps(_shares("action-alone"), selections=3), "privacy_weight=0"]),
        ("privacy-alone", BEST, [rates, "privacy_weight=.inf"]),
    ]
    for name, mode, knobs in curves:
        trained = tuple(f"train-{mode}{end}-{seed}" for seed in SEEDS)
        judge(name, [f"method=dual_cls:train-{mode}{end}-{{seed}}", *knobs], trained)

    command = (*words[:-1], f"name=strong-raw{end}", *judging, *STRONG, *about)
    found.append(Job(f"strong-raw{end}", command, of="strong-raw"))
    for control in ("random", "moving"):
        judge(f"strong-{control}", [f"method={control}", _keeps(STRONG_SHARES[control])], strong=True)
    for size in SIZES:
        judge(f"strong-faces{size}", [*POINTS[f"faces{size}"], "keep=[]"], strong=True)
    trained = tuple(f"train-{BEST}{end}-{seed}" for seed in SEEDS)
    best = f"method=dual_cls:train-{BEST}{end}-{{seed}}"
    judge(f"strong-{BEST}", [best, _keeps(STRONG_SHARES["best"], selections=3)], trained, strong=True)
    low = _keeps(STRONG_SHARES["action-alone"], selections=3)
    judge("strong-action-alone", [best, low, "privacy_weight=0"], trained, strong=True)
    return found


def _shares(of: str) -> tuple[float, ...]:
    return tuple(sorted((*SHARES, *MORE.get(of, ())), reverse=True))


def _keeps(shares: tuple[float, ...], selections: int = 1) -> str:
    """`keep=` that leaves these shares of all tubelets; networks keep theirs of what each selection finds."""
    values = [round(share ** (1 / selections), 3) for share in shares]
    return "keep=[" + ",".join(f"{value:g}" for value in values) + "]"


def run(job: Job, runs: Path, logs: Path) -> int:
    resume = ["--resume"] if (runs / job.name).is_dir() else []
    environment = {"OMP_NUM_THREADS": "1"} | os.environ | {"VIDVEIL_RUNS": str(runs)}
    with (logs / f"{job.name}.log").open("a") as log:
        command = [sys.executable, "-m", "vidveil", *job.words, *resume]
        code = subprocess.run(command, stdout=log, stderr=log, env=environment, check=False).returncode
    if code == 0 and job.makes == "results.json":
        RESULTS.mkdir(parents=True, exist_ok=True)
        results = json.loads((runs / job.name / "results.json").read_text())
        (RESULTS / f"{job.name}.json").write_text(json.dumps(results) + "\n")  # one line: nobody reads it
    return code


def work(waiting: list[Job], done: set[str], runs: Path, workers: int, until: float) -> set[str]:
    """Does them, as far as time goes; those that failed, or could not begin for that."""
    logs = runs / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    began, running = time.monotonic(), dict[Future[int], Job]()
    waiting = [job for job in waiting if job.name not in done]
    failed: set[str] = set()
    with ThreadPoolExecutor(workers) as pool:
        while waiting or running:
            for job in list(waiting):
                if broken := failed & set(job.needs):
                    waiting.remove(job)
                    failed.add(job.name)
                    print(f"          {job.name}: left out, it needs {', '.join(sorted(broken))}", flush=True)
                elif len(running) < workers and done >= set(job.needs) and time.monotonic() - began < until:
                    waiting.remove(job)
                    running[pool.submit(run, job, runs, logs)] = job
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                error = future.exception()
                (done if error is None and future.result() == 0 else failed).add(job.name)
                state = "done" if job.name in done else f"FAILED, {error or f'see {logs / job.name}.log'}"
                print(f"{time.monotonic() - began:6.0f} s  {job.name}: {state}", flush=True)
    for job in waiting:
        print(f"          {job.name}: not begun")
    return failed


def draw(finished: list[Job], runs: Path) -> None:
    """The best mode first: it is compared with each of the others on the same clips."""
    judged = [job.name for job in finished if job.makes == "results.json"]
    for page, start in (("table", ""), ("curve", ""), ("strong", "strong-")):
        best = next((name for name in judged if name.startswith(f"{start}{BEST}-rho")), None)
        if best is None:
            print(f"no {page}: {start}{BEST} is not finished")
            continue
        end = best.removeprefix(f"{start}{BEST}")
        others = [
            name for name in judged
            if name.startswith("strong-") == bool(start) and name not in (best, f"{start}raw{end}")
            and (page != "curve" or name.removesuffix(end) in PICTURED)
        ]  # fmt: skip
        out = ["-o", str(RESULTS / f"{page}{end}.md")]
        command = [sys.executable, "-m", "vidveil", "report", *(str(runs / name) for name in (best, *others)), *out]
        subprocess.run(command, check=True)


def made_otherwise(job: Job, runs: Path) -> bool:
    """Whether a finished run of this name is another command's: a rehearsal's, say."""
    _, recipe, *overrides = job.words
    wanted = json.loads(json.dumps(as_values(read(find(recipe), overrides))))
    return bool(json.loads((runs / job.name / "recipe.json").read_text()) != wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rho", default="0", choices=["0", "0.5", "1"])
    parser.add_argument("--world", type=int, default=0, help="seed of the generator: another one is other people")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--until", type=float, default=float("inf"), help="seconds after which no job is begun")
    parser.add_argument("--only", default="", help="both,random: these, and what they need; strong, train: all such")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--draw", action="store_true", help="tables and pictures of what is finished")
    parser.add_argument("--learning", default=",".join(LEARNING), help="KEY=VALUE,… of trainings of the method")
    parser.add_argument("--judging", default=";".join(JUDGING), help="KEY=VALUE;… of judges and attackers")
    options = parser.parse_args()
    all_jobs = jobs(options.rho, options.world, options.learning.split(","), options.judging.split(";"))
    done = {job.name for job in all_jobs if job.done(options.runs)}
    strange = {job.name for job in all_jobs if job.name in done and made_otherwise(job, options.runs)}
    if options.only:
        all_jobs = wanted(all_jobs, options.only.split(","))
    if options.list:
        for job in all_jobs:
            state = "other" if job.name in strange else "done" if job.name in done else ""
            print(f"{state:5}", "vidveil", *job.words)
        return
    if options.draw:
        draw([job for job in all_jobs if job.name in done], options.runs)
        return
    if in_the_way := [job.name for job in all_jobs if job.name in strange]:
        raise SystemExit(
            f"{in_the_way[0]} in {options.runs} was made by another command: take other --runs, or remove it"
        )
    if work(all_jobs, done, options.runs, options.workers, options.until):
        raise SystemExit(1)


def wanted(all_jobs: list[Job], words: list[str]) -> list[Job]:
    """Those that are asked for, and all that they need."""
    strange = [word for word in words if not any(_asked(job, word) for job in all_jobs)]
    if strange:
        known = dict.fromkeys(job.of for job in all_jobs)
        raise SystemExit(f"there is no {strange[0]!r}; there are: strong, train, {', '.join(known)}")
    names = {job.name for job in all_jobs if any(_asked(job, word) for word in words)}
    for job in reversed(all_jobs):  # what a job needs stands before it
        if job.name in names:
            names |= set(job.needs)
    return [job for job in all_jobs if job.name in names]


def _asked(job: Job, word: str) -> bool:
    return job.of == word or (word in ("strong", "train") and job.of.startswith(f"{word}-"))


if __name__ == "__main__":
    main()
