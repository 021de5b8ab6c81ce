"""How many networks an evaluation trains, known before the first of them."""

from collections.abc import Sequence

from vidveil.evaluation.recipes.clips import EvaluateRecipe


def trainings(recipe: EvaluateRecipe, targets: Sequence[str], *, readable: bool) -> int:
    """Of raw video, of every setting and of the controls, all seeds.

    Args:
        targets: what attackers are after, as tasks.
        readable: whether the action is evaluated.
    """
    settings = 0 if recipe.method == "raw" else len(recipe.keep) or 1
    groups = [targets] if recipe.joint else [[task] for task in targets]

    def attacks(networks: Sequence[str]) -> int:
        return len(groups) * sum(_rates(network, recipe) for network in networks)

    count = (1 + settings) * readable + attacks(on_raw(recipe.attackers)) + settings * attacks(recipe.attackers)
    for which in recipe.controls:
        if which in ("one_frame", "shuffled"):
            count += len(frame_readers(recipe, which))
        else:
            networks = from_nothing(recipe.control_attackers or recipe.attackers)
            count += sum(_rates(network, recipe) for network in networks)
    return count * len(recipe.seeds)


def on_raw(networks: Sequence[str]) -> tuple[str, ...]:
    """On raw video `NAME:raw` goes on where NAME ended: raw video is attacked for as long."""
    return tuple(dict.fromkeys((*from_nothing(networks), *networks)))


def from_nothing(networks: Sequence[str]) -> tuple[str, ...]:
    """On a part of raw video nobody starts from the whole of it."""
    return tuple(dict.fromkeys(network.removesuffix(":raw") for network in networks))


def frame_readers(recipe: EvaluateRecipe, which: str) -> list[str]:
    """Who reads the action of one frame, or of frames out of order: the first attacker, by custom, goes frame by frame,
    and order is nothing to it anyway."""
    first = recipe.attackers[0]
    alone = which == "one_frame" and first != recipe.utility and not first.endswith((":frozen", ":raw"))
    return [recipe.utility, first] if alone else [recipe.utility]


def _rates(network: str, recipe: EvaluateRecipe) -> int:
    return 1 if network.endswith(":frozen") else len(recipe.attacker_lr)
