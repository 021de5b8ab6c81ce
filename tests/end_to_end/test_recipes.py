"""Recipes for the tables of the papers: their commands can be read, and they run on small sets in official layouts."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.data import (
    made_casia,
    made_celebv_hq,
    made_hmdb51,
    made_kinetics400,
    made_ntu60,
    made_p_hvu,
    made_thumos14,
    made_toyota,
    made_ucf101,
    made_ucf_crime,
    made_vispr,
)
from tests.data.made_films import fill
from tests.detect.stage import Discs
from vidveil.app.run_recipe import carry_out, evaluate
from vidveil.core.recipe import as_values, find, names, read
from vidveil.data import DATA
from vidveil.data.clips import SPLITS
from vidveil.data.readers import celebv_hq, p_hvu, toyota
from vidveil.detect.detections import Cells
from vidveil.detect.settings import DETECTORS
from vidveil.evaluation.attacks.gait import SCOPES
from vidveil.evaluation.protocols import features as feature_engine
from vidveil.evaluation.protocols import recognizer as train
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.results import Results
from vidveil.methods import METHODS
from vidveil.methods.dual_cls import model as dual_cls
from vidveil.methods.stprivacy import model as stprivacy
from vidveil.training.runs import runs_folder

pytestmark = pytest.mark.xdist_group("recipes")  # its fixtures take long: made by one worker

COMMAND = re.compile(r"#   vidveil (?:train|evaluate) (\w+)((?: --data FOLDER| \S+=\S+)*)(?: {2,}.*)?$")
ALONE = re.compile(r"#   ((?:\w+=\S+ )*\w+=\S+)(?: {2,}.*)?$")
TABLES = ["baselines_i3d", "baselines_vit_s", "raw_bias", "dual_cls_vp_table", "stprivacy_vp_table"]
SMALL = ["frames=4", "size=16", "epochs=1", "batch=4", "warmup_epochs=0", "device=cpu"]  # of two or three steps
EVALUATORS = ["utility=r3d_tiny", "attackers=[resnet_tiny]", "attacker_epochs=1", "seeds=[0]"]
QUICK = [*SMALL, *EVALUATORS, "permutations=10", "resamples=10"]
SUBGROUPS = {"action_top1", "action_top1_f", "action_top1_m", "action_top1_gap", "action_class_mean", "linkage_rank1"}
SHORTCUT = {"action_top1_shortcut_f", "action_top1_shortcut_m", "action_top1_shortcut_gap"}


def commands(name: str) -> list[tuple[str, list[str]]]:
    """Recipe and overrides of each command in a header. A line of overrides alone is one of the same recipe."""
    found = []
    for line in find(name).read_text().splitlines():
        if line.startswith("#   vidveil"):
            match = COMMAND.match(line)
            assert match, line
            found.append((match[1], [word for word in match[2].split() if "=" in word]))
        elif match := ALONE.match(line):
            found.append((name, match[1].split()))
    return found


@pytest.mark.parametrize("name", names())
def test_every_command_in_a_header_can_be_read_and_names_data_and_methods_that_there_are(name):
    for other, overrides in commands(name):
        recipe = read(find(other), overrides)
        assert recipe.data.partition(":")[0] in {*DATA, "features"}  # or in somebody's store
        for method in recipe.method if isinstance(recipe, EvaluateRecipe) else ():
            assert ":" not in method or method.partition(":")[0] in (*METHODS, "random")


@pytest.mark.parametrize("name", TABLES)
def test_runs_of_a_table_have_names_of_their_own(name):
    runs = [read(find(other), overrides).name for other, overrides in commands(name)]
    assert len(set(runs)) == len(runs) > 3


@pytest.mark.parametrize(
    ("baselines", "table", "differing"),
    [
        ("baselines_i3d", "dual_cls_vp_table", {"name", "method", "keep"}),
        ("baselines_vit_s", "stprivacy_vp_table", {"name", "method"}),
        ("dual_cls_puppets_table", "stprivacy_puppets_table", {"name", "method", "keep"}),
    ],
)
def test_rows_of_a_table_have_the_same_evaluators(baselines, table, differing):
    ours, theirs = (as_values(read(find(name))) for name in (baselines, table))
    assert {key for key in ours if ours[key] != theirs[key]} == differing


def test_the_page_of_tables_names_the_recipes_that_there_are():
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
    rows = "".join(line for line in page.splitlines() if line.startswith("|"))
    named = {word.split()[0] for word in re.findall("`([a-z][a-z0-9_]*(?: [^`]*)?)`", rows)}
    assert named <= {*names()}
    small = re.compile("puppets|ucf101_5|weizmann|transfer|store")
    assert {name for name in names() if not small.search(name)} <= named
    for name, overrides in re.findall("`([a-z][a-z0-9_]*) ([^`]*=[^`]*)`", rows):
        assert read(find(name), overrides.split()).data.partition(":")[0] in DATA


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sets")
    made_hmdb51.vp(made_hmdb51.hmdb(root))
    made_hmdb51.pa(root)
    made_ucf101.vp(root, made_ucf101.ucf(root))
    made_vispr.made(root)
    made_kinetics400.made(root, film=True)
    people = (*made_ntu60.WOMEN, *made_ntu60.MEN, *made_ntu60.TESTED)
    actions = (1, made_ntu60.HAIR, 50)
    fill(sorted(made_ntu60.ntu(made_ntu60.genders(root), people=people, cameras=(1,), actions=actions).iterdir()))
    fill(sorted(made_toyota.smarthome(root).iterdir()))
    people = (*made_toyota.TRAINED, *made_toyota.TESTED)
    genders = [
        f"p{person:02d} {'fm'[i % 2]}\n" for i, person in enumerate(people)
    ]  # of those tested, too, some of each
    (root / toyota.FOLDER / toyota.GENDERS).write_text("".join(genders))
    faces(root)
    tagged(root)
    made_thumos14.as_json(made_thumos14.videos(root, film=True))
    made_ucf_crime.lists(made_ucf_crime.made(root, film=True))
    made_casia.casia_a(root / "casia_a_gait.npz", people=4)
    for person in (1, 2, 3, 75, 76, 77):  # the third is held out, the last three are tested
        for kind in ("nm-01", "nm-05", "bg-01", "cl-01"):
            for view in ("000", "090"):
                made_casia.walk(root, f"{person:03d}/{kind}/{view}")
    return root


def faces(root: Path) -> None:
    """CelebV-HQ: four YouTube videos in each split, happy and sad in turn, every second one male."""
    found: dict[str, list[int]] = {split: [] for split in SPLITS}
    for i in range(500):
        found[celebv_hq.split_of(made_celebv_hq.video(i), "0")].append(i)
    clips: dict[str, object] = {}
    for i in [i for split in SPLITS for i in found[split][:4]]:
        emotion = {"sep_flag": False, "labels": ("happy", "sad")[len(clips) % 2]}
        looks = (0, len(clips) % 2, len(clips) // 2 % 2, 0, 1, 1)
        clips[f"{made_celebv_hq.video(i)}_0"] = made_celebv_hq.clip(i, emotion, looks)
    fill(sorted((made_celebv_hq.made(root, clips) / "35666").iterdir()))


def tagged(root: Path) -> None:
    """P-HVU: dance with a guitar, and yoga with a hat, both on the beach."""
    folder = made_p_hvu.made(root, train=40)
    for part, count in (("train", 40), ("val", 2)):
        tags = ("dance|guitar|beach", "dance|yoga|hat|beach")
        rows = [f"{tags[i % 2]},{made_p_hvu.video(part, i)},{i},{i + 10}" for i in range(count)]
        (folder / p_hvu.LISTS[part]).write_text("\n".join([made_p_hvu.HEAD, *rows]) + "\n")
    fill(sorted(folder.glob("*/*.mp4")))


@pytest.fixture(scope="module", autouse=True)
def _place(tmp_path_factory: pytest.TempPathFactory):
    """One for all: rows of a table find what raw video was evaluated by."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIDVEIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("VIDVEIL_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setitem(dual_cls.SIZES, "mini", (24, 3, 3, (1, 2, 3), (2, 8, 8)))
        patch.setitem(stprivacy.SIZES, "mini", (24, 4, 3, 8))
        torch.set_num_threads(1)
        yield


