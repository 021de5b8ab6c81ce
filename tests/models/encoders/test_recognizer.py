"""Our own networks as encoders: the recognizer's features, under a fingerprint of its weights."""

import json
import os

import pytest
import torch

from tests.data.features import made
from tests.data.features.made import FRAMES, SIZE
from tests.methods import made_checkpoint
from vidveil.core.errors import UsageError, VidveilError, WeightsError
from vidveil.models.encoders import HUB, OWN, check_encoder, load_encoder


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def clips(count=3, frames=FRAMES, size=SIZE):
    return torch.rand(count, 3, frames, size, size, generator=torch.manual_seed(1))


def test_the_features_of_a_run_are_those_of_the_recognizer_that_it_trained(runs):
    network = made.run(runs)
    encoder = load_encoder("run:mine")
    assert (encoder.spec, encoder.width, encoder.frames, encoder.size) == ("run:mine", network.width, FRAMES, SIZE)
    found = encoder.encode(clips())
    assert found.dtype == torch.float32
    assert not found.requires_grad
    with torch.inference_mode():
        assert torch.equal(found, network.features(clips()))
    assert (found[0] - found[1]).abs().max() > 1e-4
    assert torch.equal(encoder.encode(clips()), found)  # nothing in it learns: no running mean has moved
    assert encoder.about() == {
        "spec": "run:mine",
        "width": network.width,
        "frames": FRAMES,
        "size": SIZE,
        "fingerprint": encoder.fingerprint,
    }


def test_the_fingerprint_is_of_the_weights_and_of_what_clips_they_see(runs):
    for name, seed in (("mine", 0), ("copied", 0), ("other", 1)):
        made.run(runs, name, seed)
    one = load_encoder("run:mine").fingerprint
    assert load_encoder("run:mine").fingerprint == load_encoder("run:copied").fingerprint == one
    others = [
        load_encoder("run:other"),
        load_encoder("run:mine", frames=8),
        load_encoder("run:mine", size=24),
        load_encoder("run:mine", half=True),
    ]
    assert len({one, *(other.fingerprint for other in others)}) == 5


def test_a_single_weight_changes_the_fingerprint(runs):
    made.run(runs)
    one = load_encoder("run:mine").fingerprint
    path = runs / "mine/checkpoint/weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert load_encoder("run:mine").fingerprint != one


def test_half_precision_is_another_encoder_with_nearly_the_same_vectors(runs):
    made.run(runs)
    whole, half = load_encoder("run:mine"), load_encoder("run:mine", half=True)
    assert whole.fingerprint != half.fingerprint
    found, wanted = half.encode(clips()), whole.encode(clips())
    assert found.dtype == torch.float32
    assert not torch.equal(found, wanted)
    assert (found - wanted).norm() < 0.05 * wanted.norm()


def test_other_clips_may_be_asked_for_where_the_network_takes_them(runs):
    made.run(runs)
    encoder = load_encoder("run:mine", frames=8, size=24)
    assert (encoder.frames, encoder.size) == (8, 24)
    assert encoder.encode(clips(2, 8, 24)).shape == (2, encoder.width)


def test_a_network_that_is_built_for_one_size_says_which(runs):
    made.run(runs, recognizer="vit_mini")
    assert load_encoder("run:mine").encode(clips()).shape[0] == 3
    with pytest.raises(UsageError, match="run 'mine' is for 4 frames of 16 pixels, and no other") as error:
        load_encoder("run:mine", frames=8)
    assert "\n" not in str(error.value)


def test_a_run_that_is_not_there_is_named_with_where_it_was_looked_for(runs):
    with pytest.raises(UsageError, match=f"no finished run 'none' in {runs}: `vidveil train` makes one"):
        load_encoder("run:none")


def test_a_run_that_trained_a_method_is_no_encoder(runs):
    made_checkpoint.write(runs / "masks/checkpoint", made_checkpoint.network(), "masks", frames=4, size=32)
    made.adapter(runs, "safe")
    for name in ("masks", "safe"):
        with pytest.raises(UsageError, match=f"run '{name}' trained no recognizer"):
            load_encoder(f"run:{name}")


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lambda folder: (folder / "weights.safetensors").unlink(), WeightsError),
        (lambda folder: os.truncate(folder / "weights.safetensors", 99), WeightsError),
        (lambda folder: (folder / "checkpoint.json").write_text("{"), UsageError),
        (lambda folder: (folder / "checkpoint.json").unlink(), UsageError),
        (
            lambda folder: (folder / "checkpoint.json").write_text(
                json.dumps({"recipe": {"recognizer": "resnet_tiny", "frames": FRAMES, "size": SIZE}})
            ),
            WeightsError,
        ),
    ],
    ids=["no weights", "cut off", "half a JSON", "no JSON", "of another network"],
)
def test_a_damaged_run_is_an_error_in_one_line(runs, damage, kind):
    made.run(runs)
    damage(runs / "mine/checkpoint")
    with pytest.raises(kind) as error:
        load_encoder("run:mine")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("i3", "no encoder is called 'i3'; did you mean i3d?"),
        ("videomea:somewhere", "did you mean videomae?"),
        ("runs:mine", "did you mean run?"),
        ("qqq", "there are .*i3d.*run:NAME and videomae"),
        ("r3d_tiny", "no encoder is called 'r3d_tiny'"),
        ("", "no encoder is called ''"),
        ("i3d:mine", "i3d has weights of its own: leave out :mine"),
        ("run", "run needs the name of a training run behind a colon"),
        ("run:", "run needs the name of a training run behind a colon"),
        ("vjepa2", "vjepa2 needs a name on the hub, or a folder behind a colon"),
    ],
)
def test_a_name_that_makes_no_sense_is_refused_before_anything_is_loaded(spec, message):
    for ask in (check_encoder, load_encoder):
        with pytest.raises(VidveilError, match=message) as error:
            ask(spec)
        assert "\n" not in str(error.value)


def test_every_listed_name_is_accepted():
    for name in OWN:
        check_encoder(name)
    for name in ("run", *HUB):
        check_encoder(f"{name}:somewhere")


def test_encoders_of_others_do_not_compute_in_half_precision():
    with pytest.raises(UsageError, match="only networks of ours compute in bfloat16"):
        load_encoder("videomae:somewhere", half=True)
