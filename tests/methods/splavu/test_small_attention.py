"""Attention of many clips side by side is attention."""

import pytest
import torch
from torch.nn import functional as F

from vidveil.methods.splavu.model import attend_side_by_side


@pytest.mark.parametrize("size", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("shape", [(8, 8, 3, 5), (2, 1, 1, 1), (4, 3, 7, 0)])
def test_it_is_what_torch_computes(shape, size):
    q, k, v = size * torch.randn(3, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    plain = F.scaled_dot_product_attention(*(x.permute(3, 1, 0, 2) for x in (q, k, v)))  # (B, heads, tokens, d)
    torch.testing.assert_close(attend_side_by_side(q, k, v), plain.permute(2, 1, 3, 0))