def measured(results: Results) -> set[str]:
    return {name for point in (results.raw, *results.points) for name in point.metrics}


def trained(run: str) -> set[str]:
    """What networks of a run were trained on."""
    return {re.split("[^a-z0-9]", path.name)[0] for path in (runs_folder() / run / "fits").iterdir()}


@pytest.fixture(scope="module")
def raw(folder: Path) -> Results:
    return evaluate("baselines_i3d", *QUICK, data=folder)


def test_raw_video_is_evaluated_for_the_first_row_of_a_table(raw):
    assert {"action_top1", "cmap", "f1"} <= measured(raw)
    assert raw.points == []


class Person(Discs):
    """Somebody in the middle of every picture."""

    kind = "people"

    def run(self, picture):
        height, width = picture.shape[:2]
        box = np.array([[width / 4, height / 4, 3 * width / 4, 3 * height / 4]], np.float32)
        return Cells(np.array([0.9], np.float32), lambda cells: box[cells])


@pytest.mark.usefixtures("raw")
@pytest.mark.parametrize("row", ["method=downsample:2 name=downsample2", "method=solid region=people name=blackening"])
def test_another_row_takes_raw_video_from_the_first(folder, monkeypatch, row):
    monkeypatch.setitem(DETECTORS, "people", Person)
    assert row.split()[0] in "".join(find("baselines_i3d").read_text())
    results = evaluate("baselines_i3d", *QUICK, *row.split(), "raw=baselines_i3d", data=folder)
    (point,) = results.points
    assert {"action_top1", "cmap", "f1"} <= point.metrics.keys()
    assert trained("baselines_i3d") == {"raw"}
    assert "raw" not in trained(results.name)


