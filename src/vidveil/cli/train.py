"""`vidveil train`: one recognizer, or one method that learns, by a recipe."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vidveil.cli.planned import show_plan
from vidveil.cli.recipe_words import Data, DryRun, Overrides, Recipe, Resume, Strict
from vidveil.cli.reported import reported
from vidveil.core.progress import console
from vidveil.core.recipe import names

if TYPE_CHECKING:
    from vidveil.methods.trained import Trained

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@reported("train")
def train(
    recipe: Recipe,
    overrides: Overrides = None,
    data: Data = None,
    strict: Strict = False,
    resume: Resume = False,
    dry_run: DryRun = False,
) -> None:
    """Train a recognizer (its epoch is chosen on validation, test is looked at once) or a method that learns.

    \b
    vidveil train dual_cls_puppets                            a method: which tubelets may stay; then
    vidveil evaluate dual_cls_puppets_table                   what it is worth against attackers, and
    vidveil anonymize clip.mp4 --method dual_cls:dual_cls_puppets
    vidveil train stprivacy_puppets                           another: what stays is drawn anew
    vidveil train action_puppets                              an action recognizer of the built-in people
    vidveil train action_puppets recognizer=r3d18 device=cuda name=big
    vidveil train action_puppets tasks=[identity,attributes]
    vidveil train dual_cls_puppets --dry-run                  its steps, and about how long they would take
    vidveil train action_puppets --resume                     after a crash or Ctrl-C: to the bit as if never stopped

    Weights, logs and results are in runs/NAME; TensorBoard (pip install tensorboard) draws the curves under runs/.
    """
    if dry_run:
        show_plan("train", recipe, overrides or [], data, resume=resume)
        return

    from vidveil.app.run_recipe import train as run
    from vidveil.evaluation.results import Results
    from vidveil.report.tables import table
    from vidveil.training.runs import runs_folder

    made = run(recipe, *(overrides or []), data=data, resume=resume, strict=strict, console=console())
    if not isinstance(made, Results):
        _say_what_next(made, data)
        return
    typer.echo(table([made]))
    kept = runs_folder() / made.name
    typer.echo(f"\nKept in {kept}; tables and a picture: vidveil report {kept} -o {made.name}.md", err=True)


def _say_what_next(made: "Trained", data: Path | None) -> None:
    """Metrics of a trained method, and the commands that measure and use it."""
    from vidveil.models.checkpoint import is_above_chance

    guessed = {name: f" (chance {value:.3f})" for name, value in made.floors.items()}
    typer.echo(
        "on validation: " + "  ".join(f"{name} {v:.3f}{guessed.get(name, '')}" for name, v in made.metrics.items())
    )
    for problem in made.problems:
        typer.echo(f"warning: {problem}", err=True)
    known = made.data.partition(":")[0].replace("features", "store")
    named = f"{made.method}:{made.name}"
    tables = [f"{made.method}_{known}_table", *(["splavu_vp_table"] if made.on_features else [])]
    table = next((one for one in tables if one in names()), "RECIPE")
    of = f"data={made.data} " if made.on_features else ""
    root = f"--data {data} " if data and made.on_features else ""
    worth = f"vidveil evaluate {table} {root}{of}method={named} name={made.name}_table"
    typer.echo(f"\nKept in {made.folder}. What it is worth: {worth}", err=True)
    if made.on_features:
        typer.echo(f"On your features: vidveil anonymize STORE --method {named}", err=True)
    elif not is_above_chance(made.metrics, made.floors):
        typer.echo("It predicts the action no better than chance: train it longer (epochs=…).", err=True)
    else:
        also = " --also-hide faces" if made.shows_filmed else ""
        typer.echo(f"On your videos: vidveil anonymize clip.mp4 --method {named}{also}", err=True)
