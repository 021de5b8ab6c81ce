"""The table of real video: what is left of the action, and of who it is, after each way to hide people.

    python benchmarks/table.py --workers 5               judges everything; run again to go on
    python benchmarks/table.py --only random,moving      these rows, and what they need
    python benchmarks/table.py --list                    the commands
    python benchmarks/table.py --summary                 of finished runs, into results/table/; other rows stay, and
                                                         what another training takes the place of: earlier.json
    python benchmarks/table.py --page                    benchmarks/TABLE.md and its picture, of the summary

A `job_queue`; videos are found in VIDVEIL_DATA. Sets are five classes of UCF101 (splits 1 to 3) and Weizmann (three
folds of three people; and three folds of actions, where the people are named). Each is shown as it was filmed (`whole`)
and cut to one square around the person (`crop`): a place is not to be taken for a person; `median` is the place alone.

Rows are judged by frozen networks and small ones on top of them (recipe `real_table`). Some are judged by networks that
were trained on what is shown as well: `t-` by I3D from Kinetics (`real_table_trained`), `s-` by a small one from
nothing, that looks at more frames of fewer pixels (`real_table_small`). Of both together the strongest count. Networks
that hide are trained on squares of each split's training people, and judged there. Numbers are pooled over the splits
of a set, and compared in the same draws of people.
"""

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from job_queue import Job, go_on, options_of

from vidveil.data import given_folder

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "table"
UCF = {"u1": "ucf101_5:1", "u2": "ucf101_5:2", "u3": "ucf101_5:3"}
PEOPLE = {f"w{fold}": f"weizmann:people={fold}" for fold in range(3)}
NAMED = {f"i{fold}": f"weizmann:actions={fold}" for fold in range(3)}
SETS = {"ucf101_5": UCF, "weizmann": PEOPLE, "weizmann_named": NAMED}
"""Set → its splits, by the ending of their runs."""
TOGETHER = (UCF, PEOPLE | NAMED)
"""What one job judges: splits of the same videos."""
LEARNED = UCF | PEOPLE
"""Where networks that hide are trained."""
PARTS = {"whole": "whole", "crop": "person_crop"}
SHARES = "keep=[0.5,0.25,0.1]"
LOTS = "keep=[0.9,0.75,0.5,0.25,0.1,0.03,0.01,0.001]"
"""What other rows are compared with: all the way from raw video to next to nothing."""
PAPER, BEST = "method=dual_cls:d-paper-{end}", "method=dual_cls:d-best-{end}"
DRAWN = "method=stprivacy:d-drawn-{end}"
THEIRS, OURS = "dual-CLS as in the paper", "dual-CLS over turned figures"
MODES = {
    "best": ("dual_cls", "after=recast:14"),
    "paper": ("dual_cls", "after=raw", "train_on=heads", "privacy_attention=reversed", "smooth=false", "keep=0.9"),
    "drawn": ("stprivacy",),
    "taught": ("stprivacy", "recognizer=i3d:pretrained"),
    "sparse": ("stprivacy", "anonymize=false"),
}
"""Method, and what differs from its recipe. Of dual-CLS: the recipes' mode over figures that are turned, and the
paper's Algorithm 1 over what was filmed. Of STPrivacy: as its paper; with recognizers that knew actions before;
and without drawing what stays anew."""
TRAINING = {"u": "ucf101_5", "w": "weizmann"}
"""First letter of a split's ending → how a recipe's name ends."""
TRAINED = {"t": "real_table_trained", "s": "real_table_small"}
"""First letter of a row that networks are trained to judge → recipe."""
FEW = {
    "real_table_trained": ("epochs=60", "attacker_epochs=30", "validate_every=10"),
    "real_table_small": ("epochs=200", "attacker_epochs=200", "validate_every=40"),
}
"""On Weizmann an epoch has two steps."""