GAIT = {f"gait_rank1_{scope}" for scope in SCOPES}
GAIT_CONDITIONS = {f"{number}_{condition}" for number in GAIT for condition in ("nm", "bg", "cl")}
SILHOUETTES = "attackers=[energy,r3d_tiny:frozen]"


@pytest.mark.parametrize(
    ("recipe", "overrides", "quick", "numbers"),
    [
        ("baselines_i3d", "data=pa_hmdb51 name=raw_pa_hmdb51", "", {"action_top1", "cmap", "ap_nudity"}),
        ("baselines_i3d", "data=vispr:7 name=raw_vispr", "", {"cmap", "f1"}),
        ("baselines_vit_s", "", "", {"action_top1", "cmap", "f1"}),
        ("baselines_vit_s", "data=ucf101:1 stride=2 name=raw_ucf101", "", {"action_top1", "cmap", "ap_relationship"}),
        ("baselines_vit_s", "data=celebv_hq name=raw_celebv_hq", "", {"action_top1", "ap_male"}),
        ("baselines_vit_s", "data=p_hvu:objects,every name=raw_p_hvu", "", {"action_cmap", "cmap", "ap_object_hat"}),
        ("raw_bias", "", "", SUBGROUPS | SHORTCUT),
        ("raw_bias", "data=ntu60:bias_m name=raw_bias_m", "", SUBGROUPS | SHORTCUT),
        ("raw_bias", "data=toyota name=raw_bias_toyota", "", SUBGROUPS),
        ("gait_casia_a", "", SILHOUETTES, GAIT),
        ("gait_casia_b", "", SILHOUETTES, GAIT_CONDITIONS),
        ("gait_casia_b", "data=casia_b:all name=gait_casia_b_all", SILHOUETTES, {"gait_rank1_any_view_nm"}),
        ("pa_hmdb_frames", "", "frames=1", {"cmap", "f1", "ap_nudity"}),
    ],
)
def test_a_table_begins_with_raw_video_of_each_of_its_sets(folder, recipe, overrides, quick, numbers):
    assert overrides in find(recipe).read_text()
    results = evaluate(recipe, *QUICK, *quick.split(), *overrides.split(), data=folder)
    assert numbers <= measured(results)
    assert bool(results.raw.by_view) == recipe.startswith("gait")
    assert ("action_top1" in measured(results)) == ("action_top1" in numbers)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> str:
    """Any network that was trained may be an encoder; here one that hardly was."""
    train.run(read(find("raw_actions"), [*SMALL, "recognizer=r3d_tiny", "data=toyota", "name=seeing"]), root=folder)
    return "run:seeing"


def on_features(recipe: str, overrides: str, encoder: str, folder: Path) -> Results:
    """Raw features, by a small encoder."""
    words = [word for word in overrides.split() if not word.startswith("method=")]
    heads = ["epochs=1", "attacker_epochs=1", "least_steps=1", "batch=4", "seeds=[0]"]
    heads += ["permutations=10", "resamples=10"]
    small = ["frames=4", "size=16", "half=false", "device=cpu", f"encoder={encoder}", "method=raw"]
    return feature_engine.run(read(find(recipe), [*words, *heads, *small]), root=folder)


@pytest.mark.parametrize(
    ("recipe", "overrides", "numbers"),
    [
        ("gait_features", "", GAIT),
        ("gait_features", "data=casia_b:all name=gait_features_casia_b", {"gait_rank1_any_view_nm"}),
        ("bias_features", "", SUBGROUPS | SHORTCUT),
        ("bias_features", "data=ntu60:bias_m name=bias_features_m", SUBGROUPS | SHORTCUT),
        ("bias_features", "data=toyota name=bias_features_toyota", SUBGROUPS),
    ],
)
def test_gait_and_subgroups_are_measured_on_features(folder, encoder, recipe, overrides, numbers):
    assert overrides in find(recipe).read_text()
    results = on_features(recipe, overrides, encoder, folder)
    assert numbers <= measured(results)
    assert bool(results.raw.by_view) == recipe.startswith("gait")


