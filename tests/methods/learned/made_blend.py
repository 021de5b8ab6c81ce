"""Checkpoints of the toy method that no training made, and the command that uses them."""

import json

import torch
from typer.testing import CliRunner

from tests.evaluation.masked import SIZE
from tests.methods.learned.blend import BlendNetwork, Shape
from vidveil.cli.app import app
from vidveil.models import checkpoint


def made(runs, *, floor=0.2, method="blend", data="puppets", **about):
    """A checkpoint as training leaves one; with a high floor it has learned nothing."""
    torch.manual_seed(3)
    network = BlendNetwork(Shape(side=SIZE, width=4)).eval()
    recipe = {"name": "mine", "method": method, "data": data, "stride": 1}
    about = {"recipe": recipe, "metrics": {"masked_top1": 0.5}, "floors": {"masked_top1": floor}, **about}
    checkpoint.write(runs / "mine" / "checkpoint", method, network.about(), network.state_dict(), **about)
    return network


def command(film, *words):
    return CliRunner().invoke(app, ["anonymize", str(film), "--method", "blend:mine", *map(str, words)])


def manifest(film):
    return json.loads(film.with_name("film_anonymized.json").read_text())
