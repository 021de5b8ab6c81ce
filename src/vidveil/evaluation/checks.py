"""Mistakes in a recipe: reported before the first training, and before there is a run."""

from collections.abc import Sequence
from dataclasses import replace

from vidveil.core.anonymizer import Chain
from vidveil.core.errors import UsageError
from vidveil.core.text import close_to
from vidveil.data.video_parts import check_video_part
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.recipes.recipe import EvaluationRecipe
from vidveil.methods import METHODS, load, works_on_features
from vidveil.methods.anonymized_data import Setting, check_method
from vidveil.methods.masking.baselines import CONTROLS, is_pruning_control
from vidveil.methods.masking.ground_truth import has_truth
from vidveil.methods.motion import MotionMethod
from vidveil.models.recognizers import RECOGNIZERS
from vidveil.training.log import file_name
from vidveil.training.runs import runs_folder

STARTS = ("pretrained", "frozen", "raw")  # after the name of a network and a colon
ONLY = ("background", "mask", "motion")  # views that built-in worlds have
ENERGY = "energy"  # no network: the mean of all frames


def refuse_mistakes(recipe: EvaluateRecipe) -> None:
    for setting in each_of(recipe):
        if works_on_features(setting.method):
            raise UsageError(
                f"{setting.method} is an adapter of features, and the protocol {recipe.protocol} evaluates video: take "
                "protocol: features, detection or anomaly"
            )
        check_on_video(setting, recipe)
    check_video_part(recipe.part, recipe.data)
    if recipe.part != "whole":
        _check_with_part(recipe)
    if recipe.protocol != "attack":
        _check_lookup(recipe)
        return
    for network in (recipe.utility, *recipe.attackers, *recipe.control_attackers):
        check_network(network)
    if recipe.utility.endswith(":raw"):
        raise UsageError(f"{recipe.utility}: the utility network is trained anew; write its name alone")
    if "linkage" not in recipe.attack and (about := [c for c in recipe.controls if c not in ("one_frame", "shuffled")]):
        raise UsageError(f"the control {about[0]} is about linkage, and attack leaves it out")
    if recipe.raw and not (runs_folder() / recipe.raw / "results.json").is_file():
        raise UsageError(f"raw: there is no finished run {recipe.raw!r} in {runs_folder()}")
    if views := [which for which in recipe.controls if which in ONLY and not recipe.data.startswith("puppets")]:
        raise UsageError(f"{views[0]} alone is known of built-in people only; for real video take the control median")


def check_network(network: str) -> None:
    """UsageError for a name that does not exist, and for a start that the network does not have."""
    name, colon, start = network.partition(":")
    if name not in RECOGNIZERS:
        raise UsageError(f"no recognizer is called {name!r}; {close_to(name, RECOGNIZERS)}")
    if colon and start not in STARTS:
        raise UsageError(f"{network}: after the colon comes {', '.join(STARTS[:-1])} or {STARTS[-1]}")
    if start == "pretrained" and RECOGNIZERS[name].weights is None:
        raise UsageError(f"{network}: there are no published weights of {name}; leave out :pretrained")


def settings_of(recipe: EvaluationRecipe) -> list[Setting]:
    """Each method at each keep rate; none of raw."""
    knobs = Setting(method="raw", region=recipe.region, privacy_weight=recipe.privacy_weight, fill=recipe.fill)
    return [
        replace(knobs, method=method, keep=keep)
        for method in recipe.method
        for keep in recipe.keep or (None,)
        if method != "raw"
    ]


def each_of(recipe: EvaluationRecipe) -> list[Setting]:
    """The settings of each seed, each of them once; raw, too, whose knobs are mistakes."""
    settings = settings_of(recipe) or [_raw(recipe)]
    tags = [file_name(one.tag) for one in settings]
    if again := next((one for one, tag in zip(settings, tags, strict=True) if tags.count(tag) > 1), None):
        raise UsageError(f"{again}: another method of this run would have the same folders; evaluate it in another run")
    return list(dict.fromkeys(one.of_seed(seed) for one in settings for seed in recipe.seeds))


def _raw(recipe: EvaluationRecipe) -> Setting:
    keep = recipe.keep[0] if recipe.keep else None
    return Setting(method="raw", keep=keep, privacy_weight=recipe.privacy_weight, fill=recipe.fill)


def check_on_video(setting: Setting, recipe: EvaluationRecipe) -> None:
    """UsageError for a method of video that does not exist, or has no such knob."""
    if setting.method.partition(":")[0] == "oracle" and not has_truth(recipe.data):
        raise UsageError(f"oracle needs ground truth, and {recipe.data} has none: take the built-in people, puppets")
    try:
        check_method(setting, [] if setting.keep is None else [setting.keep])
    except UsageError as error:
        if hint := _comma(setting.method, recipe.method):
            raise UsageError(f"{str(error).partition(';')[0]}; {hint}") from error
        raise


def _comma(method: str, listed: Sequence[str]) -> str:
    """How to write what has a comma, which ends an entry of a list, and elsewhere is a part of a word."""
    parts = [part.strip() for part in method.split(",")]
    if len(parts) > 1 and all(part.partition(":")[0] in (*METHODS, *CONTROLS, "noise") for part in parts):
        return f"several methods are a list: [{','.join(parts)}]"
    at = listed.index(method) if method in listed else 0
    if at and method.replace(".", "").isdecimal():
        return f'quote a method with a comma: ["{listed[at - 1]},{method}"]'
    return ""


def _check_with_part(recipe: EvaluateRecipe) -> None:
    if whole := [which for which in recipe.controls if which in ("median", "person_crop")]:
        raise UsageError(f"the control {whole[0]} is of the whole video: leave it out, or part")
    for method in recipe.method if recipe.part == "median" else ():
        if _compares_frames(method.replace("{seed}", str(recipe.seeds[0]))):
            raise UsageError(f"part: median is one picture, of which {method} shows nothing, whatever it hides")


def _compares_frames(spec: str) -> bool:
    if spec in ("raw", "noise") or is_pruning_control(spec):
        return False
    method = load(spec.removeprefix("random:"))
    stages = method.stages if isinstance(method, Chain) else (method,)
    return any(isinstance(one, MotionMethod) for stage in stages for one in (stage, stage.preprocess))


def _check_lookup(recipe: EvaluateRecipe) -> None:
    """Protocols that look clips up train nothing; a recipe that asks for a training expects something else."""
    for network in recipe.attackers:
        if network == ENERGY and recipe.protocol == "gait":
            continue
        if not network.endswith(":frozen"):
            also = " or energy" if recipe.protocol == "gait" else ""
            raise UsageError(
                f"{network}: the protocol {recipe.protocol} trains nothing; take frozen networks, as i3d:frozen{also}"
            )
        check_network(network)
    for key in ("controls", "control_attackers", "raw"):
        if getattr(recipe, key):
            raise UsageError(f"the protocol {recipe.protocol} trains nothing: leave {key} out")
