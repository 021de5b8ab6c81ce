"""The evaluation of an adapter of features: anonymize the store, train heads and attackers anew, test once.

    raw features ──┬────────────────► heads, attackers ─► R, raw top-1
                   └─► adapter ─► ẑ ─► heads, attackers ─► v, top-1             excess (v − f)/(R − f), retention
                                  └─► inverted ─► the same again                what an attacker gets back

Attackers have pairs of raw and anonymized features of training videos, too: each tries on what they bring back of raw
features as well, and the strongest on validation counts. Beside heads that are trained anew stand those that were
trained on raw features (`…_raw_heads`): what a system tells that goes on as it was.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

import numpy as np
from rich.console import Console
from torch import Tensor

from vidveil.core.errors import DataError
from vidveil.core.machine import describe
from vidveil.core.recipe import as_values
from vidveil.data.about import about_data, labels_fingerprint
from vidveil.data.features.extract import STATIC
from vidveil.data.features.sets import FeatureSet, load_features
from vidveil.evaluation.attacks.inversion import adapted, black_box, white_box
from vidveil.evaluation.attacks.reconstruction import numbers_of, pictures, reconstructed
from vidveil.evaluation.attacks.reconstruction_sheet import sheet
from vidveil.evaluation.evaluators.features import SPACE, Taught, seen, space, teach
from vidveil.evaluation.evaluators.train import TESTED, Learned
from vidveil.evaluation.measures.measure import Crossing, Floats, Measure, Number
from vidveil.evaluation.measures.subgroups import subgroups, too_few
from vidveil.evaluation.per_clip import write_per_clip
from vidveil.evaluation.points import attribute_excess
from vidveil.evaluation.protocols.clips import Judged, told
from vidveil.evaluation.protocols.feature_gait import FeatureGaitEngine
from vidveil.evaluation.protocols.lookups import retrieval_numbers
from vidveil.evaluation.recipes.features import FeaturesRecipe, Judge
from vidveil.evaluation.results import Results
from vidveil.methods.splavu.load import load_adapter, refuse_other_encoder
from vidveil.methods.splavu.model import AAM
from vidveil.statistics.projections import lda
from vidveil.tasks import TASKS, Task
from vidveil.tasks.retrieval import Retrieval, retrieval
from vidveil.training.options import options_of
from vidveil.training.runs import Run

RAW_HEADS = "_raw_heads"
INVERTED = {"black_box": "inverted by pairs", "white_box": "inverted by the adapter"}
"""Setting → what it is called beside the method."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What raw features gave."""

    judged: Judged
    heads: dict[str, dict[str, list[Taught]]]
    wanted: Tensor | None
    came_back: dict[str, Tensor]
    cost: dict[str, dict[str, float]]


_RAW: dict[str, Seen] = {}
"""Of the last set that this process looked at."""


