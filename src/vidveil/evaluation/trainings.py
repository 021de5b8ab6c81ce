"""Which networks an evaluation of clips trains, known before the first of them: the protocol trains what is listed.

trainings(recipe, targets, readable=True)      of raw video, of each setting, of the controls
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vidveil.evaluation.checks import settings_of
from vidveil.evaluation.recipes.clips import EvaluateRecipe

RAW = "raw"
ACTION_CONTROLS = ("one_frame", "shuffled")
"""Controls of the action; the others are about linkage."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """One network, which is trained once per seed."""

    tag: str
    """The clips that it is trained on: raw, `blur:strong`, `dual_cls:RUN-0.8`, the name of a control."""
    tasks: tuple[str, ...]
    network: str
    recipe: EvaluateRecipe
    """With the epochs, the rate and the views of this training."""
    control: str = ""
    """What the loader takes away from the clips."""
    is_attacker: bool = True
    """An attacker's label says its rate."""

    @property
    def words(self) -> list[str]:
        rate = [f"lr {self.recipe.lr:g}"] if self.is_attacker else []
        return ["+".join(self.tasks), self.network, *rate]

    @property
    def name(self) -> str:
        return " ".join([self.tag, *self.words])

    def label(self, seed: int) -> str:
        """By which a run finds it again."""
        return f"{self.name} seed {seed}"

    def label_on_raw(self, seed: int) -> str:
        """That of the training on raw video which `NAME:raw` begins with."""
        return replace(self, tag=RAW, network=self.network.replace(":raw", "")).label(seed)


def trainings(recipe: EvaluateRecipe, targets: Sequence[str], *, readable: bool) -> list[Training]:
    """All of them, each once for all seeds.

    Args:
        targets: what attackers are after, as tasks.
        readable: whether the action is evaluated.
    """
    tags = [RAW, *(setting.tag for setting in settings_of(recipe))]
    found = []
    for tag in tags:
        found += [utility(recipe, tag)] if readable else []
        for tasks in task_groups(recipe, targets):
            found += attackers(recipe, tasks, tag).values()
    for which in recipe.controls:
        found += control(recipe, which).values()
    return found


def task_groups(recipe: EvaluateRecipe, targets: Sequence[str]) -> list[tuple[str, ...]]:
    """What attackers learn together."""
    return [tuple(targets)] if recipe.joint else [(task,) for task in targets]


def utility(recipe: EvaluateRecipe, tag: str) -> Training:
    return Training(tag=tag, tasks=("action",), network=recipe.utility, recipe=recipe, is_attacker=False)


def attackers(recipe: EvaluateRecipe, tasks: Sequence[str], tag: str) -> dict[str, Training]:
    """Every attacker at every learning rate, by the name that results have. On raw video `NAME:raw` goes on where NAME
    ended: raw video is attacked for as long."""
    networks = dict.fromkeys((*from_nothing(recipe.attackers), *recipe.attackers)) if tag == RAW else recipe.attackers
    return _at_each_rate(recipe, tasks, tag, list(networks))


def control(recipe: EvaluateRecipe, which: str) -> dict[str, Training]:
    """Those on raw video with a part taken away."""
    frames = replace(recipe, views="1x1")  # five views of one frame would be five frames
    if which in ACTION_CONTROLS:
        return {
            name: replace(utility(frames, which), network=name, control=which) for name in frame_readers(recipe, which)
        }
    networks = from_nothing(recipe.control_attackers or recipe.attackers)
    if which == "one_frame_linkage":
        return _at_each_rate(frames, ["identity"], which, networks, control="one_frame")
    return _at_each_rate(recipe, ["identity"], which, networks)


def from_nothing(networks: Sequence[str]) -> list[str]:
    """On a part of raw video nobody starts from the whole of it."""
    return list(dict.fromkeys(network.removesuffix(":raw") for network in networks))


def frame_readers(recipe: EvaluateRecipe, which: str) -> list[str]:
    """Who reads the action of one frame, or of frames out of order: the first attacker, by custom, goes frame by frame,
    and order is nothing to it anyway."""
    first = recipe.attackers[0]
    alone = which == "one_frame" and first != recipe.utility and not first.endswith((":frozen", ":raw"))
    return [recipe.utility, first] if alone else [recipe.utility]


def _at_each_rate(
    recipe: EvaluateRecipe, tasks: Sequence[str], tag: str, networks: Sequence[str], control: str = ""
) -> dict[str, Training]:
    found = {}
    for network in networks:
        frozen = network.endswith(":frozen")
        for lr in recipe.attacker_lr[:1] if frozen else recipe.attacker_lr:
            name = network if frozen or len(recipe.attacker_lr) == 1 else f"{network} lr {lr:g}"
            settings = replace(recipe, epochs=recipe.attacker_epochs, lr=lr)
            found[name] = Training(tag=tag, tasks=tuple(tasks), network=network, recipe=settings, control=control)
    return found
