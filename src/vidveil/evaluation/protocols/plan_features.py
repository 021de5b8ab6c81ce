"""What an evaluation of features will do: `training.plan`. Nothing is extracted; features are made up for timing."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidveil.core.errors import DataError, WeightsError
from vidveil.data.clips import ClipSet
from vidveil.data.features.extract import BATCH, STATIC, clip_picks
from vidveil.data.features.labels import labelled
from vidveil.data.features.sets import GIVEN, Extraction, extraction_of, store_folder
from vidveil.data.store.features import FeatureStore
from vidveil.data.store.videos import NotInCacheError, UndecodedVideos, only_from_cache
from vidveil.data.video_files import FrameStreams
from vidveil.evaluation.attacks import inversion
from vidveil.evaluation.checks import settings_of
from vidveil.evaluation.evaluators.features import Head, head_epochs
from vidveil.evaluation.protocols.feature_methods import FeatureMethods
from vidveil.evaluation.protocols.features import INVERTED
from vidveil.evaluation.protocols.plan_clips import ON_TOP, anonymized_work, is_decoded, methods_by_setting, plan_of
from vidveil.evaluation.protocols.untrimmed import Recipe
from vidveil.evaluation.recipes.features import FeaturesRecipe, HeadKind
from vidveil.evaluation.recipes.recipe import EvaluationRecipe
from vidveil.evaluation.recipes.untrimmed import WEIGHTS, DetectionRecipe
from vidveil.methods.anonymized_data import Setting, cached_anonymized
from vidveil.methods.anonymized_files import FRAMES_AT_ONCE, AnonymizedFiles
from vidveil.models.encoders.encoder import Encoder
from vidveil.tasks import anomaly, detection, make_task
from vidveil.tasks.long_videos import long_extraction
from vidveil.training.log import file_name
from vidveil.training.loop import fit
from vidveil.training.options import options_of
from vidveil.training.plan import (
    Plan,
    PlannedTraining,
    PlannedWork,
    Repeated,
    Speed,
    decoding,
    fit_speed,
    is_finished,
    predicted_clips,
    speed_of,
    steps_of,
)
from vidveil.training.runs import runs_folder, training_of_run

SAMPLE = 20
"""Videos by whose length the number of features is estimated."""
MADE_UP = "features are made up where a network is timed"
INVERSION = "inversion by pairs"


def plan(recipe: FeaturesRecipe, root: Path | None) -> Plan:
    found = plan_of(recipe)
    methods = FeatureMethods(recipe, found.device)
    data, width = _labels(found, recipe, methods, root)
    if "gait" in recipe.attack:
        found.notes.append("gait trains nothing")
        return found
    found.trainings += [one for seed in recipe.seeds for one in _heads_of(recipe, methods, seed, data, width, found)]
    found.notes += [MADE_UP, ON_TOP, "heads are trained anew when a run is resumed"]
    if "reconstruction" in recipe.attack:
        found.notes.append("decoders of pictures are not listed: one per seed for raw features and for each setting")
    return found


def plan_whole(recipe: Recipe, root: Path | None) -> Plan:
    """Of a network on whole videos."""
    found = plan_of(recipe)
    methods = FeatureMethods(recipe, found.device)
    made, network = None, None
    try:
        with only_from_cache():
            made, _, network = long_extraction(
                recipe.data, recipe.encoder, recipe.protocol, frames=recipe.frames, size=recipe.size,
                stride=recipe.stride, half=recipe.half, root=root, seed=recipe.data_seed, device=found.device,
                hop=recipe.hop,
            )  # fmt: skip
    except NotInCacheError:
        _add_unknown_work(found, recipe, methods)
    except WeightsError as error:
        found.notes.append(f"features are not timed: {error}")
        _add_unknown_work(found, recipe, methods, in_cache=True)
    length = 0
    if made is not None and network is not None:
        length = _add_work(found, recipe, methods, made, network)
    width = network.width if network else 0
    for tag in ["raw", *(setting.tag for setting in settings_of(recipe))]:
        for seed in recipe.seeds:
            found.trainings.append(_whole(recipe, tag, seed, made.clips if made else None, width, length))
    found.notes += [MADE_UP, ON_TOP]
    return found


# ---- features


def _labels(
    found: Plan, recipe: FeaturesRecipe, methods: FeatureMethods, root: Path | None
) -> tuple[ClipSet | None, int]:
    """And the length of a feature."""
    if recipe.data.startswith(GIVEN):
        store = FeatureStore.open(Path(recipe.data.removeprefix(GIVEN)).expanduser())
        return labelled(store), store.width
    try:
        with only_from_cache():
            made, network = extraction_of(
                recipe.data, recipe.encoder, frames=recipe.frames, size=recipe.size, stride=recipe.stride,
                half=recipe.half, static=0 if "gait" in recipe.attack else STATIC, root=root, seed=recipe.data_seed,
                device=found.device,
            )  # fmt: skip
    except NotInCacheError:
        _add_unknown_work(found, recipe, methods)
        return None, 0
    except WeightsError as error:
        found.notes.append(f"features are not timed: {error}")
        _add_unknown_work(found, recipe, methods, in_cache=True)
        return None, 0
    _add_work(found, recipe, methods, made, network)
    return made.clips, network.width


def _add_unknown_work(
    found: Plan, recipe: FeaturesRecipe | Recipe, methods: FeatureMethods, *, in_cache: bool = False
) -> None:
    """What is made first of a set whose labels, or whose encoder, are not here."""
    if not in_cache:
        found.work.append(decoding(recipe.data, None))
    settings = [setting for setting in methods_by_setting(recipe) if methods.adapter(setting) is None]
    found.work.append(_unknown_features("raw video", recipe))
    for setting in settings:
        found.work += [
            anonymized_work(None, setting, found.device),
            _unknown_features(f"video after {setting}", recipe),
        ]


def _unknown_features(of: str, recipe: FeaturesRecipe | Recipe) -> PlannedWork:
    return PlannedWork(what=f"features of {of} by {recipe.encoder}", count=None, unit="features", bytes=None)


def _add_work(
    found: Plan, recipe: EvaluationRecipe, methods: FeatureMethods, made: Extraction, network: Encoder
) -> int:
    """Videos after each method, and features of them and of raw ones. How many features a video has, on average."""
    if not is_decoded(made.clips):
        found.work.append(decoding(recipe.data, len(made.clips)))
    each = _features_each(made, network)
    found.work.append(_extraction(made, network, made.clips, "raw video", each, found.device))
    for setting in methods_by_setting(recipe):
        if methods.adapter(setting) is not None:
            continue
        if isinstance(made.clips.videos, FrameStreams):
            found.work.append(_streamed(made, setting, found.device))
            after: ClipSet | None = made.clips.with_videos(AnonymizedFiles(made.clips.videos, setting, found.device))  # type: ignore[arg-type]
        else:
            found.work.append(anonymized_work(made.clips, setting, found.device))
            videos = cached_anonymized(made.clips, setting, device=found.device) if each else None
            after = None if videos is None else made.clips.with_videos(videos)
        found.work.append(_extraction(made, network, after, f"video after {setting}", each, found.device))
    return each


def _features_each(made: Extraction, network: Encoder) -> int:
    """Of a video, on average, by the length of some; static ones, too. 0 if lengths are not known yet."""
    videos = made.clips.videos
    if isinstance(videos, UndecodedVideos):
        if videos.shape is None:
            return 0
        return len(clip_picks(videos.shape[0], network.frames, made.stride, made.hop)) + made.static
    rows = np.linspace(0, len(made.clips) - 1, min(SAMPLE, len(made.clips))).astype(int).tolist()
    lengths = [videos.length(row) if isinstance(videos, FrameStreams) else len(videos.frames(row)) for row in rows]
    counts = [len(clip_picks(length, network.frames, made.stride, made.hop)) for length in lengths]
    return max(1, round(float(np.mean(counts)))) + made.static


def _extraction(
    made: Extraction, network: Encoder, clips: ClipSet | None, of: str, each: int, device: str
) -> PlannedWork:
    what, unit = f"features of {of} by {made.encoder}", "features"
    how = {"stride": made.stride, "static": made.static, "hop": made.hop}
    with suppress(DataError):  # a store that is not whole is gone on with, and planned as if nothing of it were there
        if clips is not None and FeatureStore.open(store_folder(clips, network, **how)):
            return PlannedWork(what=what, count=0, unit=unit)
    count = each * len(made.clips) if each else None
    size = None if count is None else 4 * network.width * count

    def seconds() -> float:
        video = torch.rand(BATCH, 3, network.frames, network.size, network.size, device=device)
        return speed_of(lambda: network.encode(video), device).seconds / BATCH

    return PlannedWork(what=what, count=count, unit=unit, bytes=size, seconds=seconds)


def _streamed(made: Extraction, setting: Setting, device: str) -> PlannedWork:
    """Videos of files are anonymized while they are read: nothing of them is kept."""
    files: Any = made.clips.videos
    rows = np.linspace(0, len(files) - 1, min(SAMPLE, len(files))).astype(int).tolist()
    frames = round(float(np.mean([files.length(row) for row in rows])) * len(files))

    def seconds() -> float:
        pictures = AnonymizedFiles(files, setting, device).pictures(rows[0])
        read = 0

        def step() -> None:
            nonlocal read
            for _, _ in zip(range(FRAMES_AT_ONCE), pictures, strict=False):
                read += 1

        taken = speed_of(step, device).seconds
        return taken / FRAMES_AT_ONCE

    return PlannedWork(
        what=f"frames after {setting}, while they are read", count=frames, unit="frames", seconds=seconds
    )


def _heads_of(
    recipe: FeaturesRecipe, methods: FeatureMethods, seed: int, data: ClipSet | None, width: int, found: Plan
) -> list[PlannedTraining]:
    """Of raw features, of each setting, of what pairs recover, and of what is inverted."""
    made: list[PlannedTraining] = []
    attacked = "attributes" in recipe.attack and (data is None or bool(len(data.attribute_names)))

    def heads(tag: str, task: str, kinds: Sequence[HeadKind], epochs: int, rates: Sequence[float]) -> None:
        for kind in kinds:
            for lr in rates:
                name = kind if len(recipe.attacker_lr) == 1 else f"{kind} lr {lr:g}"
                label = f"{tag} {task} {name} seed {seed}"
                made.append(replace(_head(recipe, label, task, kind, epochs, data, width, found), group=tag))

    def setting(tag: str, by_pairs: bool) -> None:
        heads(tag, "action", (recipe.utility,), recipe.epochs, (recipe.lr,))
        for more in (["", " by pairs"] if by_pairs else [""]) if attacked else []:
            heads(f"{tag}{more}", "attributes", recipe.attackers, recipe.attacker_epochs, recipe.attacker_lr)

    setting("raw", by_pairs=False)
    for one in settings_of(recipe):
        made.append(
            PlannedTraining(
                label=f"{one.tag} {INVERSION} seed {seed}", task="inversion", network="mlp2", clips=None,
                epochs=inversion.EPOCHS, steps=None, group=one.tag,
            )
        )  # fmt: skip
        setting(one.tag, by_pairs=True)
        if "inversion" in recipe.attack:
            ways = INVERTED if methods.adapter(one.of_seed(seed)) is not None else {"black_box": INVERTED["black_box"]}
            for way in ways.values():
                setting(replace(one, method=f"{one.method} {way}").tag, by_pairs=False)
    return made


def _head(
    recipe: FeaturesRecipe, label: str, task: str, kind: HeadKind, epochs: int, data: ClipSet | None, width: int,
    found: Plan,
) -> PlannedTraining:  # fmt: skip
    count = 0 if data is None else len(data.indices("train"))
    epochs, steps = head_epochs(recipe, count, epochs) if count else (epochs, 0)

    def speed() -> Speed:
        assert data is not None
        learned = make_task(task, data, found.device, recipe.label_smoothing)
        rows = data.indices("train")[: recipe.batch]
        features = torch.randn(len(rows), width, device=found.device)
        head = Head(kind, features, learned.outputs).to(found.device).train()
        optimizer = torch.optim.AdamW(head.parameters(), 1e-3)

        def step() -> None:
            optimizer.zero_grad()
            learned.loss(head(features), torch.from_numpy(rows)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

        return speed_of(step, found.device, sum(p.numel() for p in head.parameters()))

    return PlannedTraining(
        label=label, task=task, network=kind, clips=count or None, epochs=epochs, steps=epochs * steps or None,
        batch=recipe.batch, like=(kind, task), speed=speed if count else None,
    )  # fmt: skip


# ---- whole videos


def _whole(recipe: Recipe, tag: str, seed: int, clips: ClipSet | None, width: int, length: int) -> PlannedTraining:
    label = f"{tag} {recipe.protocol} seed {seed}"
    run = recipe.raw if tag == "raw" else ""
    folder = training_of_run(run, label) if run else runs_folder() / recipe.name / "fits" / file_name(label)
    train = np.zeros(0, np.int64) if clips is None else clips.indices("train")
    count = len(train)
    if isinstance(recipe, DetectionRecipe):
        batch = min(recipe.batch, count) or 1
        steps = steps_of(count, batch, recipe.epochs)
    else:
        normal = 0 if clips is None else int((clips.action[train] == _normal(clips)).sum())
        most = max(normal, count - normal)
        batch = min(recipe.batch // 2, most) or 1
        steps = recipe.epochs * -(-most // batch)
    val = 0 if clips is None else len(clips.indices("val"))
    test = 0 if clips is None else len(clips.indices("test"))
    ready = bool(count and length)
    return PlannedTraining(
        label=label, task=recipe.protocol, network="TriDet" if recipe.protocol == "detection" else "MGFN",
        clips=count or None, epochs=recipe.epochs, steps=steps if count else None, batch=batch,
        predicted=predicted_clips(recipe.epochs, recipe.validate_every, val, test),
        done=is_finished(folder), like=recipe.protocol,
        speed=_speed(recipe, seed, clips, width, length) if ready and clips is not None else None,
        group=tag, run=run,
    )  # fmt: skip


def _normal(clips: ClipSet) -> int:
    names = [name.lower() for name in clips.actions]
    return next((names.index(name) for name in ("normal", "none") if name in names), 0)


def _speed(recipe: Recipe, seed: int, clips: ClipSet, width: int, length: int) -> Callable[[], Speed]:
    """On features without content, of as many videos as a batch has."""
    options = replace(options_of(recipe, seed), channels_last=False)
    rng = np.random.default_rng(0)

    def features(videos: int) -> list[Any]:
        return [rng.normal(size=(length, width)).astype(np.float32) for _ in range(videos)]

    def of_detection() -> Speed:
        assert isinstance(recipe, DetectionRecipe)
        batch = min(recipe.batch, len(clips.indices("train")))
        segments = [[(0.0, length / 2, 0)] for _ in range(batch)]
        count = max(2, len(clips.actions))
        data = detection.DetectionVideos(
            features(batch), [1.0] * batch, segments, ["train"] * batch, tuple(map(str, range(count)))
        )
        batches = detection.TrainingBatches(
            data, batch=batch, longest=recipe.longest, device=options.accelerator(), seed=seed
        )
        model = detection.Detection(data, recipe.shape(width, count))
        return fit_speed(fit, model, batches, options, loss=lambda net, one: net(one))

    def of_anomalies() -> Speed:
        assert not isinstance(recipe, DetectionRecipe)
        shape = recipe.shape(width)
        model = anomaly.Anomaly(shape, WEIGHTS[recipe.weights])
        half = torch.randn(recipe.batch // 2, shape.segments, width, device=options.accelerator())
        return fit_speed(fit, model, Repeated((half, half)), options, loss=lambda net, halves: net(*halves))

    return of_detection if recipe.protocol == "detection" else of_anomalies
