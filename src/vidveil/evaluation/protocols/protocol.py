"""What all evaluations have in common: raw data first, then each setting of each method, then `results.json`.

    run(recipe) → load(recipe) → Protocol → evaluate → Results

                    raw data ─────────────────► evaluate_setting ─► Evaluated ─┐
    each setting:   raw data ─► after(setting) ─► evaluate_setting ─► Evaluated ─┴► Results

A protocol is a subclass of `Protocol` with these two methods: `after` says what its data is behind a method, and
`evaluate_setting` what is measured of it. Runs, resuming, settings, seeds, progress lines, per-clip files and results
are made here, and nowhere else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar

from rich.console import Console

from vidveil.core.errors import DataError
from vidveil.core.machine import describe
from vidveil.core.recipe import as_values
from vidveil.data.clips import SPLITS, ClipSet
from vidveil.data.description import data_description
from vidveil.evaluation.checks import settings_of
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.number import Number
from vidveil.evaluation.per_clip import write_per_clip
from vidveil.evaluation.points import attribute_excess, control_metrics, point
from vidveil.evaluation.recipes.recipe import AttackRecipe, EvaluationRecipe
from vidveil.evaluation.results import ByView, Point, Results
from vidveil.methods.anonymized_data import Setting
from vidveil.training.options import options_of
from vidveil.training.recipe import LearningRecipe
from vidveil.training.runs import Run, runs_folder

Data = TypeVar("Data")
"""What evaluators are trained on: clips, features of clips, features of whole videos."""
AnyRecipe = TypeVar("AnyRecipe", bound=LearningRecipe)


@dataclass
class Evaluated:
    """Raw data or one setting of a method, with everything that was measured."""

    method: str = "raw"
    keep: float | None = None
    raw: "Evaluated | None" = None
    """Raw data, which a setting is compared with; None of raw data itself."""
    numbers: dict[str, Number] = field(default_factory=dict)
    constant: list[str] = field(default_factory=list)
    """Attributes that are the same in all test clips."""
    attackers: dict[str, list[TrainedNetwork]] = field(default_factory=dict)
    """Those that learned identity, one per seed."""
    by_view: ByView = field(default_factory=dict)
    """Of gaits: rank-1 by condition, view of the probe and view of the gallery."""
    kept_as_filmed: bool | None = None

    @property
    def tag(self) -> str:
        return self.method if self.keep is None else f"{self.method}-{self.keep:g}"

    @property
    def raw_numbers(self) -> dict[str, Number]:
        return (self.raw or self).numbers


class Protocol(ABC, Generic[Data]):
    """One evaluation of one set. `evaluate` makes the run and returns its results."""

    recipe: LearningRecipe
    seeds: Sequence[int] = ()
    """Every network is trained once per seed."""
    settings: Sequence[Setting] = ()
    """Each method at each of its keep rates; none where raw data is evaluated alone."""
    run: Run
    console: Console | None = None
    began: float
    raw_run = ""
    """The run that evaluated raw data already, if the recipe names one."""

    def __init__(self, recipe: LearningRecipe, data: Data, labels: ClipSet, measure: Measure | None = None) -> None:
        """`measure` knows the test clips that per-clip values are of; None if no number is a mean over clips."""
        self.recipe, self.data, self.labels, self.measure = recipe, data, labels, measure
        if isinstance(recipe, EvaluationRecipe):
            self.seeds, self.settings = recipe.seeds, settings_of(recipe)
        self.device = options_of(recipe, 0).accelerator()
        self.cost: dict[str, dict[str, float]] = {}

    @abstractmethod
    def evaluate_setting(self, data: Sequence[Data], about: Evaluated) -> Evaluated:
        """Fill in the numbers of one setting, or of raw data. `data` has one set per seed."""

    def after(self, setting: Setting) -> Data:
        """The data behind a method, whose name has no `{seed}` any more."""
        raise NotImplementedError(f"{type(self).__name__} evaluates no method, and was asked for {setting}")

    def evaluate_settings(self, raw: Evaluated) -> Iterator[Evaluated]:
        for setting in self.settings:
            yield from self.evaluate_method(setting, raw)

    def evaluate_method(self, setting: Setting, raw: Evaluated) -> Iterator[Evaluated]:
        """A method at one setting; more than one entry where it is evaluated in several ways."""
        yield self.evaluate_setting(self.anonymized(setting), Evaluated(setting.method, setting.keep, raw))

    def anonymized(self, setting: Setting) -> list[Data]:
        """One set per seed; the same one, unless the method was trained once per seed."""
        each = [setting.of_seed(seed) for seed in self.seeds]
        made = {one: self.after(one) for one in dict.fromkeys(each)}
        return [made[one] for one in each]

    def evaluate_raw(self) -> Evaluated:
        return self.evaluate_setting(self.for_all_seeds(self.data), Evaluated())

    def evaluate_controls(self) -> dict[str, Number]:
        """What else is measured on raw video."""
        return {}

    def evaluate(self, *, resume: bool = False, console: Console | None = None) -> Results:
        """All of it, as a run of its own."""
        values = as_values(self.recipe)
        with Run.create(self.recipe.name, values, resume=resume, accelerator=self.device, console=console) as self.run:
            self.console, self.began = console, monotonic()
            raw = self.evaluate_raw()
            settings = list(self.evaluate_settings(raw))
            self._write_per_clip(raw, settings)
            controls = self.evaluate_controls()
            results = Results(
                name=self.recipe.name,
                recipe=values,
                data=data_description(self.labels),
                machine=describe(self.device),
                seconds=round(monotonic() - self.began, 1),
                raw=self.as_point(raw),
                points=[self.as_point(one) for one in settings],
                controls=control_metrics(controls),
                cost=self.cost,
            )
            results.write(self.run.folder / "results.json")
            self.finish(results)
        return results

    def finish(self, results: Results) -> None:
        """What else a run leaves; by default nothing."""

    def as_point(self, one: Evaluated) -> Point:
        """As it stands in results, next to raw data."""
        found = point(one.method, one.keep, one.numbers, one.constant, one.raw_numbers)
        return replace(found, by_view=one.by_view, kept_as_filmed=one.kept_as_filmed)

    def for_all_seeds(self, data: Data) -> list[Data]:
        """One set for the networks of every seed."""
        return [data] * len(self.seeds)

    def folder(self, label: str) -> Path:
        """Where a training is kept: in this run, or in the one that evaluated raw data already."""
        here = self.run.part(label)
        if self.raw_run and label.startswith("raw "):
            return runs_folder() / self.raw_run / here.relative_to(self.run.folder)
        return here

    def add_cost(self, label: str, parameters: int, seconds: Iterable[float]) -> None:
        """`seconds` has one entry per seed."""
        self.cost[label] = {"parameters": parameters, "seconds": round(sum(seconds), 1)}

    def say(self, line: str) -> None:
        if self.console is not None:
            shown = f"{monotonic() - self.began:6.0f} s  {line}"
            self.console.print(shown, highlight=False, markup=False, soft_wrap=True)  # one line also in a pipe

    def say_values(self, one: Evaluated, names: Sequence[str] = ()) -> None:
        """Values of these numbers; of all, if none is named."""
        values = {name: one.numbers[name].measured.value.value for name in names or one.numbers if name in one.numbers}
        self.say(f"{one.tag}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))

    def _write_per_clip(self, raw: Evaluated, settings: Sequence[Evaluated]) -> None:
        if self.measure is None:
            return
        per_clip = {f"{one.tag}/{name}": number for one in (raw, *settings) for name, number in one.numbers.items()}
        shares = {one.tag: attribute_excess(one.numbers, raw.numbers) for one in settings}
        attributes = {tag: share.estimate for tag, share in shares.items() if share and share.estimate}
        write_per_clip(self.run.folder / "per_clip.safetensors", self.measure.people, per_clip, attributes)


def run_protocol(
    load: Callable[[AnyRecipe, Path | None, bool], Protocol[Any]],
    recipe: AnyRecipe,
    *,
    root: Path | None = None,
    resume: bool = False,
    strict: bool = False,
    console: Console | None = None,
) -> Results:
    """All of an evaluation. What cannot work is refused before there is a run.

    Args:
        load: takes the recipe, `root` and `strict`; checks the recipe and loads its data.
        root: the folder with datasets.
        strict: a video that cannot be decoded is an error.
    """
    options_of(recipe, 0).accelerator()  # raises if it is not there
    Run.may_begin(recipe.name, as_values(recipe), resume=resume)
    return load(recipe, root, strict).evaluate(resume=resume, console=console)


def measure_of(recipe: AttackRecipe, labels: ClipSet) -> Measure:
    return Measure(
        labels,
        permutations=recipe.permutations,
        resamples=recipe.resamples,
        f1_threshold=recipe.f1_threshold,
        device=options_of(recipe, 0).accelerator(),
    )


def check_splits(labels: ClipSet) -> None:
    """DataError if a split is empty."""
    if empty := [split for split in SPLITS if not len(labels.indices(split))]:
        raise DataError(f"{labels.name} has no videos in {' and '.join(empty)}: the evaluation needs all three splits")
