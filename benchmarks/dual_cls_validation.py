"""What masks are worth on validation people: by this a mode and a share are chosen, before test people are looked at.

    python benchmarks/dual_cls_validation.py --runs runs --rho 0          into results/dual_cls/validation-rho0.json

Of `dual_cls_table`'s runs. Against the truth of each pixel: identity hidden, action kept, AUROC of the score, of each
training at several shares of all tubelets. And what judges got on validation people, as far as their runs are finished:
the recognizer's top-1, linkage and attributes of the attacker, means over seeds.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dual_cls_summary import TRUTHS
from dual_cls_table import ABLATIONS, MODES, RESULTS, SEEDS

from vidveil.data import load_data
from vidveil.data.clips import ClipSet
from vidveil.data.loader import Loader
from vidveil.data.puppets import masks
from vidveil.methods.dual_cls.anonymizer import read_network
from vidveil.methods.dual_cls.model import DualCLS
from vidveil.methods.masking.baselines import Grid
from vidveil.methods.masking.ground_truth import of_clips
from vidveil.models.checkpoint import find

SHARES = (0.95, 0.9, 0.89, 0.88, 0.8, 0.7)
FIT = re.compile(r"-([\d.]+)_(?:action|identity_attributes|identity)_.+_seed_\d+$")


@torch.inference_mode()
def against_truth(network: DualCLS, clips: torch.Tensor, kinds: list[Any]) -> dict[str, dict[str, float]]:
    """Of every share: `identity_hidden`, `action_kept`, `score_auroc`, and the share that it came to."""
    grid, found = Grid(network.tubelet[0], network.tubelet[1]), {}
    for share in SHARES:
        keep = round(share ** (1 / len(network.prune_at)), 3)
        decisions = [network.decide(part, keep) for part in torch.split(clips, 64)]
        kept = torch.cat([one.kept for one in decisions]).cpu().numpy()
        scores = torch.cat([one.scores for one in decisions]).cpu().numpy()
        means = of_clips(kinds, kept, scores, grid) | {"tubelets_kept": float(kept.mean())}
        found[f"{share:g}"] = {name: round(means[name], 4) for name in (*TRUTHS, "tubelets_kept")}
    return found


def judged(run: Path) -> dict[str, dict[str, float]]:
    """By keep rate: what judges got on validation people, mean over seeds."""
    scores: dict[str, dict[str, list[float]]] = {}
    for file in sorted(run.glob("fits/*/learned.json")):
        if at := FIT.search(file.parent.name):
            for name, value in json.loads(file.read_text())["scores"].items():
                scores.setdefault(at[1], {}).setdefault(name, []).append(value)
    return {
        keep: {name: round(float(np.mean(values)), 4) for name, values in of.items()} for keep, of in scores.items()
    }


def validation(data: ClipSet, runs: Path, end: str, device: str) -> dict[str, Any]:
    rows, kinds = data.indices("val"), masks(data)
    loader = Loader(data, rows, frames=8, size=64, batch=64, augment="none", device=device, order="sequential")
    clips = torch.cat([batch.video[:, 0] for batch in loader.views("1x1")])
    found = {}
    for mode in MODES | ABLATIONS:
        seeds = {}
        for seed in SEEDS:
            folder = runs / f"train-{mode}{end}-{seed}" / "checkpoint"
            if folder.is_dir():
                network = read_network(find(str(folder))).to(device).eval()
                seeds[str(seed)] = against_truth(network, clips, [kinds[row] for row in rows])
        if seeds:
            found[mode] = {"truth": seeds, "judged": judged(runs / f"{mode}{end}")}
            print(mode, {share: [round(mean(seeds, share, name), 3) for name in TRUTHS] for share in map(str, SHARES)})
    return found


def mean(seeds: dict[str, Any], share: str, name: str) -> float:
    return float(np.mean([one[share][name] for one in seeds.values()]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--rho", default="0")
    parser.add_argument("--world", type=int, default=0)
    options = parser.parse_args()
    end = f"-rho{options.rho}" + (f"-world{options.world}" if options.world else "")
    data = load_data(f"puppets:rho={options.rho}", frames=8, size=64, seed=options.world)
    found = validation(data, options.runs, end, "cuda" if torch.cuda.is_available() else "cpu")
    if not found:
        raise SystemExit(f"no training of the table is finished in {options.runs}")
    file = RESULTS / f"validation{end}.json"
    file.write_text(json.dumps(found, indent=1) + "\n")
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
