"""The first bad step is recorded where it happens, and read later."""

import math

import torch
from torch import nn

from vidveil.training.finite import FiniteRecord, explain, find_origin


def steps(layer, values):
    """Train on losses that are multiplied by these, without reading the record in between."""
    finite = FiniteRecord(dict(layer.named_parameters()), torch.device("cpu"))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
    seen = []
    for value in values:
        loss = (layer(torch.ones(1, 2)) * value).sum()
        loss.backward()
        finite.check(loss)
        finite.step += 1
        optimizer.found_inf = finite.bad
        optimizer.step()
        optimizer.zero_grad()
        seen.append(layer.weight.detach().clone())
    return finite, seen


def test_from_the_first_bad_step_on_no_weight_changes():
    layer = nn.Linear(2, 1)
    finite, seen = steps(layer, [1, 1, math.nan, 1, math.inf])
    assert not torch.equal(seen[0], seen[1])
    assert all(torch.equal(seen[1], later) for later in seen[2:])
    step, loss, parameter = finite.first_bad()
    assert (step, math.isnan(loss), parameter) == (2, True, "weight")


def test_good_steps_are_not_complained_about():
    finite, _ = steps(nn.Linear(2, 1), [1, -1e10, 1e-30])
    assert finite.first_bad() is None


def test_the_length_of_the_gradient_is_that_of_all_parameters_together():
    layer = nn.Linear(2, 1)
    layer.extra = nn.Parameter(torch.ones(3))  # gets no gradient
    finite = FiniteRecord(dict(layer.named_parameters()), torch.device("cpu"))
    loss = layer(torch.tensor([[3.0, 4.0]])).sum()
    loss.backward()
    torch.testing.assert_close(finite.check(loss), torch.tensor(math.sqrt(9 + 16 + 1)))


def test_the_origin_is_the_first_module_that_gives_a_bad_number():
    class Root(nn.Module):
        def forward(self, x):
            return {"root": x.sqrt()}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.root = nn.Identity(), Root()

        def forward(self, x):
            return self.root(self.first(x))["root"].sum()

    net = Net()
    bad = -torch.ones(3)
    assert find_origin(net, lambda: net(bad), bad) == "the output of root (Root)"
    assert find_origin(net, lambda: net(-bad), -bad) == ""
    assert find_origin(net, lambda: None, {"video": [torch.tensor(math.inf)], "name": "x"}) == "the batch itself"
    broken = nn.Linear(1, 1)
    nn.init.constant_(broken.bias, math.nan)
    assert find_origin(broken, lambda: None, ()) == "the weights bias"


def test_the_line_counts_from_one():
    assert explain((0, 5.0, ""), "", 10).startswith("training broke at step 1 (epoch 1, batch 1): the loss is 5; try")
