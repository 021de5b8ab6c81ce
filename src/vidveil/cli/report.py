"""`vidveil report`: results as a table and a picture."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidveil.cli.reported import reported
from vidveil.core.atomic import write_text
from vidveil.core.bounded import RESULTS_BYTES, is_file, is_folder, read_text
from vidveil.core.errors import DataError, OutputError, UsageError
from vidveil.core.text import close_to, printable

if TYPE_CHECKING:
    from vidveil.evaluation.results import Results

NO_PICTURE = "There is no picture: neither a trade-off nor the utility of an action was measured."
app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@reported("report")
def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders of runs, their names, or results.json.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Markdown file to write; the picture takes its name, with .png."),
    ] = None,
) -> None:
    """Draw results: every number with its floor and interval, and the trade-off of several runs in one picture.

    Two methods or more are also compared on the same clips, the first with each of the others: differences, leakage at
    equal retention, and the area of their trade-off, where `per_clip.safetensors` stands next to their results.

    Of a run that trained a method: the curves of its training (also of one that goes on, or broke off).

    \b
    vidveil report raw_puppets                                the table, on the terminal
    vidveil report blur_puppets random_puppets -o compared.md writes compared.md and compared.png
    vidveil report runs/blur_puppets elsewhere/results.json   folders and files, too
    vidveil report dual_cls_puppets -o curves.md              losses, gradients and validation, epoch by epoch
    """
    if output is not None:
        _check_name(output)
        _refuse_to_replace(output)

    if len(runs) == 1 and (folder := _training(runs[0])) is not None:
        _report_training(folder, output)
        return

    from vidveil.report.compared import section
    from vidveil.report.tables import table

    found = list(dict(_read(run) for run in runs).items())  # the same run by two names is one
    results = [one for _, one in found]
    text = table(results, section(found))
    if output is None:
        typer.echo(text)
        return

    from vidveil.report.plot import trade_off

    _write(output, lambda picture: trade_off(results, picture), lambda name, what: text + _picture(name, what))


def _picture(name: str, what: str) -> str:
    return f"\n\n![{what}]({name})\n" if what else f"\n\n{NO_PICTURE}\n"


def _training(run: str) -> Path | None:
    """The folder of a run that has no results, and the log of a training."""
    from vidveil.training.runs import runs_folder

    folders = [folder for folder in (Path(run), runs_folder() / run) if is_file(folder / "log.jsonl")]
    return folders[0] if folders and not is_file(folders[0] / "results.json") else None


def _report_training(folder: Path, output: Path | None) -> None:
    from vidveil.report.curves import curves, read_curves, text_of

    trainings = read_curves(folder)
    if not trainings:
        raise DataError(f"run {folder.name!r} has no two epochs of a training yet: there is no curve to draw")
    if output is None:
        typer.echo(text_of(trainings, "").rstrip())
        return

    def drawn(picture: Path) -> str:
        curves(trainings, picture)
        return "curves"

    _write(output, drawn, lambda name, _: text_of(trainings, name))


def _write(output: Path, draw: Callable[[Path], str], text: Callable[[str, str], str]) -> None:
    """The report and its picture: `draw` says what it shows, and nothing if there is none."""
    picture = output.with_suffix(".png")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        shown = draw(picture)
        write_text(output, text(picture.name, shown))
    except OSError as error:
        raise OutputError(f"{output} cannot be written: {(error.strerror or str(error)).lower()}") from error
    typer.echo(f"wrote {output} and {picture}" if shown else f"wrote {output}")


def _refuse_to_replace(output: Path) -> None:
    """A report may take the place of a report, and of nothing else."""
    picture = output.with_suffix(".png")
    try:
        old = read_text(output, RESULTS_BYTES)
        ours = any(f"![{what}]({picture.name})" in old for what in ("trade-off", "utility", "curves"))
        ours = ours or old.endswith(f"{NO_PICTURE}\n")
    except (OSError, ValueError):  # mostly since there is none
        ours = False
    there = next((path for path in (output, picture) if path.exists()), None)
    if there is not None and not ours:
        raise OutputError(f"{there} exists and is no report of vidveil's: take another name")


def _check_name(output: Path) -> None:
    if output.is_dir():
        raise UsageError(f"{output} is a folder: name a file in it, such as {output / 'report.md'}")
    if output.suffix != ".md":
        raise UsageError(f"a report is Markdown: name it {output.with_suffix('.md')}, not {output}")


def _read(run: str) -> tuple[Path, "Results"]:
    """The results, by the file they are in."""
    from vidveil.evaluation.results import locate, read

    path = locate(run)
    if not is_file(path) and Path(run).suffix != ".json":
        raise DataError(_what_is_there_instead(run, path))
    try:
        return path.resolve(), read(path)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read ({error})") from error


def _what_is_there_instead(run: str, path: Path) -> str:
    """Why there are no results: the run is not finished, or has none, or the name is misspelt."""
    from vidveil.training.runs import list_runs

    known = {info.name: info for info in list_runs()}
    if is_folder(run):
        path = Path(run) / "results.json"
    if info := known.get(path.parent.name):
        if info.state == "done":
            return f"run {info.name!r} trained something and has no results of its own: vidveil evaluate measures it"
        return f"run {info.name!r} has no results yet: it is {info.state}" + (
            f" ({info.reason})" if info.reason else ""
        )
    names = [name for name, info in known.items() if info.has_results]
    hint = close_to(run, names, "`vidveil ls runs` shows which there are")
    return f"there are no results at {printable(path, 300)}; {hint}"
