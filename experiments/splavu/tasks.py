"""SPLAVU's tables 5, 6, 7, 11 and 13 in our numbers: which tasks an adapter learned with, what each task gets after it.

    python benchmarks/splavu_tasks.py                         everything; run again to go on
    python benchmarks/splavu_tasks.py --only ours-action,ours-action-detection-anomaly --judges detection,anomaly
    python benchmarks/splavu_tasks.py --part 0/2 & python benchmarks/splavu_tasks.py --part 1/2      two processes
    python benchmarks/splavu_tasks.py --list                  the commands
    python benchmarks/splavu_tasks.py --summary               of finished runs: results/splavu_tasks.json; others stay
    python benchmarks/splavu_tasks.py --page                  SPLAVU_TASKS.md

Three adapters a setting, one for each seed of the evaluators. Networks on raw features come first, then adapters, then
judge after judge: what raw features gave is used again. The first of several processes makes it for all. Puppets need
a finished `vidveil train encoder_puppets`; real sets are found in VIDVEIL_DATA, and need `vidveil fetch i3d`.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

from experiments.splavu.table import KINDS, SEEDS, Command, look_once

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "splavu_tasks.json"
TASKS = ("action", "detection", "anomaly")
SUBSETS = tuple(some for count in (1, 2, 3) for some in combinations(TASKS, count))
"""Rows (b) to (h) of table 5, in its order."""
LATENT = {"": ("", ()), "-lc0": (", without latent consistency", ("latent_weight=0",))}
WEIGHTS = (1, 10, 1000)
"""Of latent consistency, next to 0 and 100, which is the recipes' own: table 11."""
POLL = 5.0
FOLDS = tuple(range(5))
"""Of the fights."""


@dataclass(frozen=True)
class Setting:
    title: str
    tasks: tuple[str, ...]
    words: tuple[str, ...]
    """Of the training."""
    set: str = "puppets"

    @property
    def by_fold(self) -> bool:
        """Whether it learned on fights, and so has an adapter for each fold."""
        return self.set != "puppets" and "anomaly" in self.tasks


def _settings() -> dict[str, Setting]:
    found = {}
    for ending, (told, more) in LATENT.items():
        for kind, (title, words) in KINDS.items():
            for tasks in SUBSETS:
                of = "-".join((kind, *tasks)) + ending
                found[of] = Setting(f"{title}, {' + '.join(tasks)}{told}", tasks, (*words, *more))
    for kind, (title, words) in KINDS.items():
        for weight in WEIGHTS:
            told, more = f"{title}, action, latent consistency × {weight}", (*words, f"latent_weight={weight}")
            found[f"{kind}-action-lc{weight}"] = Setting(told, ("action",), more)
        found[f"{kind}-none"] = Setting(f"{title}, no task", (), words)
        found[f"{kind}-no-budget"] = Setting(f"{title}, action, without budget", ("action",), (*words, "budget=none"))
    for tasks in (("detection",), ("anomaly",)):
        title = f"ours, a quarter erased, {tasks[0]}"
        found[f"mild-{tasks[0]}"] = Setting(title, tasks, ("erase=0.25",))
    for ending, (told, more) in LATENT.items():
        for tasks in (("action",), ("action", "anomaly")):
            of = "-".join(("real", *tasks)) + ending
            found[of] = Setting(f"published losses, {' + '.join(tasks)}{told}", tasks, more, "ucf101_5")
    return found


SETTINGS = _settings()
EVALUATORS = {
    "puppets": {
        "detection": "untrimmed_puppets",
        "anomaly": "anomaly_puppets",
        "gait": "gait_features_puppets",
        "clips": "splavu_puppets_table",
    },
    "ucf101_5": {
        "anomaly": "anomaly_surveillance_fight",
        "gait": "gait_features",
        "clips": "splavu_ucf101_5_table",
    },
}
"""Set → judge → its recipe. clips: the action, retrieval, and what attackers get."""
ON_VIDEOS = ("detection", "anomaly")
"""Evaluators who take what raw features gave from another run."""


def training(name: str) -> list[Command]:
    """One a seed; where fights are learned with, one a seed and fold."""
    setting, found = SETTINGS[name], []
    for fold in FOLDS if setting.by_fold else ("",):
        for seed in SEEDS:
            words = (f"tasks=[{','.join(setting.tasks)}]", *setting.words)
            words += (f"anomaly_data=surveillance_fight:{fold}",) if setting.by_fold else ()
            words += (f"seed={seed}", f"name={adapter(name, fold, seed)}")
            found.append(Command("train", f"splavu_{setting.set}", words))
    return found


def judging(name: str, evaluator: str) -> list[Command]:
    """One; of fights one a fold. Elsewhere an adapter that learned with fights is that of fold 0."""
    setting, found = SETTINGS[name], []
    folds = _folds(setting.set, evaluator)
    for fold in folds:
        own = (0 if fold == "" else fold) if setting.by_fold else ""
        words = (f"method=splavu:{adapter(name, own, '{seed}')}", *_judged_by(fold))
        words += (f"raw={run_of(f'raw-{setting.set}', evaluator, fold)}",) if evaluator in ON_VIDEOS else ()
        found.append(
            Command("evaluate", EVALUATORS[setting.set][evaluator], (*words, f"name={run_of(name, evaluator, fold)}"))
        )
    return found


