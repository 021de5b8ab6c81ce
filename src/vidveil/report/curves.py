"""The curves of a training, from its log: losses with their terms, gradients, and what validation measured.

    curves(run_folder, Path("curves.png"))

A row of panels for each training of the run that has several epochs. Losses of several networks are in one panel, each
network in a colour of its own, its terms dashed; of one network each term has a colour. A sum is grey. A vertical line
is a restart, a cross at the top a problem.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vidveil.core.atomic import new_file
from vidveil.core.bounded import RESULTS_BYTES, parse_json, read_text
from vidveil.core.errors import DataError, OutputError
from vidveil.core.progress import phase
from vidveil.report.colours import COLOURS, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE_VALUES = 10_000
"""In a line of the log, at most."""
ROWS = 12
"""Trainings that are drawn, at most: the first ones."""
NOT_DRAWN = ("time", "event", "fit", "step", "seconds", "epoch")
TITLES = ("loss", "gradient", "validation")
DASHES = ("--", ":", "-.")


@dataclass
class TrainingCurves:
    """One training of a run."""

    label: str
    epochs: dict[int, dict[str, float]] = field(default_factory=dict)
    """Numbers of each epoch, by its number. After a resumption the later line counts."""
    steps: int = 0
    restarts: list[int] = field(default_factory=list)
    problems: dict[str, int] = field(default_factory=dict)
    """Sentence → the epoch after which it came up."""

    def column(self, name: str) -> tuple[list[int], list[float]]:
        """Epochs that have this number, and the numbers."""
        found = [(epoch, row[name]) for epoch, row in sorted(self.epochs.items()) if name in row]
        return [epoch for epoch, _ in found], [value for _, value in found]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.epochs.values() for name in row))


def read_curves(folder: Path) -> list[TrainingCurves]:
    """The trainings of a run. DataError if its log cannot be read."""
    path = folder / "log.jsonl"
    try:
        lines = read_text(path, RESULTS_BYTES).splitlines()
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: the run has no log of a training") from error
    found: dict[str, TrainingCurves] = {}
    for text in lines:
        try:
            line = parse_json(text, LINE_VALUES)
        except ValueError:
            continue  # the end of a line is missing where a run was killed
        if isinstance(line, dict) and isinstance(line.get("fit"), str):
            _add(found.setdefault(line["fit"], TrainingCurves(line["fit"])), line)
    return [one for one in found.values() if len(one.epochs) > 1]


def _add(one: TrainingCurves, line: Mapping[str, Any]) -> None:
    event = line.get("event")
    if event == "epoch" and isinstance(line.get("epoch"), int | float):
        numbers = {k: float(v) for k, v in line.items() if k not in NOT_DRAWN and isinstance(v, int | float)}
        one.epochs[int(line["epoch"])] = numbers
    elif event == "started" and line.get("epochs"):
        one.steps = int(line["steps"]) // int(line["epochs"])
    elif event == "restart":
        one.restarts.append(int(line["step"]))
    elif event == "problem":
        one.problems.setdefault(str(line.get("what")), max(one.epochs, default=1))


@phase("drawing curves")
def curves(trainings: Sequence[TrainingCurves], path: Path) -> None:
    """One PNG."""
    try:
        from matplotlib.figure import Figure  # slow to import
    except ImportError as error:
        raise OutputError("the picture needs matplotlib: pip install matplotlib") from error

    shown = trainings[:ROWS]
    figure = Figure(figsize=(18, 3.2 * len(shown)), dpi=100, layout="constrained")
    for one, row in zip(shown, figure.subplots(len(shown), len(TITLES), squeeze=False), strict=True):
        for axis, title in zip(row, TITLES, strict=True):
            _panel(axis, one, title)
        row[0].set_ylabel(one.label[:60])
    try:
        with new_file(path) as file:
            figure.savefig(file, format="png")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


def _panel(axis: "Axes", one: TrainingCurves, title: str) -> None:
    names = [name for name in one.names if kind_of(name) == title]
    drawn: dict[str, int] = {}  # terms of each network so far
    single = title == "loss" and not any("/" in name.partition("train_loss")[0] for name in names)
    for name in names:
        epochs, values = one.column(name)
        colour, style, width = _colour(one, name), "-", 1.8
        if "train_loss/" in name:
            drawn[colour] = drawn.get(colour, -1) + 1
            style, width = DASHES[drawn[colour] % len(DASHES)], 1.0
            if single:  # of one network: then colours are free for its terms
                colour, style = COLOURS[drawn[colour] % len(COLOURS)], "-"
        label, marker = name.replace("train_loss", "loss"), "." if len(epochs) < 30 else ""
        axis.plot(epochs, values, style, color=colour, linewidth=width, label=label, marker=marker)
    if title == "loss":
        for step in one.restarts:
            axis.axvline(step / max(one.steps, 1), color=GREY, linewidth=0.6, zorder=0)
        for epoch in one.problems.values():
            axis.plot(epoch, 1, "x", color="#D55E00", transform=axis.get_xaxis_transform(), clip_on=False)
    if title == "gradient" and names:
        axis.set_yscale("log")
    if names:
        axis.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        axis.text(0.5, 0.5, "nothing was logged", ha="center", va="center", color=GREY, transform=axis.transAxes)
    axis.set_title(title, fontsize=9)
    axis.set_xlabel("epoch", fontsize=8)
    axis.locator_params(axis="x", integer=True)
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)


def _colour(one: TrainingCurves, name: str) -> str:
    """That of its network, in all panels; grey for the sum over networks. Of validation each number has its own."""
    validated = kind_of(name) == "validation"
    networks = [n if validated else n.partition("/")[0] for n in one.names if (kind_of(n) == "validation") == validated]
    among = [network for network in dict.fromkeys(networks) if validated or network != "train_loss"]
    own = name if validated else name.partition("/")[0]
    return COLOURS[among.index(own) % len(COLOURS)] if own in among else GREY


def kind_of(name: str) -> str:
    """The panel of a number."""
    if name.endswith("gradient"):
        return "gradient"
    return "loss" if "train_loss" in name else "validation"


def text_of(trainings: Sequence[TrainingCurves], picture: str) -> str:
    """Markdown: the last epoch of each training, its problems, and the picture."""
    lines: list[str] = []
    for one in trainings:
        last = max(one.epochs)
        lines += [f"## {one.label}", "", f"| after epoch {last} | |", "|---|---|"]
        lines += [f"| {name} | {value:.4g} |" for name, value in one.epochs[last].items()]
        lines += ["", *(f"- **{problem}**" for problem in one.problems), ""]
    return "\n".join([*lines, f"![curves]({picture})" if picture else ""]).rstrip() + "\n"
