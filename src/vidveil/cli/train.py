"""`vidveil train`: one recognizer, or one method that learns, by a recipe."""

import typer

from vidveil.cli.recipe_words import Data, Overrides, Recipe, Resume, Strict


def train(
    recipe: Recipe, overrides: Overrides = None, data: Data = None, strict: Strict = False, resume: Resume = False
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
    vidveil train action_puppets --resume                     after a crash or Ctrl-C: to the bit as if never stopped

    Weights, logs and results are in runs/NAME; TensorBoard (pip install tensorboard) draws the curves under runs/.
    """
    from vidveil.core.progress import console
    from vidveil.core.recipe import find, names, read_for
    from vidveil.evaluation.train_recognizer import run
    from vidveil.methods.masking.masker import RAW, loaded_unless_raw
    from vidveil.methods.masking.train import run as run_method
    from vidveil.models.checkpoint import tells_more_than_guessing
    from vidveil.training.recipe import LearningRecipe, TrainRecipe

    wanted = read_for("train", LearningRecipe, find(recipe), overrides or [])
    if not isinstance(wanted, TrainRecipe):
        made = run_method(wanted, root=data, resume=resume, strict=strict, console=console())
        guessed = {name: f" (guessing {value:.3f})" for name, value in made.floors.items()}
        told = (f"{name} {value:.3f}{guessed.get(name, '')}" for name, value in made.metrics.items())
        typer.echo("on validation: " + "  ".join(told))
        if made.method == "splavu":
            known = wanted.data.partition(":")[0].replace("features", "store")
            judging = next(f"splavu_{one}_table" for one in (known, "vp") if f"splavu_{one}_table" in names())
            words = f"data={wanted.data} method=splavu:{wanted.name} name={wanted.name}_table"
            worth = f"vidveil evaluate {judging} {f'--data {data} ' if data else ''}{words}"
            typer.echo(f"\nKept in {made.folder}. What it is worth: {worth}", err=True)
            typer.echo(f"On your features: vidveil anonymize STORE --method splavu:{wanted.name}", err=True)
            return
        table_of = f"{made.method}_{wanted.data.partition(':')[0]}_table"
        judging = table_of if table_of in names() else "RECIPE"
        named = f"{made.method}:{wanted.name}"
        worth = f"vidveil evaluate {judging} method={named} name={wanted.name}_table"
        typer.echo(f"\nKept in {made.folder}. What it is worth: {worth}", err=True)
        before = loaded_unless_raw(getattr(wanted, "after", RAW))
        drawn = getattr(wanted, "anonymize", False)  # STPrivacy: then nothing that was filmed is shown
        if not tells_more_than_guessing(made.metrics, made.floors):
            typer.echo("It tells no more of the action than guessing does: train it longer (epochs=…).", err=True)
            return
        guard = "" if drawn or (before is not None and before.elsewhere) else " --guard faces"
        typer.echo(f"On your videos: vidveil anonymize clip.mp4 --method {named}{guard}", err=True)
        return
    results = run(wanted, root=data, resume=resume, strict=strict, console=console())

    from vidveil.report.tables import table
    from vidveil.training.runs import runs_folder

    typer.echo(table([results]))
    kept = runs_folder() / wanted.name
    typer.echo(f"\nKept in {kept}; tables and a picture: vidveil report {kept} -o {wanted.name}.md", err=True)
