"""GELU inside the product before it, and what a fast copy shares with its network: nothing."""

import torch
from torch.nn import functional as F

from vidveil.methods.dual_cls import DualCLS, Network
from vidveil.methods.fast import OneKernelMLP, in_bfloat16, product_with_gelu
from vidveil.recognizers.vit import MLP


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


def test_the_gelu_of_gpu_products_is_closer_to_the_exact_one_than_bfloat16_is():
    x = torch.linspace(-8, 8, 100_001)
    exact = F.gelu(x)
    assert (F.gelu(x, approximate="tanh") - exact).abs().max() < 0.0005
    assert (exact.bfloat16().float() - exact).abs().max() > 0.0005


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
    fast = in_bfloat16(network)
    assert list(fast.state_dict()) == names
    assert type(network.blocks[0].mlp) is MLP
    assert network.blocks[0].mlp.fc1.weight.dtype == torch.float32
    assert fast.blocks[0].mlp.fc1.weight.data_ptr() != network.blocks[0].mlp.fc1.weight.data_ptr()
