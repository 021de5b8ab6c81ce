"""How an adapter of features is trained: `verb: train` with `method: splavu`."""

from dataclasses import dataclass
from typing import Literal

from vidveil.core.errors import RecipeError
from vidveil.training.recipe import LearningRecipe

WHOLE = {"detection": "thumos14", "anomaly": "ucf_crime"}
"""Tasks on whole videos, and what the paper takes for them."""


@dataclass(frozen=True, kw_only=True)
class SplavuRecipe(LearningRecipe):
    """`vidveil train` of the adapter. How well it works is measured by `vidveil evaluate`."""

    method: Literal["splavu"] = "splavu"
    """What is trained."""
    encoder: str = ""
    """Whose features: `i3d`, `run:NAME`, `videomae:WHERE`; empty where data is `features:FOLDER`."""
    half: bool = False
    """Whether the encoder computes in bfloat16."""

    adapter: Literal["attention", "mlp"] = "attention"
    """attention: groups of channels attend to each other; mlp: Linear, ReLU, BatchNorm (table 10)."""
    layers: int = 3
    """Of the adapter."""
    heads: int = 8
    """Of its attention (table 12)."""
    groups: int = 8
    """Of channels."""
    reference: bool = False
    """As published: clips attend across the batch, and the budget has no cap."""
    erase: float = 0.75
    """Share of the directions that do not separate the classes of the tasks, of which those that moving clips share
    most with still ones are lost for good. 0: none, as published; 1: only what separates the classes is left."""

    tasks: tuple[Literal["action", "detection", "anomaly"], ...] = ("action",)
    """What the features have to stay useful for (table 5): action, by a linear head; detection of actions in whole
    videos, by TriDet; anomaly, by MGFN. None: no utility loss (table 6)."""
    detection_data: str = ""
    """Whole videos for detection: `puppets_untrimmed`, `thumos14`."""
    anomaly_data: str = ""
    """Whole videos for anomaly: `puppets_anomalies`, `surveillance_fight:FOLD`, `ucf_crime`."""
    videos: int = 8
    """Whole videos a step, of detection and of anomaly each; of the latter half are normal ones."""
    detection_width: int = 512
    """Channels inside TriDet."""
    anomaly_widths: tuple[int, ...] = (64, 128, 1024)
    """Channels of MGFN's three stages."""
    known_actions: int = 0
    """How many of the set's actions the adapter learns from, the first ones; the others are uses that it does not know.
    0: all of them."""
    budget: Literal["static", "supervised", "none"] = "static"
    """static: two static clips of a video must not be found by each other (NT-Xent); supervised: a small network must
    not predict the attributes (table 2); none (table 6)."""
    task_weight: float = 1.0
    """ω of each task: one for all of them, as published."""
    budget_weight: float = 1.0
    """ω of the budget."""
    latent_weight: float = 100.0
    """ω of latent consistency: mean squared change of features whose mean square is 1, of clips and of whole videos
    alike. 0: none (table 11)."""
    temperature: float = 0.1
    """τ of NT-Xent."""
    identity_epochs: int = 100
    """Of learning the identity first, by L1, where the adapter does not start as one: an MLP as published."""
    seed: int = 0
    """Of the start, the order of videos and all draws."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("layers", "heads", "groups", "videos", "detection_width"):
            self.at_least_one(key)
        if min(self.task_weight, self.budget_weight, self.latent_weight) < 0 or self.temperature <= 0:
            raise RecipeError("weights are 0 or more, and temperature is above 0")
        if self.known_actions < 0:
            raise RecipeError(f"known_actions is 0 or more, got {self.known_actions}")
        if not 0 <= self.erase <= 1:
            raise RecipeError(f"erase is a share between 0 and 1, got {self.erase:g}")
        if self.reference and self.erase:
            raise RecipeError("reference: true is the published method, which erases nothing: erase: 0")
        if not self.tasks and self.budget == "none":
            raise RecipeError("without tasks and without a budget there is nothing to learn")
        if len(set(self.tasks)) < len(self.tasks):
            raise RecipeError(f"tasks are named once each, got {', '.join(self.tasks)}")
        for task, data in self.whole_videos.items():
            if not data:
                raise RecipeError(f"{task} needs whole videos: {task}_data={WHOLE[task]}")
            if not self.encoder:
                raise RecipeError(f"{task} needs the encoder that made the features of data: encoder=i3d, say")
        if "anomaly" in self.tasks and self.videos % 2:
            raise RecipeError(f"of the videos a step half are normal and half abnormal ones: {self.videos} is odd")
        if len(self.anomaly_widths) != 3:
            raise RecipeError(f"anomaly_widths are three numbers, one a stage, got {len(self.anomaly_widths)}")

    @property
    def whole_videos(self) -> dict[str, str]:
        """Of each task that needs whole videos, its dataset, in the order of tasks."""
        data = {"detection": self.detection_data, "anomaly": self.anomaly_data}
        return {task: data[task] for task in self.tasks if task in data}
