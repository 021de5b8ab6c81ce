import pytest
import torch


@pytest.fixture
def own_folders(tmp_path, monkeypatch):
    """Runs and caches of a test are its own."""
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    torch.set_num_threads(1)
