"""A toy method: a network of single pictures predicts how much of each pixel stays, and the rest is blurred.

    shown = w · picture + (1 − w) · blurred picture,    w = sigmoid(UNet(picture))

An attacker learns private attributes from what is shown, a recognizer the action, each with an optimizer of its own;
the blend learns to help one and to fail the other. It shows what a learned method has to bring along, and is no good.
"""

from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch import nn
from torch.nn import functional as F

from vidveil.core.registry import Method, Runnable
from vidveil.methods.learned.image_to_image import ImageToImage
from vidveil.methods.learned.network import PictureNetwork, rebuilt
from vidveil.methods.learned.recipe import LearnedRecipe
from vidveil.methods.learned.train import Networks, Training
from vidveil.methods.learned.validation import ValidationOutput
from vidveil.models.checkpoint import network_of
from vidveil.models.recognizers import build
from vidveil.models.recognizers.recognizer import Classifier
from vidveil.training.learner import Learner, UpdateRule


@dataclass(frozen=True, kw_only=True)
class BlendRecipe(LearnedRecipe):
    method: Literal["blend"] = "blend"
    width: int = 4
    """Channels of the network."""
    attacker_lr: float = 1e-3
    """Of AdamW, for the attacker."""
    privacy_weight: float = 1.0
    """Of the attacker's loss, in that of the network."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    side: int
    width: int


class BlendNetwork(PictureNetwork):
    frames = 1

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape, self.size = shape, shape.side
        self.down = nn.Conv2d(3, shape.width, 3, stride=2, padding=1)
        self.up = nn.Conv2d(shape.width + 3, 1, 3, padding=1)

    def forward(self, clips):
        """(B, 3, T, H, W) in [0, 1], of any length."""
        pictures = clips.transpose(1, 2).flatten(0, 1)  # (B·T, 3, H, W)
        coarse = F.interpolate(F.relu(self.down(pictures)), scale_factor=2)
        weight = self.up(torch.cat([pictures, coarse], 1)).sigmoid()
        blurred = F.interpolate(F.avg_pool2d(pictures, 8), scale_factor=8)
        shown = weight * pictures + (1 - weight) * blurred
        return shown.view(len(clips), -1, *shown.shape[1:]).transpose(1, 2)

    def about(self):
        return asdict(self.shape)


class BlendNetworks(Networks):
    def __init__(self, recipe, data, device):
        super().__init__(recipe, data, device)
        self.anonymizer = BlendNetwork(Shape(side=recipe.size, width=recipe.width))
        shape = {"frames": recipe.frames, "size": recipe.size}
        self.recognizer = Classifier(build("r3d_tiny", **shape), {"action": self.action.outputs})
        self.attacker = Classifier(build("resnet_tiny", **shape), {task.name: task.outputs for task in self.budget})

    def learners(self):
        recipe = self.recipe
        return [
            Learner("anonymizer", lambda _, batch: self.hide(batch), parts=("anonymizer.",)),
            Learner("recognizer", lambda _, batch: self.recognize(batch, self.shown(batch)), parts=("recognizer.",)),
            Learner(
                "attacker",
                lambda _, batch: self.attack(batch, self.shown(batch)),
                parts=("attacker.",),
                lr=recipe.attacker_lr,
                schedule="constant",
            ),
        ]

    def update_rules(self):
        return [UpdateRule("recognizer", "attacker", batches=2), UpdateRule("anonymizer")]

    def shown(self, batch):
        with torch.no_grad():
            return self.anonymizer(batch.video)

    def hide(self, batch):
        shown = self.anonymizer(batch.video)
        attack = sum(self.attack(batch, shown).values())
        return {**self.recognize(batch, shown), "privacy": -self.recipe.privacy_weight * attack}

    def recognize(self, batch, shown):
        return {"action": self.action.loss(self.recognizer(shown)["action"], batch.index)}

    def attack(self, batch, shown):
        logits = self.attacker(shown)
        return {task.name: task.loss(logits[task.name], batch.index) for task in self.budget}

    def validation_output(self, video):
        shown = self.anonymizer(video)
        return ValidationOutput(masked=self.recognizer(shown)["action"], pictures=shown, attackers=self.attacker(shown))

    def more_metrics(self, metrics, floors):
        leaked = metrics["attacker_attributes"] - floors["attacker_attributes"]
        return {"tradeoff": metrics["masked_top1"] - max(0.0, leaked)}


TRAINING = Training(prepare=BlendNetworks, monitor="tradeoff")


def load(checkpoint):
    network = rebuilt(checkpoint, lambda: BlendNetwork(network_of(checkpoint, Shape)))
    return ImageToImage(f"blend:{checkpoint.name}", network)


METHOD = Method(load, "blend:RUN", "a toy of the tests", learned="on video")
RUNNABLE = Runnable(BlendRecipe, TRAINING.run)
