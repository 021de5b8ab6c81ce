"""Tasks by name: what a network learns of clips."""

from vidveil.tasks.action import Action
from vidveil.tasks.attributes import Attributes
from vidveil.tasks.identity import Identity
from vidveil.tasks.task import Predictions, Task

__all__ = ["TASKS", "Action", "Attributes", "Identity", "Predictions", "Task"]

TASKS: dict[str, type[Action] | type[Attributes] | type[Identity]] = {
    "action": Action,
    "attributes": Attributes,
    "identity": Identity,
}
