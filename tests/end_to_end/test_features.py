"""Features are extracted, an adapter is trained on them, a store goes through it: by the commands a person types."""

import json
import re

import numpy as np
import pytest

from tests import media
from tests.data.features import made
from tests.data.features.made import hashes, one_by_one
from tests.data.made_weizmann import weizmann
from tests.end_to_end.command import refusal, vidveil
from vidveil.data.store.features import FeatureStore
from vidveil.methods.splavu.model import rebuilt
from vidveil.models.checkpoint import find

pytestmark = pytest.mark.xdist_group("features")  # its fixtures take long: made by one worker


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Ninety small videos, and a network that `vidveil train` could have trained."""
    place = tmp_path_factory.mktemp("features")
    weizmann(place / "sets")
    made.run(place / "runs", "encoder")
    return place


@pytest.fixture(scope="module")
def extracted(place):
    vidveil(place, "extract", "weizmann", "--encoder", "run:encoder", "-o", "raw")
    return FeatureStore.open(place / "raw")


@pytest.fixture(scope="module")
def trained(place, extracted):
    """On the folder alone: the videos could be gone."""
    vidveil(place, "train", "splavu_puppets", f"data=features:{extracted.folder.name}", "epochs=1", "name=safe")
    return place / "runs/safe"


@pytest.fixture(scope="module")
def anonymized(place, trained):
    return vidveil(place, "anonymize", "raw", "--method", f"splavu:{trained.name}")


@pytest.mark.usefixtures("anonymized")
def test_every_vector_of_a_store_goes_through_the_adapter_that_was_trained_on_it(place, extracted, trained):
    found = FeatureStore.open(place / "raw_anonymized")
    found.verify()
    checkpoint = find(str(trained))
    adapter = rebuilt(checkpoint.about["network"], checkpoint.tensors())
    np.testing.assert_allclose(found.all(), one_by_one(adapter, extracted.all()), rtol=1e-4, atol=1e-5)
    assert not np.allclose(found.all(), extracted.all(), rtol=1e-3)
    assert not (found.folder / "labels.csv").exists()
    assert found.counts("static").sum() == 0


def test_the_manifest_says_what_was_done_and_names_no_folder(place, extracted, anonymized):
    manifest = json.loads((place / "raw_anonymized.json").read_text())
    (warning,) = manifest["warnings"]
    assert warning.startswith("it was fitted to 40 training videos, and a feature has 128 numbers")
    done, *warnings = anonymized.stderr.splitlines()
    assert re.fullmatch(r"raw_anonymized: 110 vectors, described in raw_anonymized\.json", done)
    assert warnings == [f"warning: {warning}"]
    assert manifest["method"] == "splavu:safe"
    assert manifest["encoder"]["fingerprint"] == extracted.encoder
    for way, name in (("input", "raw"), ("output", "raw_anonymized")):
        assert manifest[way] == {"name": name, "fingerprint": FeatureStore.open(place / name).fingerprint}
    for text in (json.dumps(manifest), (place / "raw_anonymized/store.json").read_text()):
        assert str(place) not in text


@pytest.mark.usefixtures("anonymized")
def test_a_second_pass_a_video_and_nothing_at_all_are_refused_each_in_a_line(place):
    media.Film(frames=2, width=16, height=16).make(place / "film.mp4")
    before = hashes(place)
    done = vidveil(place, "anonymize", "raw_anonymized", "film.mp4", "none.h5", "--method", "splavu:safe", fails=True)
    reasons = ("went through an adapter already", "is no store of features", "nothing")
    for line, reason in zip(done.stderr.splitlines(), reasons, strict=True):
        assert line.startswith("error: ")
        assert reason in line
    assert hashes(place) == before


@pytest.mark.usefixtures("trained")
def test_an_evaluation_of_videos_says_that_it_works_on_features(place):
    line = refusal(place, "evaluate", "blur_puppets", "method=splavu:safe", "name=e")
    assert "splavu:safe is an adapter of features, and the protocol attack evaluates video" in line
    assert "take protocol: features, detection or anomaly" in line
    assert not (place / "runs/e").exists()
