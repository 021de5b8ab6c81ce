"""A plan lists what a run then does, and does none of it."""

import json
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from tests.data import made_thumos14
from tests.data.features import made
from vidveil import weights
from vidveil.app.run_recipe import planned
from vidveil.cli.app import app
from vidveil.core.errors import UsageError
from vidveil.core.recipe import find
from vidveil.core.recipe import read as read_recipe
from vidveil.data import load_data
from vidveil.evaluation.evaluators import features as heads_module
from vidveil.evaluation.protocols import clips, feature_protocol, features, recognizer, untrimmed
from vidveil.models.encoders import load_encoder
from vidveil.training.log import file_name
from vidveil.training.plan import Plan, PlannedTraining, PlannedWork, Speed, timed

pytestmark = pytest.mark.xdist_group("untrimmed")
QUICK = ["frames=4", "size=32", "epochs=1", "seeds=[0,1]", "permutations=10", "resamples=10", "device=cpu"]
TINY = ["data=puppets:share=0.1", "frames=4", "size=32"]
CLIPS = [
    "data=puppets:share=0.1",
    "attacker_epochs=1",
    "attackers=[resnet_tiny,resnet_tiny:frozen]",
    "batch=32",
    *QUICK,
]
LONG = ["encoder=run:mine", "hop=8", "warmup_epochs=0", "batch=2", *QUICK]
HEADS = ["encoder=run:mine", "data=puppets:share=0.1", "attacker_epochs=1", "least_steps=1", *QUICK]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Folders of a test's own, with an encoder that has learned nothing and an adapter of it."""
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(made, "SIZE", 32)
    torch.set_num_threads(1)
    feature_protocol._RAW.clear()
    made.run(tmp_path / "runs")
    sees = load_encoder("run:mine")
    made.adapter(tmp_path / "runs", "safe", sees.about(), width=sees.width)
    return tmp_path


def files(folder):
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def interrupted(folder, name):
    """Of a run that is done, as if its last step had been killed; True, for `resume`."""
    path = folder / "runs" / name / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "interrupted"}))
    return True


def labels(plan):
    return [one.label for one in plan.trainings]


def fits(folder, name):
    return {path.name for path in (folder / "runs" / name / "fits").iterdir()}


def test_a_plan_of_clips_lists_every_training_and_writes_nothing(place):
    words = [*CLIPS, "method=[blur:strong,solid]", "controls=[one_frame]", "name=both"]
    recipe = read_recipe(find("blur_puppets"), words)
    before = files(place)
    plan = planned(recipe)
    assert files(place) == before
    assert len(set(labels(plan))) == len(plan.trainings)
    clips.run(recipe)
    assert {file_name(label) for label in labels(plan)} == fits(place, "both")
    again = planned(recipe, resume=interrupted(place, "both"))
    assert labels(again) == labels(plan)
    assert all(one.done for one in again.trainings)
    assert not any(one.done for one in plan.trainings)
    assert [work.count for work in again.work] == [0, 0]
    decoded, *after = plan.work
    assert decoded.bytes is None
    assert [work.bytes for work in after] == [work.count * 4 * 32 * 32 * 3 for work in after]
    assert again.total_seconds == 0 < plan.total_seconds


