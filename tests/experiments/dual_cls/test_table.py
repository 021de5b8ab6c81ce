"""The queue of the table: every command it would run is one that vidveil takes."""

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from job_queue import wanted

from vidveil.core.recipe import find, read
from vidveil.core.tubelets import kept_count
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.stprivacy.model import stage_count
from vidveil.methods.stprivacy.recipe import STPrivacyRecipe
from vidveil.report.paired import SAME_SHARE

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "dual_cls_table.py"


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("dual_cls_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["dual_cls_table"] = module
    spec.loader.exec_module(module)
    return module


def all_jobs(table, world=0):
    return table.jobs("0.5", world, table.LEARNING, table.JUDGING)


def test_every_command_of_the_queue_is_a_recipe_with_fields_that_exist(table):
    for job in all_jobs(table, world=3):
        verb, recipe, *overrides = job.words
        parsed = read(find(recipe), overrides)
        assert isinstance(parsed, DualCLSRecipe | STPrivacyRecipe if verb == "train" else EvaluateRecipe)
        assert (parsed.name, parsed.data, parsed.data_seed) == (job.name, "puppets:rho=0.5", 3)


def test_what_a_job_needs_stands_before_it(table):
    before = set()
    for job in all_jobs(table):
        assert before >= set(job.needs)
        before.add(job.name)
    assert len(before) == len(all_jobs(table))  # no two of one name


def test_every_mode_is_judged_beside_every_control_on_the_same_raw_run(table):
    evaluated = [job for job in all_jobs(table) if job.words[0] == "evaluate" and not job.name.startswith("raw")]
    names = {job.name.removesuffix("-rho0.5") for job in evaluated}
    assert names >= {
        *table.MODES,
        "random",
        "moving",
        "centre",
        "oracle",
        "action-alone",
        "privacy-alone",
        "faces",
        "blur",
    }
    for job in evaluated:
        start = table.starts(job.name)
        assert f"raw={start}raw-rho0.5" in job.words or job.name == f"{start}raw-rho0.5"


def test_all_modes_keep_the_same_shares_and_others_have_these_too(table):
    kept = {}
    for job in all_jobs(table):
        if job.words[0] == "evaluate" and not table.starts(job.name):
            recipe = read(find(job.words[1]), job.words[2:])
            power = 3 if recipe.method.startswith("dual_cls") else 1
            kept[job.name.removesuffix("-rho0.5")] = [round(keep**power, 3) for keep in recipe.keep]
    for name in table.STPRIVACY:  # of whole tubelets of a segment
        del kept[name]
    for name, more in table.MORE.items():
        shares = kept.pop(name)
        assert shares == pytest.approx(sorted({*table.SHARES, *more}, reverse=True), abs=0.002)
    curves = [shares for shares in kept.values() if shares]
    assert len(curves) == len(table.MODES) + 3
    assert all(shares == pytest.approx(list(table.SHARES), abs=0.002) for shares in curves)


def test_the_rival_keeps_as_many_tubelets_as_the_modes(table):
    rows = {job.of: read(find(job.words[1]), job.words[2:]) for job in all_jobs(table) if job.of in table.STPRIVACY}
    assert rows.keys() == table.STPRIVACY.keys()
    assert rows["stprivacy-anonymous"].keep == ()
    count = 4 * table.SEGMENT  # of a clip, of which modes keep theirs
    keeps = read(find("control_puppets"), [table._keeps(table.SHARES, selections=3)]).keep
    modes = [kept_count(kept_count(kept_count(count, keep), keep), keep) / count for keep in keeps]
    for name in ("stprivacy", "stprivacy-sparse"):
        shares = [stage_count(table.SEGMENT, alpha, 3) / table.SEGMENT for alpha in rows[name].keep]
        assert shares == pytest.approx(modes, abs=SAME_SHARE)


def test_the_rival_learns_for_as_long_as_the_modes_and_otherwise_as_its_recipe_says(table):
    trained = {job.of: read(find(job.words[1]), job.words[2:]) for job in all_jobs(table) if job.words[0] == "train"}
    own = read(find("stprivacy_puppets"))
    for name in table.STPRIVACY:
        recipe = trained[f"train-{name}"]
        assert (recipe.epochs, recipe.batch) == (trained["train-credit"].epochs, trained["train-credit"].batch)
        assert (recipe.initialise, recipe.lr, recipe.alpha) == (own.initialise, own.lr, own.alpha)
    parts = [(trained[f"train-{name}"].sparsify, trained[f"train-{name}"].anonymize) for name in table.STPRIVACY]
    assert parts == [(True, True), (True, False), (False, True)]


def test_what_is_asked_for_comes_with_what_it_needs_and_with_nothing_else(table):
    found = wanted(table.jobs("0", 0, table.LEARNING, table.JUDGING), ["both", "strong-random"])
    trained = [f"train-both-rho0-{seed}" for seed in table.SEEDS]
    assert [job.name for job in found] == ["raw-rho0", *trained, "both-rho0", "strong-raw-rho0", "strong-random-rho0"]
    with pytest.raises(SystemExit, match="there is no 'bot'"):
        wanted(found, ["bot"])


def test_several_attackers_are_trained_longer(table):
    (raw,) = [job for job in all_jobs(table) if job.of == "strong-raw"]
    recipe = read(find(raw.words[1]), raw.words[2:])
    assert recipe.attacker_epochs > recipe.epochs
    assert len(recipe.attackers) > 1


def test_parts_of_the_best_mode_are_left_out_in_one_world_alone(table):
    whole = {job.name for job in table.jobs("0", 0, table.LEARNING, table.JUDGING)}
    assert whole >= {f"{name}-rho0" for name in table.ABLATIONS}
    elsewhere = [job.name for job in (*all_jobs(table), *table.jobs("0", 1, table.LEARNING, table.JUDGING))]
    assert not any(name.startswith(tuple(table.ABLATIONS)) for name in elsewhere)
