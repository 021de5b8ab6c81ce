"""Exported networks decide as the network does."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.made_checkpoint import stronger
from vidveil.core.errors import InputError, UsageError
from vidveil.methods.dual_cls import model as dual_cls
from vidveil.methods.dual_cls.model import DualCLS, Network

pytest.importorskip("onnx", reason="exporting needs vidveil[export]")

from vidveil.methods.dual_cls.export import ExportedScorer, export_onnx, export_openvino
from vidveil.methods.dual_cls.fast import CompiledScorer, in_bfloat16
from vidveil.methods.masking.masker import TubeletMasker

FORMATS = ["onnx", "xml"]


def built(**changes: Any) -> DualCLS:
    torch.manual_seed(5)
    network = {"size": "tiny", "frames": 8, "side": 32, "actions": 5, "budget": {"attributes": 4}, "keep": 0.7}
    return stronger(DualCLS(Network(**(network | changes))), 0.2)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(dual_cls.SIZES, "tiny", (24, 4, 3, (1, 2, 3), (2, 8, 8)))


@pytest.fixture
def clips() -> Tensor:
    return torch.rand(3, 3, 8, 32, 32, generator=torch.Generator().manual_seed(2))


def exported(network: DualCLS, folder: Path, suffix: str, **knobs: Any) -> ExportedScorer:
    if suffix == "xml":
        pytest.importorskip("openvino", reason="OpenVINO's format needs vidveil[export]")
    write = {"onnx": export_onnx, "xml": export_openvino}[suffix]
    return ExportedScorer(write(network, folder / f"net.{suffix}", **knobs), threads=1)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    "changes",
    [{}, {"privacy_attention": "detector"}, {"reference": True}, {"fusion": False}, {"smooth": True}],
    ids=str,
)
def test_masks_and_scores_are_the_networks(suffix, changes, clips, tmp_path):
    network = built(**changes)
    scorer = exported(network, tmp_path, suffix)
    ours, theirs = scorer.decide(clips), network.decide(clips)
    assert ours.kept.dtype == torch.bool
    assert (ours.kept == theirs.kept).float().mean() >= 0.995
    torch.testing.assert_close(ours.scores, theirs.scores, atol=1e-3, rtol=1e-3)


def test_matrices_of_eight_bits_decide_nearly_alike(clips, tmp_path):
    network = built()
    scorer = exported(network, tmp_path, "xml", int8=True)
    assert scorer.about["int8"]
    assert (scorer.decide(clips).kept == network.decide(clips).kept).float().mean() >= 0.9
    whole = export_openvino(network, tmp_path / "whole.xml").with_suffix(".bin").stat().st_size
    assert (tmp_path / "net.bin").stat().st_size < 0.5 * whole


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_mini_with_its_convolutions_travels_too(suffix, tmp_path):
    network = built(size="mini", side=64)
    clip = torch.rand(2, 3, 8, 64, 64)
    ours, theirs = exported(network, tmp_path, suffix).decide(clip), network.decide(clip)
    assert (ours.kept == theirs.kept).float().mean() >= 0.995


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_privacy_weight_is_an_input_and_the_share_is_fixed(suffix, clips, tmp_path):
    network = built()
    scorer = exported(
        network, tmp_path, suffix, keep=0.5, privacy_weight=2.0, batch=2
    )  # 3 clips: the last is filled up
    assert torch.equal(scorer.decide(clips).kept, network.decide(clips, 0.5, 2.0).kept)
    masks = {}
    for weight in (0.0, 0.3, math.inf):
        masks[weight] = scorer.decide(clips, 0.5, weight).kept
        assert (masks[weight] == network.decide(clips, 0.5, weight).kept).float().mean() >= 0.995
    assert not torch.equal(masks[0.0], masks[math.inf])
    with pytest.raises(UsageError, match=r"exported with keep 0.5: export it again for keep 0.9"):
        scorer.decide(clips, 0.9)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_says_what_clips_it_takes(suffix, tmp_path):
    scorer = exported(built(), tmp_path, suffix)
    assert (scorer.frames, scorer.size, scorer.tubelet) == (8, 32, (2, 8, 8))
    assert scorer.about["network"]["size"] == "tiny"


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_masker_runs_on_it(suffix, clips, tmp_path):
    network = built()
    scorer = exported(network, tmp_path, suffix)
    ours, theirs = (
        TubeletMasker("net", each, weights=None, device="cpu").anonymize_batch(clips) for each in (scorer, network)
    )
    torch.testing.assert_close(ours.video, theirs.video)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_masker_has_the_name_and_hash_of_its_file_and_no_folder(suffix, tmp_path):
    def weights_of(network, **knobs):
        scorer = exported(network, tmp_path, suffix, **knobs)
        return TubeletMasker("ward", scorer, device="cpu").tuned(None, 1.0).weights

    name, digest = weights_of(built()).split()
    assert (name, len(digest)) == (f"net.{suffix}", 16)
    louder = built()
    with torch.no_grad():
        louder.blocks[0].mlp.fc1.weight.mul_(2)  # in OpenVINO's format the graph stays the same, the numbers do not
    assert weights_of(louder).split()[1] != digest
    assert weights_of(built(), privacy_weight=3.0).split()[1] != digest


def test_weights_named_by_hand_go_before_those_of_the_file(tmp_path):
    scorer = exported(built(), tmp_path, "onnx")
    assert TubeletMasker("ward", scorer, weights="mine 1", device="cpu").weights == "mine 1"


def test_files_that_are_no_exports_are_refused(tmp_path):
    (tmp_path / "net.bin").write_bytes(b"0")
    for name, complaint in (("none.onnx", "not there"), ("net.bin", "no exported network")):
        with pytest.raises(InputError, match=complaint):
            ExportedScorer(tmp_path / name)
    pytest.importorskip("openvino", reason="OpenVINO's format needs vidveil[export]")
    with pytest.raises(UsageError, match=r"NAME\.xml"):
        export_openvino(built(), tmp_path / "net.onnx")


def test_a_foreign_file_is_refused(tmp_path):
    import onnx

    path = export_onnx(built(), tmp_path / "net.onnx")
    model = onnx.load(path)
    del model.metadata_props[:]
    onnx.save(model, path)
    with pytest.raises(InputError, match="not written by vidveil"):
        ExportedScorer(path)


def test_a_bfloat16_copy_leaves_the_network_alone_and_decides_nearly_alike(clips):
    network = built()
    fast = in_bfloat16(network)
    assert fast.cls_token.dtype == torch.bfloat16
    assert fast.standardize.mean.dtype == network.cls_token.dtype == torch.float32
    assert (fast.decide(clips).kept == network.decide(clips).kept).float().mean() > 0.9
    assert torch.equal(fast.standardize.mean, network.standardize.mean)


def test_a_compiled_scorer_decides_as_its_network_for_any_number_of_clips(clips, monkeypatch):
    monkeypatch.setitem(dual_cls.SIZES, "tiny", (24, 2, 3, (1,), (2, 8, 8)))
    network = built()
    torch.compiler.reset()
    scorer = CompiledScorer(network, batch=2, backend="eager")
    assert torch.equal(scorer.decide(clips).kept, in_bfloat16(network).decide(clips).kept)
    assert torch.equal(scorer.decide(clips, 0.7, math.inf).kept, in_bfloat16(network).decide(clips, 0.7, math.inf).kept)
    torch.compiler.reset()


def test_the_weight_of_privacy_alone_is_infinite(tmp_path):
    scorer = exported(built(), tmp_path, "onnx", privacy_weight=math.inf)
    assert scorer.own == {"keep": built().network.keep, "privacy_weight": math.inf}
    assert TubeletMasker("ward", scorer).knobs["privacy_weight"] == "inf"


def test_how_often_it_looks_travels_with_the_network(tmp_path):
    network = built()
    network.stride = 5
    assert TubeletMasker("ward", exported(network, tmp_path, "onnx")).stride == 5
    assert TubeletMasker("ward", CompiledScorer(network, backend="eager")).stride == 5
    assert TubeletMasker("ward", network).stride == 5
    assert TubeletMasker("ward", network, stride=3).stride == 3


def test_what_its_checkpoint_says_against_it_travels_with_the_network(tmp_path):
    network = built()
    network.limits = ("predicted nothing",)
    for scorer in (exported(network, tmp_path, "onnx"), CompiledScorer(network, backend="eager"), network):
        assert TubeletMasker("ward", scorer).warnings() == ["ward predicted nothing"]