def raw_features(of: str, evaluator: str) -> list[Command]:
    """What networks get that are trained on them."""
    found = []
    for fold in _folds(of, evaluator):
        words = ("method=raw", *_judged_by(fold), f"name={run_of(f'raw-{of}', evaluator, fold)}")
        found.append(Command("evaluate", EVALUATORS[of][evaluator], words))
    return found


def _folds(of: str, evaluator: str) -> tuple[object, ...]:
    return FOLDS if evaluator == "anomaly" and of != "puppets" else ("",)


def _judged_by(fold: object) -> tuple[str, ...]:
    data = () if fold == "" else (f"data=surveillance_fight:{fold}",)
    return (*data, f"seeds=[{','.join(map(str, SEEDS))}]")


def adapter(name: str, fold: object, seed: object) -> str:
    return f"j-{name}-{'' if fold == '' else f'f{fold}-'}{seed}"


def run_of(name: str, evaluator: str, fold: object = "") -> str:
    return f"k-{evaluator}-{name}{'' if fold == '' else f'-f{fold}'}"


def everything(only: list[str], evaluators: list[str], part: tuple[int, int] = (0, 1)) -> Iterator[Command]:
    """The commands, in their order. A part has its own settings, and so whatever they need."""
    if strange := [name for name in only if name not in SETTINGS]:
        raise SystemExit(f"there is no setting {strange[0]!r}; there are: {', '.join(SETTINGS)}")
    known = dict.fromkeys(evaluator for own in EVALUATORS.values() for evaluator in own)
    if strange := [evaluator for evaluator in evaluators if evaluator not in known]:
        raise SystemExit(f"there is no judge {strange[0]!r}; there are: {', '.join(known)}")
    asked = [name for name in SETTINGS if not only or name in only][part[0] :: part[1]]
    sets = dict.fromkeys(SETTINGS[name].set for name in SETTINGS if not only or name in only)
    for of in sets if part[0] == 0 else ():
        for evaluator in ON_VIDEOS:
            if evaluator in EVALUATORS[of] and (not evaluators or evaluator in evaluators):
                yield from raw_features(of, evaluator)
    for of in sets:
        names = [name for name in asked if SETTINGS[name].set == of]
        for name in names:
            yield from training(name)
        for evaluator in EVALUATORS[of]:
            for name in names if not evaluators or evaluator in evaluators else []:
                yield from judging(name, evaluator)


@cache
def load_once() -> None:
    """Features of clips and of whole videos, for all runs of this process."""
    from vidveil.tasks import long_videos as untrimmed

    setattr(untrimmed, "long_features", cache(untrimmed.long_features))  # noqa: B010 - mypy would have it as it was
    look_once()


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
    load_once()
    recipe = read(find(command.recipe), command.words)
    if isinstance(recipe, SplavuRecipe):
        made = train_adapter.run(recipe, resume=folder.is_dir())
        shutil.rmtree(folder / "fits", ignore_errors=True)  # its checkpoint is kept next to
        print(f"{recipe.name}: { ({name: round(value, 3) for name, value in made.metrics.items()}) }", flush=True)
        return
    if isinstance(recipe, FeaturesRecipe):
        results = feature_engine.run(recipe, resume=folder.is_dir())
    else:
        from vidveil.evaluation.protocols import untrimmed as untrimmed_engine

        wait_for(runs / recipe.raw if recipe.raw else None)
        results = untrimmed_engine.run(recipe, resume=folder.is_dir())
    point = results.points[0] if results.points else results.raw
    told = {name: round(one.value, 3) for name, one in point.metrics.items() if one.kind != "control"}
    print(f"{recipe.name}: {told}", flush=True)


def wait_for(run: Path | None) -> None:
    """Until another process has made it."""
    said = False
    while run is not None and not (run / "results.json").is_file():
        if not said:
            print(f"waiting for {run.name}, which --part 0/N makes", flush=True)
        said = True
        time.sleep(POLL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="these settings, with commas between them")
    parser.add_argument("--judges", default="", help="these evaluators: detection,anomaly,gait,clips")
    parser.add_argument("--part", default="0/1", help="I/N: every N-th setting, from the I-th on")
    parser.add_argument("--list", action="store_true", help="the commands")
    parser.add_argument("--summary", action="store_true", help="of what is finished")
    parser.add_argument("--page", action="store_true", help="SPLAVU_TASKS.md")
    options = parser.parse_args()
    if options.summary or options.page:
        from experiments.splavu.tasks_page import page, summary

        if options.summary:
            before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
            RESULTS.write_text(json.dumps(summary(before), indent=1) + "\n", encoding="utf-8")
        if options.page:
            text = page(json.loads(RESULTS.read_text(encoding="utf-8")))
            (HERE / "SPLAVU_TASKS.md").write_text(text, encoding="utf-8")
        return
    only, evaluators = ([word for word in words.split(",") if word] for words in (options.only, options.evaluators))
    which, of = map(int, options.part.split("/"))
    commands = everything(only, evaluators, (which, of))
    if options.list:
        print("\n".join(map(str, commands)))
        return
    from vidveil.training.runs import runs_folder

    for command in commands:
        do(command, runs_folder())


if __name__ == "__main__":
    main()
