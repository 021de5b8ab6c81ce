"""What can be known to be wrong with an evaluation is said before the first training, and before there is a run."""

from vidveil.core.anonymizer import Chain
from vidveil.core.errors import UsageError
from vidveil.data.parts import refuse_part
from vidveil.evaluation.evaluators.train import check_network
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.methods import load
from vidveil.methods.anonymized_data import Setting, check_method
from vidveil.methods.masking.baselines import pruning_control
from vidveil.methods.masking.ground_truth import has_truth
from vidveil.methods.motion import MotionMethod
from vidveil.training.runs import runs_folder

ONLY = ("background", "mask", "motion")  # views that built-in worlds have
ENERGY = "energy"  # no network: the mean of all frames


def refuse_mistakes(recipe: EvaluateRecipe) -> None:
    for setting in dict.fromkeys(setting_of(recipe).of_seed(seed) for seed in recipe.seeds):
        check_method(setting, recipe.keep)
    if recipe.method.partition(":")[0] == "oracle" and not has_truth(recipe.data):
        raise UsageError(f"oracle knows the truth of built-in people only, and {recipe.data} has none: take puppets")
    refuse_part(recipe.part, recipe.data)
    if recipe.part != "whole":
        _refuse_beside_part(recipe)
    if recipe.protocol != "attack":
        _refuse_to_learn(recipe)
        return
    for network in (recipe.utility, *recipe.attackers, *recipe.control_attackers):
        check_network(network)
    if recipe.utility.endswith(":raw"):
        raise UsageError(f"{recipe.utility}: the utility network is trained on what it judges; write its name alone")
    if "linkage" not in recipe.attack and (about := [c for c in recipe.controls if c not in ("one_frame", "shuffled")]):
        raise UsageError(f"the control {about[0]} is about linkage, and attack leaves it out")
    if recipe.raw and not (runs_folder() / recipe.raw / "results.json").is_file():
        raise UsageError(f"raw: there is no finished run {recipe.raw!r} in {runs_folder()}")
    if views := [which for which in recipe.controls if which in ONLY and not recipe.data.startswith("puppets")]:
        raise UsageError(f"{views[0]} alone is known of built-in people only; for real video take the control median")


def _refuse_beside_part(recipe: EvaluateRecipe) -> None:
    if beside := [which for which in recipe.controls if which in ("median", "person_crop")]:
        raise UsageError(f"the control {beside[0]} is of the whole video: leave it out, or part")
    if recipe.part == "median" and _compares_frames(setting_of(recipe).of_seed(recipe.seeds[0]).method):
        raise UsageError(f"part: median is one picture, of which {recipe.method} shows nothing, whatever it hides")


def _compares_frames(spec: str) -> bool:
    if spec in ("raw", "noise") or pruning_control(spec, None):
        return False
    method = load(spec.removeprefix("random:"))
    stages = method.stages if isinstance(method, Chain) else (method,)
    return any(isinstance(one, MotionMethod) for each in stages for one in (each, getattr(each, "after", None)))


def setting_of(recipe: EvaluateRecipe) -> Setting:
    """The method with its knobs, all but the keep rate."""
    return Setting(method=recipe.method, region=recipe.region, privacy_weight=recipe.privacy_weight, fill=recipe.fill)


def _refuse_to_learn(recipe: EvaluateRecipe) -> None:
    """Protocols that look clips up train nothing, and what asks for a training is a misunderstanding."""
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
