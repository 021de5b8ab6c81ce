"""SPLAVU in our numbers: features after each adapter, evaluated by heads and attackers that are trained anew.

    python benchmarks/splavu_table.py                         everything; run again to go on
    python benchmarks/splavu_table.py --sets puppets --only ours,published
    python benchmarks/splavu_table.py --part 0/2 & python benchmarks/splavu_table.py --part 1/2      two processes
    python benchmarks/splavu_table.py --list                  the commands
    python benchmarks/splavu_table.py --summary               of finished runs: results/splavu.json
    python benchmarks/splavu_table.py --page                  SPLAVU.md, its picture, figures of docs/methods/splavu.md

Three adapters a setting and split, one for each seed of the evaluators. Real videos are found in VIDVEIL_DATA. Puppets need
a finished `vidveil train encoder_puppets`, real sets `vidveil fetch i3d`.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "splavu.json"
PAGE = HERE.parent / "docs" / "methods" / "splavu.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
"""Of the page of the method, between which the short of it stands."""
SEEDS = (0, 1, 2)
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
"""A world whose people nobody here is."""


@dataclass(frozen=True)
class Setting:
    title: str
    words: tuple[str, ...] = ()
    """Of the training; none: raw features."""
    sets: tuple[str, ...] = EVERY
    attack: str = ""
    """Next to people and attributes, of built-in people."""
    trained: bool = True


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
            f"{title}{told}, told of 10 of 19 actions", (*words, *more, "known_actions=10"), PUPPETS
        )
        for kind, (title, words) in KINDS.items()
        for ending, (told, more) in {"": ("", ()), "-lc0": (", latent consistency × 0", ("latent_weight=0",))}.items()
    },
    **{
        f"{kind}-elsewhere": Setting(f"{title}, learned on people of another world", (*words, OTHER), PUPPETS)
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
"""`lc` is the paper's table 11, `no` its table 6, then tables 10, 12 and 4. `known`: uses that nobody told it of."""


@dataclass(frozen=True)
class Command:
    verb: str
    recipe: str
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        return next(word.removeprefix("name=") for word in self.words if word.startswith("name="))

    def __str__(self) -> str:
        return f"vidveil {self.verb} {self.recipe} {' '.join(self.words)}"


def commands(name: str, of: str, end: str) -> list[Command]:
    """What makes one setting on one split: adapters, and their evaluation."""
    setting, recipe, data = SETTINGS[name], f"splavu_{of}", SETS[of][end]
    found = []
    if setting.trained:
        for seed in SEEDS:
            words = (f"data={data}", *setting.words, f"seed={seed}", f"name={adapter(name, end, seed)}")
            found.append(Command("train", recipe, words))
    attack = "linkage,attributes" if of == "puppets" else "linkage"
    attack += f",{setting.attack}" if setting.attack and of == "puppets" else ""
    method = f"method=splavu:{adapter(name, end, '{seed}')}" if setting.trained else "method=raw"
    seeds = f"seeds=[{','.join(map(str, SEEDS))}]"
    words = (f"data={data}", method, seeds, f"attack=[{attack}]", f"name={run_of(name, end)}")
    return [*found, Command("evaluate", f"{recipe}_table", words)]


def adapter(name: str, end: str, seed: object) -> str:
    return f"s-{name}-{end}-{seed}"


def run_of(name: str, end: str) -> str:
    return f"t-{name}-{end}"


def everything(sets: list[str], only: list[str]) -> Iterator[list[Command]]:
    for name, setting in SETTINGS.items():
        for of in setting.sets:
            if of in sets and (not only or name in only):
                for end in SETS[of]:
                    yield commands(name, of, end)


@cache
def look_once() -> None:
    """Hundreds of runs are about the same features: they are loaded once."""
    from vidveil.data.features.sets import load_features
    from vidveil.evaluation.protocols import features as feature_engine
    from vidveil.methods.splavu import run as train_adapter

    for module in (feature_engine, train_adapter):
        setattr(module, "load_features", cache(load_features))  # noqa: B010 - it is no name of theirs to mypy


def do(command: Command, runs: Path) -> None:
    """Unless it is done."""
    import shutil

    from vidveil.core.recipe import find, read
    from vidveil.evaluation.protocols import features as feature_engine
    from vidveil.evaluation.recipes.features import FeaturesRecipe
    from vidveil.methods.splavu import run as train_adapter
    from vidveil.methods.splavu.recipe import SplavuRecipe

    folder = runs / command.name
    if (folder / ("results.json" if command.verb == "evaluate" else "checkpoint/checkpoint.json")).is_file():
        return
    look_once()
    recipe = read(find(command.recipe), command.words)
    if isinstance(recipe, SplavuRecipe):
        train_adapter.run(recipe, resume=folder.is_dir())
        shutil.rmtree(folder / "fits", ignore_errors=True)  # its checkpoint is kept next to
        return
    assert isinstance(recipe, FeaturesRecipe)
    results = feature_engine.run(recipe, resume=folder.is_dir())
    for point in results.points or [results.raw]:
        told = {name: point.metrics[name].value for name in ("action_top1", "linkage_rank1") if name in point.metrics}
        print(f"{recipe.name}: {point.method} {told} attributes {point.attribute_excess}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help="of these sets")
    parser.add_argument("--only", default="", help="these settings, with commas between them")
    parser.add_argument("--part", default="0/1", help="I/N: every N-th, from the I-th on")
    parser.add_argument("--list", action="store_true", help="the commands")
    parser.add_argument("--summary", action="store_true", help="of what is finished")
    parser.add_argument("--page", action="store_true", help="SPLAVU.md and its picture")
    options = parser.parse_args()
    sets, only = options.sets.split(","), [name for name in options.only.split(",") if name]
    if options.summary:
        from experiments.splavu.summary import summary

        RESULTS.write_text(json.dumps(summary(), indent=1) + "\n", encoding="utf-8")
    if options.page:
        from experiments.splavu.page import page, picture, worth

        found = json.loads(RESULTS.read_text(encoding="utf-8"))
        (HERE / "SPLAVU.md").write_text(page(found), encoding="utf-8")
        text = PAGE.read_text(encoding="utf-8")
        before, _, after = text.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{worth(found)}\n\n{END}{after.partition(END)[2]}", encoding="utf-8")
        picture(found, HERE / "results" / "splavu.png")
    if options.summary or options.page:
        return
    if options.list:
        for job in everything(sets, only):
            print("\n".join(map(str, job)))
        return
    from vidveil.training.runs import runs_folder

    which, of = map(int, options.part.split("/"))
    for number, job in enumerate(everything(sets, only)):
        if number % of == which:
            for command in job:
                do(command, runs_folder())


if __name__ == "__main__":
    main()
