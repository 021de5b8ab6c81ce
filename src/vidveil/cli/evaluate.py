"""`vidveil evaluate`: a method evaluated by attack."""

import typer

from vidveil.cli.planned import show_plan
from vidveil.cli.recipe_words import Data, DryRun, Overrides, Recipe, Resume, Strict
from vidveil.cli.reported import reported
from vidveil.core.progress import console

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@reported("evaluate")
def evaluate(
    recipe: Recipe,
    overrides: Overrides = None,
    data: Data = None,
    strict: Strict = False,
    resume: Resume = False,
    dry_run: DryRun = False,
) -> None:
    """Anonymize a dataset, train a recognizer and attackers anew on the result, report both with their floors.

    Several methods in one run share the trainings on raw video.

    \b
    vidveil evaluate raw_puppets                           what raw video of the synthetic people leaks
    vidveil evaluate blur_puppets                          the same after a strong blur, compared with raw
    vidveil evaluate blur_puppets method=pixelate:8 name=mosaic
    vidveil evaluate raw_ucf101_5 --data sets/             real video; see `vidveil ls data`
    vidveil evaluate untrimmed_puppets method=raw          actions in whole videos, detected by features
    vidveil evaluate raw_puppets seeds=[0,1,2] device=cuda
    vidveil evaluate blur_puppets "method=[blur:strong,figure:14]" name=two
    vidveil evaluate blur_puppets --dry-run                what it would train, and about how long it would take
    vidveil evaluate raw_puppets --resume                  after a crash or Ctrl-C

    Results are in runs/NAME/results.json; `vidveil report runs/NAME` draws them.
    """
    if dry_run:
        show_plan("evaluate", recipe, overrides or [], data, resume=resume)
        return

    from vidveil.app.run_recipe import evaluate as run
    from vidveil.report.tables import table
    from vidveil.training.runs import runs_folder

    results = run(recipe, *(overrides or []), data=data, resume=resume, strict=strict, console=console())
    typer.echo(table([results]))
    kept = runs_folder() / results.name
    typer.echo(f"\nKept in {kept}; tables and a picture: vidveil report {kept} -o {results.name}.md", err=True)
