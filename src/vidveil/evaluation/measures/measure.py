"""From predictions of networks to numbers: the strongest attacker, chosen on validation, with floor and interval.

Which attacker stands behind a number is decided by the mean over seeds of its score on **validation** people. Its
number on test people is then looked at once; those of the others stand next to it, for the reader, and decide nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from vidveil.core.atomic import new_path
from vidveil.core.bounded import regular
from vidveil.core.progress import phase
from vidveil.data.clips import Split
from vidveil.data.description import UtilityMetric
from vidveil.evaluation.evaluators.mlp import identity_space
from vidveil.evaluation.evaluators.train import TESTED, TrainedNetwork
from vidveil.evaluation.measures.actions import several_actions
from vidveil.evaluation.measures.attributes import attributes
from vidveil.evaluation.measures.measured import MeasuredClips, choose, log_of, mean, on_test
from vidveil.evaluation.number import Floats, Number
from vidveil.statistics import floors, metrics
from vidveil.statistics.linkage import Clothes, Linkage, LinkageSetup, rank
from vidveil.statistics.linkage_floors import linkage_floor, linkage_map_floor
from vidveil.statistics.projections import lda, whitening
from vidveil.statistics.tradeoff import Measurement

TIE = 1e-6
"""What average precision weighs next to rank-1: it decides where that is the same."""
CLOTHES: dict[str, Clothes] = {"_same_clothes": "same", "_changed_clothes": "changed"}


Ranked = dict[tuple[str, str], list[Linkage]]
"""By space and split, one entry per seed."""


@dataclass(frozen=True)
class SharedSpace:
    """Anonymized and raw clips in one space, by split."""

    probes: Mapping[str, Floats]
    gallery: Mapping[str, Floats]


class Measure(MeasuredClips):
    """From the predictions of networks on these clips to numbers."""

    @property
    def utility(self) -> UtilityMetric:
        """What the number of `action` is called."""
        return "action_top1" if self.data.action_labels is None else "action_cmap"

    @phase("actions: permutation tests and intervals")
    def action(self, networks: Mapping[str, Sequence[TrainedNetwork]]) -> Number:
        """Top-1, by the network that is best on validation; cMAP, where clips show several actions at once."""
        if self.data.action_labels is not None:
            return several_actions(self, networks)
        truth = self.data.action[self.rows]
        hits = {
            name: np.stack([metrics.top1_hits(log_of(on_test(one).probabilities["action"]), truth) for one in learned])
            for name, learned in networks.items()
        }
        val = {name: mean([one.scores["action"] for one in learned]) for name, learned in networks.items()}
        best = choose(val, "top-1")
        floor = floors.largest_class(truth)  # higher than what permuted labels give: always saying that class is no use
        return Number(
            measured=Measurement("top-1", self.resamples.mean(hits[best]), floor),
            measured_by=best,
            others={name: {"test": float(hits[name].mean()), "val": val[name]} for name in networks},
            kind="utility",
            per_clip=hits[best],
        )

    # ---- linkage: every number is by the attacker, and the space, that is best at it on validation

    def setup(self, split: Split, clothes: Clothes = "any") -> LinkageSetup:
        rows = self.data.indices(split)
        return LinkageSetup(
            person=self.data.person[rows],
            rule=self.data.gallery,
            action=self.data.action[rows],
            outfit=self.data.tags["outfit"][rows] if "outfit" in self.data.tags else None,
            clothes=clothes,
        )

    @phase("linkage: permutation tests and intervals")
    def linkage(self, attackers: Mapping[str, Sequence[TrainedNetwork]]) -> dict[str, Number]:
        """Rank-1 and mAP; rank-1 with same and with changed clothes, where they are known."""
        spaces: dict[str, list[SharedSpace]] = {}
        for name, learned in attackers.items():
            each = [self._spaces(one, seed) for seed, one in enumerate(learned)]
            spaces |= {f"{name}, {space}": [SharedSpace(one[space], one[space]) for one in each] for space in each[0]}
        seen: Ranked = {}  # rank-1 and mAP are two numbers of the same ranking
        found = {"linkage_rank1": self._link(spaces, seen=seen, precision=True)}
        found["linkage_map"] = self._link(spaces, metric="mAP", seen=seen, precision=True)
        for suffix, clothes in CLOTHES.items() if "outfit" in self.data.tags else ():
            if self._answerable(clothes):
                found["linkage_rank1" + suffix] = self._link(spaces, clothes=clothes)
        return found

    def _answerable(self, clothes: Clothes) -> bool:
        """Whether anybody can be found at all, among validation people and among test people."""
        setups = [self.setup(split, clothes) for split in TESTED]
        return all((rank(np.ones((len(one), 1)), one, precision=False).positives > 0).any() for one in setups)

    @phase("identity: permutation tests and intervals")
    def identity(self, attackers: Mapping[str, Sequence[TrainedNetwork]]) -> Number:
        """Top-1 of naming training people who do something else, by the attacker that is best at it on validation."""
        people = np.unique(self.data.person[self.data.indices("train")])
        people = people[people >= 0]
        truth = self.data.person[self.rows]
        guesses = {
            name: np.stack([people[on_test(one).probabilities["identity"].argmax(-1)] for one in learned])
            for name, learned in attackers.items()
        }
        val = {name: mean([one.scores["identity"] for one in learned]) for name, learned in attackers.items()}
        best = choose(val, "identity")
        hits = (guesses[best] == truth).astype(np.float64)  # (S, N)
        values = np.empty(self.permutations)
        strata = self.data.action[self.rows]
        for start, stop, permuted in floors.permutation_batches(
            floors.permute_within, strata, self.permutations, len(truth)
        ):
            values[start:stop] = (guesses[best][:, None] == truth[permuted]).mean(axis=(0, 2))
        floor = floors.floor_of(values, float(hits.mean()))
        return Number(
            measured=Measurement("top-1", self.resamples.mean(hits), floor.value),
            permuted=floor,
            formula=floors.largest_class(truth),
            measured_by=best,
            others={name: {"test": float((guesses[name] == truth).mean()), "val": val[name]} for name in attackers},
            per_clip=hits,
        )

    @phase("attributes: permutation tests and intervals")
    def attributes(self, attackers: Mapping[str, Sequence[TrainedNetwork]]) -> tuple[dict[str, Number], list[str]]:
        """Of every attribute, and of all together; and those that are constant in test, which are left out."""
        return attributes(self, attackers)

    @phase("lookups among raw clips: permutation tests and intervals")
    def raw_gallery(self, crossings: Mapping[str, Sequence[SharedSpace]]) -> Number:
        """Rank-1 of anonymized probes among raw clips: what somebody gets who has the person's ordinary videos."""
        return self._link(crossings)

    def _spaces(self, learned: TrainedNetwork, seed: int) -> dict[str, dict[str, Floats]]:
        """The test and validation embeddings as they are, whitened, and in the discriminants of training people; those
        of a frozen network also in what a small one on top has learned of these."""
        train = learned.predictions["train"]
        maps: dict[str, Callable[[NDArray[np.float32]], Floats]] = {
            "cosine": lambda features: features.astype(np.float64),
            "whitened": whitening(train.features),
            "LDA": lda(train.features, self.data.person[train.rows]),
        }
        features = {split: learned.predictions[split].features for split in TESTED}
        spaces: dict[str, dict[str, Floats]] = {
            name: {split: to(features[split]) for split in TESTED} for name, to in maps.items()
        }
        return spaces | ({"MLP": self._mlp_space(learned, seed)} if learned.network.endswith(":frozen") else {})

    def _mlp_space(self, learned: TrainedNetwork, seed: int) -> dict[str, Floats]:
        """Kept where the training is: raw video is looked at again next to every row of a table."""
        file = learned.folder / "mlp.safetensors"
        if not file.is_file():
            train = learned.predictions["train"]
            to = identity_space(train.features, self.data.person[train.rows], seed, self.device)
            with new_path(file) as part:
                save_file({split: to(learned.predictions[split].features) for split in TESTED}, part)
        found: dict[str, Floats] = load_file(regular(file))
        return found

    def _link(
        self,
        spaces: Mapping[str, Sequence[SharedSpace]],
        *,
        metric: str = "rank-1",
        clothes: Clothes = "any",
        seen: Ranked | None = None,
        precision: bool = False,
    ) -> Number:
        """Probes looked up in the gallery, one entry per seed; both are the same unless they cross. What is in `seen`
        already is not looked up again."""
        known: Ranked = {} if seen is None else seen
        setups: dict[str, LinkageSetup] = {split: self.setup(split, clothes) for split in TESTED}

        def value(one: Linkage) -> float:
            return one.rank1 if metric == "rank-1" else one.mean_average_precision

        def ranked(name: str, split: str) -> list[Linkage]:
            if (name, split) not in known:
                known[name, split] = [
                    rank(one.probes[split], setups[split], gallery=one.gallery[split], precision=precision)
                    for one in spaces[name]
                ]
            return known[name, split]

        val = {name: mean([value(one) for one in ranked(name, "val")]) for name in spaces}
        finer = val
        if precision:  # of few people several attackers find all: then the surer one counts
            surer = {name: mean([one.mean_average_precision for one in ranked(name, "val")]) for name in spaces}
            finer = {name: value + TIE * surer[name] for name, value in val.items()}
        best = choose(finer, f"linkage {metric}")
        test = {name: ranked(name, "test") for name in spaces}
        permute = linkage_floor if metric == "rank-1" else linkage_map_floor
        floor = floors.over_seeds(
            [
                permute(
                    one.probes["test"],
                    setups["test"],
                    found,
                    gallery=one.gallery["test"],
                    permutations=self.permutations,
                )
                for one, found in zip(spaces[best], test[best], strict=True)
            ]
        )
        each = [one.hit if metric == "rank-1" else one.average_precision for one in test[best]]
        first = test[best][0]
        chance = first.chance if metric == "rank-1" else _expected_precision(first)
        by_chance = self.resamples.mean(chance)
        return Number(
            measured=Measurement(metric, self.resamples.mean(np.stack(each)), floor.value, by_chance),
            permuted=floor,
            measured_by=best,
            others={name: {"test": mean([value(one) for one in test[name]]), "val": val[name]} for name in spaces},
            per_clip=np.stack(each),
            chance_per_clip=chance,
            tried_per_clip={name: np.stack([one.hit for one in test[name]]) for name in spaces}
            if metric == "rank-1"
            else {},
        )


def _expected_precision(found: Linkage) -> Floats:
    """What average precision is on the mean over all orders of the gallery, a query each. (N,)"""
    expected = np.full(len(found.hit), np.nan)
    asked = found.queries
    expected[asked] = floors.expected_average_precision(found.positives[asked], found.gallery[asked])
    return expected
