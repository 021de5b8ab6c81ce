"""STPrivacy next to a plain transcription of its paper, with the same weights: clips a second, memory, agreement.

    python benchmarks/stprivacy_speed.py -o benchmarks/results/stprivacy_speed_h200.json
    python benchmarks/stprivacy_speed.py --quick                             its logic, on any CPU

ViT-S, clips of 16 × 112 × 112, δT = 2, α = 0.7, batches of 64 on the device; both in bfloat16 by autocast.

    plain      all tokens go all the way, under dense masks: eq. 8 to 10 as they are written, step by step
    gathered   in use alone: dropped tokens are taken out, as the paper says, and attention is written out
    ours       in use dropped tokens are taken out, too (`STPrivacy.pruned`); while learning a fused kernel masks them

    forward  the drawn clip, black where tubelets were dropped
    train    L_spars + L'_action, backward, fused AdamW
    ms       median over rounds of both, in turn, launches included; GiB: peak of allocated memory
    alike    share of tubelets that both keep alike, of what is drawn the largest difference; both in float32

Rounds of both alternate in one process, so their ratio stands whatever else the machine does.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.machine import describe
from vidveil.methods.stprivacy.model import Block, Network, STPrivacy, stage_count
from vidveil.methods.stprivacy.token_retention import Predictor, sampled, sparsity

CLASSES = 51
SHARPER = 8.0
"""Weights of the predictors' last layers at the start of training times this: else z is flat, and rounding decides."""


class Plain(nn.Module):
    """The paper's equations over the weights of an `STPrivacy`."""

    def __init__(self, network: STPrivacy) -> None:
        super().__init__()
        self.of = network

    def forward(self, clip: Tensor, *, at_random: bool, gathered: bool = False) -> tuple[Tensor, list[Tensor], Tensor]:
        """Logits of the action, Î_(m) each (B, L, N), and what is shown (B, 3, T, H, W). Gathered tokens stay (B, L, n,
        D), since all segments have as many."""
        of = self.of
        length, height, width = of.grid
        kernel = of.patch_embed.proj
        looks = F.conv3d(of.standardize(clip), kernel.weight, kernel.bias, of.tubelet)  # (B, D, L, h, w)
        x = looks.flatten(3).permute(0, 2, 3, 1)  # (B, L, N, D)
        x = x + of.pos_embed[:, None] + of.time_embed[:, :, None]
        decision = torch.ones(x.shape[:3], device=x.device)  # Î (B, L, N)
        decisions: list[Tensor] = []
        place = torch.arange(of.places, device=x.device).expand(x.shape[:3])  # of tokens that are still there
        for number, block in enumerate(of.blocks):
            assert isinstance(block, Block)
            if number in of.stages:
                predictor = of.predictors[len(decisions)]
                assert isinstance(predictor, Predictor)
                log_z = self.retained(predictor, x, decision)
                if at_random:
                    decision = decision * sampled(log_z)
                else:
                    likely = log_z[..., 0].masked_fill(decision == 0, -math.inf)
                    best = likely.topk(stage_count(of.places, of.network.alpha, len(decisions) + 1), 2).indices
                    decision = torch.zeros_like(decision).scatter(2, best, 1.0)
                    if gathered:
                        x = x.gather(2, best.unsqueeze(3).expand(-1, -1, -1, x.shape[3]))
                        place, decision = place.gather(2, best), torch.ones_like(best, dtype=decision.dtype)
                decisions.append(decision)
            x = x + self.attended(block, block.norm1(x), decision)
            x = x + block.mlp(block.norm2(x))
        live = decision.unsqueeze(3)
        logits = of.action_head(of.norm((x * live).sum((1, 2)) / live.sum((1, 2)).clamp(min=1)))
        assert of.decoder is not None
        pixels = of.decoder(of.norm(x)).float().sigmoid() * live  # eq. 11
        if gathered:
            black = pixels.new_zeros(len(x), length, of.places, pixels.shape[3])
            pixels = black.scatter(2, place.unsqueeze(3).expand_as(pixels), pixels)
        cells = pixels.view(len(x), length, height, width, 3, *of.tubelet)
        return logits, decisions, cells.permute(0, 4, 1, 5, 2, 6, 3, 7).reshape(clip.shape)

    def retained(self, predictor: Predictor, x: Tensor, decision: Tensor) -> Tensor:
        """Eq. 1 to 5: log z (B, L, N, 2)."""
        local, spatio, spatem = F.gelu(predictor.mix(predictor.norm(x))).chunk(3, -1)
        live = decision.unsqueeze(3)  # (B, L, N, 1)
        of_segment = ((spatio * live).sum(2, keepdim=True) / live.sum(2, keepdim=True).clamp(min=1)).expand_as(spatio)
        of_clip = (spatem * live).sum((1, 2), keepdim=True) / live.sum((1, 2), keepdim=True).clamp(min=1)
        evidence = torch.cat([local, of_segment, of_clip.expand_as(spatem)], -1)
        return F.log_softmax(predictor.mlp(evidence).float(), -1)

    def attended(self, block: Block, x: Tensor, decision: Tensor) -> Tensor:
        """Eq. 8 to 10: (B, L, N, D)."""
        tokens, heads = x.flatten(1, 2), block.attn.heads
        q, k, v = block.attn.qkv(tokens).unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)  # (B, H, LN, d)
        scores = (q @ k.transpose(2, 3) / math.sqrt(q.shape[3])).float()  # eq. 8
        one = torch.eye(tokens.shape[1], device=x.device)
        mask = one + (1 - one) * decision.flatten(1)[:, None, None, :]  # eq. 9
        strength = (scores - scores.amax(3, keepdim=True).detach()).exp() * mask
        attention = strength / strength.sum(3, keepdim=True)  # eq. 10
        mixed = (attention.to(v.dtype) @ v).transpose(1, 2).flatten(2)
        out: Tensor = block.attn.proj(mixed)
        return out.view_as(x)


