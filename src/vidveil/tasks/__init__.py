"""Tasks: the targets that a network can be trained for on clips. `core.registry.TASKS` lists them."""

import torch

from vidveil.core.registry import TASKS, resolve
from vidveil.data.clips import ClipSet
from vidveil.tasks.action import Action, Actions
from vidveil.tasks.attributes import Attributes
from vidveil.tasks.identity import Identity
from vidveil.tasks.task import Predictions, Task

__all__ = ["Action", "Actions", "Attributes", "Identity", "Predictions", "Task", "make_task"]


def make_task(name: str, data: ClipSet, device: torch.device | str, label_smoothing: float) -> Task:
    """The task called `name` with the labels of these clips, on this device."""
    task: Task = resolve(TASKS.lookup(name))(data, device, label_smoothing)
    return task
