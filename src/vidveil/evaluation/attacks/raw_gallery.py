"""Anonymized clips looked up among raw ones, by somebody who has a person's ordinary videos.

Both must lie in one space, so one network embeds both: the one that was trained on anonymized clips, or the one that
was trained on raw ones. Its embeddings are tried as they are and in the discriminants of its training people.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from vidveil.data.clips import ClipSet
from vidveil.evaluation.evaluators.train import TESTED, TrainedNetwork, embed
from vidveil.evaluation.measures.measure import SharedSpace
from vidveil.evaluation.number import Floats
from vidveil.statistics.projections import lda
from vidveil.tasks import Predictions
from vidveil.training.recipe import LearningRecipe

BySplit = Mapping[str, Predictions]


def crossings(
    recipe: LearningRecipe,
    raw: ClipSet,
    after: Sequence[ClipSet],
    learned_after: Mapping[str, Sequence[TrainedNetwork]],
    learned_raw: Mapping[str, Sequence[TrainedNetwork]],
) -> dict[str, list[SharedSpace]]:
    """Anonymized and raw clips in the spaces of every attacker, one entry per seed, as in `after`."""
    found: dict[str, list[SharedSpace]] = {}
    for name in learned_after:
        pairs = list(zip(learned_after[name], learned_raw[name.replace(":raw", "")], strict=True))
        if name.endswith(":frozen"):  # one network for all clips
            found |= spaces(f"{name} on both, ", [(a.predictions, r.predictions, r.predictions) for a, r in pairs], raw)
            continue
        own = [(a.predictions, embed(a, raw, recipe), a.predictions) for a, _ in pairs]
        theirs = [
            (embed(r, shown, recipe), r.predictions, r.predictions) for (_, r), shown in zip(pairs, after, strict=True)
        ]
        found |= spaces(f"{name} that learned on anonymized video, ", own, raw)
        found |= spaces(f"{name} that learned on raw video, ", theirs, raw)
    return found


def spaces(
    prefix: str, seeds: Sequence[tuple[BySplit, BySplit, BySplit]], data: ClipSet
) -> dict[str, list[SharedSpace]]:
    """(probes, gallery, training clips) of each seed → the same as they are, and in discriminants."""
    found: dict[str, list[SharedSpace]] = {f"{prefix}cosine": [], f"{prefix}LDA": []}
    for probes, gallery, training in seeds:
        train = training["train"]
        discriminants = lda(train.features, data.person[train.rows])
        for space, to in (("cosine", lambda x: x.astype(np.float64)), ("LDA", discriminants)):
            among: dict[str, Floats] = {split: to(gallery[split].features) for split in TESTED}
            asked: dict[str, Floats] = {split: to(probes[split].features) for split in TESTED}
            found[prefix + space].append(SharedSpace(asked, among))
    return found
