"""Features are extracted, an adapter is trained on them, a store goes through it: by the commands a person types."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import media
from tests.data.features import made
from tests.data.features.made import hashes, one_by_one
from tests.data.made_weizmann import weizmann
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


def vidveil(place: Path, *words: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
    folders = {"VIDVEIL_CACHE": str(place / "cache"), "VIDVEIL_DATA": str(place / "sets")}
    settings = folders | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "vidveil", *words]
    done = subprocess.run(command, cwd=place, env=os.environ | settings, capture_output=True, text=True, timeout=250)
    assert done.returncode == int(fails), done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    return done


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
    told = json.loads((place / "raw_anonymized.json").read_text())
    (warning,) = told["warnings"]
    assert warning.startswith("it was fitted to 40 training videos, and a feature has 128 numbers")
    done = "raw_anonymized: 110 vectors, told in raw_anonymized.json\n"
    assert anonymized.stderr == f"{done}warning: {warning}\n"
    assert told["method"] == "splavu:safe"
    assert told["encoder"]["fingerprint"] == extracted.encoder
    for way, name in (("input", "raw"), ("output", "raw_anonymized")):
        assert told[way] == {"name": name, "fingerprint": FeatureStore.open(place / name).fingerprint}
    for text in (json.dumps(told), (place / "raw_anonymized/store.json").read_text()):
        assert str(place) not in text


@pytest.mark.usefixtures("anonymized")
def test_a_second_pass_a_video_and_nothing_at_all_are_refused_each_in_a_line(place):
    media.Film(frames=2, width=16, height=16).make(place / "film.mp4")
    before = hashes(place)
    done = vidveil(place, "anonymize", "raw_anonymized", "film.mp4", "none.h5", "--method", "splavu:safe", fails=True)
    told = done.stderr.splitlines()
    assert [line.startswith("error: ") for line in told] == [True] * 3
    for line, said in zip(told, ("went through an adapter already", "is no store of features", "nothing"), strict=True):
        assert said in line
    assert hashes(place) == before


@pytest.mark.usefixtures("trained")
def test_an_evaluation_of_videos_says_that_it_works_on_features(place):
    told = vidveil(place, "evaluate", "blur_puppets", "method=splavu:safe", "name=e", fails=True).stderr.splitlines()
    assert len(told) == 1
    assert "splavu works on stored features, not on video: `vidveil anonymize STORE --method splavu:RUN`" in told[0]
    assert not (place / "runs/e").exists()
