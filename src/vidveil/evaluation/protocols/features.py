"""The evaluation of methods by features: train heads and attackers anew on features after the method, test once.

    raw features ──┬────────────────► heads, attackers ─► R, raw top-1
                   └─► adapter ─► ẑ ─► heads, attackers ─► v, top-1             excess (v − f)/(R − f), retention
    video ─► method ─► encoder ───┘ └─► inverted ─► the same again              what an attacker gets back

Attackers also have pairs of raw and anonymized features of training videos. Each of them also attacks the raw features
that it recovers with these pairs, and the strongest on validation counts. Next to heads that are trained anew are those
that were trained on raw features (`…_raw_heads`): the accuracy of a system that nobody trains again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from vidveil.core.errors import DataError
from vidveil.data.features.extract import STATIC
from vidveil.data.features.sets import FeatureSet, load_features
from vidveil.evaluation.attacks.inversion import black_box, white_box
from vidveil.evaluation.attacks.raw_gallery import spaces
from vidveil.evaluation.attacks.reconstruction import numbers_of, pictures, reconstructed
from vidveil.evaluation.attacks.reconstruction_sheet import sheet
from vidveil.evaluation.evaluators.features import SPACE, features_by_split, space, train_head
from vidveil.evaluation.evaluators.train import TESTED, TrainedNetwork
from vidveil.evaluation.measures.measure import Measure, SharedSpace
from vidveil.evaluation.measures.retrieval import retrieval_numbers
from vidveil.evaluation.measures.subgroups import subgroups, too_few
from vidveil.evaluation.number import Number
from vidveil.evaluation.protocols.feature_gait import FeatureGaitProtocol
from vidveil.evaluation.protocols.feature_methods import FeatureMethods
from vidveil.evaluation.protocols.feature_protocol import FeatureProtocol, Heads, raw_of
from vidveil.evaluation.protocols.protocol import Evaluated, check_splits, measure_of, run_protocol
from vidveil.evaluation.recipes.features import FeaturesRecipe, HeadKind
from vidveil.methods.anonymized_data import Setting
from vidveil.tasks import Task, make_task
from vidveil.tasks.retrieval import Retrieval, retrieval
from vidveil.training.options import options_of

RAW_HEADS = "_raw_heads"
INVERTED = {"black_box": "inverted by pairs", "white_box": "inverted by the adapter"}
"""Setting → its name, after that of the method."""
SHOWN = (
    *("action_top1", "action_cmap", "action_top1_gap", "linkage_rank1", "cmap"),
    *("retrieval_map", "reconstruction_psnr"),
)


class FeaturesProtocol(FeatureProtocol[FeatureSet]):
    recipe: FeaturesRecipe
    measure: Measure

    def __init__(self, recipe: FeaturesRecipe, data: FeatureSet, methods: FeatureMethods | None = None) -> None:
        labels = data.labels
        check_splits(labels)
        super().__init__(recipe, data, data, methods, measure_of(recipe, labels))
        self.attacks_people = "linkage" in recipe.attack and bool((labels.person >= 0).any())
        self.attacks_attributes = "attributes" in recipe.attack and bool(len(labels.attribute_names))
        if not self.attacks_people and not self.attacks_attributes:
            raise DataError(f"{labels.name} names neither people nor attributes: there is nothing to attack")

    def after(self, setting: Setting) -> FeatureSet:
        return self.methods.after(self.data, setting)

    def raw_recipe(self) -> FeaturesRecipe:
        attack = tuple(what for what in self.recipe.attack if what != "inversion")
        return replace(raw_of(self.recipe), attack=attack)

    def evaluate_method(self, setting: Setting, raw: Evaluated) -> Iterator[Evaluated]:
        """The method, and what an attacker recovers of raw features. Only an adapter can be inverted by itself."""
        after = self.anonymized(setting)
        pairs = [black_box(self.data, one, seed=seed) for one, seed in zip(after, self.seeds, strict=True)]
        about = Evaluated(setting.method, setting.keep, raw)
        yield self.evaluate_setting(after, about, pairs)
        if "inversion" not in self.recipe.attack:
            return
        yield self.evaluate_setting(pairs, replace(about, method=f"{setting.method} {INVERTED['black_box']}"))
        adapters = [self.methods.adapter(setting.of_seed(seed)) for seed in self.seeds]
        known = [adapter for adapter in adapters if adapter is not None]
        if len(known) < len(adapters):
            self.say(f"{about.tag}: inverted by pairs alone; it works on video, and is no adapter that can be inverted")
            return
        recovered = [white_box(one, adapter) for one, adapter in zip(after, known, strict=True)]
        yield self.evaluate_setting(recovered, replace(about, method=f"{setting.method} {INVERTED['white_box']}"))

    def evaluate_setting(
        self, data: Sequence[FeatureSet], about: Evaluated, pairs: Sequence[FeatureSet] = ()
    ) -> Evaluated:
        """Heads and attackers on these features, one set per seed; attackers also on what `pairs` recover."""
        recipe, tag, numbers, raw = self.recipe, about.tag, about.numbers, about.raw
        heads = self._train_heads(data, "action", (recipe.utility,), recipe.epochs, (recipe.lr,), tag)
        if raw is None:
            self.raw.heads["action"] = heads
        predictions = self._predictions(heads, data, tag)
        numbers[self.measure.utility] = action = self.measure.action(predictions)
        numbers |= subgroups(self.measure, action, predictions[action.measured_by])
        if raw is None and (few := too_few(self.measure)):
            self.say(few)
        if self.attacks_people:
            about.attackers = self._spaces(data, pairs, tag)
            numbers |= self.measure.linkage(about.attackers)
        if self.attacks_attributes:
            of_attributes, about.constant = self._attack_attributes(data, pairs, tag, raw)
            numbers |= of_attributes
        if self.labels.action_labels is None:  # of several actions at once, no clip shows the same
            numbers |= retrieval_numbers(self.measure, self._retrievals(data))
        if "reconstruction" in recipe.attack and about.method in ("raw", *recipe.method):
            numbers |= self._reconstruct(data, tag)
        if raw is not None:
            numbers |= self._by_raw_heads(data, tag)
            if self.attacks_people:
                crossed = self._crossings(data, "") | (self._crossings(pairs, "by pairs, ") if pairs else {})
                numbers["linkage_rank1_raw_gallery"] = self.measure.raw_gallery(crossed)
        self.say_values(about, SHOWN)
        return about

    def _spaces(
        self, data: Sequence[FeatureSet], pairs: Sequence[FeatureSet], tag: str
    ) -> dict[str, list[TrainedNetwork]]:
        """For linkage: the features, and those that pairs recover."""
        found = {SPACE: [space(one, self._seed_folder(tag, "linkage", i)) for i, one in enumerate(data)]}
        if pairs:
            found[f"by pairs, {SPACE}"] = [
                space(one, self._seed_folder(tag, "linkage by pairs", i)) for i, one in enumerate(pairs)
            ]
        return found

    def _attack_attributes(
        self, data: Sequence[FeatureSet], pairs: Sequence[FeatureSet], tag: str, raw: Evaluated | None
    ) -> tuple[dict[str, Number], list[str]]:
        recipe = self.recipe
        settings = recipe.attackers, recipe.attacker_epochs, recipe.attacker_lr
        heads = self._train_heads(data, "attributes", *settings, tag)
        if raw is None:
            self.raw.heads["attributes"] = heads
        predictions = self._predictions(heads, data, tag)
        if pairs:
            pairs_tag = f"{tag} by pairs"
            heads = self._train_heads(pairs, "attributes", *settings, pairs_tag)
            recovered = self._predictions(heads, pairs, pairs_tag)
            predictions |= {f"by pairs, {name}": one for name, one in recovered.items()}
        return self.measure.attributes(predictions)

    def _train_heads(
        self,
        data: Sequence[FeatureSet],
        task: str,
        kinds: Sequence[HeadKind],
        epochs: int,
        rates: Sequence[float],
        tag: str,
    ) -> Heads:
        """Each head at each learning rate, one per seed."""
        found: Heads = {}
        for kind in kinds:
            for lr in rates:
                each = [
                    train_head(one, kind, self._task(task, one), self.recipe, epochs=epochs, lr=lr, seed=seed)
                    for seed, one in zip(self.recipe.seeds, data, strict=True)
                ]
                found[each[0].name] = each
                parameters = sum(p.numel() for p in each[0].head.parameters())
                self.add_cost(f"{tag} {task} {each[0].name}", parameters, [one.seconds for one in each])
        return found

    def _task(self, name: str, data: FeatureSet) -> Task:
        return make_task(name, data.labels, self.device, self.recipe.label_smoothing)

    def _predictions(self, heads: Heads, data: Sequence[FeatureSet], tag: str) -> dict[str, list[TrainedNetwork]]:
        return {
            name: [one.predict(data[i], self._seed_folder(tag, name, i)) for i, one in enumerate(each)]
            for name, each in heads.items()
        }

    def _by_raw_heads(self, data: Sequence[FeatureSet], tag: str) -> dict[str, Number]:
        """By heads that were trained on raw features, and know of no adapter."""
        heads = self.raw.heads
        action = self.measure.action(self._predictions(heads["action"], data, tag))
        found = {f"{self.measure.utility}{RAW_HEADS}": action}
        if "attributes" in heads:
            numbers, _ = self.measure.attributes(self._predictions(heads["attributes"], data, tag))
            found |= {f"{name}{RAW_HEADS}": number for name, number in numbers.items() if name == "cmap"}
        return found

    def _reconstruct(self, data: Sequence[FeatureSet], tag: str) -> dict[str, Number]:
        """Pictures out of features; a sheet of them stays in the run, and is not for sharing."""
        raw = self.raw
        if raw.filmed is None:
            raw.filmed = pictures(self.data)
        found = [reconstructed(one, raw.filmed, seed=seed) for one, seed in zip(data, self.recipe.seeds, strict=True)]
        raw.reconstructed[f"from {tag} features" if tag == "raw" else f"after {tag}"] = found[0].pictures
        sheet(self.data, raw.reconstructed, self.run.folder / "reconstruction.png")
        return numbers_of(self.measure, found)

    def _retrievals(self, data: Sequence[FeatureSet]) -> dict[str, dict[str, list[Retrieval]]]:
        each = [features_by_split(one) for one in data]
        return {
            split: {"cosine": [retrieval(self.labels, one[split], one["train"]) for one in each]} for split in TESTED
        }

    def _crossings(self, data: Sequence[FeatureSet], prefix: str) -> dict[str, list[SharedSpace]]:
        """Anonymized features looked up among raw ones: as they are, and in discriminants of raw training people."""
        raw = features_by_split(self.data)
        return spaces(prefix, [(features_by_split(one), raw, raw) for one in data], self.labels)

    def _seed_folder(self, tag: str, name: str, seed: int) -> Path:
        return self.folder(f"{tag} {name} seed {self.recipe.seeds[seed]}")


def load(recipe: FeaturesRecipe, root: Path | None, strict: bool) -> FeaturesProtocol | FeatureGaitProtocol:
    """The protocol, with the features and methods of its recipe."""
    device = options_of(recipe, 0).accelerator()
    methods = FeatureMethods(recipe, device)
    data = load_features(
        recipe.data, recipe.encoder, frames=recipe.frames, size=recipe.size, stride=recipe.stride, half=recipe.half,
        static=0 if "gait" in recipe.attack else STATIC, root=root, seed=recipe.data_seed, strict=strict, device=device,
    )  # fmt: skip
    protocol = FeatureGaitProtocol if "gait" in recipe.attack else FeaturesProtocol
    return protocol(recipe, data, methods)


run = partial(run_protocol, load)
"""`vidveil evaluate` of features."""
