"""A method is trained, used on a video and measured, by the commands that a person types."""

import json
import re

import pytest
from safetensors.numpy import load_file

from tests import media
from tests.end_to_end.command import refusal, vidveil

pytestmark = pytest.mark.xdist_group("learned method")  # its fixtures take long: made by one worker

FEW = ["data=puppets:rho=0,share=0.05", "frames=4", "size=32", "batch=16"]
TRUTHS = {"identity_hidden", "action_kept", "tubelets_kept", "score_auroc", "score_auroc_all"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("learned")


@pytest.fixture(scope="module")
def trained(place):
    return vidveil(place, "train", "dual_cls_puppets", *FEW, "epochs=1", "name=tiny")


@pytest.fixture(scope="module")
def film(place):
    return media.Film(frames=20, width=96, height=64).make(place / "film.mp4")


def test_training_says_what_masks_hide_and_how_to_go_on(place, trained):
    assert re.match(r"on validation: action_top1 0\.\d+ \(chance 0\.\d+\)  ", trained.stdout)
    assert re.search(r"identity_hidden 0\.\d+ \(chance 0\.\d+\)", trained.stdout)
    assert "It predicts the action no better than chance: train it longer" in trained.stderr
    about = json.loads((place / "runs/tiny/checkpoint/checkpoint.json").read_text())
    assert (about["method"], about["recipe"]["name"]) == ("dual_cls", "tiny")
    assert about["floors"].keys() <= about["metrics"].keys()
    assert about["network"]["budget"].keys() == {"attributes", "identity"}
    assert str(place) not in json.dumps(about)
    names = load_file(place / "runs/tiny/checkpoint/weights.safetensors").keys()
    assert not any(name.startswith(("utility", "attacker", "votes")) for name in names)


@pytest.mark.usefixtures("trained")
def test_what_was_trained_hides_parts_of_a_video_and_the_manifest_says_by_which_weights(place, film):
    vidveil(place, "anonymize", "film.mp4", "--method", "dual_cls:tiny", "--keep", "0.8")
    manifest = json.loads((place / "film_anonymized.json").read_text())
    order = manifest["order"]
    assert order["method"] == "dual_cls:tiny"
    assert order["knobs"] == {"keep": 0.8, "privacy_weight": 1.0, "fill": "black", "stride": 5}
    name, digest = order["weights"].split()
    assert name == "tiny"
    assert len(digest) == 16
    assert order["detection"] is None
    assert str(place) not in json.dumps(manifest)
    before, after = media.lumas(film), media.lumas(place / "film_anonymized.mp4")
    assert after.shape == before.shape
    dark = (after < 30).mean()  # 0.8³ of the tubelets stay in each window, and windows overlap
    assert 0.4 < dark < 0.95
    assert media.detail(after).max() > 1


@pytest.mark.usefixtures("trained", "film")
def test_the_checkpoint_alone_is_the_same_method_wherever_it_lies(place):
    vidveil(place, "anonymize", "film.mp4", "--method", "tiny", "--keep", "0.8", "-o", "by_name.mp4")
    folder = str(place / "runs/tiny/checkpoint")
    vidveil(place, "anonymize", "film.mp4", "--method", f"dual_cls:{folder}", "--keep", "0.8", "-o", "by_path.mp4")
    first, second = (json.loads((place / f"by_{way}.json").read_text()) for way in ("name", "path"))
    assert first["order"] == second["order"]
    assert first["output"]["sha256"] == second["output"]["sha256"]
    assert folder not in json.dumps(second)


@pytest.mark.usefixtures("trained")
def test_what_was_trained_is_measured_against_attackers_and_truth(place):
    quick = ["epochs=1", "attacker_epochs=1", "permutations=200", "resamples=50", "attackers=[resnet_tiny]"]
    words = [*FEW, *quick, "method=dual_cls:tiny", "keep=[0.9,0.7]", "controls=[]", "name=measured"]
    vidveil(place, "evaluate", "blur_puppets", *words)
    points = json.loads((place / "runs/measured/results.json").read_text())["points"]
    assert [point["keep"] for point in points] == [0.9, 0.7]
    for point in points:
        assert point["method"] == "dual_cls:tiny"
        assert point["metrics"].keys() >= {*TRUTHS, "action_top1"}
    high, low = (point["metrics"]["tubelets_kept"]["value"] for point in points)
    assert (high, low) == (25 / 32, 12 / 32)  # 32 → 29 → 27 → 25, and 32 → 23 → 17 → 12
    assert points[1]["metrics"]["identity_hidden"]["value"] > points[0]["metrics"]["identity_hidden"]["value"]


@pytest.mark.usefixtures("trained", "film")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("anonymize", "film.mp4", "--method", "dual_cls:tinny"), "did you mean tiny?"),
        (("anonymize", "film.mp4", "--method", "dual_cls"), "dual_cls needs a checkpoint"),
        (("anonymize", "film.mp4", "--method", "dual_cls:tiny", "--keep", "1.5"), "keep is a share in (0, 1]"),
        (("evaluate", "blur_puppets", *FEW, "method=dual_cls:tinny", "name=e"), "did you mean tiny?"),
        (("train", "dual_cls_puppets", *FEW, "name=tiny"), "run 'tiny' is done"),
    ],
)
def test_a_mistake_is_one_line(place, words, message):
    assert message in refusal(place, *words)