@dataclass(frozen=True)
class Row:
    title: str
    words: tuple[str, ...] = ()
    parts: tuple[str, ...] = tuple(PARTS)
    judges: str = "real_table"
    """Recipe."""

    @property
    def trained(self) -> bool:
        """Whether networks are trained to judge it."""
        return self.judges in FEW

    @property
    def is_random_pruning(self) -> bool:
        return self.words[:1] == ("method=random",)

    @property
    def mode(self) -> str | None:
        """Of the network that hides, if one does."""
        return next((mode for mode in MODES if any(f":d-{mode}-" in word for word in self.words)), None)

    def groups(self) -> list[dict[str, str]]:
        """Splits that one job judges: all of the same videos, where frozen networks can look at these once."""
        each = [{end: data} for end, data in UCF.items()]
        return [*each, PEOPLE] if self.trained or self.mode else list(TOGETHER)


ROWS = {
    "raw": Row("raw video"),
    "median": Row("background alone: the median of all frames", (), ("median",)),
    "random": Row("tubelets by lot", ("method=random", LOTS)),
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
    "recast14": Row("moving figure, turned, 14 blocks", ("method=recast:14",)),
    "recast14-25": Row("moving figure, turned less, 14 blocks", ("method=recast:14,25",), ("crop",)),
    "recast14-15": Row("moving figure, turned a little, 14 blocks", ("method=recast:14,15",), ("crop",)),
    "recast10-50": Row("moving figure, turned further, 10 blocks", ("method=recast:10,50",), ("crop",)),
    "paper": Row(THEIRS, (PAPER, "keep=[0.888,0.737]"), ("crop",)),
    "paper-action": Row(f"{THEIRS}, λ = 0", (PAPER, "keep=[0.737]", "privacy_weight=0"), ("crop",)),
    "paper-private": Row(f"{THEIRS}, α_priv alone", (PAPER, "keep=[0.737]", "privacy_weight=.inf"), ("crop",)),
    "paper-mask": Row(f"{THEIRS}, masks alone", (PAPER, "keep=[0.737]", "fill=mask"), ("crop",)),
    "stprivacy": Row("STPrivacy", (DRAWN, "keep=[0.9,0.8,0.7]"), ("crop",)),
    "stprivacy-taught": Row(
        "STPrivacy, taught by the Kinetics I3D that judges its use",
        (DRAWN.replace("drawn", "taught"), "keep=[0.9,0.7]"),
        ("crop",),
    ),
    "stprivacy-mask": Row("STPrivacy, masks alone", (DRAWN, "keep=[0.7]", "fill=mask"), ("crop",)),
    "stprivacy-sparse": Row(
        "STPrivacy, nothing drawn", ("method=stprivacy:d-sparse-{end}", "keep=[0.9,0.8,0.7]"), ("crop",)
    ),
    "best": Row(OURS, (BEST, "keep=[0.95,0.888,0.737]"), ("crop",)),
    "best-action": Row(f"{OURS}, λ = 0", (BEST, "keep=[0.888]", "privacy_weight=0"), ("crop",)),
    "best-private": Row(f"{OURS}, α_priv alone", (BEST, "keep=[0.888]", "privacy_weight=.inf"), ("crop",)),
    "best-lots": Row(f"{OURS}, lots", (BEST.replace("=", "=random:"), "keep=[0.888,0.737]"), ("crop",)),
    "best-mask": Row(f"{OURS}, masks alone", (BEST, "keep=[0.737]", "fill=mask"), ("crop",)),
}
STRONG = {
    "raw": Row("raw video"),
    "random50": Row("half of the tubelets by lot", ("method=random", "keep=[0.5]")),
    "motion": Row("grey frame difference", ("method=motion",)),
    "figure14": Row("moving figure, 14 blocks", ("method=figure:14",)),
    **{name: row for name, row in ROWS.items() if name.startswith("recast")},
    "stprivacy": Row("STPrivacy", (DRAWN, "keep=[0.9]")),
    "stprivacy-taught": Row(
        "STPrivacy, taught by the Kinetics I3D that judges its use", (DRAWN.replace("drawn", "taught"), "keep=[0.9]")
    ),
    "best": Row(OURS, (BEST, "keep=[0.888]")),
    "best-lots": Row(f"{OURS}, lots", (BEST.replace("=", "=random:"), "keep=[0.888]")),
}
"""What networks are trained to judge as well, in squares."""
ROWS |= {
    f"{letter}-{name}": replace(row, parts=("crop",), judges=recipe)
    for letter, recipe in TRAINED.items()
    for name, row in STRONG.items()
}
"""Row → what it is, how it is judged, and which part of what was filmed is there to see."""


