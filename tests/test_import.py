import subprocess
import sys

import pytest

import vidveil

HEAVY = ("torch", "av", "numpy", "cv2", "lightning", "matplotlib", "onnxruntime", "openvino")


ASKED = (
    "from typer.testing import CliRunner; from vidveil.cli.app import app; "
    "r = CliRunner().invoke(app, {words}); assert r.exit_code == 0, r.output"
)


@pytest.mark.parametrize(
    "statement",
    [
        "import vidveil",
        "import vidveil.cli",
        ASKED.format(words=["--help"]),
        ASKED.format(words=["anonymize", "--help"]),
    ],
    ids=["import", "command", "help", "anonymize help"],
)
def test_importing_and_asking_for_help_load_nothing_heavy(statement):
    check = f"import sys; {statement}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_module_on_the_way_to_hidden_faces_imports_torch_at_its_top():
    check = """
import sys, pkgutil, importlib
for name in ("core", "video", "detect", "statistics", "weights", "cli"):
    package = importlib.import_module(f"vidveil.{name}")
    for found in pkgutil.walk_packages(package.__path__, f"vidveil.{name}."):
        importlib.import_module(found.name)
import vidveil.app.jobs, vidveil.methods.classical
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_public_name_is_there():
    assert set(vidveil.__all__) == {"Anonymizer", "VidveilError", "__version__", "anonymize", "evaluate", "load"}
    for name in vidveil.__all__:
        assert getattr(vidveil, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        _ = vidveil.anonymise
