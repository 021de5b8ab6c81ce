"""The table of dual-CLS on synthetic people: every mode, control and rival, all keep rates, three seeds.

    python -m experiments.dual_cls.table --rho 0 --workers 10             trains and evaluates; run again to continue
    python -m experiments.dual_cls.table --rho 0 --only strong            several attackers, trained for longer
    python -m experiments.dual_cls.table --rho 0 --only stprivacy,blur    these rows, and what they need
    python -m experiments.dual_cls.table --rho 0 --list                   the commands, and which are done
    python -m experiments.dual_cls.table --rho 0 --draw                   tables and pictures of finished runs

An `experiments.job_queue`. Results go to experiments/dual_cls/results/, or to `--into`: experiments/stprivacy/results/
has the evaluation of STPrivacy, with a second evaluation of the methods that it is compared with.

All modes have the same keep rates, because reading a curve along a straight line overestimates leakage, more so the
longer the line. Methods whose utility falls late have further keep rates there. The wide table has one attacker, of the
same kind as f_B in training, and one recognizer, of the same kind as f_T. The main claim is tested with several
attackers (`strong`). Methods that draw anew are tested with attackers that see clips (`clips`).

The rival is STPrivacy, whole and with each of its two parts alone. It is trained for as many epochs as a mode, and
evaluated where it keeps as many tubelets.
"""

import argparse
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.job_queue import Job, add_options, run_or_list

RESULTS = Path(__file__).parent / "results"
SEEDS = (0, 1, 2)
SHARES = (0.885, 0.8, 0.7, 0.4, 0.1)
"""Of all tubelets that are kept; the first becomes 0.89, since each selection rounds up."""
MORE = {"moving": (0.25,), "centre": (0.25,), "action-alone": (0.25, 0.05)}
"""Further shares of methods whose utility falls late."""
STRONG_SHARES = {
    "best": (0.885, 0.8, 0.7, 0.4), "random": (0.95, 0.885, 0.8, 0.7), "moving": (0.4, 0.25, 0.1),
    "action-alone": (0.25, 0.1, 0.05), "stprivacy": (0.885, 0.4, 0.1),
}  # fmt: skip
"""Evaluated with several attackers: those near the retention that is asked for."""
SHARP = "smooth=false"
BY_ATTRIBUTION = ["train_on=attribution", "privacy_attention=plain", "head_weight=0.1"]
BY_BOTH = ["train_on=both", *BY_ATTRIBUTION[1:]]
MODES = {
    "attribution": [*BY_ATTRIBUTION, "attribution_weight=[1,1]", "smooth=true"],
    "both": [*BY_BOTH, "attribution_weight=[1,1]", "smooth=true"],
    "pixels-detector": ["train_on=pixels", "privacy_attention=detector", "head_weight=1", SHARP],
    "pixels-reversed": ["train_on=pixels", "privacy_attention=reversed", "head_weight=1", SHARP],
    "heads-detector": ["train_on=heads", "privacy_attention=detector", "privacy_weight=0.5", SHARP],
    "paper": ["train_on=heads", "privacy_attention=reversed", "privacy_weight=0.5", SHARP],
    "reference": ["train_on=heads", "privacy_attention=reversed", "reference=true", "privacy_weight=0.5", SHARP],
}
BEST = "attribution"
RAW = ["method=raw", "keep=[]"]
ABLATIONS = {
    "both-fading": [*BY_BOTH, "attribution_weight=[1,0]", SHARP],
    "attribution-sharp": [*BY_ATTRIBUTION, "attribution_weight=[1,1]", SHARP],
}
"""Trained at rho 0 alone."""
STPRIVACY: dict[str, list[str]] = {
    "stprivacy": [],
    "stprivacy-sparse": ["anonymize=false"],
    "stprivacy-anonymous": ["sparsify=false"],
}
SEGMENT = 64
"""Tubelets of two frames, of which STPrivacy keeps a share, rounded down."""
TRAINING = ("epochs=50", "batch=64", "validate_every=50", "checkpoint_seconds=600")
EVALUATION = (
    "epochs=16", "attacker_epochs=16", "validate_every=2", "batch=96", "lr=3e-3", "attacker_lr=[3e-3]",
    "attackers=[resnet_tiny]", "checkpoint_seconds=600",
)  # fmt: skip
ATTACKERS = {
    "strong": ("attackers=[resnet_tiny,resnet_tiny:raw]", "attacker_epochs=32"),
    "clips": ("attackers=[resnet_tiny,resnet_tiny:raw,r3d_tiny]", "attacker_epochs=32"),
}
"""Prefix of further evaluations → their attackers. One of `clips` sees clips, since motion may identify people."""
SIZES = ("", "1.5", "2", "3")
"""Of masks of faces, so that they have several settings as well."""
POINTS = {
    **{f"faces{size}": ["method=solid", f"region=faces{size and ':'}{size}"] for size in SIZES},
    "people": ["method=solid", "region=people"],
    **{f"downsample{factor}": [f"method=downsample:{factor}"] for factor in (2, 4, 8, 16)},
    "blur": ["method=blur:strong"],
    **{f"blur{sigmas}": [f"method=blur:{sigmas}"] for sigmas in (8, 4)},
}
PICTURED = ("pixels-reversed", "paper", "random", "moving", "oracle", "action-alone", "faces", "stprivacy")
"""Drawn with the best mode in a picture that can still be read."""


