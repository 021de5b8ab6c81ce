"""Metrics on validation of a learned method, each with its chance level where it has one.

    action_top1, action_cmap       of the anonymizer's own head
    masked_top1, masked_cmap       of a recognizer that sees what is shown
    attacker_attributes, attacker_identity      scores of the attackers of the training, on what is shown
    output_spread                  how much pictures differ from clip to clip, 0 to 1 (`training.health`)
    tubelets_kept, identity_hidden, …           of masks (`masking.ground_truth`)

Attackers of a training have been hidden from: attackers that are trained anew (`vidveil evaluate`) find more.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from vidveil.data.clips import ClipSet
from vidveil.data.description import utility_metric
from vidveil.data.loader import Loader
from vidveil.data.puppets import PuppetClips, masks
from vidveil.methods.learned.anonymizer import loaded_unless_raw
from vidveil.methods.masking.baselines import Grid
from vidveil.methods.masking.ground_truth import ALL_KEPT, of_clips
from vidveil.statistics.floors import largest_class, prevalence
from vidveil.tasks import Predictions, Task
from vidveil.training.health import SPREAD

if TYPE_CHECKING:
    from vidveil.methods.learned.train import Networks

ATTACKER = "attacker_"
PICTURES = 64
"""Clips of which a picture each is compared, at most."""


class ValidationOutput(NamedTuple):
    """What validation needs to know about a batch."""

    action: Tensor | None = None
    """(B, A) logits of the anonymizer's own head; None where that does not learn."""
    masked: Tensor | None = None
    """(B, A) logits of the recognizer that sees the anonymized clip; None where there is none."""
    kept: Tensor | None = None
    """(B, M) bool; None where nothing is hidden by a mask."""
    scores: Tensor | None = None
    """(B, M)"""
    pictures: Tensor | None = None
    """(B, 3, T, H, W): what is shown, of methods that draw."""
    attackers: Mapping[str, Tensor] = MappingProxyType({})
    """(B, outputs) logits of the attackers that see the anonymized clip, by the name of their task."""


def validation_metrics(networks: "Networks", loader: Loader, data: ClipSet) -> dict[str, float]:
    """With the recipe's knobs, and what a method adds to them: the floors of these are in `validation_floors`."""
    networks.eval()
    outputs: list[ValidationOutput] = []
    rows: list[Tensor] = []
    pictures: list[Tensor] = []
    every = -(-len(loader.indices) // PICTURES)  # validation clips of a person follow each other: spread over all
    with torch.inference_mode():
        for batch in loader.views("1x1"):
            output = networks.validation_output(batch.video[:, 0])
            if output.pictures is not None:
                middle = output.pictures[:, :, output.pictures.shape[2] // 2]  # (B, 3, H, W)
                pictures.append(middle[-sum(len(each) for each in rows) % every :: every].float())
            outputs.append(output._replace(pictures=None))
            rows.append(batch.index)
    own = [output.action for output in outputs if output.action is not None]
    masked = [output.masked for output in outputs if output.masked is not None]
    utility = utility_metric(data)
    heads = {utility: own, utility.replace("action", "masked"): masked}
    found = {name: _score(networks.action, logits, rows) for name, logits in heads.items() if logits}
    for task in networks.budget:
        if attacks := [output.attackers[task.name] for output in outputs if task.name in output.attackers]:
            found[f"{ATTACKER}{task.name}"] = _score(task, attacks, rows)
    if pictures:
        found[SPREAD] = output_spread(torch.cat(pictures))
    hidden = [(output.kept, output.scores) for output in outputs if output.kept is not None]
    if hidden:
        found |= _of_masks(networks, hidden, torch.cat(rows), data, loader)
    return found | networks.more_metrics(found, validation_floors(found, data))


def output_spread(pictures: Tensor) -> float:
    """Mean absolute deviation from the mean picture: (n, 3, H, W) in [0, 1]."""
    return float((pictures - pictures.mean(0)).abs().mean())


def _of_masks(
    networks: "Networks",
    hidden: Sequence[tuple[Tensor | None, Tensor | None]],
    rows: Tensor,
    data: ClipSet,
    loader: Loader,
) -> dict[str, float]:
    """What masks hide, where that is known."""
    network = networks.anonymizer
    kept, scores = (torch.cat(parts).view(-1, *network.grid) for parts in zip(*hidden, strict=True))
    found = {ALL_KEPT: float(kept.float().mean())}
    preprocess = loaded_unless_raw(networks.recipe.preprocess)
    in_place = preprocess is None or not preprocess.elsewhere
    if in_place and isinstance(data, PuppetClips) and data.world.view == "all" and loader.stride == 1:
        every = masks(data)
        kinds = [every[row] for row in rows.tolist()]
        found |= of_clips(kinds, kept.cpu().numpy(), scores.cpu().numpy(), Grid(*network.tubelet[:2]))
    return found


def _score(task: Task, logits: list[Tensor], rows: list[Tensor]) -> float:
    """The task's score of the logits of all batches; people whom an attacker was not trained on are ranked by its
    logits."""
    together = torch.cat(logits).float()
    probabilities = task.probabilities(together).cpu().numpy()
    return task.score(Predictions(torch.cat(rows).cpu().numpy(), together.cpu().numpy(), {task.name: probabilities}))


def validation_floors(metrics: Mapping[str, float], data: ClipSet) -> dict[str, float]:
    """The chance level of each metric that has one."""
    rows = data.indices("val")
    chance = largest_class(data.action[rows]) if data.action_labels is None else _mean_share(data.action_labels[rows])
    utility = utility_metric(data)
    found = {utility: chance, utility.replace("action", "masked"): chance}
    if f"{ATTACKER}attributes" in metrics:
        found[f"{ATTACKER}attributes"] = _mean_share(data.attributes[rows])
    if (kept := metrics.get(ALL_KEPT)) is not None:
        found |= {"identity_hidden": 1 - kept, "action_kept": kept, "score_auroc": 0.5}
    return {name: value for name, value in found.items() if name in metrics}


def _mean_share(labels: np.ndarray) -> float:
    """Of the labels that cMAP is the mean over: (n, labels)."""
    shares = prevalence(labels.T)
    return float(shares[(shares > 0) & (shares < 1)].mean())
