"""Adapters of different tasks (SPLAVU's tables 5, 6, 7, 11 and 13): what each task gets from features behind them.

    python -m experiments.splavu.tasks --workers 2                     trains and evaluates; run again to continue
    python -m experiments.splavu.tasks --only ours-action,mild-anomaly these settings, and what they need
    python -m experiments.splavu.tasks --only k-gait-ours-action       this run, and what it needs
    python -m experiments.splavu.tasks --list                          the commands, and which are done
    python -m experiments.splavu.tasks --summary                       of finished runs, into results/tasks.json

An `experiments.job_queue`; tables: `experiments.tables`. Three adapters per setting, one for each seed of the
evaluators. Puppets need a finished `vidveil train encoder_puppets`; real sets are found in VIDVEIL_DATA, and need
`vidveil fetch i3d`.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from experiments.job_queue import Job, Words, add_options, read_json, run_or_list, write_json
from experiments.splavu.table import EVALUATED_SEEDS, KINDS, RESULTS, training_jobs

FILE = RESULTS / "tasks.json"
TASKS = ("action", "detection", "anomaly")
SUBSETS = tuple(some for count in (1, 2, 3) for some in combinations(TASKS, count))
"""Rows (b) to (h) of table 5, in its order."""
LATENT = {"": ("", ()), "-lc0": (", without latent consistency", ("latent_weight=0",))}
WEIGHTS = (1, 10, 1000)
"""Of latent consistency, next to 0 and 100, which is the recipes' own: table 11."""
FOLDS = tuple(range(5))
"""Of the fights."""


@dataclass(frozen=True)
class Setting:
    title: str
    tasks: tuple[str, ...]
    words: Words
    """Of the training."""
    set: str = "puppets"

    @property
    def by_fold(self) -> bool:
        """Whether fights are in training, so that each fold has adapters of its own."""
        return self.set != "puppets" and "anomaly" in self.tasks


def _settings() -> dict[str, Setting]:
    found = {}
    for ending, (without, more) in LATENT.items():
        for kind, (title, words) in KINDS.items():
            for tasks in SUBSETS:
                of = "-".join((kind, *tasks)) + ending
                found[of] = Setting(f"{title}, {' + '.join(tasks)}{without}", tasks, (*words, *more))
    for kind, (title, words) in KINDS.items():
        for weight in WEIGHTS:
            name, more = f"{title}, action, latent consistency × {weight}", (*words, f"latent_weight={weight}")
            found[f"{kind}-action-lc{weight}"] = Setting(name, ("action",), more)
        found[f"{kind}-none"] = Setting(f"{title}, no task", (), words)
        found[f"{kind}-no-budget"] = Setting(f"{title}, action, without budget", ("action",), (*words, "budget=none"))
    for tasks in (("detection",), ("anomaly",)):
        title = f"ours, a quarter erased, {tasks[0]}"
        found[f"mild-{tasks[0]}"] = Setting(title, tasks, ("erase=0.25",))
    for ending, (without, more) in LATENT.items():
        for tasks in (("action",), ("action", "anomaly")):
            of = "-".join(("real", *tasks)) + ending
            found[of] = Setting(f"published losses, {' + '.join(tasks)}{without}", tasks, more, "ucf101_5")
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
"""Set → evaluator → its recipe. `clips`: action, retrieval and attackers."""
ON_VIDEOS = ("detection", "anomaly")
"""Evaluators that take raw features' results from another run."""


def jobs() -> list[Job]:
    """Of each set raw features, then adapters, then their evaluations, evaluator by evaluator."""
    found = []
    for of, evaluators in EVALUATORS.items():
        settings = [name for name, setting in SETTINGS.items() if setting.set == of]
        found += [raw_job(of, evaluator) for evaluator in evaluators if evaluator in ON_VIDEOS]
        found += [job for name in settings for job in adapter_jobs(name)]
        found += [evaluation_job(name, evaluator) for evaluator in evaluators for name in settings]
    return found


def adapter_jobs(name: str) -> list[Job]:
    """One per seed; where fights are in training, one per seed and fold."""
    setting, found = SETTINGS[name], []
    for fold in FOLDS if setting.by_fold else ("",):
        words = (f"tasks=[{','.join(setting.tasks)}]", *setting.words)
        words += (f"anomaly_data=surveillance_fight:{fold}",) if setting.by_fold else ()
        found += training_jobs(name, f"splavu_{setting.set}", words, adapter(name, fold))
    return found


def evaluation_job(name: str, evaluator: str) -> Job:
    """Of fights one command per fold. Other evaluators take the adapter of fold 0."""
    setting, commands = SETTINGS[name], []
    for fold in _folds(setting.set, evaluator):
        own = (0 if fold == "" else fold) if setting.by_fold else ""
        words = (f"method=splavu:{adapter(name, own)}-{{seed}}", *_data(fold), EVALUATED_SEEDS)
        words += (f"raw={run_of(f'raw-{setting.set}', evaluator, fold)}",) if evaluator in ON_VIDEOS else ()
        run = run_of(name, evaluator, fold)
        commands.append(("evaluate", EVALUATORS[setting.set][evaluator], *words, f"name={run}"))
    needs = [job.name for job in adapter_jobs(name)]
    needs += [raw_job(setting.set, evaluator).name] if evaluator in ON_VIDEOS else []
    return _job(name, commands, needs)


def raw_job(of: str, evaluator: str) -> Job:
    """Networks that are trained on raw features."""
    commands = []
    for fold in _folds(of, evaluator):
        words = ("method=raw", *_data(fold), EVALUATED_SEEDS, f"name={run_of(f'raw-{of}', evaluator, fold)}")
        commands.append(("evaluate", EVALUATORS[of][evaluator], *words))
    return _job(f"raw-{of}", commands)


def _job(row: str, commands: Sequence[Words], needs: Sequence[str] = ()) -> Job:
    return Job(commands[0][-1].removeprefix("name="), tuple(commands), tuple(needs), row)


def _folds(of: str, evaluator: str) -> tuple[object, ...]:
    return FOLDS if evaluator == "anomaly" and of != "puppets" else ("",)


def _data(fold: object) -> Words:
    return () if fold == "" else (f"data=surveillance_fight:{fold}",)


def adapter(name: str, fold: object) -> str:
    """Run of an adapter, without its seed."""
    return f"j-{name}{'' if fold == '' else f'-f{fold}'}"


def run_of(name: str, evaluator: str, fold: object = "") -> str:
    return f"k-{evaluator}-{name}{'' if fold == '' else f'-f{fold}'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--summary", action="store_true", help="of what is finished; other settings stay as they are")
    add_options(parser, "ours-action,mild-anomaly")
    options = parser.parse_args()
    if options.summary:
        from experiments.splavu.tasks_summary import summary

        write_json(FILE, summary(options.runs, read_json(FILE)))
    else:
        run_or_list(jobs(), options)


if __name__ == "__main__":
    main()
