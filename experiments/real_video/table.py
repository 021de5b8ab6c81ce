"""The table of real video: action accuracy and re-identification after each way to hide people.

    python -m experiments.real_video.table --workers 5               evaluates everything; run again to continue
    python -m experiments.real_video.table --only random,moving      these rows, and what they need
    python -m experiments.real_video.table --list                    the commands
    python -m experiments.real_video.table --summary                 of finished runs, into results/; other rows stay
    python -m experiments.real_video.table --draw                    the picture (tables: experiments.tables)

An `experiments.job_queue`; videos are found in VIDVEIL_DATA. Sets are five classes of UCF101 (splits 1 to 3) and
Weizmann (three folds of three people, and three folds of actions in which the people are known). Each is evaluated as
filmed (`whole`) and cut to one square around the person (`crop`), so that a place is not taken for a person; `median`
is the place alone.

Rows are evaluated by frozen networks with small ones on top of them (recipe `real_table`). Rows that start with `t-`
are also evaluated by I3D from Kinetics, trained on the anonymized video (`real_table_trained`). Anonymizers are trained
on squares of each split's training people, and evaluated there. Numbers are pooled over the splits of a set, and
compared in the same draws of people.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.job_queue import Job, Words, add_options, read_json, run_or_list, write_json
from vidveil.data import given_folder

RESULTS = Path(__file__).parent / "results"
UCF = {"u1": "ucf101_5:1", "u2": "ucf101_5:2", "u3": "ucf101_5:3"}
PEOPLE = {f"w{fold}": f"weizmann:people={fold}" for fold in range(3)}
KNOWN = {f"i{fold}": f"weizmann:actions={fold}" for fold in range(3)}
SETS = {"ucf101_5": UCF, "weizmann": PEOPLE, "weizmann_named": KNOWN}
"""Set → its splits, by the ending of their runs."""
SAME_VIDEOS = (UCF, PEOPLE | KNOWN)
"""Splits that one job evaluates, since their videos are the same."""
TRAINED_ON = UCF | PEOPLE
"""Where anonymizers are trained."""
PARTS = {"whole": "whole", "crop": "person_crop"}
SHARES = "keep=[0.5,0.25,0.1]"
RANDOM_SHARES = "keep=[0.9,0.75,0.5,0.25,0.1,0.03,0.01,0.001]"
"""Of the baseline that other rows are compared with: from nearly raw video to nearly nothing."""
PAPER, BEST = "method=dual_cls:d-paper-{end}", "method=dual_cls:d-best-{end}"
RANDOM_BEST = BEST.replace("=", "=random:")
DRAWN = "method=stprivacy:d-drawn-{end}"
BY_PAPER, BY_BEST = "dual-CLS as in the paper", "dual-CLS over turned figures"
MODES: dict[str, Words] = {
    "best": ("dual_cls", "preprocess=recast:14"),
    "paper": ("dual_cls", "preprocess=raw", "train_on=heads", "privacy_attention=reversed", "smooth=false", "keep=0.9"),
    "drawn": ("stprivacy",),
}
"""Method, and what differs from its recipe. Of dual-CLS: the recipe's mode over turned figures, and the paper's
Algorithm 1 over the video as filmed."""
RECIPES = {"u": "ucf101_5", "w": "weizmann"}
"""First letter of a split's ending → ending of a training recipe."""
FROZEN, TRAINED = "real_table", "real_table_trained"
FEW_CLIPS = ("epochs=60", "attacker_epochs=30", "validate_every=10")
"""For trained evaluators on Weizmann, where an epoch has two steps."""


@dataclass(frozen=True)
class Row:
    title: str
    words: Words = ()
    parts: tuple[str, ...] = tuple(PARTS)
    recipe: str = FROZEN

    @property
    def trained(self) -> bool:
        """Whether its evaluators are trained as a whole."""
        return self.recipe == TRAINED

    @property
    def is_random_pruning(self) -> bool:
        return self.words[:1] == ("method=random",)

    @property
    def mode(self) -> str | None:
        """Of the anonymizer that was trained for it, if there is one."""
        return next((mode for mode in MODES if any(f":d-{mode}-" in word for word in self.words)), None)

    def groups(self) -> list[dict[str, str]]:
        """Splits that one job evaluates: all of the same videos, where frozen networks can share features."""
        each = [{end: data} for end, data in UCF.items()]
        return [*each, PEOPLE] if self.trained or self.mode else list(SAME_VIDEOS)


