"""Every protocol evaluates methods of video, and several in one run as each in a run of its own."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.data import made_thumos14
from tests.data.features import made
from tests.evaluation import made_features, toy
from tests.methods.learned import blend, made_blend
from vidveil.core.errors import DataError, RecipeError, UsageError
from vidveil.core.recipe import find
from vidveil.core.recipe import read as read_recipe
from vidveil.core.registry import METHODS
from vidveil.data.store.features import FeatureStore
from vidveil.evaluation.attacks import inversion
from vidveil.evaluation.protocols import feature_protocol, features, untrimmed
from vidveil.evaluation.protocols.clips import AttackProtocol
from vidveil.evaluation.protocols.clips import load as load_clips
from vidveil.evaluation.protocols.protocol import Protocol
from vidveil.evaluation.recipes.features import FeaturesRecipe
from vidveil.evaluation.recipes.untrimmed import AnomalyRecipe, DetectionRecipe
from vidveil.evaluation.results import read
from vidveil.methods.anonymized_data import Setting
from vidveil.methods.anonymized_files import anonymized_videos
from vidveil.models.encoders import load_encoder
from vidveil.report.tables import table
from vidveil.tasks.long_videos import long_features
from vidveil.training.runs import runs_folder

pytestmark = pytest.mark.xdist_group("untrimmed")
SMALL = {"encoder": "run:mine", "frames": 4, "size": 32, "device": "cpu", "permutations": 19, "resamples": 50}
LONG = SMALL | {"epochs": 1, "lr": 1e-3, "warmup_epochs": 0.0, "seeds": (0,), "hop": 8}
DETECTION = DetectionRecipe(
    name="d", data="puppets_untrimmed:share=0.1", embed=16, levels=2, head_layers=1, batch=2, **LONG
)
ANOMALY = AnomalyRecipe(name="a", data="puppets_anomalies:share=0.02", widths=(64,), depths=(1,), batch=4, **LONG)
FEATURES = FeaturesRecipe(
    name="f", data="puppets:share=0.02", epochs=2, attacker_epochs=2, least_steps=1, attackers=("linear",), batch=32,
    **SMALL,
)  # fmt: skip
GAIT = FeaturesRecipe(name="g", data="puppets:gait,share=0.05", attack=("gait",), **SMALL)
EVERY = {"detection": DETECTION, "anomaly": ANOMALY, "features": FEATURES, "gait": GAIT}


def run(recipe):
    """As in a process of its own."""
    feature_protocol._RAW.clear()
    module = untrimmed if recipe.protocol in ("detection", "anomaly") else features
    return module.run(recipe)


def values(point):
    return {name: metric.seeds for name, metric in point.metrics.items()}


@pytest.fixture(scope="module", autouse=True)
def _place(tmp_path_factory):
    """An encoder that has learned nothing, and an adapter of it."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIDVEIL_CACHE", str(folder / "cache"))
        patch.setenv("VIDVEIL_RUNS", str(folder / "runs"))
        patch.setattr(made, "SIZE", 32)
        patch.setattr(inversion, "STEPS", 5)
        patch.setattr(inversion, "LEAST", 5)
        torch.set_num_threads(1)
        made.run(folder / "runs")
        sees = load_encoder("run:mine")
        made.adapter(folder / "runs", "safe", sees.about(), width=sees.width)
        yield


@pytest.mark.parametrize("protocol", EVERY)
def test_several_methods_of_one_run_have_the_numbers_of_runs_of_their_own_and_raw_is_evaluated_once(
    protocol, monkeypatch
):
    recipe = EVERY[protocol]
    methods = ("blur:strong", "stride:2", "splavu:safe")
    evaluated, lines = [], []
    with monkeypatch.context() as patch:
        patch.setattr(Protocol, "say_values", lambda _, one, *__: evaluated.append(one.tag))
        patch.setattr(Protocol, "say", lambda _, line: lines.append(line))
        together = run(replace(recipe, name=f"{protocol}_all", method=methods))
    if protocol in ("detection", "anomaly"):
        assert [line.partition("(val), ")[2] for line in lines] == [f"{number} of 4" for number in (1, 2, 3, 4)]
    assert [point.method for point in together.points] == list(methods)
    for method, point in zip(methods, together.points, strict=True):
        alone = run(replace(recipe, name=f"{protocol}_{methods.index(method)}", method=method))
        assert values(alone.points[0]) == values(point), method
        assert values(alone.raw) == values(together.raw)
        assert alone.points[0].verdict == point.verdict
        assert point.verdict.endswith(feature_protocol.LOWER_BOUND) == (method != "splavu:safe")
        assert any(metric.change is not None or metric.excess is not None for metric in point.metrics.values())
    assert evaluated == ["raw", *methods]
    assert "lower bound" not in together.raw.verdict
    different = {json.dumps(values(point)) for point in (together.raw, *together.points)}
    assert len(different) > 2 or protocol == "detection"  # where so little training finds nothing
    again = read(runs_folder() / f"{protocol}_all" / "results.json")
    assert again.recipe["method"] == list(methods)
    assert all(f"### {method}" in table([again]) for method in methods)


