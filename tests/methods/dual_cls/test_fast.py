"""GELU inside the product before it, what a fast copy shares with its network (nothing), and where it works."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from vidveil.methods.dual_cls import fast
from vidveil.methods.dual_cls import model as dual_cls
from vidveil.methods.dual_cls.fast import CompiledScorer, OneKernelMLP, fits_one_kernel, in_bfloat16, product_with_gelu
from vidveil.methods.dual_cls.model import DualCLS, Network
from vidveil.methods.masking.masker import TubeletMasker
from vidveil.models.recognizers.vit import MLP

FRAMES, SIZE = 4, 16


@pytest.fixture
def network(monkeypatch):
    monkeypatch.setitem(dual_cls.SIZES, "tiny", (24, 2, 3, (1,), (2, 4, 4)))
    torch.manual_seed(3)
    return DualCLS(Network(size="tiny", frames=FRAMES, side=SIZE, actions=3, budget={"attributes": 2}, keep=0.7)).eval()


@pytest.fixture
def clips():
    return torch.rand(3, 3, FRAMES, SIZE, SIZE, generator=torch.Generator().manual_seed(4))


def elsewhere(scorer, seen):
    """The scorer with a network on another device, as far as a CPU can play one: `seen` gets what it is shown."""

    def mask(shown, _keep, weight):
        seen.append((shown.device.type, weight.device.type))
        kept = torch.zeros(len(shown), scorer.network.count, dtype=torch.bool)
        return kept, torch.zeros(kept.shape)

    scorer._mask = mask
    return scorer


def test_a_product_with_gelu_is_a_product_and_then_gelu():
    torch.manual_seed(1)
    x, weight, bias = torch.randn(2, 5, 8), torch.randn(16, 8), torch.randn(16)
    torch.testing.assert_close(product_with_gelu(x, weight, bias), F.gelu(F.linear(x, weight, bias)))


def test_a_product_with_gelu_stays_one_operation_when_compiled():
    seen = []

    def backend(graph, _inputs):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    torch.manual_seed(1)
    x, weight, bias = torch.randn(2, 5, 8), torch.randn(16, 8), torch.randn(16)
    compiled = torch.compile(product_with_gelu, fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(x, weight, bias), product_with_gelu(x, weight, bias))
    assert any("_addmm_activation" in target for target in seen)
    assert not any(target.endswith("gelu") for target in seen)


@pytest.mark.parametrize(
    ("cuda", "dtype", "gradients", "fits"),
    [
        (True, torch.bfloat16, False, True),
        (False, torch.bfloat16, False, False),
        (True, torch.float32, False, False),
        (True, torch.bfloat16, True, False),
    ],
)
def test_one_kernel_does_both_in_bfloat16_on_a_gpu_without_gradients_only(cuda, dtype, gradients, fits):
    with torch.set_grad_enabled(gradients):
        assert fits_one_kernel(SimpleNamespace(is_cuda=cuda, dtype=dtype)) is fits


def test_an_mlp_of_one_kernel_gives_what_the_plain_one_gives(monkeypatch):
    torch.manual_seed(2)
    exact, x, calls = MLP(8), torch.randn(2, 3, 8), []

    def product(*inputs):
        calls.append(inputs)
        return product_with_gelu(*inputs)

    monkeypatch.setattr(fast, "product_with_gelu", product)
    monkeypatch.setattr(fast, "fits_one_kernel", lambda _: True)
    torch.testing.assert_close(OneKernelMLP(exact)(x), exact(x))
    assert len(calls) == 1


def test_with_gradients_or_on_a_cpu_the_exact_gelu_is_taken():
    torch.manual_seed(2)
    exact = MLP(8)
    x = torch.randn(2, 3, 8, requires_grad=True)
    assert torch.equal(OneKernelMLP(exact)(x), exact(x))
    OneKernelMLP(exact)(x).sum().backward()
    assert x.grad is not None


def test_a_fast_copy_leaves_its_network_as_it_was_and_has_the_same_names():
    network = DualCLS(Network(size="vit_ti", frames=2, side=32, actions=3, budget={"attributes": 2}))
    names = list(network.state_dict())
    copy = in_bfloat16(network)
    assert list(copy.state_dict()) == names
    assert type(network.blocks[0].mlp) is MLP
    assert network.blocks[0].mlp.fc1.weight.dtype == torch.float32
    assert copy.blocks[0].mlp.fc1.weight.data_ptr() != network.blocks[0].mlp.fc1.weight.data_ptr()


# ---- compiled -------------------------------------------------------------------------------------------------------


def test_a_compiled_network_works_on_its_device_and_the_one_it_was_made_of_stays(network):
    scorer = CompiledScorer(network, device="meta", backend="eager")
    tensors = [*scorer.network.parameters(), *scorer.network.buffers()]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert {tensor.device.type for tensor in (*network.parameters(), *network.buffers())} == {"cpu"}


@pytest.mark.parametrize(("there_is_one", "place"), [(True, "cuda"), (False, "cpu")])
def test_by_default_it_works_on_an_accelerator_if_there_is_one(network, monkeypatch, there_is_one, place):
    moved = []

    def to(network, where):
        moved.append(where)  # nothing moves: there may be no such device here
        return network

    monkeypatch.setattr(torch.cuda, "is_available", lambda: there_is_one)
    monkeypatch.setattr(DualCLS, "to", to)
    assert CompiledScorer(network, backend="eager").device.type == place
    assert moved == [torch.bfloat16, torch.device(place)]


def test_clips_are_brought_to_a_compiled_network_and_its_decision_to_the_clips(network, clips):
    seen = []
    scorer = elsewhere(CompiledScorer(network, batch=2, device="meta", backend="eager"), seen)
    done = TubeletMasker("ward", scorer, device="cpu").anonymize_batch(clips)
    assert seen == [("meta", "meta")] * 2
    assert done.mask.device.type == done.scores.device.type == "cpu"


def test_more_keep_rates_than_the_compiler_expects_are_decided_all(network, clips):
    torch.compiler.reset()
    scorer, plain = CompiledScorer(network, batch=3, backend="eager"), in_bfloat16(network)
    limit = torch.compiler.config.recompile_limit
    for keep in (i / 11 for i in range(1, limit + 3)):
        assert torch.equal(scorer.decide(clips, keep).kept, plain.decide(clips, keep).kept)
    assert torch.compiler.config.recompile_limit == limit
    torch.compiler.reset()


def test_a_masker_has_the_name_and_hash_of_its_compiled_network(network):
    def weights():
        return TubeletMasker("ward", CompiledScorer(network, device="cpu", backend="eager"), device="cpu").weights

    first = weights()
    assert first.startswith("bfloat16 ")
    assert weights() == first
    with torch.no_grad():
        network.cls_token.add_(1)
    assert weights() != first