def jobs() -> list[Job]:
    """Trainings, then rows."""
    found = [training(mode, end, data) for mode in MODES for end, data in LEARNED.items()]
    rows = [job(name, row, part, some) for name, row in ROWS.items() for part in row.parts for some in row.groups()]
    return found + rows


def training(mode: str, end: str, data: str) -> Job:
    method, *differs = MODES[mode]
    name = f"d-{mode}-{end}"
    words = (
        f"data={data}",
        "part=person_crop",
        *differs,
        "validate_every=20",
        "checkpoint_seconds=600",
        f"name={name}",
    )
    return Job(
        name, ("train", f"{method}_{TRAINING[end[0]]}", *words), makes="checkpoint/checkpoint.json", of=f"train-{mode}"
    )


def job(name: str, row: Row, part: str, folds: dict[str, str]) -> Job:
    raw = raw_of(name)
    commands, needs = [], []
    for end, data in folds.items():
        knobs = [word.replace("{end}", end) for word in row.words]
        words = [f"data={data}", f"part={PARTS.get(part, part)}", *knobs, f"name={run_of(name, part, end)}"]
        if row.trained and folds is PEOPLE:
            words += FEW[row.judges]
        if row.words:
            words.append(f"raw={run_of(raw, part, end)}")
        elif not row.trained:
            words.append("attack=[linkage,attributes]")
        if row.mode:
            needs.append(f"d-{row.mode}-{end}")
        commands.append(("evaluate", row.judges, *words))
    if row.words:
        needs += [one.name for one in judged(raw, part) if set(one.runs) & {run_of(raw, part, end) for end in folds}]
    first = next(iter(folds))
    return Job(
        run_of(name, part, first), commands[0], tuple(needs), of=name, also=tuple(commands[1:]),
        together=f"{name[0]}-{first}" if row.trained else "",
    )  # fmt: skip


def judged(name: str, part: str) -> list[Job]:
    return [job(name, ROWS[name], part, some) for some in ROWS[name].groups()]


def raw_of(name: str) -> str:
    """The row of raw video that the same judges judged."""
    return f"{name[:2]}raw" if ROWS[name].trained else "raw"


def run_of(name: str, part: str, end: str) -> str:
    return f"{name}-{part}-{end}"


def summarize(runs: Path, file: Path) -> None:
    """Of rows and of trainings; what others took the place of is kept beside them, the latest of each."""
    from table_summary import replaced, summary, trainings

    def read(path: Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return found

    said, earlier = file.with_name("trainings.json"), file.with_name("earlier.json")
    rows, networks = summary(runs, read(file)), trainings(runs, read(said))
    gone = replaced(read(file), rows)
    gone |= {name: one for name, one in read(said).items() if networks[name]["metrics"] != one["metrics"]}
    file.parent.mkdir(parents=True, exist_ok=True)
    for path, found in ((file, rows), (said, networks), (earlier, read(earlier) | gone)):
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    finished = len(list(runs.glob("*/results.json")))
    print(f"wrote {file}, of {finished} runs in {runs}" + ("" if finished else ": all rows are as they were"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--summary", action="store_true", help="of what is finished; rows that are not here stay as they are"
    )
    parser.add_argument("--page", action="store_true", help="TABLE.md and the picture")
    options_of(parser)
    options = parser.parse_args()
    file = RESULTS / "summary.json"
    if options.summary:
        summarize(options.runs, file)
    if options.page:
        from table_page import page
        from table_picture import picture

        found = json.loads(file.read_text(encoding="utf-8"))
        (HERE / "TABLE.md").write_text(page(found), encoding="utf-8")
        picture(found, RESULTS / "trade_off.png")
        print(f"wrote {HERE / 'TABLE.md'} and {RESULTS / 'trade_off.png'}")
    if options.summary or options.page:
        return
    if not options.list and given_folder(None) is None:
        raise SystemExit("VIDVEIL_DATA must name the folder that has ucf101_5 and weizmann (docs/datasets.md)")
    go_on(jobs(), options, None)


if __name__ == "__main__":
    main()
