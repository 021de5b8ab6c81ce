"""What the page of SPLAVU says of gait and of bias is what was measured."""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import gait_bias

from vidveil.core.recipe import find, read
from vidveil.data.puppets import parse
from vidveil.data.puppets.plan import SHORTCUT, plan, rows

TEXT = gait_bias.PAGE.read_text()
PAGE = " ".join(TEXT.split())


def gap(run, point=True):
    results = gait_bias.read(run)
    return (results["points"][0] if point else results["raw"])["metrics"]["action_top1_shortcut_gap"]


def test_its_tables_are_those_of_the_results():
    assert gait_bias.write(TEXT) == TEXT


def test_each_result_is_of_the_command_that_is_told():
    for line in gait_bias.commands():
        _, verb, recipe, *words = line.split()
        asked = read(find(recipe), words)
        if verb == "evaluate":
            kept = gait_bias.read(asked.name)["recipe"]
            for key in ("method", "data", "encoder", "stride", "frames", "size"):
                assert kept[key] == getattr(asked, key), (asked.name, key)
            assert tuple(kept["seeds"]) == (0, 1, 2)


def test_in_training_men_walk_and_do_as_many_other_things_as_it_says():
    world = parse("bias_f", frames=8, size=64, seed=0)
    found = Counter()
    for i, row in enumerate(rows(world)):
        if row.split == "train":
            made = plan(world, i)
            found[made.person.woman, made.action == SHORTCUT] += 1
    assert (
        f"men have {found[False, True]} clips of walking there and {found[False, False]} of everything else, and women "
        f"{found[True, True]} and {found[True, False]:,}."
    ) in PAGE


def test_nobody_s_gait_is_hidden_from_the_same_side_and_in_one_gallery():
    for name in ("gait-casia", "gait-puppets"):
        for row in gait_bias.TABLES[name].rows:
            metrics = gait_bias.read(row.run)["points"][0]["metrics"]
            for scope in ("same", "any"):
                assert metrics[f"gait_rank1_{scope}_view"]["p"] < 0.05, (row.run, scope)


def test_gait_falls_without_latent_consistency_and_hardly_with_it():
    of = "gait_rank1_same_view"
    with_it, without = (gait_bias.read(f"gait_casia_{name}") for name in ("latent", "no_latent"))
    shown = [with_it["raw"], with_it["points"][0], without["points"][0]]
    raw, kept, fallen = (round(100 * one["metrics"][of]["value"]) for one in shown)
    assert f"it stays with latent consistency, {raw} % and {kept} %, and falls without, to {fallen} %;" in PAGE
    low, high = with_it["points"][0]["metrics"][of]["change_interval"]
    assert low < 0 < high
    assert without["points"][0]["metrics"][of]["change_interval"][1] < 0
    least = []
    for way in ("cosine", "cosine, centred"):
        cross = {}
        for row in gait_bias.TABLES["gait-casia"].rows:
            metrics = gait_bias.read(row.run)["points"][0]["metrics"]
            cross[row.run] = metrics["gait_rank1_cross_view"]["others"][way]["test"]
        least.append(min(cross, key=cross.__getitem__))
    assert least[0] != least[1]  # they do not agree
    shares = [
        round(100 * point["metrics"][of]["others"]["cosine, centred"]["test"])
        for point in (without["points"][0], without["raw"], with_it["points"][0])
    ]
    text = " ".join(TEXT.split())
    assert "and to {} % from {} % where the mean of the gallery is taken off before".format(*shares) in text
    assert f"(with latent consistency {shares[2]} %)" in text


def test_the_gap_of_raw_features_is_beyond_chance_and_no_change_of_it_is():
    assert gap("bias_puppets", point=False)["p"] < 0.05
    assert gap("bias_puppets", point=False)["interval"][0] > 0
    for row in gait_bias.TABLES["bias"].rows:
        low, high = gap(row.run)["change_interval"]
        assert low < 0 < high, row.run
    assert gap("bias_puppets_elsewhere")["p"] > 0.05 > gap("bias_puppets_elsewhere_m")["p"]
    assert gap("bias_puppets_elsewhere")["note"] == "f is higher"
    women = gait_bias.read("bias_puppets_elsewhere")["points"][0]["metrics"]["action_top1_shortcut_f"]
    assert women["change_interval"][0] > 0
    whole = gait_bias.read("bias_puppets")["raw"]["metrics"]["action_top1_gap"]
    assert whole["p"] > 0.05
    assert gap("bias_puppets_elsewhere_m", point=False)["note"] != gap("bias_puppets", point=False)["note"]
