"""Tasks by name: the targets that a network can be trained for on clips."""

from collections.abc import Callable

import torch

from vidveil.core.registry import Registry
from vidveil.data.clips import ClipSet
from vidveil.tasks.action import Action, Actions, action_task
from vidveil.tasks.attributes import Attributes
from vidveil.tasks.identity import Identity
from vidveil.tasks.task import Predictions, Task

__all__ = ["TASKS", "Action", "Actions", "Attributes", "Identity", "Predictions", "Task"]

Make = Callable[[ClipSet, torch.device | str, float], Task]
"""From data, device and label smoothing."""
TASKS: Registry[Make] = Registry(
    "task",
    {
        "action": action_task,
        "attributes": Attributes,
        "identity": Identity,
    },
)