@pytest.mark.parametrize("protocol", EVERY)
def test_a_learned_method_that_draws_pictures_is_evaluated_by_every_protocol(protocol, monkeypatch, tmp_path):
    """The toy network sees single pictures, of another size than the videos of these sets."""
    monkeypatch.setitem(METHODS, "blend", blend.METHOD)
    made_blend.made(tmp_path)
    method = f"blend:{tmp_path}/mine"
    found = run(replace(EVERY[protocol], name=f"{protocol}_blend", method=method))
    (point,) = found.points
    assert point.method == method
    assert values(point).keys() >= values(found.raw).keys() - {"action_top1_gap"}
    assert values(point) != values(found.raw) or protocol == "detection"  # where so little training finds nothing
    for name, metric in found.raw.metrics.items():
        assert name not in point.metrics or point.metrics[name].raw == metric.value


def test_the_features_of_a_method_are_those_of_its_pictures_static_ones_too():
    found = features.load(replace(FEATURES, method="solid"), None, False)
    black = found.after(found.settings[0])
    assert black.static is not None
    assert (black.clips.all == black.clips.all[0]).all()
    assert (black.static.all == black.clips.all[0]).all()
    assert not (found.data.clips.all == found.data.clips.all[0]).all()
    assert black.store.fingerprint != found.data.store.fingerprint


def test_a_method_that_leaves_frames_out_keeps_as_many_features():
    data = long_features("puppets_untrimmed:share=0.02", "run:mine", "detection")
    extraction = data.data.extraction
    stepped = extraction.of(anonymized_videos(extraction.clips, Setting(method="blur:weak | stride:7")))
    np.testing.assert_array_equal(stepped.clips.count, data.data.clips.count)
    assert replace(data, data=stepped).detection_videos().segments == data.detection_videos().segments


def test_of_a_method_of_video_only_pairs_are_inverted_and_a_line_says_so(capsys):
    from rich.console import Console

    recipe = replace(FEATURES, name="inverted", method=("blur:strong", "splavu:safe"))
    feature_protocol._RAW.clear()
    found = features.run(replace(recipe, attack=("linkage", "inversion")), console=Console(stderr=True, width=200))
    assert [point.method for point in found.points] == [
        "blur:strong", "blur:strong inverted by pairs",
        "splavu:safe", "splavu:safe inverted by pairs", "splavu:safe inverted by the adapter",
    ]  # fmt: skip
    bounds = [point.verdict.endswith(feature_protocol.LOWER_BOUND) for point in found.points]
    assert bounds == [True, True, False, False, False]
    assert "blur:strong: inverted by pairs alone; it works on video" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "splavu:safe", "keep": (0.5,)}, "keep is a setting of methods of video, and splavu:safe is an ada"),
        ({"method": "splavu:safe", "region": "faces"}, "region is a setting of methods of video"),
        ({"method": ("splavu:safe", "blur"), "fill": "mean"}, "fill is a setting of methods of video"),
        ({"method": "blur", "keep": (0.5,)}, "keep and privacy_weight are settings of learned methods, and blur is no"),
        ({"method": "blur", "fill": "mean"}, "blur hides no tubelets: leave fill out"),
        ({"method": "blurr"}, "did you mean blur"),
        ({"keep": (0.5,)}, "raw has no keep"),
        ({"method": ("blur:weak", "blur_weak")}, "would have the same folders"),
    ],
)
@pytest.mark.parametrize("recipe", [FEATURES, ANOMALY], ids=["features", "anomaly"])
def test_knobs_that_a_method_does_not_have_are_refused_before_anything_is_extracted(recipe, changes, reason):
    with pytest.raises(UsageError, match=reason):
        run(replace(recipe, name="refused", data="ucf_crime" if recipe is ANOMALY else "ucf101", **changes))
    assert not (runs_folder() / "refused").exists()


