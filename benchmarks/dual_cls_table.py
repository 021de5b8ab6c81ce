"""The table of dual-CLS on the built-in people: every mode, every control, all keep rates, three seeds.

    python benchmarks/dual_cls_table.py --rho 0 --workers 10              trains and judges; run again to go on
    python benchmarks/dual_cls_table.py --rho 0 --list                    the commands, and which are done
    python benchmarks/dual_cls_table.py --rho 0 --draw                    tables and pictures from finished runs

A queue of `vidveil train` and `vidveil evaluate`, several at a time: small networks leave an accelerator idle. What a
job needs stands before it. Results are copied to benchmarks/results/dual_cls/ as they come.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "dual_cls"
SEEDS = (0, 1, 2)
SHARES = (0.9, 0.7, 0.4, 0.1)
"""Of all tubelets that stay."""
BEST_SHARES = (0.9, 0.8, 0.7, 0.4, 0.1)
"""The best mode, looked at more closely."""
WEIGHTS = {"": 1.0, "-more": 4.0}
"""λ of the best mode: which of them is the better one, validation says."""
MODES = {
    "both": ["train_on=both", "privacy_attention=plain"],
    "credit": ["train_on=credit", "privacy_attention=plain"],
    "pixels-detector": ["train_on=pixels", "privacy_attention=detector", "head_weight=1"],
    "pixels-reversed": ["train_on=pixels", "privacy_attention=reversed", "head_weight=1"],
    "heads-detector": ["train_on=heads", "privacy_attention=detector", "privacy_weight=0.5"],
    "paper": ["train_on=heads", "privacy_attention=reversed", "privacy_weight=0.5"],
    "reference": ["train_on=heads", "privacy_attention=reversed", "reference=true", "privacy_weight=0.5"],
}
BEST = "both"
LEARNING = ["epochs=50", "batch=64", "validate_every=50", "checkpoint_seconds=600"]
JUDGING = [
    "epochs=16", "attacker_epochs=16", "validate_every=2", "batch=96", "lr=3e-3", "attacker_lr=[3e-3]",
    "attackers=[resnet_tiny]", "checkpoint_seconds=600",
]  # fmt: skip
POINTS = {
    "faces": ["method=solid", "region=faces"],
    "people": ["method=solid", "region=people"],
    "downsample2": ["method=downsample:2"],
    "downsample4": ["method=downsample:4"],
}


@dataclass(frozen=True)
class Job:
    name: str
    words: tuple[str, ...]
    """After `vidveil`."""
    needs: tuple[str, ...] = ()
    makes: str = "results.json"

    def done(self, runs: Path) -> bool:
        return (runs / self.name / self.makes).is_file()


def jobs(rho: str, world: int, learning: list[str], judging: list[str]) -> list[Job]:
    """All of them for one world, what others wait for first."""
    end = f"-rho{rho}" + (f"-world{world}" if world else "")
    about = [f"data=puppets:rho={rho}", f"data_seed={world}"]
    seeds = "seeds=[" + ",".join(map(str, SEEDS)) + "]"
    words = ("evaluate", "control_puppets", "method=raw", "keep=[]", seeds, f"name=raw{end}")
    raw = Job(f"raw{end}", (*words, *judging, *about))
    found = [raw]

    def judge(name: str, words: list[str], needs: tuple[str, ...] = ()) -> None:
        command = ("evaluate", "control_puppets", *words, seeds, "tidy=true", f"raw={raw.name}", f"name={name}{end}")
        found.append(Job(f"{name}{end}", (*command, *judging, *about), (raw.name, *needs)))

    for mode, how in MODES.items():
        for seed in SEEDS:
            name = f"train-{mode}{end}-{seed}"
            command = ("train", "dual_cls_puppets", *how, f"seed={seed}", f"name={name}", *learning, *about)
            found.append(Job(name, command, makes="checkpoint/checkpoint.json"))
    for name, point in POINTS.items():
        judge(name, [*point, "keep=[]"])
    for control in ("random", "moving", "centre", "oracle"):
        judge(control, [f"method={control}", _keeps(SHARES)])
    some, more = (_keeps([round(share ** (1 / 3), 3) for share in shares]) for shares in (SHARES, BEST_SHARES))
    curves: list[tuple[str, str, list[str]]] = [
        *((f"{BEST}{name}", BEST, [more, f"privacy_weight={weight:g}"]) for name, weight in WEIGHTS.items()),
        ("action-alone", BEST, [some, "privacy_weight=0"]),
        ("privacy-alone", BEST, [some, "privacy_weight=.inf"]),
        *((mode, mode, [some]) for mode in MODES if mode != BEST),
    ]
    for name, mode, knobs in curves:
        trained = tuple(f"train-{mode}{end}-{seed}" for seed in SEEDS)
        judge(name, [f"method=dual_cls:train-{mode}{end}-{{seed}}", *knobs], trained)
    return found


def _keeps(values: "tuple[float, ...] | list[float]") -> str:
    """Of all tubelets, or for networks of each of three selections."""
    return "keep=[" + ",".join(f"{value:g}" for value in values) + "]"


def run(job: Job, runs: Path, logs: Path) -> int:
    resume = ["--resume"] if (runs / job.name).is_dir() else []
    environment = os.environ | {"VIDVEIL_RUNS": str(runs)}
    with (logs / f"{job.name}.log").open("w") as log:
        command = [sys.executable, "-m", "vidveil", *job.words, *resume]
        code = subprocess.run(command, stdout=log, stderr=log, env=environment, check=False).returncode
    if code == 0 and job.makes == "results.json":
        RESULTS.mkdir(parents=True, exist_ok=True)
        shutil.copy(runs / job.name / "results.json", RESULTS / f"{job.name}.json")
    return code


def work(waiting: list[Job], done: set[str], runs: Path, workers: int, until: float) -> None:
    logs = runs / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    began, running = time.monotonic(), dict[Future[int], Job]()
    waiting = [job for job in waiting if job.name not in done]
    failed: set[str] = set()
    with ThreadPoolExecutor(workers) as pool:
        while waiting or running:
            for job in list(waiting):
                if failed & set(job.needs):
                    waiting.remove(job)
                    failed.add(job.name)
                elif len(running) < workers and done >= set(job.needs) and time.monotonic() - began < until:
                    waiting.remove(job)
                    running[pool.submit(run, job, runs, logs)] = job
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                (done if future.result() == 0 else failed).add(job.name)
                state = "done" if job.name in done else f"FAILED, see {logs / job.name}.log"
                print(f"{time.monotonic() - began:6.0f} s  {job.name}: {state}", flush=True)
    for job in waiting:
        print(f"          {job.name}: not begun")


def draw(finished: list[Job], runs: Path) -> None:
    """The best mode first: it is compared with each of the others on the same clips."""
    names = [job.name for job in finished if job.makes == "results.json" and not job.name.startswith("raw")]
    names.sort(key=lambda name: not name.startswith(f"{BEST}-"))
    page = RESULTS / f"table{names[0].removeprefix(BEST)}.md"
    command = [sys.executable, "-m", "vidveil", "report", *(str(runs / name) for name in names), "-o", str(page)]
    subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rho", default="0", choices=["0", "0.5", "1"])
    parser.add_argument("--world", type=int, default=0, help="seed of the generator: another one is other people")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--until", type=float, default=float("inf"), help="seconds after which no job is begun")
    parser.add_argument("--only", default="", help="jobs whose name contains one of these words, with commas")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--draw", action="store_true", help="tables and pictures of what is finished")
    parser.add_argument("--learning", default=",".join(LEARNING), help="KEY=VALUE,… of trainings of the method")
    parser.add_argument("--judging", default=";".join(JUDGING), help="KEY=VALUE;… of judges and attackers")
    options = parser.parse_args()
    all_jobs = jobs(options.rho, options.world, options.learning.split(","), options.judging.split(";"))
    done = {job.name for job in all_jobs if job.done(options.runs)}
    if options.only:
        all_jobs = [job for job in all_jobs if any(word in job.name for word in options.only.split(","))]
    if options.list:
        for job in all_jobs:
            print("done " if job.done(options.runs) else "     ", "vidveil", *job.words)
        return
    if options.draw:
        draw([job for job in all_jobs if job.name in done], options.runs)
        return
    work(all_jobs, done, options.runs, options.workers, options.until)


if __name__ == "__main__":
    main()
