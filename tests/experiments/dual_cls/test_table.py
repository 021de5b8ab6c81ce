"""The queue of dual-CLS: modes, controls and STPrivacy are compared at the same shares."""

import pytest

from experiments.dual_cls import table
from experiments.job_queue import select
from vidveil.core.recipe import find, read
from vidveil.core.tubelets import kept_count
from vidveil.methods.stprivacy.model import stage_count
from vidveil.report.paired import SAME_SHARE


def recipes(verb):
    """Row → its recipe; of trainings that of the last seed."""
    jobs = [job for job in table.jobs("0.5", 0) if job.commands[0][0] == verb]
    return {job.row: read(find(job.commands[0][1]), job.commands[0][2:]) for job in jobs}


def test_every_mode_is_evaluated_next_to_every_control_with_the_attackers_of_its_raw_video():
    rows = recipes("evaluate")
    assert rows.keys() >= {*table.MODES, *table.POINTS, *table.STPRIVACY, "random", "moving", "centre", "oracle",
                           "action-alone", "privacy-alone"}  # fmt: skip
    for row, recipe in rows.items():
        raw = f"{table.prefix_of(row)}raw"
        assert recipe.raw == ("" if row == raw else f"{raw}-rho0.5")
        assert (recipe.attackers, recipe.attacker_epochs) == (rows[raw].attackers, rows[raw].attacker_epochs)


def test_all_modes_keep_the_same_shares_and_controls_have_these_too():
    kept = {}
    for row, recipe in recipes("evaluate").items():
        if not table.prefix_of(row) and row not in table.STPRIVACY:  # which keeps whole tubelets of a segment
            selections = 3 if recipe.method[0].startswith("dual_cls") else 1
            kept[row] = [round(keep**selections, 3) for keep in recipe.keep]
    for row, more in table.MORE.items():
        shares = kept.pop(row)
        assert shares == pytest.approx(sorted({*table.SHARES, *more}, reverse=True), abs=0.002)
    curves = [shares for shares in kept.values() if shares]
    assert len(curves) == len(table.MODES) + 3
    assert all(shares == pytest.approx(list(table.SHARES), abs=0.002) for shares in curves)


def test_stprivacy_keeps_as_many_tubelets_as_the_modes():
    rows = recipes("evaluate")
    assert rows["stprivacy-anonymous"].keep == ()
    count = 4 * table.SEGMENT  # of a clip, in which modes select
    modes = [kept_count(kept_count(kept_count(count, keep), keep), keep) / count for keep in rows["paper"].keep]
    for name in ("stprivacy", "stprivacy-sparse"):
        shares = [stage_count(table.SEGMENT, alpha, 3) / table.SEGMENT for alpha in rows[name].keep]
        assert shares == pytest.approx(modes, abs=SAME_SHARE)


def test_stprivacy_is_trained_for_as_long_as_the_modes_and_otherwise_by_its_recipe():
    trained, own = recipes("train"), read(find("stprivacy_puppets"))
    best = trained[f"train-{table.BEST}"]
    parts = [trained[f"train-{name}"] for name in table.STPRIVACY]
    for recipe in parts:
        assert (recipe.epochs, recipe.batch) == (best.epochs, best.batch)
        assert (recipe.initialise, recipe.lr, recipe.alpha) == (own.initialise, own.lr, own.alpha)
    assert [(one.sparsify, one.anonymize) for one in parts] == [(True, True), (True, False), (False, True)]


def test_a_selected_row_comes_with_what_it_needs_and_nothing_else():
    found = select(table.jobs("0", 0), ["both", "strong-random"])
    trained = [f"train-both-rho0-{seed}" for seed in table.SEEDS]
    assert [job.name for job in found] == ["raw-rho0", *trained, "both-rho0", "strong-raw-rho0", "strong-random-rho0"]


def test_several_attackers_are_trained_for_longer():
    recipe = recipes("evaluate")["strong-raw"]
    assert recipe.attacker_epochs > recipe.epochs
    assert len(recipe.attackers) > 1


def test_ablations_are_trained_in_one_world_alone():
    assert {job.name for job in table.jobs("0", 0)} >= {f"{name}-rho0" for name in table.ABLATIONS}
    for elsewhere in (table.jobs("0.5", 0), table.jobs("0", 1)):
        assert not any(job.name.startswith(tuple(table.ABLATIONS)) for job in elsewhere)
