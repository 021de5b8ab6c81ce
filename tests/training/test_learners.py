"""Several networks in one training: a hider of numbers, and attackers who look for one of them."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

from tests.training.toy import Sums
from vidveil.core.errors import TrainingError
from vidveil.training import checkpoints
from vidveil.training.learner import Learner, Restart, UpdateRule, strongest
from vidveil.training.log import Log as TrainingLog
from vidveil.training.loop import fit
from vidveil.training.options import Options
from vidveil.training.seeds import seeded

OPTIONS = Options(epochs=4, lr=0.01, device="cpu", warmup_epochs=0, validate_every=4)


class Networks(nn.Module):
    def __init__(self, attackers=2):
        super().__init__()
        with seeded(0):
            self.hider = nn.Linear(8, 8)
            self.attackers = nn.ModuleList([self.attacker() for _ in range(attackers)])

    def attacker(self):
        return nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 1))

    def attacks(self, x):
        """The loss of each attacker, who looks for the sign of the first number."""
        secret = (x[:, 0] > 0).float()
        return [binary_cross_entropy_with_logits(each(self.hider(x))[:, 0], secret) for each in self.attackers]


def hide(model, batch):
    shown = model.hider(batch[0])
    return {"utility": mse_loss(shown[:, 1:], batch[0][:, 1:]), "privacy": -0.5 * strongest(model.attacks(batch[0]))}


def attack(model, batch):
    return torch.stack(model.attacks(batch[0])).sum()


HIDER = Learner("hider", hide, parts=("hider.",))
ATTACKERS = Learner("attackers", attack, parts=("attackers.",), lr=0.02)


def train(folder=None, model=None, learners=(HIDER, ATTACKERS), rules=(), options=OPTIONS, validate=None, batches=None):
    model = model or Networks()
    outcome = fit(
        model, batches=batches or Sums(), loss=learners, update_rules=rules, validate=validate, options=options,
        folder=folder,
    )  # fmt: skip
    return model, outcome


def lines(folder, event):
    found = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [line for line in found if line["event"] == event]


def noted(calls):
    """The two learners, which note whose loss was computed."""

    def note(learner):
        def loss(model, batch):
            calls.append(learner.name)
            return learner.loss(model, batch)

        return replace(learner, loss=loss)

    return note(HIDER), note(ATTACKERS)


def test_each_learner_changes_its_own_parameters_alone():
    start = Networks()
    for chosen, others in (("hider", "attackers"), ("attackers", "hider")):
        rules = [UpdateRule(chosen, batches=1000), UpdateRule(others)]
        model, _ = train(rules=rules)
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, start.get_parameter(name)) == name.startswith(others)


def test_the_hider_hides_and_the_attackers_learn():
    def validate(model):
        x = Sums(rows=2000).draw(7)[0]
        return {"privacy": float(torch.stack(model.attacks(x)).min()), "utility": -hide(model, (x, None))["utility"]}

    _, outcome = train(options=replace(OPTIONS, epochs=30, monitor="last", validate_every=30), validate=validate)
    assert outcome.history[-1]["privacy"] > 0.6  # of ln 2 = 0.69: they do no better than a guess
    assert outcome.history[-1]["utility"] > -0.1
    alone = [replace(HIDER, loss=lambda model, batch: mse_loss(model.hider(batch[0]), batch[0])), ATTACKERS]
    _, outcome = train(learners=alone, options=replace(OPTIONS, epochs=30, validate_every=30), validate=validate)
    assert outcome.history[-1]["privacy"] < 0.3  # where nobody hides, they learn


def test_a_hider_hides_from_the_attacker_that_does_best_on_this_batch():
    losses = [torch.tensor(0.7, requires_grad=True), torch.tensor(0.2, requires_grad=True)]
    strongest(losses).backward()
    assert losses[0].grad == 0
    assert losses[1].grad == 1


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ((), ["hider", "attackers"]),
        ([UpdateRule("attackers", "hider")], ["attackers", "hider"]),
        ([UpdateRule("attackers", batches=2), UpdateRule("hider")], ["attackers", "attackers", "hider"]),
        (
            [UpdateRule("attackers", batches=3, until=("loss", 1e9)), UpdateRule("hider", batches=2)],
            ["attackers", "hider", "hider"],
        ),
        (
            [UpdateRule("attackers", batches=2, until=("loss", -1e9)), UpdateRule("hider", until=("utility", 0.0))],
            ["attackers", "attackers", "hider"],
        ),
    ],
)
def test_learners_are_updated_as_the_rules_say(rules, expected):
    calls = []
    train(learners=noted(calls), rules=rules)
    assert calls == (expected * len(calls))[: len(calls)]
    assert len(calls) >= 40


def test_each_learner_has_a_rate_of_its_own(tmp_path):
    fixed = replace(ATTACKERS, schedule="constant", weight_decay=0.0, betas=(0.5, 0.9), clip_norm=0.1)
    train(tmp_path, learners=(HIDER, fixed), options=replace(OPTIONS, log_every=10))
    steps = lines(tmp_path, "step")
    assert [line["attackers/lr"] for line in steps] == pytest.approx([0.02] * 4)
    rates = [line["hider/lr"] for line in steps]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] < 0.01
    assert rates[-1] < 0.0001


def test_every_term_is_logged_by_step_and_by_epoch(tmp_path):
    _, outcome = train(tmp_path, options=replace(OPTIONS, log_every=10))
    terms = ("hider/{}", "hider/{}/utility", "hider/{}/privacy", "attackers/{}", "hider/gradient", "attackers/gradient")
    for line in lines(tmp_path, "step"):
        assert {term.format("loss") for term in terms} <= line.keys()
    for row in outcome.history:
        assert {term.format("train_loss") for term in terms} <= row.keys()
        parts = row["hider/train_loss/utility"] + row["hider/train_loss/privacy"]
        assert row["hider/train_loss"] == pytest.approx(parts)
        assert row["train_loss"] == pytest.approx(row["hider/train_loss"] + row["attackers/train_loss"])
    assert list((tmp_path / "tensorboard").rglob("*"))


def test_means_are_over_the_updates_of_a_learner_not_over_all_batches():
    rules = [UpdateRule("attackers", batches=4), UpdateRule("hider")]

    def always(value, part):
        return lambda model, _: 0 * next(model.get_submodule(part).parameters()).sum() + value

    constant = (replace(HIDER, loss=always(3.0, "hider")), replace(ATTACKERS, loss=always(5.0, "attackers")))
    _, outcome = train(learners=constant, rules=rules)
    assert outcome.history[0]["hider/train_loss"] == pytest.approx(3)
    assert outcome.history[0]["attackers/train_loss"] == pytest.approx(5)


class Stopped(Exception):
    pass


class StopsAt(Sums):
    def __init__(self, at):
        super().__init__()
        self.at = at

    def epoch(self, epoch, start=0):
        for number, batch in enumerate(super().epoch(epoch, start), start):
            if 10 * epoch + number == self.at:
                raise Stopped
            yield batch


RULES = {
    "together": (),
    "five to one": [UpdateRule("attackers", batches=5), UpdateRule("hider")],
    "until": [UpdateRule("attackers", batches=7, until=("loss", 1.3)), UpdateRule("hider", batches=2)],
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("at", [1, 10, 26])
def test_a_resumed_training_is_the_undisturbed_one_to_the_bit(tmp_path, monkeypatch, rules, at):
    monkeypatch.setattr(checkpoints, "COST", 0)
    restarted = replace(ATTACKERS, restart=Restart(9, lambda: Networks().attackers))
    options = replace(OPTIONS, checkpoint_seconds=0, ema=0.9)

    def go(folder, batches):
        torch.manual_seed(1)
        return train(folder, learners=(HIDER, restarted), rules=rules, options=options, batches=batches)

    whole, expected = go(None, Sums())
    with pytest.raises(Stopped):
        go(tmp_path, StopsAt(at))
    model, outcome = go(tmp_path, Sums())
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in whole.state_dict().items())
    assert outcome.history == expected.history


def test_a_restarted_learner_begins_with_fresh_weights_and_the_other_goes_on(tmp_path):
    fresh = []

    def build():
        fresh.append(Networks().attackers)
        return fresh[-1]

    rules = [UpdateRule("attackers", batches=39), UpdateRule("hider")]
    train(tmp_path, learners=(HIDER, replace(ATTACKERS, restart=Restart(12, build))), rules=rules)
    assert [line["step"] for line in lines(tmp_path, "restart")] == [12, 24, 36]
    assert len(fresh) == 1 + 3  # one to see whether it fits


def test_a_restart_forgets_moments_and_the_running_average():
    still = replace(ATTACKERS, lr=0.0, weight_decay=0.0, restart=Restart(39, lambda: Networks().attackers))
    with torch.no_grad():
        start = Networks()
        for parameter in start.attackers.parameters():
            parameter.fill_(5.0)
    model, _ = train(model=start, learners=(HIDER, still), options=replace(OPTIONS, ema=0.99))
    for name, tensor in Networks().attackers.state_dict().items():
        torch.testing.assert_close(model.attackers.state_dict()[name], tensor)


@pytest.mark.parametrize(
    ("learners", "rules", "message"),
    [
        ((HIDER, HIDER), (), "two learners have one name"),
        ((HIDER,), (), "attackers.0.0.weight is of no learner"),
        ((HIDER, ATTACKERS, replace(ATTACKERS, name="more")), (), "is of attackers and more"),
        ((HIDER, ATTACKERS), [UpdateRule("hider"), UpdateRule("atackers")], "names atackers, and no learner"),
        ((HIDER, ATTACKERS), [UpdateRule("hider")], "no update rule names the learner attackers"),
        ((HIDER, ATTACKERS), [UpdateRule("hider", until=("privcy", 1)), UpdateRule("attackers")], "no such term"),
        ((HIDER, replace(ATTACKERS, restart=Restart(0, nn.Identity))), (), "restart is after one batch or more"),
        ((HIDER, replace(ATTACKERS, restart=Restart(9, nn.Identity))), (), "attackers.0.0.weight differs"),
        ((HIDER, replace(ATTACKERS, restart=Restart(9, lambda: nn.Linear(1, 2)))), (), "fresh network of its restart"),
    ],
)
def test_mistakes_are_named_before_or_when_they_matter(learners, rules, message):
    with pytest.raises(TrainingError, match=message):
        train(learners=learners, rules=rules)


def test_a_rule_without_a_learner_is_refused():
    with pytest.raises(TrainingError, match="one learner or more"):
        UpdateRule()


def test_a_checkpoint_of_other_learners_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "COST", 0)
    options = replace(OPTIONS, checkpoint_seconds=0)
    with pytest.raises(Stopped):
        train(tmp_path, options=options, batches=StopsAt(5))
    with pytest.raises(TrainingError, match="it has the learners hider, attackers"):
        train(tmp_path, learners=(HIDER, replace(ATTACKERS, name="critics")), options=options)


def test_a_bad_number_is_blamed_on_its_learner():
    def broken(model, batch):
        return hide(model, batch)["utility"] * (batch[0].mean() / 0).log()

    with pytest.raises(TrainingError, match=r"hider: training broke at step 1 \(epoch 1, batch 1\): the loss is"):
        train(learners=(replace(HIDER, loss=broken), ATTACKERS))


def test_a_loss_with_one_named_term_keeps_the_name():
    named = replace(ATTACKERS, loss=lambda model, batch: {"bce": attack(model, batch)})
    rules = [UpdateRule("attackers", batches=7, until=("bce", 1.3)), UpdateRule("hider")]
    _, outcome = train(learners=(HIDER, named), rules=rules)
    row = outcome.history[0]
    assert row["attackers/train_loss/bce"] == row["attackers/train_loss"]


def test_compiling_adversaries_is_refused_with_a_note():
    notes = []

    class Notes(TrainingLog):
        def say(self, line, style=""):  # noqa: ARG002
            notes.append(line)

    model = Networks()
    options = replace(OPTIONS, epochs=1, compile=True)
    fit(model, batches=Sums(), loss=(HIDER, ATTACKERS), validate=None, options=options, log=Notes())
    assert "compile=true does nothing" in notes[0]