def test_steps_and_clips_are_those_of_the_training(place, monkeypatch):
    recipe = read_recipe(find("action_puppets"), [*TINY, "epochs=2", "batch=50"])
    (one,) = planned(recipe).trainings
    taken = []
    train = recognizer.learn

    def learn(data, *words, **more):
        taken.append(data)
        return train(data, *words, **more)

    monkeypatch.setattr(recognizer, "learn", learn)
    recognizer.run(recipe)
    assert one.clips == len(taken[0].indices("train"))
    lines = [json.loads(line) for line in (place / "runs" / "action_puppets" / "log.jsonl").read_text().splitlines()]
    assert one.steps == 2 * (one.clips // 50)
    assert max(line["step"] for line in lines if "step" in line) == one.steps
    assert planned(recipe, resume=interrupted(place, "action_puppets")).trainings[0].done


@pytest.mark.parametrize(("protocol", "name"), [("detection", "untrimmed_puppets"), ("anomaly", "anomaly_puppets")])
def test_a_plan_of_whole_videos_lists_every_training_and_what_is_extracted(place, protocol, name):
    data, shape = ("puppets_untrimmed", ["embed=16", "levels=2"]), ("puppets_anomalies", ["widths=[64]", "depths=[1]"])
    chosen, own = data if protocol == "detection" else shape
    words = [*LONG, *own, f"data={chosen}:share=0.02", "method=[blur,splavu:safe]", "name=both"]
    recipe = read_recipe(find(name), words)
    before = files(place)
    plan = planned(recipe)
    assert files(place) == before
    assert all(plan.seconds(one) for one in plan.trainings)
    untrimmed.run(recipe)
    assert {file_name(label) for label in labels(plan)} == fits(place, "both")
    again = planned(recipe, resume=interrupted(place, "both"))
    assert all(one.done for one in again.trainings)
    assert [work.count for work in again.work] == [0, 0, 0]  # raw features, clips after blur, features of these
    assert "splavu" not in " ".join(work.what for work in plan.work)


def test_a_plan_of_features_lists_every_head(place):
    words = [*HEADS, "method=[blur,splavu:safe]", "attack=[linkage,attributes,inversion]", "name=both"]
    recipe = read_recipe(find("splavu_puppets_table"), words)
    before = files(place)
    plan = planned(recipe)
    assert files(place) == before
    assert heads_module.head_epochs(recipe, 10, 1)[0] == 1
    results = features.run(recipe)
    heads = [one.label for one in plan.trainings if one.task != "inversion"]
    assert sorted(heads) == sorted(f"{name} seed {seed}" for name in results.cost for seed in (0, 1))


def test_what_is_not_drawn_or_decoded_yet_is_counted_and_not_made(place):
    plan = planned(read_recipe(find("blur_puppets"), CLIPS))
    assert plan.trainings[0].clips == 240
    assert plan.work[0].count == 352
    assert plan.work[0].what == "puppets:share=0.1 decoded"
    assert plan.work[0].what in plan.unmeasured
    assert not (place / "cache").exists()


def test_videos_that_stay_in_their_files_are_planned_by_their_headers(place):
    made_thumos14.as_json(made_thumos14.videos(place, film=True))
    words = [*LONG, "data=thumos14", "method=[blur,splavu:safe]", "embed=16", "levels=2"]
    plan = planned(read_recipe(find("untrimmed_puppets"), words), root=place)
    assert [(work.count, work.unit) for work in plan.work] == [
        (6 * (7 + 4), "features"),
        (300, "frames"),
        (66, "features"),
    ]
    assert not (place / "cache").exists()


def test_a_method_that_is_trained_is_planned_by_a_few_steps_of_it(place):
    recipe = read_recipe(find("dual_cls_puppets"), [*TINY, "epochs=2", "batch=8", "device=cpu"])
    (undrawn,) = planned(recipe).trainings
    assert (undrawn.clips, undrawn.steps, undrawn.speed, undrawn.network) == (240, 60, None, "dual_cls")
    load_data(recipe.data, frames=4, size=32)
    before = files(place)
    plan = planned(recipe)
    assert files(place) == before
    assert [(one.steps, one.clips, one.network) for one in plan.trainings] == [(60, 240, "dual_cls")]
    assert plan.total_seconds > 0
    assert plan.bytes["runs"] > 0


def test_the_command_prints_lines_in_a_pipe_and_begins_no_run(place):
    done = CliRunner().invoke(app, ["evaluate", "blur_puppets", *CLIPS, "--dry-run"])
    assert done.exit_code == 0, done.output
    total, *lines = done.output.splitlines()
    assert total.endswith("trainings on puppets:share=0.1")
    assert (
        "blur:strong identity resnet_tiny lr 0.002: how many 2, clips 240, epochs 1, steps 7, time left " in done.output
    )
    assert "disk, cache: at least 4.33 MB more" in done.output  # what is decoded is as large again
    assert "disk, runs: at most" in done.output
    assert lines[0].startswith("time left: at least")
    assert "puppets:share=0.1 decoded: how many 352 videos, disk ?, time ?" in lines
    assert not (place / "runs" / "blur_puppets").exists()
    assert not (place / "cache").exists()
    trained = CliRunner().invoke(
        app, ["train", "action_puppets", "data=puppets:share=0.1", "frames=4", "size=32", "--dry-run"]
    )
    assert "1 training on puppets:share=0.1\n" in trained.output
    assert "action_puppets r3d_tiny: clips 240, epochs" in trained.output


def test_a_run_that_the_command_would_refuse_is_refused_by_its_plan_in_the_same_words(place):
    words = ["evaluate", "blur_puppets", *CLIPS, "seeds=[0]", "name=one"]
    assert CliRunner().invoke(app, words).exit_code == 0
    for more in ([], ["--resume"], ["--resume", "lr=0.01"]):
        if "lr=0.01" in more:
            interrupted(place, "one")
        real, dry = (CliRunner().invoke(app, [*words, *more, *last]) for last in ([], ["--dry-run"]))
        assert (real.exit_code, str(real.exception)) == (dry.exit_code, str(dry.exception)), more
        assert dry.exception is not None
    gone_on = CliRunner().invoke(app, [*words, "--resume", "--dry-run"])
    assert "10 trainings on puppets:share=0.1, 10 of them done in the run one" in gone_on.output
    shared = CliRunner().invoke(app, [*words, "name=two", "raw=one", "method=solid", "--dry-run"])
    assert "10 trainings on puppets:share=0.1, 5 of them taken from run one" in shared.output


def test_a_training_that_another_run_lacks_is_refused_beforehand(place):
    (place / "runs" / "other" / "fits").mkdir(parents=True)
    words = [*LONG, "embed=16", "levels=2", "data=puppets_untrimmed:share=0.02", "method=blur", "raw=other"]
    with pytest.raises(UsageError, match="the run other is not finished"):
        planned(read_recipe(find("untrimmed_puppets"), words))
    (place / "runs" / "other" / "results.json").write_text("{}")
    with pytest.raises(UsageError, match="the run other has no training raw_detection_seed_0"):
        planned(read_recipe(find("untrimmed_puppets"), words))
    with pytest.raises(UsageError, match="the run other has no training raw_action_r3d_tiny_seed_0"):
        planned(read_recipe(find("blur_puppets"), [*CLIPS, "raw=other"]))


def test_what_is_not_known_of_whole_videos_is_listed_and_promised_no_size(place, monkeypatch):
    monkeypatch.setenv("VIDVEIL_WEIGHTS", str(place / "weights"))
    words = ["evaluate", "anomaly_surveillance_fight", "method=blur:strong", "--data", str(place), "--dry-run"]
    printed = CliRunner().invoke(app, words).output
    assert "time left: not known" in printed
    assert "disk, cache: not known;" in printed
    assert "disk, runs: not known;" in printed
    for of in ("features of raw video by i3d", "clips after blur:strong", "features of video after blur:strong by i3d"):
        assert f"\n{of}: how many ? " in printed


def test_mistakes_are_refused_as_by_the_run(place):  # noqa: ARG001
    done = CliRunner().invoke(app, ["evaluate", "blur_puppets", "method=blurr", "--dry-run"])
    assert done.exit_code != 0


def test_time_is_that_of_what_is_left_and_says_what_was_not_timed():
    one = PlannedTraining(
        label="a", task="t", network="n", clips=10, epochs=2, steps=20, batch=5, predicted=30, like="n",
        speed=lambda: Speed(2.0, 100),
    )  # fmt: skip
    work = PlannedWork(what="clips", count=4, unit="clips", bytes=7, seconds=lambda: 0.5)
    unknown = replace(one, label="b", like="m", speed=None)
    plan = Plan("p", "d", "cpu", [one, replace(one, label="c", done=True), unknown], [work]).measure()
    assert plan.seconds(one) == 2 * (20 + 30 / 15)
    assert plan.total_seconds == 44 + 2
    assert plan.unmeasured == ["b"]
    assert plan.bytes == {"cache": 7, "runs": 4 * 5 * 100}
    assert timed([0, 10, 11, 12]) == 1


@pytest.mark.parametrize("recipe", ["untrimmed_puppets", "splavu_puppets_table"])
def test_weights_that_are_not_here_are_named_and_not_fetched(place, monkeypatch, recipe):
    def fetched(*_):
        raise AssertionError("a plan connects to nothing")

    monkeypatch.setenv("VIDVEIL_WEIGHTS", str(place / "weights"))
    monkeypatch.setattr(weights, "fetch", fetched)
    plan = planned(read_recipe(find(recipe), ["encoder=i3d", "method=blur"]))
    assert len(plan.trainings) > 1
    assert any("i3d_kinetics400.safetensors is missing" in note for note in plan.notes)
    assert not (place / "weights").exists()
    assert not plan.speeds
    done = CliRunner().invoke(app, ["evaluate", recipe, "encoder=i3d", "method=blur", "--dry-run"])
    assert "time left: not known" in done.output
