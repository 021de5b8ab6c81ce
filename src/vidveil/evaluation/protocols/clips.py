"""The evaluation of a method: freeze it, anonymize everything once, train judges and attackers anew, test once.

    raw video ──┬──────────────────────────► recognizer, attackers ─► R, raw top-1
                └─► method (a black box) ──► recognizer, attackers ─► v, top-1       excess (v − f)/(R − f), retention

Every network is trained once a seed on the clips as they are after the method, its epoch is chosen on validation
people, and test people are looked at once. Each training is a part of the run, found again after an interruption.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from rich.console import Console

from vidveil.core.errors import DataError
from vidveil.core.machine import describe
from vidveil.core.recipe import as_values
from vidveil.data import load_data
from vidveil.data.about import USES, about_data
from vidveil.data.clips import SPLITS, ClipSet
from vidveil.data.parts import PARTS
from vidveil.data.store.anonymized import forget, kept_as_filmed
from vidveil.evaluation.attacks.raw_gallery import crossings
from vidveil.evaluation.checks import refuse_mistakes, setting_of
from vidveil.evaluation.evaluators.train import Learned, learn
from vidveil.evaluation.measures.actions import readable
from vidveil.evaluation.measures.ground_truth import Truth
from vidveil.evaluation.measures.measure import Measure, Number
from vidveil.evaluation.measures.subgroups import subgroups, too_few
from vidveil.evaluation.per_clip import write_per_clip
from vidveil.evaluation.plan import frame_readers, from_nothing, on_raw, trainings
from vidveil.evaluation.points import attribute_excess, control_metrics, point
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.results import ByView, Point, Results
from vidveil.methods.anonymized_data import anonymized
from vidveil.tasks.identity import everybody_is_known
from vidveil.training.options import options_of
from vidveil.training.runs import Run, runs_folder

TARGETS = {"linkage": "identity", "attributes": "attributes"}  # what is attacked → the task that learns it
HEADLINES = (*USES, "linkage_rank1", "identity_top1", "cmap", "identity_hidden", "action_kept")


def run(
    recipe: EvaluateRecipe,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Results:
    """All of it. `root` is the folder with datasets; a video that cannot be decoded is an error if `strict`."""
    accelerator = options_of(recipe, 0).accelerator()
    refuse_mistakes(recipe)
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    data = load_data(
        recipe.data, frames=recipe.frames, size=recipe.size, root=root, seed=recipe.data_seed, strict=strict
    )
    data = PARTS[recipe.part](data)
    with Run.create(recipe.name, as_values(recipe), resume=resume, accelerator=accelerator, console=console) as made:
        results = engine_for(recipe)(recipe, data, made, root, console).evaluate()
        results.write(made.folder / "results.json")
    return results


def engine_for(recipe: EvaluateRecipe) -> "type[Engine]":
    """The one that follows the recipe's protocol."""
    if recipe.protocol == "attack":
        return Engine
    from vidveil.evaluation.protocols.lookups import GaitEngine, RetrievalEngine

    return GaitEngine if recipe.protocol == "gait" else RetrievalEngine


@dataclass
class Judged:
    """Raw video or one setting of the method, with everything that was found about it."""

    method: str
    keep: float | None
    numbers: dict[str, Number] = field(default_factory=dict)
    constant: list[str] = field(default_factory=list)
    attackers: dict[str, list[Learned]] = field(default_factory=dict)
    """Those that learned identity, one a seed."""
    by_view: ByView = field(default_factory=dict)
    """Of gaits: rank-1 by condition, view of the probe and view of the gallery."""
    kept_as_filmed: bool | None = None

    @property
    def tag(self) -> str:
        return self.method if self.keep is None else f"{self.method}-{self.keep:g}"


