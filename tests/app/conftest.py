import pytest


@pytest.fixture(autouse=True)
def keys(tmp_path_factory, monkeypatch):
    """The folder of the key of manifests for sharing: a new one for each test."""
    folder = tmp_path_factory.mktemp("keys")
    monkeypatch.setenv("VIDVEIL_KEYS", str(folder))
    return folder
