"""Whole evaluations on long videos by the smallest networks: what is written, set next to raw, resumed and refused."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from tests.data import made_thumos14, made_ucf_crime
from tests.data.features import made
from vidveil.cli.app import app
from vidveil.core.errors import DataError, RecipeError, UsageError
from vidveil.core.recipe import find
from vidveil.core.recipe import read as read_recipe
from vidveil.evaluation.protocols import feature_protocol
from vidveil.evaluation.protocols import untrimmed as untrimmed_module
from vidveil.evaluation.protocols.untrimmed import run
from vidveil.evaluation.recipes.untrimmed import AnomalyRecipe, DetectionRecipe
from vidveil.evaluation.results import read
from vidveil.models.encoders import load_encoder
from vidveil.report.tables import overview, table
from vidveil.training.runs import runs_folder

pytestmark = pytest.mark.xdist_group("untrimmed")  # its fixtures take long: made by one worker

SMALL = {"encoder": "run:mine", "frames": 4, "size": 32, "epochs": 2, "lr": 1e-3, "warmup_epochs": 0.0, "device": "cpu"}
SMALL |= {"permutations": 19, "resamples": 50, "seeds": (0, 1)}
WHOLE = ("detection_map", "detection_map_50")
FRAMES = ("anomaly_frame_auc", "anomaly_frame_auc_when", "anomaly_video_auc")


@pytest.fixture(scope="module", autouse=True)
def _place(tmp_path_factory):
    """An encoder that has learned nothing, and adapters of it and of another."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIDVEIL_CACHE", str(folder / "cache"))
        patch.setenv("VIDVEIL_RUNS", str(folder / "runs"))
        patch.setattr(made, "SIZE", 32)
        torch.set_num_threads(1)
        made.run(folder / "runs")
        sees = load_encoder("run:mine")
        for seed in range(2):
            made.adapter(folder / "runs", f"safe-{seed}", sees.about(), seed, width=sees.width)
        made.adapter(folder / "runs", "others", width=sees.width)
        yield


@pytest.fixture(scope="module")
def detection():
    return DetectionRecipe(
        name="d", data="puppets_untrimmed:share=0.1", hop=4, embed=16, levels=2, head_layers=1, batch=2, **SMALL
    )


@pytest.fixture(scope="module")
def anomaly():
    return AnomalyRecipe(
        name="a", data="puppets_anomalies:share=0.02", hop=4, widths=(64,), depths=(1,), batch=4, **SMALL
    )


@pytest.fixture(scope="module")
def results(detection):
    feature_protocol._RAW.clear()
    return run(replace(detection, name="both", method="splavu:safe-{seed}"))


def test_raw_and_anonymized_features_stand_side_by_side(results):
    (point,) = results.points
    assert tuple(results.raw.metrics) == tuple(point.metrics) == WHOLE
    for name in WHOLE:
        metric, raw = point.metrics[name], results.raw.metrics[name]
        assert len(metric.seeds) == len(raw.seeds) == 2
        assert metric.raw == raw.value
        assert metric.change == pytest.approx(metric.value - raw.value)
        assert metric.change_interval is not None
        assert raw.retention in (1, None) or raw.value == 0
        assert metric.interval[0] <= metric.value <= metric.interval[1]
        assert metric.kind == "utility"
    assert results.data["clips"] == {"train": 12, "val": 2, "test": 4}
    assert set(results.cost) == {"raw detection", "splavu:safe-{seed} detection"}


def test_results_can_be_read_again_and_are_drawn(results):
    again = read(runs_folder() / "both" / "results.json")
    assert again.points[0].metrics.keys() == results.points[0].metrics.keys()
    text = table([again])
    assert "actions detected, mAP at tIoU 0.5" in text
    assert "change " in text
    assert "| mAP |" in overview([again])


def test_raw_features_alone_have_no_points_and_are_evaluated_once_per_process(detection, results, monkeypatch):
    monkeypatch.setattr(untrimmed_module, "_detect", None)  # nobody is trained
    found = run(replace(detection, name="raw_again"))
    assert found.points == []
    assert found.raw.metrics["detection_map"].seeds == results.raw.metrics["detection_map"].seeds


def test_networks_on_raw_features_of_another_run_are_used_again(detection, results):
    feature_protocol._RAW.clear()
    found = run(replace(detection, name="reusing", method="splavu:safe-0", raw="both"))
    assert found.raw.metrics["detection_map"].value == pytest.approx(results.raw.metrics["detection_map"].value)
    assert not any(path.name.startswith("raw") for path in (runs_folder() / "reusing" / "fits").iterdir())
    feature_protocol._RAW.clear()
    with pytest.raises(UsageError, match="leave out raw="):
        run(replace(detection, name="nobody", raw="others"))
    results_of_both = runs_folder() / "both" / "results.json"
    kept = results_of_both.read_text()
    results_of_both.unlink()
    with pytest.raises(UsageError, match="both is not finished"):
        run(replace(detection, name="early", raw="both"))
    results_of_both.write_text(kept)


def test_with_too_few_permutations_the_verdict_says_so(detection):
    feature_protocol._RAW.clear()
    found = run(replace(detection, name="few", epochs=1, permutations=5))
    assert found.raw.verdict == "too few permutations to say whether events are found"
    feature_protocol._RAW.clear()


