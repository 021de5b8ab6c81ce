"""The evaluation of a method: freeze it, anonymize everything once, train evaluators and attackers anew, test once.

    raw video ──┬──────────────────────────► recognizer, attackers ─► R, raw top-1
                └─► method (a black box) ──► recognizer, attackers ─► v, top-1       excess (v − f)/(R − f), retention

Every network is trained once per seed on the clips as the method leaves them, its epoch is chosen on validation people,
and test people are evaluated once. Each training is a part of the run, and is found again after an interruption.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import ClipSet
from vidveil.data.description import UTILITY_METRICS
from vidveil.data.video_parts import VIDEO_PARTS
from vidveil.evaluation.attacks.raw_gallery import crossings
from vidveil.evaluation.checks import refuse_mistakes
from vidveil.evaluation.evaluators.train import TrainedNetwork, learn
from vidveil.evaluation.measures.actions import readable
from vidveil.evaluation.measures.subgroups import subgroups, too_few
from vidveil.evaluation.number import Number
from vidveil.evaluation.protocols.clips_protocol import ClipsProtocol
from vidveil.evaluation.protocols.lookups import GaitProtocol, RetrievalProtocol
from vidveil.evaluation.protocols.protocol import Evaluated, check_splits, run_protocol
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.trainings import (
    ACTION_CONTROLS,
    Training,
    attackers,
    control,
    task_groups,
    trainings,
    utility,
)
from vidveil.tasks.identity import everybody_is_known

TARGETS = {"linkage": "identity", "attributes": "attributes"}  # what is attacked → the task that learns it
HEADLINES = (*UTILITY_METRICS, "linkage_rank1", "identity_top1", "cmap", "identity_hidden", "action_kept")


class AttackProtocol(ClipsProtocol):
    """A recognizer and attackers are trained anew on raw clips and on those of each setting."""

    def __init__(self, recipe: EvaluateRecipe, data: ClipSet, root: Path | None = None) -> None:
        super().__init__(recipe, data, root)
        self.targets = targets(recipe, data)
        check_splits(data)
        self.readable = readable(data)
        self.trained = 0
        self.planned = len(recipe.seeds) * len(trainings(recipe, self.targets, readable=self.readable))

    def evaluate_setting(self, data: Sequence[ClipSet], about: Evaluated) -> Evaluated:
        """Utility and every attack on these clips."""
        tag, recipe, numbers, raw = about.tag, self.recipe, about.numbers, about.raw
        if self.readable:
            networks = self._train_seeds(data, utility(recipe, tag))
            numbers[self.measure.utility] = action = self.measure.action({recipe.utility: networks})
            numbers |= subgroups(self.measure, action, networks)
            if raw is None and (few := too_few(self.measure)):
                self.say(few)
        for tasks in task_groups(recipe, self.targets):
            attacking = self._train_all(data, attackers(recipe, tasks, tag))
            if "identity" in tasks:
                about.attackers = attacking
                numbers |= self.measure.linkage(attacking)
                if everybody_is_known(self.data):
                    numbers["identity_top1"] = self.measure.identity(attacking)
            if "attributes" in tasks:
                of_attributes, about.constant = self.measure.attributes(attacking)
                numbers |= of_attributes
        if raw is not None:
            if "identity" in self.targets:
                crossed = crossings(recipe, self.data, data, about.attackers, raw.attackers)
                numbers["linkage_rank1_raw_gallery"] = self.measure.raw_gallery(crossed)
            numbers |= self.truth.numbers(data)
        self.say_values(about, HEADLINES)
        return about

    def _train_all(self, data: Sequence[ClipSet], each: Mapping[str, Training]) -> dict[str, list[TrainedNetwork]]:
        return {name: self._train_seeds(data, one) for name, one in each.items()}

    def _train_seeds(self, data: Sequence[ClipSet], training: Training) -> list[TrainedNetwork]:
        """One training per seed."""
        learned = []
        for seed, clips in zip(self.seeds, data, strict=True):
            label = training.label(seed)
            start = None
            if training.network.endswith(":raw"):
                start = self.folder(training.label_on_raw(seed)) / "weights.safetensors"
            one = learn(
                clips,
                training.tasks,
                training.network,
                training.recipe,
                seed=seed,
                folder=self.folder(label),
                control=training.control,
                start=start,
                only_read=bool(self.recipe.raw) and label.startswith("raw "),
                log=self.run.log,
                label=label,
            )
            learned.append(one)
            self.trained += 1
            scores = ", ".join(f"{task} {score:.3f}" for task, score in one.scores.items())
            self.say(f"{label}: {scores} (val), {self.trained} of {self.planned}")
        self.add_cost(training.name, learned[0].parameters, [one.seconds for one in learned])
        return learned

    # ---- what raw video leaks through

    def evaluate_controls(self) -> dict[str, Number]:
        return {name: number for which in self.recipe.controls for name, number in self._control(which).items()}

    def _control(self, which: str) -> dict[str, Number]:
        """The same numbers with a part of the video taken away, by networks that are trained anew on what is left, for
        as long as on the whole: a weak network would find little in anything."""
        taken_by_loader = which in (*ACTION_CONTROLS, "one_frame_linkage")
        data = self.for_all_seeds(self.data if taken_by_loader else self._control_clips(which))
        learned = self._train_all(data, control(self.recipe, which))
        if which in ACTION_CONTROLS:
            return {self.measure.utility.replace("action", which): self.measure.action(learned)}
        return {f"{which.removesuffix('_linkage')}_rank1": self.measure.linkage(learned)["linkage_rank1"]}

    def _control_clips(self, which: str) -> ClipSet:
        """The clips with a part taken away."""
        recipe = self.recipe
        if which in VIDEO_PARTS:
            return VIDEO_PARTS[which](self.data)
        spec = recipe.data + ("," if ":" in recipe.data else ":") + f"view={which}"
        return load_data(spec, frames=recipe.frames, size=recipe.size, root=self.root, seed=recipe.data_seed)


def targets(recipe: EvaluateRecipe, data: ClipSet) -> list[str]:
    """What attackers are after, as tasks. DataError if the set has nothing of it."""
    found = [TARGETS[name] for name in recipe.attack if _can_attack(data, name)]
    if not found:
        raise DataError(_nothing_to_attack(data, recipe.attack))
    return found


def _nothing_to_attack(data: ClipSet, asked: Sequence[str]) -> str:
    named = " nor ".join("people" if name == "linkage" else name for name in asked)
    none = f"{data.name} names {f'neither {named}' if len(asked) > 1 else f'no {named}'}"
    if other := next((name for name in TARGETS if _can_attack(data, name)), None):
        return f"{none}: write attack=[{other}]"
    instead = f"; its actions can be learned: vidveil train raw_actions data={data.name}" if readable(data) else ""
    return f"{none}: there is nothing to attack{instead}"


def _can_attack(data: ClipSet, what: str) -> bool:
    return bool((data.person >= 0).any()) if what == "linkage" else bool(len(data.attribute_names))


PROTOCOLS: dict[str, type[ClipsProtocol]] = {
    "attack": AttackProtocol,
    "gait": GaitProtocol,
    "retrieval": RetrievalProtocol,
}


def load(recipe: EvaluateRecipe, root: Path | None, strict: bool) -> ClipsProtocol:
    """The protocol, with the clips of its recipe."""
    refuse_mistakes(recipe)
    data = load_data(
        recipe.data, frames=recipe.frames, size=recipe.size, root=root, seed=recipe.data_seed, strict=strict
    )
    return PROTOCOLS[recipe.protocol](recipe, VIDEO_PARTS[recipe.part](data), root)


run = partial(run_protocol, load)
"""`vidveil evaluate` of clips."""
