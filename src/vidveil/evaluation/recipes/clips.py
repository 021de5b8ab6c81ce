"""What an evaluation of clips is asked for."""

from dataclasses import dataclass
from typing import Literal

from vidveil.data.video_parts import VideoPart
from vidveil.evaluation.recipes.recipe import AttackRecipe

Control = Literal["one_frame", "shuffled", "one_frame_linkage", "background", "mask", "motion", "median", "person_crop"]


@dataclass(frozen=True, kw_only=True)
class EvaluateRecipe(AttackRecipe):
    """`vidveil evaluate`: anonymize a dataset, train a recognizer and attackers anew on the result, report."""

    protocol: Literal["attack", "gait", "retrieval"] = "attack"
    """attack: a recognizer and attackers are trained anew on the clips. gait and retrieval train nothing: gait looks
    probe walks up among gallery walks, for the person; retrieval test clips among training clips, for the action. Both
    by the features of `attackers`, which are all frozen; for gait also `energy`, the mean of all frames."""
    part: VideoPart = "whole"
    """Of recorded video, what there is to see before the method: all of it, a square around the surest person, or the
    median of all frames, which is the place alone. So a place is not taken for a person, or nothing but it is there."""

    utility: str = "r3d_tiny"
    """Recognizer of the action, trained on the anonymized clips; `NAME:pretrained` starts from fetched weights, of
    `NAME:frozen` a head alone is trained: a quick look, and a lower bound."""
    attackers: tuple[str, ...] = ("resnet_tiny", "r3d_tiny", "vit_mini")
    """Networks that attack; every one is reported, the strongest on validation counts. `NAME:frozen` trains nothing but
    the ranking (whitening, LDA, a small network), `NAME:pretrained` starts from fetched weights, `NAME:raw` from what
    it learned on raw video, where it goes on for as long."""
    attack: tuple[Literal["linkage", "attributes"], ...] = ("linkage", "attributes")
    """What attackers are after."""
    joint: bool = False
    """One network for both of them (half the time, and somewhat weaker) or one for each."""
    attacker_epochs: int = 20
    attacker_lr: tuple[float, ...] = (2e-3,)
    controls: tuple[Control, ...] = ()
    """What else is measured, on raw video: what the set leaks through."""
    control_attackers: tuple[str, ...] = ()
    """Attackers of the controls that are about linkage; empty: all of them."""
    raw: str = ""
    """Name of a finished run of the same evaluation of raw video, whose trainings are used; empty: raw is evaluated
    first, in the same run."""

    tidy: bool = False
    """Whether anonymized clips are deleted once they were evaluated: a long sweep of a large set fills a disk. A
    resumed run makes anew what it needs."""