def made(size: str, frames: int, side: int, device: str) -> STPrivacy:
    torch.manual_seed(0)
    network = STPrivacy(Network(size=size, frames=frames, side=side, actions=CLASSES))
    for predictor in network.predictors:
        assert isinstance(predictor, Predictor)
        predictor.mlp[-1].weight.data.mul_(SHARPER)  # type: ignore[operator]
    return network.to(device)


def steps(network: STPrivacy, clip: Tensor, work: str) -> dict[str, Callable[[], object]]:
    """By name, each one step of the work."""
    plain, device = Plain(network), clip.device.type
    labels = torch.arange(len(clip), device=clip.device) % CLASSES
    if work == "forward":

        def use(forward: Callable[[], object]) -> Callable[[], object]:
            def step() -> object:
                with torch.inference_mode(), torch.autocast(device, torch.bfloat16):
                    return forward()

            return step

        return {
            "plain": use(lambda: plain(clip, at_random=False)[2]),
            "gathered": use(lambda: plain(clip, at_random=False, gathered=True)[2]),
            "ours": use(lambda: network.shown(network.pruned(clip))),
        }
    optimizer = torch.optim.AdamW(network.parameters(), 0.0, weight_decay=0.0, fused=True)

    def learn(forward: Callable[[], tuple[Tensor, list[Tensor]]]) -> Callable[[], object]:
        def step() -> object:
            with torch.autocast(device, torch.bfloat16):
                logits, decisions = forward()
                loss = sparsity(decisions, network.network.alpha) + F.cross_entropy(logits.float(), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return step

    def ours() -> tuple[Tensor, list[Tensor]]:
        seen = network.masked(clip)
        return seen.action, seen.decisions

    return {"plain": learn(lambda: plain(clip, at_random=True)[:2]), "ours": learn(ours)}


def measured(both: dict[str, Callable[[], object]], device: str, rounds: int, each: int) -> dict[str, Any]:
    """Milliseconds a step and GiB of each, in turn."""
    taken: dict[str, list[float]] = {name: [] for name in both}
    peak: dict[str, float] = {}

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    for name, step in both.items():
        for _ in range(3 if device == "cuda" else 1):
            step()
        wait()
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
            step()
            wait()
            peak[name] = torch.cuda.max_memory_allocated() / 2**30
    for _ in range(rounds):
        for name, step in both.items():
            wait()
            began = time.perf_counter()
            for _ in range(each):
                step()
            wait()
            taken[name].append(1e3 * (time.perf_counter() - began) / each)
    found: dict[str, Any] = {f"{name}_ms": round(median(ms), 3) for name, ms in taken.items()}
    found |= {f"{name}_gib": round(value, 2) for name, value in peak.items()}
    for name in (name for name in both if name != "ours"):
        ratios = [a / b for a, b in zip(taken[name], taken["ours"], strict=True)]
        found[f"times_as_fast_as_{name}"] = round(median(ratios), 2)
        found[f"each_round_beside_{name}"] = [round(ratio, 2) for ratio in ratios]
    return found


@torch.inference_mode()
def agreement(network: STPrivacy, clip: Tensor) -> dict[str, float]:
    seen = network.eval().pruned(clip)
    _, decisions, shown = Plain(network)(clip, at_random=False)
    *_, also = Plain(network)(clip, at_random=False, gathered=True)
    assert (also - shown).abs().max() < 1e-3, "two transcriptions differ"
    same = (seen.decisions[-1] == decisions[-1]).float().mean()
    both = ((seen.decisions[-1] == decisions[-1]).all(2).all(1)).nonzero().flatten()  # clips that are decided alike
    apart = (network.shown(seen)[both] - shown[both]).abs().max() if len(both) else torch.tensor(math.nan)
    return {"alike": round(float(same), 5), "drawn_apart": float(apart)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", type=Path, help="JSON")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="small, and on the CPU")
    options = parser.parse_args()
    if not options.quick and not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device: --quick tries the logic")
    device, batch, each = ("cpu", 2, 1) if options.quick else ("cuda", options.batch, 10)
    network = made("vit_ti" if options.quick else "vit_s", 16, 64 if options.quick else 112, device)
    clip = torch.rand(batch, 3, network.frames, network.size, network.size, device=device)
    found: dict[str, Any] = {"machine": describe(device), "batch": batch, "tubelets": network.count}
    found |= agreement(network, clip)
    for work in ("forward", "train"):
        network.train(work == "train")
        found[work] = measured(steps(network, clip, work), device, options.rounds, each)
    print(json.dumps(found, indent=1))
    if options.o is not None:
        options.o.parent.mkdir(parents=True, exist_ok=True)
        options.o.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