@pytest.mark.parametrize("recipe", [FEATURES, DETECTION, ANOMALY], ids=["features", "detection", "anomaly"])
def test_a_control_of_tubelets_without_a_share_is_refused_before_anything_is_extracted(recipe):
    with pytest.raises(UsageError, match="random needs a share of tubelets to keep"):
        run(replace(recipe, name="refused", method="random"))
    assert not (runs_folder() / "refused").exists()


def test_an_oracle_needs_the_truth_of_clips():
    with pytest.raises(UsageError, match=r"puppets_anomalies:share=0\.02 has none"):
        run(replace(ANOMALY, name="refused", method="oracle", keep=(0.5,)))


def test_masks_at_random_are_swept_by_keep_rate_also_before_an_encoder():
    found = run(replace(FEATURES, name="swept", method=("random", "centre"), keep=(0.9, 0.2), attack=("linkage",)))
    assert [(point.method, point.keep) for point in found.points] == [
        ("random", 0.9), ("random", 0.2), ("centre", 0.9), ("centre", 0.2)
    ]  # fmt: skip


def test_features_alone_have_no_video_for_a_method(tmp_path):
    made_features.made(tmp_path / "store")
    with pytest.raises(UsageError, match=r"blur works on video, and .* holds features alone"):
        run(replace(FEATURES, name="alone", data=f"features:{tmp_path / 'store'}", encoder="", method="blur"))


def test_an_adapter_does_not_work_on_clips():
    recipe = read_recipe(find("blur_puppets"), ["method=splavu:safe"])
    with pytest.raises(UsageError, match="take protocol: features, detection or anomaly"):
        load_clips(recipe, None, False)


@pytest.mark.parametrize("methods", [(), ("blur", "blur"), ("raw", "blur"), ("",)])
def test_a_list_of_methods_names_each_once_and_not_raw(methods):
    with pytest.raises(RecipeError, match="method"):
        replace(FEATURES, method=methods)


def test_a_recipe_takes_one_method_or_a_list():
    for words, methods in (
        ("blur:strong", ("blur:strong",)),
        ("[blur:strong,figure:14]", ("blur:strong", "figure:14")),
        ('["splavu:a-{seed}",blur]', ("splavu:a-{seed}", "blur")),
    ):
        assert read_recipe(find("blur_puppets"), [f"method={words}"]).method == methods


@pytest.mark.usefixtures("own_folders")
def test_clips_of_several_methods_have_the_numbers_of_runs_of_their_own_and_raw_is_trained_once(tmp_path):
    short = replace(toy.RECIPE, epochs=1, attacker_epochs=1, batch=64, permutations=20, resamples=20)
    methods = ("solid", "blur:strong")
    both = toy.evaluate(toy.toy(), short, name="both", method=methods)
    fits = [path.name for path in (tmp_path / "runs" / "both" / "fits").iterdir()]
    assert len([name for name in fits if name.startswith("raw")]) == 3
    assert len(fits) == 9
    for method, point in zip(methods, both.points, strict=True):
        alone = toy.evaluate(toy.toy(), short, name=f"alone{methods.index(method)}", method=method)
        assert alone.points == [point]


# ---- videos that stay in their files


@pytest.fixture
def thumos(tmp_path):
    made_thumos14.as_json(made_thumos14.videos(tmp_path, film=True))
    return tmp_path


def test_videos_that_stay_in_their_files_are_anonymized_while_they_are_read(thumos, monkeypatch):
    from vidveil.data.store.videos import VideoStore
    from vidveil.methods import anonymized_files

    monkeypatch.setattr(VideoStore, "cached", None)  # no pixel is cached
    monkeypatch.setattr(anonymized_files, "FRAMES_AT_ONCE", 7)
    data = long_features("thumos14", "run:mine", "detection", root=thumos, hop=5)
    clips = data.data.extraction.clips
    black = anonymized_videos(clips, Setting(method="solid")).videos
    assert black.length(0) == clips.videos.length(0)
    assert not black.frames(0).any()
    assert black.frames(0).shape == clips.videos.frames(0).shape
    blurred = anonymized_videos(clips, Setting(method="blur:strong")).videos
    whole = load_whole("blur:strong", clips.videos.frames(1))
    np.testing.assert_array_equal(blurred.frames(1), whole)  # seven frames at a time are the same as all
    assert len({black.fingerprint, blurred.fingerprint, clips.videos.fingerprint}) == 3


