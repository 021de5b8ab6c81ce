"""The table of real video: what is left of the action, and of who it is, after each way to hide people.

    python benchmarks/table.py --workers 5               judges everything; run again to go on
    python benchmarks/table.py --only random,moving      these rows, and what they need
    python benchmarks/table.py --list                    the commands
    python benchmarks/table.py --summary                 of finished runs, into results/table/
    python benchmarks/table.py --page                    benchmarks/TABLE.md and its picture, of the summary

A `job_queue`; videos are found in VIDVEIL_DATA. Sets are five classes of UCF101 (splits 1 to 3) and Weizmann (three
folds of three people; and three folds of actions, where the people are named). Each is shown as it was filmed (`whole`)
and cut to one square around the person (`crop`): a place is not to be taken for a person; `median` is the place alone.

Rows are judged by frozen networks and small ones on top of them (recipe `real_table`); those whose name begins with
`t-` by networks that were trained on what is shown, too (`real_table_trained`). Numbers are pooled over the splits of a
set, and compared in the same draws of people.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from job_queue import Job, go_on, options_of

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "table"
UCF = {"u1": "ucf101_5:1", "u2": "ucf101_5:2", "u3": "ucf101_5:3"}
PEOPLE = {f"w{fold}": f"weizmann:people={fold}" for fold in range(3)}
NAMED = {f"i{fold}": f"weizmann:actions={fold}" for fold in range(3)}
SETS = {"ucf101_5": UCF, "weizmann": PEOPLE, "weizmann_named": NAMED}
"""Set → its splits, by the ending of their runs."""
TOGETHER = (UCF, PEOPLE | NAMED)
"""What one job judges: splits of the same videos."""
PARTS = {"whole": "whole", "crop": "person_crop"}
SHARES = "keep=[0.5,0.25,0.1]"


@dataclass(frozen=True)
class Row:
    title: str
    words: tuple[str, ...] = ()
    parts: tuple[str, ...] = tuple(PARTS)
    trained: bool = False


ROWS = {
    "raw": Row("raw video"),
    "median": Row("background alone: the median of all frames", (), ("median",)),
    "random": Row("tubelets by lot", ("method=random", SHARES)),
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
    "t-raw": Row("raw video", (), ("crop",), trained=True),
    "t-random50": Row("half of the tubelets by lot", ("method=random", "keep=[0.5]"), ("crop",), trained=True),
    "t-random25": Row("a quarter of the tubelets by lot", ("method=random", "keep=[0.25]"), ("crop",), trained=True),
}
"""Row → what it is, how it is judged, and which part of what was filmed is there to see."""


def jobs() -> list[Job]:
    """Splits of a row by one process, which looks at its clips once; where networks are trained, each by its own."""
    return [
        job(name, row, part, some)
        for name, row in ROWS.items()
        for part in row.parts
        for folds in ((UCF,) if row.trained else TOGETHER)
        for some in ([{end: data} for end, data in folds.items()] if row.trained else [folds])
    ]


def job(name: str, row: Row, part: str, folds: dict[str, str]) -> Job:
    raw = "t-raw" if row.trained else "raw"
    commands = []
    for end, data in folds.items():
        words = [f"data={data}", f"part={PARTS.get(part, part)}", *row.words, f"name={run_of(name, part, end)}"]
        if row.words:
            words.append(f"raw={run_of(raw, part, end)}")
        elif not row.trained:
            words.append("attack=[linkage,attributes]")
        commands.append(("evaluate", "real_table_trained" if row.trained else "real_table", *words))
    first = next(iter(folds))
    needs = (run_of(raw, part, first),) if row.words else ()
    return Job(run_of(name, part, first), commands[0], needs, of=name, also=tuple(commands[1:]))


def run_of(name: str, part: str, end: str) -> str:
    return f"{name}-{part}-{end}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--summary", action="store_true", help="of what is finished")
    parser.add_argument("--page", action="store_true", help="TABLE.md and the picture")
    options_of(parser)
    options = parser.parse_args()
    file = RESULTS / "summary.json"
    if options.summary:
        from table_summary import summary

        RESULTS.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(summary(options.runs), indent=1) + "\n", encoding="utf-8")
    if options.page:
        from table_page import page, picture

        found = json.loads(file.read_text(encoding="utf-8"))
        (HERE / "TABLE.md").write_text(page(found), encoding="utf-8")
        picture(found, RESULTS / "trade_off.png")
    if not options.summary and not options.page:
        go_on(jobs(), options, None)


if __name__ == "__main__":
    main()