def jobs(rho: str, world: int, training: Sequence[str] = TRAINING, evaluation: Sequence[str] = EVALUATION) -> list[Job]:
    """All jobs of one world, each after what it needs."""
    end, data = world_of(rho, world)
    found = [evaluation_job(f"raw{end}", "raw", RAW, [*evaluation, *data])]

    def add(row: str, words: list[str], network: str = "", prefix: str = "") -> None:
        """`network` is the training whose networks are evaluated, `prefix` one of ATTACKERS."""
        start = f"{prefix}-" if prefix else ""
        needs = tuple(f"train-{network}{end}-{seed}" for seed in SEEDS) if network else ()
        settings = [*evaluation, *ATTACKERS.get(prefix, ()), *data]
        name, raw = f"{start}{row}{end}", f"{start}raw{end}"
        found.append(evaluation_job(name, f"{start}{row}", words, settings, raw=raw, needs=needs))

    def dual_cls(mode: str) -> str:
        return f"method=dual_cls:train-{mode}{end}-{{seed}}"

    def stprivacy(row: str, shares: tuple[float, ...]) -> list[str]:
        keep = "keep=[]" if row == "stprivacy-anonymous" else _alphas(shares)
        return [f"method=stprivacy:train-{row}{end}-{{seed}}", keep]

    for row, words in POINTS.items():
        add(row, [*words, "keep=[]"])  # first, since detecting people is slow
    modes = MODES | (ABLATIONS if rho == "0" and not world else {})
    for mode, words in modes.items():
        found += training_jobs(mode, end, "dual_cls_puppets", words, [*training, *data])
    for row, words in STPRIVACY.items():
        found += training_jobs(row, end, "stprivacy_puppets", words, [*training, *data])
    for control in ("random", "moving", "centre", "oracle"):
        add(control, [f"method={control}", _keeps(_shares(control))])
    rates = _keeps(SHARES, selections=3)
    for mode in modes:
        add(mode, [dual_cls(mode), rates], mode)
    more = _keeps(_shares("action-alone"), selections=3)
    add("action-alone", [dual_cls(BEST), more, "privacy_weight=0"], BEST)
    add("privacy-alone", [dual_cls(BEST), rates, "privacy_weight=.inf"], BEST)
    for row in STPRIVACY:
        add(row, stprivacy(row, SHARES), row)

    for prefix, attackers in ATTACKERS.items():
        found.append(evaluation_job(f"{prefix}-raw{end}", f"{prefix}-raw", RAW, [*evaluation, *attackers, *data]))
    for control in ("random", "moving"):
        add(control, [f"method={control}", _keeps(STRONG_SHARES[control])], prefix="strong")
    for size in SIZES:
        add(f"faces{size}", [*POINTS[f"faces{size}"], "keep=[]"], prefix="strong")
    for prefix in ATTACKERS:
        add(BEST, [dual_cls(BEST), _keeps(STRONG_SHARES["best"], selections=3)], BEST, prefix)
    low = _keeps(STRONG_SHARES["action-alone"], selections=3)
    add("action-alone", [dual_cls(BEST), low, "privacy_weight=0"], BEST, "strong")
    for row in ("stprivacy", "stprivacy-anonymous"):
        add(row, stprivacy(row, STRONG_SHARES["stprivacy"]), row, "clips")
    return found