def test_a_run_that_was_stopped_goes_on_to_the_same_numbers(detection, results, monkeypatch):
    feature_protocol._RAW.clear()
    learn, left = untrimmed_module._detect, [3]

    def stops(*args, **kwargs):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return learn(*args, **kwargs)

    recipe = replace(detection, name="stopped", method="splavu:safe-{seed}")
    monkeypatch.setattr(untrimmed_module, "_detect", stops)
    with pytest.raises(KeyboardInterrupt):
        run(recipe)
    monkeypatch.undo()
    feature_protocol._RAW.clear()
    with pytest.raises(UsageError, match="--resume"):
        run(recipe)
    found = run(recipe, resume=True)
    for name in WHOLE:
        for one, two in ((found.raw, results.raw), (found.points[0], results.points[0])):
            assert one.metrics[name].seeds == pytest.approx(two.metrics[name].seeds)


def test_anomalies_are_measured_by_frames_and_videos(anomaly):
    found = run(replace(anomaly, method="splavu:safe-{seed}"))
    (point,) = found.points
    assert tuple(point.metrics) == FRAMES
    for metric in point.metrics.values():
        assert 0 <= metric.value <= 1
        assert metric.floor_analytic == 0.5
        assert metric.measured_by == "MGFN"
    assert "anomalies, AUC of frames of abnormal videos" in table([found])


def test_an_adapter_of_another_encoder_is_refused_before_anything_is_trained(detection, anomaly):
    for recipe in (detection, anomaly):
        with pytest.raises(DataError, match="another encoder"):
            run(replace(recipe, name="refused", method="splavu:others"))
    assert not (runs_folder() / "refused").exists()


def test_a_set_of_another_kind_is_refused(detection, anomaly):
    with pytest.raises(UsageError, match="puppets_untrimmed"):
        run(replace(detection, name="refused", data="puppets"))
    with pytest.raises(UsageError, match="puppets_anomalies"):
        run(replace(anomaly, name="refused", data="puppets_untrimmed"))


@pytest.mark.parametrize(
    ("recipe", "override", "sentence"),
    [
        ("untrimmed_puppets", "embed=40", "cannot be cut into 16 groups"),
        ("untrimmed_puppets", "seeds=[]", "at least one"),
        ("untrimmed_puppets", "hop=-1", "0 or more"),
        ("untrimmed_puppets", "widths=[64]", "nothing is called 'widths'"),
        ("anomaly_puppets", "batch=5", "even"),
        ("anomaly_puppets", "depths=[1]", "as many widths"),
        ("anomaly_puppets", "weights=loud", "firm or published"),
        ("anomaly_puppets", "protocol=detect", "detection or anomaly, not 'detect'"),
    ],
)
def test_what_makes_no_sense_is_refused_as_a_recipe_is_read(recipe, override, sentence):
    with pytest.raises(RecipeError, match=sentence):
        read_recipe(find(recipe), [override])


def test_each_protocol_has_a_recipe_of_its_own():
    assert isinstance(read_recipe(find("detection_thumos14")), DetectionRecipe)
    for name in ("anomaly_ucf_crime", "anomaly_surveillance_fight"):
        assert isinstance(read_recipe(find(name)), AnomalyRecipe)


QUICK = ["encoder=run:mine", "frames=4", "size=32", "method=raw", "half=false", "epochs=1", "batch=2", "device=cpu"]
QUICK += ["warmup_epochs=0", "seeds=[0]", "permutations=5", "resamples=10"]
REAL = Path(os.environ.get("VIDVEIL_DATA", "nowhere"))


def test_actions_of_thumos14_are_detected_in_whole_videos(tmp_path):
    made_thumos14.as_json(made_thumos14.videos(tmp_path, film=True))
    recipe = read_recipe(find("detection_thumos14"), [*QUICK, "embed=16", "levels=2"])
    found = run(recipe, root=tmp_path)
    assert tuple(found.raw.metrics) == WHOLE
    assert found.data["clips"] == {"train": 3, "val": 1, "test": 2}


def test_crimes_are_detected_by_the_frame(tmp_path):
    made_ucf_crime.lists(made_ucf_crime.made(tmp_path, film=True))
    recipe = read_recipe(find("anomaly_ucf_crime"), [*QUICK, "widths=[64]", "depths=[1]"])
    assert tuple(run(recipe, root=tmp_path).raw.metrics) == FRAMES


@pytest.mark.skipif(not (REAL / "surveillance_fight").is_dir(), reason="VIDVEIL_DATA has no surveillance_fight")
def test_fights_are_detected_by_the_video_in_each_fold():
    words = [*QUICK, "batch=64", "widths=[64]", "depths=[1]", "data=surveillance_fight:2"]
    found = run(read_recipe(find("anomaly_surveillance_fight"), words), root=REAL)
    assert tuple(found.raw.metrics) == ("anomaly_video_auc",)
    assert found.data["name"] == "surveillance_fight:2"


def test_the_command_evaluates_and_prints_the_table():
    words = ["data=puppets_untrimmed:share=0.1", "method=raw", "encoder=run:mine", "frames=4", "size=32", "hop=4"]
    words += ["epochs=1", "seeds=[0]", "permutations=5", "resamples=10", "embed=16", "levels=2", "name=by_command"]
    done = CliRunner().invoke(app, ["evaluate", "untrimmed_puppets", *words])
    assert done.exit_code == 0, done.output
    assert "actions detected, mAP" in done.output
    state = json.loads((runs_folder() / "by_command" / "state.json").read_text())
    assert state["state"] == "done"