class Engine:
    def __init__(
        self, recipe: EvaluateRecipe, data: ClipSet, run: Run, root: Path | None, console: Console | None
    ) -> None:
        self.recipe, self.data, self.run, self.root, self.console = recipe, data, run, root, console
        self.measure = Measure(
            data, permutations=recipe.permutations, resamples=recipe.resamples, f1_threshold=recipe.f1_threshold,
            device=options_of(recipe, 0).accelerator(),
        )  # fmt: skip
        self.truth = Truth(data, self.measure)
        self.targets: list[str] = []
        self.trained = 0
        self.cost: dict[str, dict[str, float]] = {}
        self.began = monotonic()
        self.prepare()

    def prepare(self) -> None:
        """What this protocol asks of the set, and how much there is to do."""
        recipe, data = self.recipe, self.data
        self.targets = [TARGETS[name] for name in recipe.attack if _can_attack(data, name)]
        if not self.targets:
            raise DataError(_nothing_to_attack(data, recipe.attack))
        if empty := [split for split in SPLITS if not len(data.indices(split))]:
            raise DataError(
                f"{data.name} has no clips in {' and '.join(empty)}: nothing can be trained and tested on it"
            )
        self.readable = readable(data)
        self.planned = trainings(recipe, self.targets, readable=self.readable)

    def evaluate(self) -> Results:
        recipe = self.recipe
        raw = self.judge(self.same_for_all(self.data), Judged("raw", None))
        settings = () if recipe.method == "raw" else recipe.keep or (None,)
        judged = [self.setting(keep, raw) for keep in settings]
        per_clip = {f"{one.tag}/{name}": number for one in (raw, *judged) for name, number in one.numbers.items()}
        shares = {one.tag: attribute_excess(one.numbers, raw.numbers) for one in judged}
        attributes = {tag: share.estimate for tag, share in shares.items() if share and share.estimate}
        write_per_clip(self.run.folder / "per_clip.safetensors", self.measure.people, per_clip, attributes)
        controls = {name: number for which in recipe.controls for name, number in self.control(which).items()}
        return Results(
            name=recipe.name,
            recipe=as_values(recipe),
            data=about_data(self.data),
            machine=describe(options_of(recipe, 0).accelerator()),
            seconds=round(monotonic() - self.began, 1),
            raw=told(raw, raw),
            points=[told(one, raw) for one in judged],
            controls=control_metrics(controls),
            cost=self.cost,
        )

    def setting(self, keep: float | None, raw: Judged) -> Judged:
        """The method at one keep rate. Its clips are held here alone: a file that is still mapped fills the disk."""
        after = self.after(keep)
        found = self.judge(after, Judged(self.recipe.method, keep, kept_as_filmed=kept_as_filmed(after)), raw)
        if self.recipe.tidy:
            forget(after)
        return found

    def same_for_all(self, data: ClipSet) -> list[ClipSet]:
        """One set for the judges of every seed."""
        return [data] * len(self.recipe.seeds)

    def after(self, keep: float | None) -> list[ClipSet]:
        """The clips after the method, one set a seed; the same one, unless the method was trained once a seed."""
        setting = replace(setting_of(self.recipe), keep=keep)
        each = [setting.of_seed(seed) for seed in self.recipe.seeds]
        device = options_of(self.recipe, 0).accelerator()
        made = {one: anonymized(self.data, one, device=device) for one in dict.fromkeys(each)}
        return [made[one] for one in each]

    def judge(self, data: Sequence[ClipSet], about: Judged, raw: Judged | None = None) -> Judged:
        """Utility and every attack on the clips as they are after the method."""
        tag, recipe = about.tag, self.recipe
        if self.readable:
            utility = self._seeds(data, ["action"], recipe.utility, recipe, tag)
            about.numbers[self.measure.use] = use = self.measure.action({recipe.utility: utility})
            about.numbers |= subgroups(self.measure, use, utility)
            if raw is None and (few := too_few(self.measure)):
                self._say(few)
        for tasks in [self.targets] if recipe.joint else [[task] for task in self.targets]:
            found = self._attackers(data, tasks, tag, raw, recipe)
            if "identity" in tasks:
                about.attackers = found
                about.numbers |= self.measure.linkage(found)
                if everybody_is_known(self.data):
                    about.numbers["identity_top1"] = self.measure.identity(found)
            if "attributes" in tasks:
                numbers, about.constant = self.measure.attributes(found)
                about.numbers |= numbers
        if raw is not None and "identity" in self.targets:
            crossed = crossings(recipe, self.data, data, about.attackers, raw.attackers)
            about.numbers["linkage_rank1_raw_gallery"] = self.measure.raw_gallery(crossed)
        if raw is not None:
            about.numbers |= self.truth.numbers(data)
        values = {name: about.numbers[name].leak.value.value for name in HEADLINES if name in about.numbers}
        self._say(f"{tag}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
        return about

    def _attackers(
        self,
        data: Sequence[ClipSet],
        tasks: Sequence[str],
        tag: str,
        raw: Judged | None,
        recipe: EvaluateRecipe,
        control: str = "",
    ) -> dict[str, list[Learned]]:
        """Every attacker at every rate, all of its seeds."""
        found = {}
        networks = recipe.attackers
        if raw is None:
            networks = on_raw(networks) if tag == "raw" else from_nothing(networks)
        for network in networks:
            frozen = network.endswith(":frozen")
            for lr in recipe.attacker_lr[:1] if frozen else recipe.attacker_lr:
                settings = replace(recipe, epochs=recipe.attacker_epochs, lr=lr)
                name = network if frozen or len(recipe.attacker_lr) == 1 else f"{network} lr {lr:g}"
                found[name] = self._seeds(data, list(tasks), network, settings, tag, control, lr)
        return found

    def _seeds(
        self,
        data: Sequence[ClipSet],
        tasks: Sequence[str],
        network: str,
        settings: EvaluateRecipe,
        tag: str,
        control: str = "",
        rate: float | None = None,
    ) -> list[Learned]:
        """One training a seed."""
        learned = []
        for seed, clips in zip(settings.seeds, data, strict=True):
            words = ["+".join(tasks), network, *([] if rate is None else [f"lr {rate:g}"]), f"seed {seed}"]
            label = " ".join([tag, *words])
            start = None
            if network.endswith(":raw"):
                on_raw = " ".join(["raw", *words]).replace(":raw", "")
                start = self._folder(on_raw) / "weights.safetensors"
            one = learn(
                clips,
                tasks,
                network,
                settings,
                seed=seed,
                folder=self._folder(label),
                control=control,
                start=start,
                only_read=bool(self.recipe.raw) and label.startswith("raw "),
                log=self.run.log,
                label=label,
            )
            learned.append(one)
            self.trained += 1
            scores = ", ".join(f"{task} {score:.3f}" for task, score in one.scores.items())
            self._say(f"{label}: {scores} (val), {self.trained} of {self.planned}")
        self.cost[" ".join([tag, *words[:-1]])] = {
            "parameters": learned[0].parameters,
            "seconds": round(sum(one.seconds for one in learned), 1),
        }
        return learned

    def _folder(self, label: str) -> Path:
        """Where a training is kept: in this run, or in the one that evaluated raw video already."""
        if self.recipe.raw and label.startswith("raw "):
            return runs_folder() / self.recipe.raw / self.run.part(label).relative_to(self.run.folder)
        return self.run.part(label)

    # ---- what raw video leaks through

    def control(self, which: str) -> dict[str, Number]:
        """The same numbers with a part of the video taken away, by networks trained anew on what is left, for as long
        as on the whole: a weak judge would find little in anything."""
        recipe, whole = self.recipe, self.same_for_all(self.data)
        if which in ("one_frame", "shuffled"):
            settings = replace(recipe, views="1x1")  # five views of one frame would be five frames
            readers = frame_readers(recipe, which)
            learned = {name: self._seeds(whole, ["action"], name, settings, which, control=which) for name in readers}
            return {self.measure.use.replace("action", which): self.measure.action(learned)}
        if which == "one_frame_linkage":
            data, settings = whole, replace(recipe, views="1x1")
        else:
            data, settings = self.same_for_all(self._left(which)), recipe
        settings = replace(settings, attackers=recipe.control_attackers or recipe.attackers)
        taken = "one_frame" if which == "one_frame_linkage" else ""
        attackers = self._attackers(data, ["identity"], which, None, settings, taken)
        return {f"{which.removesuffix('_linkage')}_rank1": self.measure.linkage(attackers)["linkage_rank1"]}

    def _left(self, which: str) -> ClipSet:
        """The clips with a part taken away."""
        recipe = self.recipe
        if which in PARTS:
            return PARTS[which](self.data)
        spec = recipe.data + ("," if ":" in recipe.data else ":") + f"view={which}"
        return load_data(spec, frames=recipe.frames, size=recipe.size, root=self.root, seed=recipe.data_seed)

    def _say(self, line: str) -> None:
        if self.console is not None:
            shown = f"{monotonic() - self.began:6.0f} s  {line}"
            self.console.print(shown, highlight=False, markup=False, soft_wrap=True)  # one line also in a pipe


def told(one: Judged, raw: Judged) -> Point:
    found = point(one.method, one.keep, one.numbers, one.constant, raw.numbers)
    return replace(found, by_view=one.by_view, kept_as_filmed=one.kept_as_filmed)


def _nothing_to_attack(data: ClipSet, asked: Sequence[str]) -> str:
    named = " nor ".join("people" if name == "linkage" else name for name in asked)
    none = f"{data.name} names {f'neither {named}' if len(asked) > 1 else f'no {named}'}"
    if other := next((name for name in TARGETS if _can_attack(data, name)), None):
        return f"{none}: write attack=[{other}]"
    use = f"; what can be told of it: vidveil train raw_actions data={data.name}" if readable(data) else ""
    return f"{none}: there is nothing to attack{use}"


def _can_attack(data: ClipSet, what: str) -> bool:
    return bool((data.person >= 0).any()) if what == "linkage" else bool(len(data.attribute_names))
