"""The table of dual-CLS on the built-in people: every mode, every control and rival, all keep rates, three seeds.

    python benchmarks/dual_cls_table.py --rho 0 --workers 10              trains and judges; run again to go on
    python benchmarks/dual_cls_table.py --rho 0 --only strong             several attackers, and longer trained ones
    python benchmarks/dual_cls_table.py --rho 0 --only stprivacy,blur     these rows, and what they need
    python benchmarks/dual_cls_table.py --rho 0 --list                    the commands: done, or by another one
    python benchmarks/dual_cls_table.py --rho 0 --draw                    tables and pictures from finished runs

A `job_queue`, with results in benchmarks/results/dual_cls/; tables are drawn of runs. What was judged in another go is
kept apart by `--into`: benchmarks/results/stprivacy/ has STPrivacy, and beside it again whom it is compared with.

Modes have the same shares: a straight line over a curve that sags lies above it, and more so the longer it is. What
loses its use at other shares has some more of them there. The wide table has one attacker, whose like plays f_B where a
mode is trained against one, and one recognizer, whose like plays f_T. For the claim: `strong`, several attackers.
STPrivacy is for attackers who look at clips: `clips`.

The rival is STPrivacy, as it is, and with each of its two parts alone: it learns for as many epochs as a mode, and is
judged where it keeps as many tubelets.
"""

import argparse
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from job_queue import Job, go_on, options_of

