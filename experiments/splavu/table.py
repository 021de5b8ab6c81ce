"""The table of SPLAVU: features after each adapter, evaluated by heads and attackers that are trained anew.

    python -m experiments.splavu.table --workers 2               trains and evaluates; run again to continue
    python -m experiments.splavu.table --only ours,published     these settings, and what they need
    python -m experiments.splavu.table --only t-ours-p           this run, and what it needs
    python -m experiments.splavu.table --list                    the commands, and which are done
    python -m experiments.splavu.table --summary                 of finished runs, into results/table.json
    python -m experiments.splavu.table --draw                    the picture of the summary; tables: experiments.tables

An `experiments.job_queue`. Three adapters per setting and split, one for each seed of the evaluators. Real videos are
found in VIDVEIL_DATA. Puppets need a finished `vidveil train encoder_puppets`, real sets `vidveil fetch i3d`.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.job_queue import Job, Words, add_options, read_json, run_or_list, write_json

RESULTS = Path(__file__).parent / "results"
SEEDS = (0, 1, 2)
EVALUATED_SEEDS = "seeds=[0,1,2]"
SETS = {
    "puppets": {"p": "puppets"},
    "ucf101_5": {"u1": "ucf101_5:1", "u2": "ucf101_5:2", "u3": "ucf101_5:3"},
    "weizmann": {f"w{fold}": f"weizmann:people={fold}" for fold in range(3)},
}
"""Set → its splits, by the ending of their runs."""
EVERY, PUPPETS, TWO = tuple(SETS), ("puppets",), ("puppets", "ucf101_5")
WEIGHTS = (0, 1000, 10, 1, 100)
"""Of latent consistency; in the order in which they are run."""
SHARES = (0.25, 0.5, 0.75, 1.0)
OTHER = "data_seed=2"
"""Another generator seed: none of its people is among those evaluated here."""


@dataclass(frozen=True)
class Setting:
    title: str
    words: Words = ()
    """Of the training."""
    sets: tuple[str, ...] = EVERY
    attack: str = ""
    """Further attacks on synthetic people."""
    trained: bool = True
    """Whether it has an adapter; without one, raw features are evaluated."""


KINDS = {"ours": ("ours", ("erase=0.75",)), "apart": ("published losses", ("erase=0",))}
SETTINGS = {
    "raw": Setting("raw features", attack="reconstruction", trained=False),
    "ours": Setting("ours: 0.75 of the directions erased", ("erase=0.75",), attack="inversion,reconstruction"),
    "apart": Setting("published losses, each clip by itself", ("erase=0",)),
    "published": Setting("published losses and attention", ("reference=true", "erase=0"), PUPPETS),
    **{
        f"{kind}-lc{weight}": Setting(
            f"{title}, latent consistency × {weight}",
            (*words, f"latent_weight={weight}"),
            TWO,
        )
        for kind, (title, words) in KINDS.items()
        for weight in WEIGHTS
        if weight != 100
    },
    **{
        f"{kind}-no-{name}": Setting(f"{title}, without {name}", (*words, *without), PUPPETS)
        for kind, (title, words) in KINDS.items()
        for name, without in {"utility": ("tasks=[]",), "budget": ("budget=none",)}.items()
    },
    **{
        f"erase{share:g}": Setting(f"{share:g} of the directions erased", (f"erase={share}",), PUPPETS)
        for share in SHARES
        if share != 0.75
    },
    **{
        f"{kind}{ending}-known": Setting(
            f"{title}{without}, trained on 10 of 19 actions", (*words, *more, "known_actions=10"), PUPPETS
        )
        for kind, (title, words) in KINDS.items()
        for ending, (without, more) in {
            "": ("", ()),
            "-lc0": (", latent consistency × 0", ("latent_weight=0",)),
        }.items()
    },
    **{
        f"{kind}-elsewhere": Setting(f"{title}, trained on people of another world", (*words, OTHER), PUPPETS)
        for kind, (title, words) in KINDS.items()
    },
    "supervised": Setting("published losses, budget: attributes", ("erase=0", "budget=supervised"), PUPPETS),
    **{
        f"mlp{layers}": Setting(f"MLP, {layers} layers", ("erase=0", "adapter=mlp", f"layers={layers}"), PUPPETS)
        for layers in (1, 3, 5)
    },
    **{
        f"attention{layers}": Setting(f"attention, {layers} layers", ("erase=0", f"layers={layers}"), PUPPETS)
        for layers in (1, 5)
    },
    **{f"heads{heads}": Setting(f"{heads} heads", ("erase=0", f"heads={heads}"), PUPPETS) for heads in (4, 16)},
}
"""`lc` is the paper's table 11, `no` its table 6, then tables 10, 12 and 4. `known`: utility for unknown actions."""


def jobs() -> list[Job]:
    """Of each setting and split the adapters, then their evaluation."""
    return [
        job for name, setting in SETTINGS.items() for of in setting.sets for end in SETS[of]
        for job in setting_jobs(name, of, end)
    ]  # fmt: skip


def setting_jobs(name: str, of: str, end: str) -> list[Job]:
    setting, data = SETTINGS[name], SETS[of][end]
    adapters = []
    if setting.trained:
        adapters = training_jobs(name, f"splavu_{of}", (f"data={data}", *setting.words), f"s-{name}-{end}")
    attack = "linkage,attributes" if of == "puppets" else "linkage"
    attack += f",{setting.attack}" if setting.attack and of == "puppets" else ""
    method = f"method=splavu:s-{name}-{end}-{{seed}}" if setting.trained else "method=raw"
    words = (f"data={data}", method, EVALUATED_SEEDS, f"attack=[{attack}]", f"name={run_of(name, end)}")
    command = ("evaluate", f"splavu_{of}_table", *words)
    return [*adapters, Job(run_of(name, end), (command,), tuple(job.name for job in adapters), name)]


def training_jobs(row: str, recipe: str, words: Sequence[str], run: str) -> list[Job]:
    """One adapter per seed; their runs are called `run` and the seed."""
    return [
        Job(f"{run}-{seed}", (("train", recipe, *words, f"seed={seed}", f"name={run}-{seed}"),), row=f"train-{row}")
        for seed in SEEDS
    ]


def run_of(name: str, end: str) -> str:
    return f"t-{name}-{end}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--summary", action="store_true", help="of what is finished; other sets stay as they are")
    parser.add_argument("--draw", action="store_true", help="the picture of the summary")
    add_options(parser, "ours,published")
    options = parser.parse_args()
    file = RESULTS / "table.json"
    if options.summary:
        from experiments.splavu.summary import summary

        write_json(file, read_json(file) | summary(options.runs))
    if options.draw:
        from experiments.splavu.picture import picture

        picture(read_json(file), file.with_suffix(".png"))
    if not (options.summary or options.draw):
        run_or_list(jobs(), options)


if __name__ == "__main__":
    main()