CROP = ("crop",)
ROWS = {
    "raw": Row("raw video"),
    "median": Row("background alone: the median of all frames", (), ("median",)),
    "random": Row("random tubelets", ("method=random", RANDOM_SHARES)),
    "moving": Row("most-moving tubelets", ("method=moving", SHARES)),
    "centre": Row("tubelets in the middle", ("method=centre", SHARES)),
    "motion": Row("grey frame difference", ("method=motion",)),
    "motion8": Row("grey frame difference, blocks of 8 pixels", ("method=motion:8",)),
    "down2": Row("downsampled, × 2", ("method=downsample:2",)),
    "down4": Row("downsampled, × 4", ("method=downsample:4",)),
    "down8": Row("downsampled, × 8", ("method=downsample:8",)),
    "blur-faces": Row("blurred faces", ("method=blur:strong", "region=faces")),
    "black-faces": Row("black faces", ("method=solid", "region=faces")),
    "blur-people": Row("blurred people", ("method=blur:strong", "region=people")),
    "black-people": Row("black people", ("method=solid", "region=people")),
    "figure14": Row("moving figure, 14 blocks", ("method=figure:14",)),
    "figure8": Row("moving figure, 8 blocks", ("method=figure:8",)),
    "recast14": Row("moving figure, turned by up to 40 degrees", ("method=recast:14",)),
    "recast14-25": Row("moving figure, turned by up to 25 degrees", ("method=recast:14,25",), CROP),
    "recast14-15": Row("moving figure, turned by up to 15 degrees", ("method=recast:14,15",), CROP),
    "paper": Row(BY_PAPER, (PAPER, "keep=[0.888,0.737]"), CROP),
    "paper-action": Row(f"{BY_PAPER}, λ = 0", (PAPER, "keep=[0.737]", "privacy_weight=0"), CROP),
    "paper-private": Row(f"{BY_PAPER}, α_priv alone", (PAPER, "keep=[0.737]", "privacy_weight=.inf"), CROP),
    "paper-mask": Row(f"{BY_PAPER}, masks alone", (PAPER, "keep=[0.737]", "fill=mask"), CROP),
    "stprivacy": Row("STPrivacy", (DRAWN, "keep=[0.9,0.8,0.7]"), CROP),
    "stprivacy-mask": Row("STPrivacy, masks alone", (DRAWN, "keep=[0.7]", "fill=mask"), CROP),
    "best": Row(BY_BEST, (BEST, "keep=[0.95,0.888,0.737]"), CROP),
    "best-action": Row(f"{BY_BEST}, λ = 0", (BEST, "keep=[0.888]", "privacy_weight=0"), CROP),
    "best-private": Row(f"{BY_BEST}, α_priv alone", (BEST, "keep=[0.888]", "privacy_weight=.inf"), CROP),
    "best-random": Row("random tubelets over turned figures", (RANDOM_BEST, "keep=[0.888,0.737]"), CROP),
    "best-mask": Row(f"{BY_BEST}, masks alone", (BEST, "keep=[0.737]", "fill=mask"), CROP),
    "t-raw": Row("raw video"),
    "t-random50": Row("random tubelets", ("method=random", "keep=[0.5]")),
}
ROWS |= {f"t-{name}": ROWS[name] for name in ("figure14", "recast14-25", "recast14-15")}
ROWS |= {
    name: replace(row, title=f"{row.title}, trained evaluators", parts=CROP, recipe=TRAINED)
    for name, row in ROWS.items()
    if name.startswith("t-")
}
"""Row → what it is, how it is evaluated, and which part of the picture is visible."""


def jobs() -> list[Job]:
    """Trainings, then rows."""
    found = [training_job(mode, end, data) for mode in MODES for end, data in TRAINED_ON.items()]
    rows = [
        evaluation_job(name, part, splits)
        for name, row in ROWS.items()
        for part in row.parts
        for splits in row.groups()
    ]
    return found + rows


def training_job(mode: str, end: str, data: str) -> Job:
    method, *different = MODES[mode]
    name = f"d-{mode}-{end}"
    words = (f"data={data}", "part=person_crop", *different, "validate_every=20", "checkpoint_seconds=600")
    return Job(name, (("train", f"{method}_{RECIPES[end[0]]}", *words, f"name={name}"),), row=f"train-{mode}")


def evaluation_job(name: str, part: str, splits: dict[str, str]) -> Job:
    """A row on some splits."""
    row, raw = ROWS[name], raw_of(name)
    commands, needs = [], []
    for end, data in splits.items():
        method = [word.replace("{end}", end) for word in row.words]
        words = [f"data={data}", f"part={PARTS.get(part, part)}", *method, f"name={run_of(name, part, end)}"]
        if row.trained and splits is PEOPLE:
            words += FEW_CLIPS
        if row.words:
            words.append(f"raw={run_of(raw, part, end)}")
        elif not row.trained:
            words.append("attack=[linkage,attributes]")
        if row.mode:
            needs.append(f"d-{row.mode}-{end}")
        commands.append(("evaluate", row.recipe, *words))
    if row.words:
        raw_runs = {run_of(raw, part, end) for end in splits}
        raw_jobs = [evaluation_job(raw, part, some) for some in ROWS[raw].groups()]
        needs += [job.name for job in raw_jobs if set(job.runs) & raw_runs]
    first = next(iter(splits))
    together = f"{name[0]}-{first}" if row.trained else ""
    return Job(run_of(name, part, first), tuple(commands), tuple(needs), name, together)


def raw_of(name: str) -> str:
    """The row of raw video with the same evaluators."""
    return "t-raw" if ROWS[name].trained else "raw"


def run_of(name: str, part: str, end: str) -> str:
    return f"{name}-{part}-{end}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--summary", action="store_true", help="of what is finished; other rows stay as they are")
    parser.add_argument("--draw", action="store_true", help="the picture of the summary")
    add_options(parser)
    options = parser.parse_args()
    file, trained = RESULTS / "summary.json", RESULTS / "trainings.json"
    if options.summary:
        from experiments.real_video.summary import summary, trainings

        write_json(file, summary(options.runs, read_json(file)))
        write_json(trained, trainings(options.runs, read_json(trained)))
    if options.draw:
        from experiments.real_video.picture import picture

        picture(read_json(file), RESULTS / "trade_off.png")
    if options.summary or options.draw:
        return
    if not options.list and given_folder(None) is None:
        raise SystemExit("VIDVEIL_DATA must name the folder that has ucf101_5 and weizmann (docs/datasets.md)")
    run_or_list(jobs(), options)


if __name__ == "__main__":
    main()