RESULTS = Path(__file__).parent / "results" / "dual_cls"
SEEDS = (0, 1, 2)
SHARES = (0.885, 0.8, 0.7, 0.4, 0.1)
"""Of all tubelets that stay; the first becomes 0.89, since each selection rounds up."""
MORE = {"moving": (0.25,), "centre": (0.25,), "action-alone": (0.25, 0.05)}
"""These lose their use late."""
STRONG_SHARES = {
    "best": (0.885, 0.8, 0.7, 0.4), "random": (0.95, 0.885, 0.8, 0.7), "moving": (0.4, 0.25, 0.1),
    "action-alone": (0.25, 0.1, 0.05), "stprivacy": (0.885, 0.4, 0.1),
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
RAW = ["method=raw", "keep=[]"]
ABLATIONS = {
    "both-fading": ["train_on=both", "privacy_attention=plain", "head_weight=0.1", "credit_weight=[1,0]", SHARP],
    "credit-sharp": ["train_on=credit", "privacy_attention=plain", "head_weight=0.1", "credit_weight=[1,1]", SHARP],
}
"""At rho 0 alone: what the parts of the best mode are worth."""
STPRIVACY: dict[str, list[str]] = {
    "stprivacy": [],
    "stprivacy-sparse": ["anonymize=false"],
    "stprivacy-anonymous": ["sparsify=false"],
}
SEGMENT = 64
"""Tubelets of two frames, of which STPrivacy keeps a share, rounded down."""
LEARNING = ["epochs=50", "batch=64", "validate_every=50", "checkpoint_seconds=600"]
JUDGING = [
    "epochs=16", "attacker_epochs=16", "validate_every=2", "batch=96", "lr=3e-3", "attacker_lr=[3e-3]",
    "attackers=[resnet_tiny]", "checkpoint_seconds=600",
]  # fmt: skip
AGAINST = {
    "strong": ["attackers=[resnet_tiny,resnet_tiny:raw]", "attacker_epochs=32"],
    "clips": ["attackers=[resnet_tiny,resnet_tiny:raw,r3d_tiny]", "attacker_epochs=32"],
}
"""How names of other judgements begin → their attackers. `clips`: one looks at clips, too, for who is told by how they
move, or by what a network draws over time."""
SIZES = ("", "1.5", "2", "3")
"""Of masks of faces: with them they, too, have a knob."""
POINTS = {
    **{f"faces{size}": ["method=solid", f"region=faces{size and ':'}{size}"] for size in SIZES},
    "people": ["method=solid", "region=people"],
    **{f"downsample{factor}": [f"method=downsample:{factor}"] for factor in (2, 4, 8, 16)},
    "blur": ["method=blur:strong"],
    **{f"blur{sigmas}": [f"method=blur:{sigmas}"] for sigmas in (8, 4)},
}
PICTURED = ("pixels-reversed", "paper", "random", "moving", "oracle", "action-alone", "faces", "stprivacy")
"""Beside the best mode, in a picture that can be read."""


def jobs(rho: str, world: int, learning: list[str], judging: list[str]) -> list[Job]:
    """All of them for one world, what others wait for first."""
    end, about = world_of(rho, world)
    found = [judging_of(f"raw{end}", "raw", RAW, [*judging, *about])]

    def judge(name: str, words: list[str], needs: tuple[str, ...] = (), against: str = "") -> None:
        start = f"{against}-" if against else ""
        how = [*judging, *AGAINST.get(against, ()), *about]
        found.append(
            judging_of(f"{start}{name}{end}", f"{start}{name}", words, how, raw=f"{start}raw{end}", needs=needs)
        )

    for name, point in POINTS.items():
        judge(name, [*point, "keep=[]"])  # finding people takes processors long
    modes = MODES | (ABLATIONS if rho == "0" and not world else {})
    for mode, how in modes.items():
        found += trainings(mode, end, "dual_cls_puppets", how, [*learning, *about])
    for name, how in STPRIVACY.items():
        found += trainings(name, end, "stprivacy_puppets", how, [*learning, *about])
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
    for name in STPRIVACY:
        trained = tuple(f"train-{name}{end}-{seed}" for seed in SEEDS)
        alphas = "keep=[]" if name == "stprivacy-anonymous" else _alphas(SHARES)
        judge(name, [f"method=stprivacy:train-{name}{end}-{{seed}}", alphas], trained)

    for against, extra in AGAINST.items():
        found.append(judging_of(f"{against}-raw{end}", f"{against}-raw", RAW, [*judging, *extra, *about]))
    for control in ("random", "moving"):
        judge(control, [f"method={control}", _keeps(STRONG_SHARES[control])], against="strong")
    for size in SIZES:
        judge(f"faces{size}", [*POINTS[f"faces{size}"], "keep=[]"], against="strong")
    trained = tuple(f"train-{BEST}{end}-{seed}" for seed in SEEDS)
    best = f"method=dual_cls:train-{BEST}{end}-{{seed}}"
    for against in AGAINST:
        judge(BEST, [best, _keeps(STRONG_SHARES["best"], selections=3)], trained, against)
    low = _keeps(STRONG_SHARES["action-alone"], selections=3)
    judge("action-alone", [best, low, "privacy_weight=0"], trained, "strong")
    for name in ("stprivacy", "stprivacy-anonymous"):
        trained = tuple(f"train-{name}{end}-{seed}" for seed in SEEDS)
        alphas = "keep=[]" if name == "stprivacy-anonymous" else _alphas(STRONG_SHARES["stprivacy"])
        judge(name, [f"method=stprivacy:train-{name}{end}-{{seed}}", alphas], trained, "clips")
    return found


def world_of(rho: str, world: int = 0) -> tuple[str, list[str]]:
    """How names of its runs end, and what commands say of it."""
    return f"-rho{rho}" + (f"-world{world}" if world else ""), [f"data=puppets:rho={rho}", f"data_seed={world}"]


def trainings(
    of: str, end: str, recipe: str, how: Sequence[str], learning: Sequence[str], seeds: Sequence[int] = SEEDS
) -> list[Job]:
    """One a seed."""
    found = []
    for seed in seeds:
        name = f"train-{of}{end}-{seed}"
        command = ("train", recipe, *how, f"seed={seed}", f"name={name}", *learning)
        found.append(Job(name, command, makes="checkpoint/checkpoint.json", of=f"train-{of}"))
    return found


def judging_of(
    name: str,
    of: str,
    what: Sequence[str],
    judging: Sequence[str],
    *,
    raw: str = "",
    needs: tuple[str, ...] = (),
    seeds: Sequence[int] = SEEDS,
) -> Job:
    """`raw` is the run of raw video that it stands beside; none: it is that run."""
    beside = ["tidy=true", f"raw={raw}"] if raw else []
    command = ("evaluate", "control_puppets", *what, f"seeds=[{','.join(map(str, seeds))}]", *beside, f"name={name}")
    return Job(name, (*command, *judging), (raw, *needs) if raw else (), of=of)


def _shares(of: str) -> tuple[float, ...]:
    return tuple(sorted((*SHARES, *MORE.get(of, ())), reverse=True))


def _keeps(shares: tuple[float, ...], selections: int = 1) -> str:
    """`keep=` that leaves these shares of all tubelets; networks keep theirs of what each selection finds."""
    values = [round(share ** (1 / selections), 3) for share in shares]
    return "keep=[" + ",".join(f"{value:g}" for value in values) + "]"


def _alphas(shares: tuple[float, ...]) -> str:
    """`keep=` at which STPrivacy's third stage leaves the whole number of tubelets that is nearest to these shares."""
    cubes = [round(share * SEGMENT) / SEGMENT for share in shares]
    return "keep=[" + ",".join(f"{math.ceil(1000 * cube ** (1 / 3)) / 1000:g}" for cube in cubes) + "]"


def starts(name: str) -> str:
    """How the name of a judgement begins: with its attackers, where these are others than the wide table's."""
    return next((f"{against}-" for against in AGAINST if name.startswith(f"{against}-")), "")


def draw(finished: list[Job], runs: Path, into: Path) -> None:
    """The best mode first: it is compared with each of the others on the same clips."""
    judged = [job.name for job in finished if job.makes == "results.json"]
    for page, start in (("table", ""), ("curve", ""), ("strong", "strong-"), ("clips", "clips-")):
        best = next((name for name in judged if name.startswith(f"{start}{BEST}-rho")), None)
        if best is None:
            print(f"no {page}: {start}{BEST} is not finished")
            continue
        end = best.removeprefix(f"{start}{BEST}")
        others = [
            name for name in judged
            if starts(name) == start and name not in (best, f"{start}raw{end}")
            and (page != "curve" or name.removesuffix(end) in PICTURED)
        ]  # fmt: skip
        out = ["-o", str(into / f"{page}{end}.md")]
        command = [sys.executable, "-m", "vidveil", "report", *(str(runs / name) for name in (best, *others)), *out]
        subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rho", default="0", choices=["0", "0.5", "1"])
    parser.add_argument("--world", type=int, default=0, help="seed of the generator: another one is other people")
    parser.add_argument("--draw", action="store_true", help="tables and pictures of what is finished")
    parser.add_argument("--into", type=Path, default=RESULTS, help="folder of results")
    parser.add_argument("--learning", default=",".join(LEARNING), help="KEY=VALUE,… of trainings of the method")
    parser.add_argument("--judging", default=";".join(JUDGING), help="KEY=VALUE;… of judges and attackers")
    options_of(parser)
    options = parser.parse_args()
    all_jobs = jobs(options.rho, options.world, options.learning.split(","), options.judging.split(";"))
    if options.draw:
        draw([job for job in all_jobs if job.done(options.runs)], options.runs, options.into)
        return
    go_on(all_jobs, options, options.into)


if __name__ == "__main__":
    main()