def world_of(rho: str, world: int = 0) -> tuple[str, list[str]]:
    """The ending of run names, and the words of commands."""
    return f"-rho{rho}" + (f"-world{world}" if world else ""), [f"data=puppets:rho={rho}", f"data_seed={world}"]


def training_jobs(
    row: str, end: str, recipe: str, words: Sequence[str], training: Sequence[str], seeds: Sequence[int] = SEEDS
) -> list[Job]:
    """One per seed."""
    names = {f"train-{row}{end}-{seed}": seed for seed in seeds}
    return [
        Job(name, (("train", recipe, *words, f"seed={seed}", f"name={name}", *training),), row=f"train-{row}")
        for name, seed in names.items()
    ]


def evaluation_job(
    name: str,
    row: str,
    words: Sequence[str],
    evaluation: Sequence[str],
    *,
    raw: str = "",
    needs: tuple[str, ...] = (),
    seeds: Sequence[int] = SEEDS,
) -> Job:
    """`raw` is the run of raw video that it is compared with; empty: it is that run."""
    compared = ["tidy=true", f"raw={raw}"] if raw else []
    command = ("evaluate", "control_puppets", *words, f"seeds=[{','.join(map(str, seeds))}]", *compared, f"name={name}")
    return Job(name, ((*command, *evaluation),), (raw, *needs) if raw else (), row)


def _shares(row: str) -> tuple[float, ...]:
    return tuple(sorted((*SHARES, *MORE.get(row, ())), reverse=True))


def _keeps(shares: tuple[float, ...], selections: int = 1) -> str:
    """`keep=` that leaves these shares of all tubelets; networks keep theirs of what each selection finds."""
    values = [round(share ** (1 / selections), 3) for share in shares]
    return "keep=[" + ",".join(f"{value:g}" for value in values) + "]"


def _alphas(shares: tuple[float, ...]) -> str:
    """`keep=` at which STPrivacy's third stage leaves the whole number of tubelets that is nearest to these shares."""
    cubes = [round(share * SEGMENT) / SEGMENT for share in shares]
    return "keep=[" + ",".join(f"{math.ceil(1000 * cube ** (1 / 3)) / 1000:g}" for cube in cubes) + "]"


def prefix_of(name: str) -> str:
    """The prefix of a run's name that says which attackers it has; empty for those of the wide table."""
    return next((f"{prefix}-" for prefix in ATTACKERS if name.startswith(f"{prefix}-")), "")


def draw(finished: list[Job], runs: Path, into: Path) -> None:
    """Reports in which the best mode comes first: it is compared with each of the others on the same clips."""
    evaluated = [job.name for job in finished if job.commands[0][0] == "evaluate"]
    for page, prefix in (("table", ""), ("curve", ""), ("strong", "strong-"), ("clips", "clips-")):
        best = next((name for name in evaluated if name.startswith(f"{prefix}{BEST}-rho")), None)
        if best is None:
            print(f"no {page}: {prefix}{BEST} is not finished")
            continue
        end = best.removeprefix(f"{prefix}{BEST}")
        others = [
            name for name in evaluated
            if prefix_of(name) == prefix and name not in (best, f"{prefix}raw{end}")
            and (page != "curve" or name.removesuffix(end) in PICTURED)
        ]  # fmt: skip
        command = [sys.executable, "-m", "vidveil", "report", *(str(runs / name) for name in (best, *others))]
        subprocess.run([*command, "-o", str(into / f"{page}{end}.md")], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rho", default="0", choices=["0", "0.5", "1"])
    parser.add_argument("--world", type=int, default=0, help="seed of the generator: another one is other people")
    parser.add_argument("--draw", action="store_true", help="tables and pictures of what is finished")
    parser.add_argument("--into", type=Path, default=RESULTS, help="folder of results")
    add_options(parser)
    options = parser.parse_args()
    all_jobs = jobs(options.rho, options.world)
    if options.draw:
        draw([job for job in all_jobs if job.done(options.runs)], options.runs, options.into)
    else:
        run_or_list(all_jobs, options, options.into)


if __name__ == "__main__":
    main()