def run(
    recipe: FeaturesRecipe,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Results:
    device = options_of(recipe, 0).accelerator()
    adapters = [load_adapter(recipe.method.replace("{seed}", str(seed))) for seed in recipe.seeds]
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    data = load_features(
        recipe.data, recipe.encoder, frames=recipe.frames, size=recipe.size, stride=recipe.stride, half=recipe.half,
        static=0 if "gait" in recipe.attack else STATIC, root=root, seed=recipe.data_seed, strict=strict, device=device,
    )  # fmt: skip
    for adapter, encoder in filter(None, adapters):
        refuse_other_encoder(data, adapter, encoder)
    with Run.create(recipe.name, as_values(recipe), resume=resume, accelerator=device, console=console) as made:
        trained = [None if one is None else one[0].to(device) for one in adapters]
        engine = FeatureGaitEngine if "gait" in recipe.attack else FeatureEngine
        results = engine(recipe, data, trained, made, console).evaluate()
        results.write(made.folder / "results.json")
    return results


class FeatureEngine:
    def __init__(
        self,
        recipe: FeaturesRecipe,
        data: FeatureSet,
        adapters: Sequence[AAM | None],
        run: Run,
        console: Console | None,
    ) -> None:
        self.recipe, self.data, self.adapters, self.run, self.console = recipe, data, adapters, run, console
        labels = data.labels
        if empty := [split for split in ("train", "val", "test") if not len(labels.indices(split))]:
            raise DataError(f"{labels.name} has no videos in {' and '.join(empty)}")
        self.device = options_of(recipe, 0).accelerator()
        self.measure = Measure(
            data.labels, permutations=recipe.permutations, resamples=recipe.resamples,
            f1_threshold=recipe.f1_threshold, device=self.device,
        )  # fmt: skip
        self.began = monotonic()
        self.cost: dict[str, dict[str, float]] = {}
        self.raw_heads: dict[str, dict[str, list[Taught]]] = {}
        """Task → name of a head → one a seed, trained on raw features."""
        self.wanted: Tensor | None = None
        """What was filmed, where it is to be reconstructed."""
        self.came_back: dict[str, Tensor] = {}
        self.names_people = "linkage" in recipe.attack and bool((labels.person >= 0).any())
        self.names_attributes = "attributes" in recipe.attack and bool(len(labels.attribute_names))
        if not self.names_people and not self.names_attributes:
            raise DataError(f"{labels.name} names neither people nor attributes: there is nothing to attack")

    def evaluate(self) -> Results:
        recipe = self.recipe
        raw_data = [self.data] * len(recipe.seeds)
        raw = self._raw(raw_data)
        judged = []
        if recipe.method != "raw":
            adapters = [one for one in self.adapters if one is not None]
            after = [adapted(self.data, adapter) for adapter in adapters]
            pairs = [black_box(self.data, one, seed=seed) for one, seed in zip(after, recipe.seeds, strict=True)]
            judged.append(self.judge(after, Judged(recipe.method, None), raw_data, pairs))
            if "inversion" in recipe.attack:
                found = [white_box(one, adapter) for one, adapter in zip(after, adapters, strict=True)]
                for way, back in {"black_box": pairs, "white_box": found}.items():
                    judged.append(self.judge(back, Judged(f"{recipe.method} {INVERTED[way]}", None), raw_data))
        per_clip = {f"{one.tag}/{name}": number for one in (raw, *judged) for name, number in one.numbers.items()}
        shares = {one.tag: attribute_excess(one.numbers, raw.numbers) for one in judged}
        attributes = {tag: share.estimate for tag, share in shares.items() if share and share.estimate}
        write_per_clip(self.run.folder / "per_clip.safetensors", self.measure.people, per_clip, attributes)
        return Results(
            name=recipe.name,
            recipe=as_values(recipe),
            data=about_data(self.data.labels),
            machine=describe(self.device),
            seconds=round(monotonic() - self.began, 1),
            raw=told(raw, raw),
            points=[told(one, raw) for one in judged],
            cost=self.cost,
        )

    def _raw(self, data: Sequence[FeatureSet]) -> Judged:
        """Judged once by a process, however many adapters stand beside it."""
        attack = tuple(what for what in self.recipe.attack if what != "inversion")
        recipe = replace(self.recipe, name="raw", method="raw", attack=attack)
        key = json.dumps([self.data.labels.name, labels_fingerprint(self.data.labels), as_values(recipe)])
        key += self.data.store.fingerprint
        if key not in _RAW:
            found = self.judge(data, Judged("raw", None))
            _RAW.clear()
            _RAW[key] = Seen(found, self.raw_heads, self.wanted, dict(self.came_back), dict(self.cost))
        seen_before = _RAW[key]
        self.raw_heads, self.wanted = seen_before.heads, seen_before.wanted
        self.came_back, self.cost = dict(seen_before.came_back), dict(seen_before.cost)
        return seen_before.judged

    def judge(
        self,
        data: Sequence[FeatureSet],
        about: Judged,
        raw: Sequence[FeatureSet] | None = None,
        pairs: Sequence[FeatureSet] = (),
    ) -> Judged:
        """Heads and attackers on these features, one set a seed; attackers also on what `pairs` brought back."""
        recipe, tag = self.recipe, about.tag
        use = self._heads(data, "action", (recipe.utility,), recipe.epochs, (recipe.lr,), tag, first=raw is None)
        acted = self._said(use, data, tag)
        about.numbers[self.measure.use] = action = self.measure.action(acted)
        about.numbers |= subgroups(self.measure, action, acted[action.measured_by])
        if raw is None and (few := too_few(self.measure)):
            self._say(few)
        if self.names_people:
            spaces = [space(one, self._folder(tag, "linkage", i)) for i, one in enumerate(data)]
            about.attackers = {SPACE: spaces}
            if pairs:
                back = [space(one, self._folder(tag, "linkage by pairs", i)) for i, one in enumerate(pairs)]
                about.attackers[f"by pairs, {SPACE}"] = back
            about.numbers |= self.measure.linkage(about.attackers)
        if self.names_attributes:
            trained = (recipe.attackers, recipe.attacker_epochs, recipe.attacker_lr)
            said = self._said(self._heads(data, "attributes", *trained, tag, first=raw is None), data, tag)
            if pairs:
                back_tag = f"{tag} by pairs"
                heads = self._heads(pairs, "attributes", *trained, back_tag, first=False)
                said |= {f"by pairs, {name}": one for name, one in self._said(heads, pairs, back_tag).items()}
            numbers, about.constant = self.measure.attributes(said)
            about.numbers |= numbers
        if self.data.labels.action_labels is None:  # of several at once, no clip is of the same action
            about.numbers |= retrieval_numbers(self.measure, self._looked_up(data))
        if "reconstruction" in recipe.attack and about.method in ("raw", recipe.method):
            about.numbers |= self._reconstructed(data, tag)
        if raw is not None:
            about.numbers |= self._by_raw_heads(data, tag)
            if self.names_people:
                crossed = self._crossed(data, raw, "")
                if pairs:
                    crossed |= self._crossed(pairs, raw, "by pairs, ")
                about.numbers["linkage_rank1_raw_gallery"] = self.measure.raw_gallery(crossed)
        values = {name: about.numbers[name].leak.value.value for name in SHOWN if name in about.numbers}
        self._say(f"{tag}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
        return about

    def _heads(
        self,
        data: Sequence[FeatureSet],
        task: str,
        kinds: Sequence[Judge],
        epochs: int,
        rates: Sequence[float],
        tag: str,
        *,
        first: bool,
    ) -> dict[str, list[Taught]]:
        """Each head at each rate, one a seed."""
        found: dict[str, list[Taught]] = {}
        for kind in kinds:
            for lr in rates:
                each = [
                    teach(one, kind, self._task(task, one), self.recipe, epochs=epochs, lr=lr, seed=seed)
                    for seed, one in zip(self.recipe.seeds, data, strict=True)
                ]
                found[each[0].name] = each
                self.cost[f"{tag} {task} {each[0].name}"] = {
                    "parameters": sum(p.numel() for p in each[0].head.parameters()),
                    "seconds": round(sum(one.seconds for one in each), 1),
                }
        if first:
            self.raw_heads[task] = found
        return found

    def _task(self, name: str, data: FeatureSet) -> Task:
        return TASKS[name](data.labels, self.device, self.recipe.label_smoothing)

    def _said(self, heads: dict[str, list[Taught]], data: Sequence[FeatureSet], tag: str) -> dict[str, list[Learned]]:
        return {
            name: [one.on(data[i], self._folder(tag, name, i)) for i, one in enumerate(each)]
            for name, each in heads.items()
        }

    def _by_raw_heads(self, data: Sequence[FeatureSet], tag: str) -> dict[str, Number]:
        """What heads tell that were trained on raw features, and know of no adapter."""
        use = self.measure.use
        found = {f"{use}{RAW_HEADS}": self.measure.action(self._said(self.raw_heads["action"], data, tag))}
        if "attributes" in self.raw_heads:
            numbers, _ = self.measure.attributes(self._said(self.raw_heads["attributes"], data, tag))
            found |= {f"{name}{RAW_HEADS}": number for name, number in numbers.items() if name == "cmap"}
        return found

    def _reconstructed(self, data: Sequence[FeatureSet], tag: str) -> dict[str, Number]:
        """Pictures out of features; a sheet of them stays in the run, and is not for sharing."""
        if self.wanted is None:
            self.wanted = pictures(self.data)
        found = [reconstructed(one, self.wanted, seed=seed) for one, seed in zip(data, self.recipe.seeds, strict=True)]
        self.came_back[f"from {tag} features" if tag == "raw" else f"after {tag}"] = found[0].pictures
        sheet(self.data, self.came_back, self.run.folder / "reconstruction.png")
        return numbers_of(self.measure, found)

    def _looked_up(self, data: Sequence[FeatureSet]) -> dict[str, dict[str, list[Retrieval]]]:
        found: dict[str, dict[str, list[Retrieval]]] = {}
        each = [seen(one) for one in data]
        for split in TESTED:
            found[split] = {"cosine": [retrieval(self.data.labels, one[split], one["train"]) for one in each]}
        return found

    def _crossed(self, data: Sequence[FeatureSet], raw: Sequence[FeatureSet], prefix: str) -> dict[str, list[Crossing]]:
        """Anonymized features looked up among raw ones: as they are, and in discriminants of raw training people."""
        found: dict[str, list[Crossing]] = {f"{prefix}cosine": [], f"{prefix}LDA": []}
        for after, before in zip(data, raw, strict=True):
            probes, gallery = seen(after), seen(before)
            train = gallery["train"]
            apart = lda(train.features, self.data.labels.person[train.rows])
            for name, to in (("cosine", lambda features: features.astype(np.float64)), ("LDA", apart)):
                asked: dict[str, Floats] = {split: to(probes[split].features) for split in TESTED}
                among: dict[str, Floats] = {split: to(gallery[split].features) for split in TESTED}
                found[prefix + name].append(Crossing(asked, among))
        return found

    def _folder(self, tag: str, name: str, seed: int) -> Path:
        return self.run.part(f"{tag} {name} seed {self.recipe.seeds[seed]}")

    def _say(self, line: str) -> None:
        if self.console is not None:
            shown = f"{monotonic() - self.began:6.0f} s  {line}"
            self.console.print(shown, highlight=False, markup=False, soft_wrap=True)


SHOWN = (
    *("action_top1", "action_cmap", "action_top1_gap", "linkage_rank1", "cmap"),
    *("retrieval_map", "reconstruction_psnr"),
)
