"""`vidveil train`: one network, by a recipe."""

import typer

from vidveil.cli.recipe_words import Data, Overrides, Recipe, Resume


def train(recipe: Recipe, overrides: Overrides = None, data: Data = None, resume: Resume = False) -> None:
    """Train one network; the epoch is chosen on validation, test is looked at once.

    \b
    vidveil train action_puppets                              an action recognizer of the built-in people
    vidveil train action_puppets recognizer=r3d18 device=cuda name=big
    vidveil train action_puppets tasks=[identity,attributes]
    vidveil train action_puppets --resume                     after a crash or Ctrl-C: to the bit as if never stopped

    Weights, logs and results are in runs/NAME; TensorBoard (pip install tensorboard) draws the curves under runs/.
    """
    from rich.console import Console

    from vidveil.evaluation.train import run
    from vidveil.recipe import find, read_for
    from vidveil.training.recipe import TrainRecipe

    wanted = read_for("train", TrainRecipe, find(recipe), overrides or [])
    results = run(wanted, root=data, resume=resume, console=Console(stderr=True))

    from vidveil.report.tables import table

    typer.echo(table([results]))
    typer.echo(
        f"\nKept in runs/{wanted.name}; tables and a picture: vidveil report {wanted.name} -o {wanted.name}.md",
        err=True,
    )