def test_actions_are_looked_up_among_training_clips(folder):
    results = evaluate("retrieval_ucf101", *QUICK, "attackers=[r3d_tiny:frozen]", data=folder)
    assert measured(results) == {"retrieval_r1", "retrieval_r5", "retrieval_r10", "retrieval_map"}


@pytest.fixture(scope="module")
def framed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PA-HMDB51 with labels of more videos: enough to train on some and to test others."""
    root = tmp_path_factory.mktemp("framed")
    made_hmdb51.vp(made_hmdb51.hmdb(root))
    for path in made_hmdb51.pa(root).iterdir():
        (labels,) = json.loads(path.read_text()).values()
        path.write_text(json.dumps({made_hmdb51.clip(title, path.stem): labels for title in made_hmdb51.TITLES}))
    return root


def test_of_labelled_videos_some_are_trained_on_and_the_others_tested(framed):
    results = evaluate("pa_hmdb_frames_60_40", *QUICK, "frames=1", data=framed)
    assert {"cmap", "f1", "ap_nudity"} <= measured(results)


@pytest.mark.parametrize(
    ("overrides", "number"),
    [
        ("", "action_top1"),
        ("data=toyota name=raw_toyota", "action_top1"),
        ("data=thumos14 name=raw_thumos14", "action_top1"),
        ("data=ucf_crime name=raw_ucf_crime", "action_top1"),
        ("data=p_hvu name=raw_p_hvu_actions", "action_cmap"),
    ],
)
def test_actions_are_learned_where_there_is_nothing_to_attack(folder, overrides, number):
    assert overrides.partition(" ")[0] in find("raw_actions").read_text()
    recipe = read(find("raw_actions"), [*SMALL, "recognizer=r3d_tiny", *overrides.split()])
    assert number in measured(train.run(recipe, root=folder))


MINI = ["network=mini", "pretrained=false", "initialise=0.5"]


@pytest.mark.parametrize(
    ("recipe", "network", "table", "rows", "quick"),
    [
        ("dual_cls_vp_ucf101", MINI[:1], "dual_cls_vp_table", ("ucf101", "to_hmdb51"), "keep=0.9"),
        ("stprivacy_vp_ucf101", MINI, "stprivacy_vp_table", ("st_ucf101", "st_to_hmdb51"), "views=1x1"),
    ],
)
def test_a_method_is_trained_on_one_set_and_evaluated_there_and_on_another(folder, recipe, network, table, rows, quick):
    """The tests of hmdb51 train on PA-HMDB51, and start from VP-HMDB51."""
    trained = carry_out(read(find(recipe), [*SMALL, *network]), root=folder)
    assert "tubelets_kept" in trained.metrics
    for row in rows:
        (words,) = [words for _, words in commands(table) if f"name={row}" in words]
        anew = [word for word in words if not word.startswith("raw=")]  # raw video is evaluated here, too
        results = evaluate(table, *QUICK, *anew, quick, data=folder)
        assert {"action_top1", "cmap", "tubelets_kept"} <= results.points[0].metrics.keys()


def test_stprivacy_is_evaluated_by_the_frame(framed):
    carry_out(read(find("stprivacy_vp_hmdb51"), [*SMALL, *MINI, "epochs=1"]), root=framed)
    (words,) = [words for recipe, words in commands("stprivacy_vp_table") if recipe == "pa_hmdb_frames_60_40"]
    results = evaluate("pa_hmdb_frames_60_40", *QUICK, *words, "frames=1", data=framed)
    assert {"cmap", "f1"} <= results.points[0].metrics.keys()


@pytest.mark.parametrize(
    ("recipe", "data", "utility"),
    [
        ("stprivacy_celebv_hq", "celebv_hq", "action_top1"),
        ("stprivacy_p_hvu", "p_hvu:objects,every", "action_cmap"),
    ],
)
def test_stprivacy_keeps_expressions_and_several_actions_at_once(folder, recipe, data, utility):
    trained = carry_out(read(find(recipe), [*SMALL, *MINI]), root=folder)
    assert utility.replace("action", "masked") in trained.metrics.keys() & trained.floors.keys()
    words = [f"data={data}", f"method=stprivacy:{recipe}", f"name={recipe}_table", "views=1x1"]
    results = evaluate("stprivacy_vp_table", *QUICK, *words, data=folder)
    assert {utility, "cmap"} <= results.points[0].metrics.keys()
