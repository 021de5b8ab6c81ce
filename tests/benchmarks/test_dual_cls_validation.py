"""What is read of runs to choose by: validation scores by keep rate, and masks against the truth."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from vidveil.data.puppets import masks
from vidveil.methods.dual_cls.model import DualCLS, Network

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import dual_cls_validation as validation

from tests.evaluation.masked import people


def test_scores_of_judges_are_averaged_over_seeds_by_keep_rate(tmp_path):
    fits = {
        "dual_cls_x-0.962_action_r3d_tiny_seed_0": {"action": 0.9},
        "dual_cls_x-0.962_action_r3d_tiny_seed_1": {"action": 0.8},
        "dual_cls_x-0.962_identity_attributes_resnet_tiny_lr_0.003_seed_0": {"identity": 0.2, "attributes": 0.5},
        "dual_cls_x-0.8_action_r3d_tiny_seed_0": {"action": 0.5},
        "raw_action_r3d_tiny_seed_0": {"action": 1.0},
    }
    for name, scores in fits.items():
        (tmp_path / "fits" / name).mkdir(parents=True)
        (tmp_path / "fits" / name / "learned.json").write_text(json.dumps({"scores": scores}))
    assert validation.judged(tmp_path) == {
        "0.962": {"action": pytest.approx(0.85), "identity": 0.2, "attributes": 0.5},
        "0.8": {"action": 0.5},
    }


def test_the_less_stays_the_more_is_hidden(tmp_path):
    data = people(tmp_path)
    rows = data.indices("val")[:4]
    clips = torch.stack([torch.from_numpy(np.array(data.videos.frames(row))) for row in rows])
    clips = clips.permute(0, 4, 1, 2, 3).float() / 255
    torch.manual_seed(1)
    shape = {"size": "mini", "frames": clips.shape[2], "side": clips.shape[3]}
    network = DualCLS(Network(**shape, actions=3, budget={"identity": 4}))
    kinds = masks(data)
    found = validation.against_truth(network.eval(), clips, [kinds[row] for row in rows])
    hidden = [found[f"{share:g}"]["identity_hidden"] for share in validation.SHARES]
    assert hidden == sorted(hidden)
    assert hidden[0] < hidden[-1]
    for share in validation.SHARES:
        assert share - 0.01 <= found[f"{share:g}"]["tubelets_kept"] <= share + 3 / 32 + 0.01  # each of three rounds up
