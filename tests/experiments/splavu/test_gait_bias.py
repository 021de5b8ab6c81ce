"""Gait and bias behind adapters: committed results are of the commands of the study."""

from experiments.splavu import gait_bias
from vidveil.core.recipe import as_values, find, read


def test_each_result_is_of_its_command():
    commands = {name: words for job in gait_bias.jobs() for name, words in job.runs.items()}
    for study in gait_bias.STUDIES.values():
        for row in study.rows:
            _, recipe, *overrides = commands[row.run]
            expected, found = as_values(read(find(recipe), overrides)), gait_bias.read(row.run)["recipe"]
            for key in ("method", "data", "encoder", "stride", "frames", "size"):
                assert found[key] == expected[key], (row.run, key)
            assert found["seeds"] == expected["seeds"] == [0, 1, 2]
