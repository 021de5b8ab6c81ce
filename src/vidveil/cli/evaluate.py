"""`vidveil evaluate`: a method judged by attack."""

import typer

from vidveil.cli.recipe_words import Data, Overrides, Recipe, Resume, Strict


def evaluate(
    recipe: Recipe, overrides: Overrides = None, data: Data = None, strict: Strict = False, resume: Resume = False
) -> None:
    """Anonymize a dataset, train a recognizer and attackers anew on the result, report both with their floors.

    \b
    vidveil evaluate raw_puppets                           what raw video of the built-in people gives away
    vidveil evaluate blur_puppets                          the same after a strong blur, beside raw
    vidveil evaluate blur_puppets method=pixelate:8 name=mosaic
    vidveil evaluate raw_ucf101_5 --data sets/             real video; see `vidveil ls data`
    vidveil evaluate untrimmed_puppets method=raw          actions in whole videos, detected by features
    vidveil evaluate raw_puppets seeds=[0,1,2] device=cuda
    vidveil evaluate raw_puppets --resume                  after a crash or Ctrl-C

    Results are in runs/NAME/results.json; `vidveil report runs/NAME` draws them.
    """
    from vidveil.core.progress import console
    from vidveil.core.recipe import find, read_for
    from vidveil.evaluation.recipes.clips import EvaluateRecipe
    from vidveil.evaluation.recipes.features import FeaturesRecipe
    from vidveil.evaluation.recipes.untrimmed import AnomalyRecipe, DetectionRecipe
    from vidveil.training.recipe import LearningRecipe

    wanted = read_for("evaluate", LearningRecipe, find(recipe), overrides or [])
    if isinstance(wanted, FeaturesRecipe):
        from vidveil.evaluation.protocols.features import run as run_features

        results = run_features(wanted, root=data, resume=resume, strict=strict, console=console())
    elif isinstance(wanted, DetectionRecipe | AnomalyRecipe):
        from vidveil.evaluation.protocols.untrimmed import run as run_untrimmed

        results = run_untrimmed(wanted, root=data, resume=resume, strict=strict, console=console())
    else:
        from vidveil.evaluation.protocols.clips import run

        assert isinstance(wanted, EvaluateRecipe)
        results = run(wanted, root=data, resume=resume, strict=strict, console=console())

    from vidveil.report.tables import table
    from vidveil.training.runs import runs_folder

    typer.echo(table([results]))
    kept = runs_folder() / wanted.name
    typer.echo(f"\nKept in {kept}; tables and a picture: vidveil report {kept} -o {wanted.name}.md", err=True)
