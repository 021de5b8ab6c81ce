"""Tables of name → entry. Entries are cheap; what they point to is imported when it is used.

    METHODS["blur"].build("blur:strong", "strong")      imports the module of blur
    PROTOCOLS.lookup("atack")                           UsageError: did you mean attack?

Other tables: TASKS below, RECOGNIZERS in `models.recognizers`, DATA in `data.catalogue`.

Another package adds an entry by an entry point that names an object of the table's type:

    [project.entry-points."vidveil.methods"]
    mosaic = "my_package:MOSAIC"                        # MOSAIC = Method("my_package:Mosaic", "mosaic:N", "...")

Groups: vidveil.methods, vidveil.trainings, vidveil.protocols, vidveil.tasks, vidveil.recognizers, vidveil.datasets. The
class of a recipe extends `LearningRecipe` or `EvaluationRecipe`.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Literal, TypeVar

from vidveil.core.errors import UsageError
from vidveil.core.text import close_to, printable

Entry = TypeVar("Entry")


def resolve(where: str | Callable[..., Any]) -> Any:
    """The object that `package.module:name` points to; an object itself as it is."""
    if not isinstance(where, str):
        return where
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


class Registry(MutableMapping[str, Entry], Generic[Entry]):
    """Built-in entries in their order, then those of other packages, which cannot replace a built-in one."""

    def __init__(self, noun: str, entries: Mapping[str, Entry]) -> None:
        """`noun` as in "no method is called ...": entry points are of the group `vidveil.methods`."""
        self.noun = noun
        self._entries = dict(entries)

    @cached_property
    def _others(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=f"vidveil.{self.noun.replace(' ', '_')}s")}

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            self._entries[name] = self._of_others(name)
        return self._entries[name]

    def _of_others(self, name: str) -> Entry:
        point = self._others[name]  # KeyError, as of any mapping
        try:
            entry: Entry = point.load()
        except Exception as error:  # another package may raise anything
            package = point.dist.name if point.dist else point.value
            raise UsageError(
                f"the {self.noun} {printable(name)} of the package {printable(package)} cannot be loaded: "
                f"{printable(f'{type(error).__name__}: {error}', 300)}"
            ) from error
        kind = type(next(iter(self._entries.values())))
        if not (isinstance(entry, kind) or (kind is str and callable(entry))):
            raise UsageError(
                f"the {self.noun} {printable(name)} of the package {point.dist.name if point.dist else point.value} is "
                f"no {'function' if kind is str else kind.__name__}"
            )
        return entry

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._others

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._entries, *self._others)))

    def __len__(self) -> int:
        return len({*self._entries, *self._others})

    def lookup(self, name: str) -> Entry:
        """The entry; for an unknown name a UsageError that suggests a known one."""
        if name not in self:
            raise UsageError(f"no {self.noun} is called {printable(repr(name))}; {close_to(name, self)}")
        return self[name]


@dataclass(frozen=True, slots=True)
class Method:
    """A way to anonymize, `NAME[:ARG]`."""

    where: str | Callable[..., Any]
    """`module:name` of the function or class that builds it: from the spec and its argument or, for a learned method,
    from a checkpoint."""
    usage: str
    summary: str
    learned: Literal["no", "on video", "on features"] = "no"
    """Whether its argument is a checkpoint, and what the method works on."""

    @property
    def build(self) -> Callable[..., Any]:
        found: Callable[..., Any] = resolve(self.where)
        return found


@dataclass(frozen=True, slots=True)
class Runnable:
    """A kind of recipe: its dataclass and the function that runs it, or `module:name` of each."""

    recipe: str | Callable[..., Any]
    run: str | Callable[..., Any]
    """Takes the recipe; root, resume, strict and console by keyword."""
    plan: str | Callable[..., Any] = ""
    """Of the function that says what a run will do: takes the recipe and root, returns a `training.plan.Plan`. Without
    one, the function that runs it is called with trainings of a few steps."""


METHODS = Registry(
    "method",
    {
        "blur": Method(
            "vidveil.methods.classical:Blur",
            "blur:weak|strong|N",
            "Gaussian blur, σ a 32nd, 16th or N-th of the frame (default strong)",
        ),
        "pixelate": Method(
            "vidveil.methods.classical:Pixelate", "pixelate:N", "mosaic of blocks of N pixels (default 16)"
        ),
        "downsample": Method(
            "vidveil.methods.classical:Downsample",
            "downsample:N",
            "N times fewer pixels each way, drawn at the old size (default 2)",
        ),
        "solid": Method("vidveil.methods.classical:Solid", "solid", "black: what remains is the length of the video"),
        "motion": Method(
            "vidveil.methods.motion:Motion",
            "motion:N",
            "what changed since the frame before, in grey, in blocks of N pixels (default 1)",
        ),
        "figure": Method(
            "vidveil.methods.figure:Figure",
            "figure:N",
            "what moves, in the middle and at one size, in N blocks along the short side (default 8)",
        ),
        "recast": Method(
            "vidveil.methods.recast:Recast",
            "recast:N,D",
            "a figure of N blocks (5), turned by up to D degrees (40) and stretched, at random",
        ),
        "dual_cls": Method(
            "vidveil.methods.dual_cls.anonymizer:load",
            "dual_cls:RUN|FOLDER",
            "two tokens decide tubelet by tubelet what may stay (train it first)",
            learned="on video",
        ),
        "stprivacy": Method(
            "vidveil.methods.stprivacy.anonymizer:load",
            "stprivacy:RUN|FOLDER",
            "what an action does not need is dropped, the rest drawn anew (train it first)",
            learned="on video",
        ),
        "splavu": Method(
            "vidveil.methods.splavu.model:load",
            "splavu:RUN|FOLDER",
            "an adapter of stored features, not of pixels (train it first)",
            learned="on features",
        ),
        "stride": Method(
            "vidveil.methods.classical:Stride",
            "stride:N",
            "every N-th frame, unchanged: combine it with another (default 5)",
        ),
    },
)

DEFAULT = "blur:strong"
"""The method of `vidveil anonymize`, on faces."""

TRAININGS = Registry(
    "training",
    {
        "recognizer": Runnable(
            "vidveil.training.recipe:TrainRecipe",
            "vidveil.evaluation.protocols.recognizer:run",
            "vidveil.evaluation.protocols.plan_clips:plan_recognizer",
        ),
        "dual_cls": Runnable("vidveil.methods.dual_cls.recipe:DualCLSRecipe", "vidveil.methods.dual_cls.train:run"),
        "splavu": Runnable("vidveil.methods.splavu.recipe:SplavuRecipe", "vidveil.methods.splavu.run:run"),
        "stprivacy": Runnable(
            "vidveil.methods.stprivacy.recipe:STPrivacyRecipe", "vidveil.methods.stprivacy.train:run"
        ),
    },
)
"""`verb: train`, by `method`; the default trains a recognizer."""

_CLIPS = Runnable(
    "vidveil.evaluation.recipes.clips:EvaluateRecipe",
    "vidveil.evaluation.protocols.clips:run",
    "vidveil.evaluation.protocols.plan_clips:plan",
)
_WHOLE_VIDEOS = "vidveil.evaluation.protocols.untrimmed:run", "vidveil.evaluation.protocols.plan_features:plan_whole"
PROTOCOLS = Registry(
    "protocol",
    {
        "attack": _CLIPS,
        "gait": _CLIPS,
        "retrieval": _CLIPS,
        "features": Runnable(
            "vidveil.evaluation.recipes.features:FeaturesRecipe",
            "vidveil.evaluation.protocols.features:run",
            "vidveil.evaluation.protocols.plan_features:plan",
        ),
        "detection": Runnable("vidveil.evaluation.recipes.untrimmed:DetectionRecipe", *_WHOLE_VIDEOS),
        "anomaly": Runnable("vidveil.evaluation.recipes.untrimmed:AnomalyRecipe", *_WHOLE_VIDEOS),
    },
)
"""`verb: evaluate`, by `protocol`; the default is `attack`."""

TASKS: Registry[str | Callable[..., Any]] = Registry(
    "task",
    {
        "action": "vidveil.tasks.action:action_task",
        "attributes": "vidveil.tasks.attributes:Attributes",
        "identity": "vidveil.tasks.identity:Identity",
    },
)
"""What a network can be trained for on clips: `module:name` of what makes a task (see `tasks.make_task`)."""