def load_whole(method, frames):
    from vidveil.methods import load
    from vidveil.methods.anonymized_data import pixels_of, tensor_of

    return pixels_of(load(method).anonymize(tensor_of(frames)).video[None], frames.shape, method)[0]


def test_a_method_that_compares_frames_gets_the_whole_video(thumos):
    clips = long_features("thumos14", "run:mine", "detection", root=thumos, hop=5).data.extraction.clips
    for method in ("motion:2", "blur:weak | stride:9"):
        found = anonymized_videos(clips, Setting(method=method)).videos.frames(1)
        np.testing.assert_array_equal(found, load_whole(method, clips.videos.frames(1)))


def test_their_features_are_cached_by_the_method_and_evaluated(thumos, monkeypatch):
    recipe = replace(DETECTION, name="thumos", data="thumos14", hop=4, method=("blur:strong", "noise"))
    feature_protocol._RAW.clear()
    found = untrimmed.run(recipe, root=thumos)
    assert [point.method for point in found.points] == ["blur:strong", "noise"]
    monkeypatch.setattr(
        FeatureStore, "open", lambda folder, _open=FeatureStore.open: opened.append(folder) or _open(folder)
    )
    opened: list = []
    monkeypatch.setattr("vidveil.data.features.sets.extract", None)  # all three are found
    feature_protocol._RAW.clear()
    assert values(untrimmed.run(replace(recipe, name="again"), root=thumos).points[0]) == values(found.points[0])
    assert len(set(opened)) == 3


def test_controls_of_clips_are_refused_for_videos_that_stay_in_their_files(thumos):
    feature_protocol._RAW.clear()
    with pytest.raises((UsageError, DataError), match="control of clips"):
        untrimmed.run(replace(DETECTION, name="no", data="thumos14", hop=4, method="random", keep=(0.5,)), root=thumos)


# ---- runs of the previous version


def test_a_run_that_an_earlier_version_began_is_resumed(monkeypatch):
    """Its recipe.json has one method as a word, and none of the knobs of methods of video."""
    recipe = replace(DETECTION, name="old", method="splavu:safe")
    train, left = untrimmed._detect, [2]

    def stops(*words, **more):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return train(*words, **more)

    feature_protocol._RAW.clear()
    with monkeypatch.context() as patch:
        patch.setattr(untrimmed, "_detect", stops)
        with pytest.raises(KeyboardInterrupt):
            untrimmed.run(recipe)
    path = runs_folder() / "old" / "recipe.json"
    written = json.loads(path.read_text())
    assert written["method"] == "splavu:safe"
    path.write_text(
        json.dumps({k: v for k, v in written.items() if k not in ("region", "keep", "privacy_weight", "fill")})
    )
    feature_protocol._RAW.clear()
    with pytest.raises(UsageError, match="method was 'splavu:safe', is"):
        untrimmed.run(replace(recipe, method=("splavu:safe", "blur")), resume=True)
    trained = []
    monkeypatch.setattr(
        untrimmed, "_detect", lambda *words, **more: trained.append(more["label"]) or train(*words, **more)
    )
    assert untrimmed.run(recipe, resume=True).points[0].method == "splavu:safe"
    assert trained == ["raw detection seed 0", "splavu:safe detection seed 0"]


def test_a_run_of_clips_of_the_previous_version_goes_on_by_its_labels(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    recipe = replace(toy.RECIPE, name="old", method="solid", epochs=1, attacker_epochs=1, batch=64)
    protocol = AttackProtocol(recipe, toy.toy())
    protocol.measure.linkage = lambda *_: (_ for _ in ()).throw(RuntimeError("cut"))
    with pytest.raises(RuntimeError, match="cut"):
        protocol.evaluate()
    assert json.loads((tmp_path / "runs" / "old" / "recipe.json").read_text())["method"] == "solid"
    assert {path.name for path in (tmp_path / "runs" / "old" / "fits").iterdir()} == {
        "raw_action_r3d_tiny_seed_0", "raw_identity_resnet_tiny_lr_0.003_seed_0"
    }  # fmt: skip
