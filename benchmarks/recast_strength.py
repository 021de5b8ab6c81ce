"""How far figures should be turned: what small trained networks still tell of them, by how far they may be.

    python benchmarks/recast_strength.py --data FOLDER figure:14 recast:14,25 recast:14,40   two cores, minutes each
    python benchmarks/recast_strength.py --page                                              what is known, as Markdown

Five classes of UCF101, cut to the person. Groups 1 to 21 teach, groups 22 to 25 are asked: these are in the test part
of no split, so nothing is chosen by how test people are told. The networks see means of 14 × 14 blocks,
32 frames, every second one, and learn from nothing, once a seed:

    top-1      the action
    linkage    rank-1 within the class by a network that was taught to tell the groups that teach apart: by cosine,
               whitened or in their discriminants, whichever is highest

All networks learn from views that are turned further (`augment: turn`): who trains on figures that were turned by lot
would do so. Two seeds.
"""

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.errors import VidveilError
from vidveil.data import load_data
from vidveil.data.clips import ClipSet
from vidveil.data.crops import person_crops
from vidveil.data.views import DRAWS, turned
from vidveil.methods import load
from vidveil.statistics.linkage import LinkageSetup, Rule, rank
from vidveil.statistics.projections import lda, whitening

Coarse = NDArray[np.uint8]
"""(T, SIDE, SIDE)"""

RESULTS = Path(__file__).parent / "results" / "recast_strength.json"
SIDE, FRAMES, STRIDE = 14, 32, 2
ASKED = 22  # the first group that is asked
BATCH, EPOCHS, RATE, DECAY, SMOOTHING = 32, 30, 3e-3, 0.05, 0.1
VIEWS = 3  # in time; each also mirrored


class Small(nn.Module):
    """(B, T, SIDE, SIDE) in [0, 1] → what `outputs` classes get."""

    def __init__(self, outputs: int, width: int = 24) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        shape = [(1, width, 1), (width, width, 2), (width, 2 * width, 1), (2 * width, 2 * width, 2)]
        for inputs, made, stride in [*shape, (2 * width, 4 * width, 2)]:
            convolution = nn.Conv3d(inputs, made, 3, stride, 1, bias=False)
            layers += [convolution, nn.BatchNorm3d(made), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(4 * width, outputs))

    def embed(self, clip: Tensor) -> Tensor:
        seen: Tensor = self.body(clip[:, None] - 0.1).mean((2, 3, 4))
        return seen


def coarse(data: ClipSet, row: int, method: str) -> Coarse:
    cv2.setNumThreads(1)
    clip = torch.from_numpy(np.array(data.videos.frames(row))).movedim(-1, 0).float() / 255
    shown = load(method).anonymize(clip).video.mean(0).numpy()
    return np.stack([cv2.resize(255 * one, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for one in shown]).astype(
        np.uint8
    )


def cut(clip: Coarse, start: int, *, mirrored: bool) -> Tensor:
    picks = np.minimum(start + STRIDE * np.arange(FRAMES), len(clip) - 1)
    view = clip[picks, :, ::-1] if mirrored else clip[picks]
    return torch.from_numpy(view.astype(np.float32) / 255)


def batches(clips: list[Coarse], rows: NDArray[np.int64], seed: int) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
    """Of all epochs."""
    lots = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        order = lots.permutation(rows)
        for first in range(0, len(rows) - BATCH + 1, BATCH):
            some = order[first : first + BATCH]
            starts = [int(lots.integers(0, max(1, len(clips[i]) - STRIDE * FRAMES + 1))) for i in some]
            views = torch.stack([cut(clips[i], at, mirrored=False) for i, at in zip(some, starts, strict=True)])
            numbers = lots.random((BATCH, DRAWS))
            yield some, turned(views[:, None], numbers, numbers[:, 5] < 0.5)[:, 0]


def taught(clips: list[Coarse], rows: NDArray[np.int64], labels: NDArray[np.int64], seed: int) -> Small:
    torch.manual_seed(seed)
    network = Small(int(labels.max()) + 1)
    steps = EPOCHS * (len(rows) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps)
    for some, views in batches(clips, rows, seed):
        told = network.head(network.embed(views))
        optimizer.zero_grad()
        F.cross_entropy(told, torch.from_numpy(labels[some]), label_smoothing=SMOOTHING).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return network.eval()


@torch.no_grad()
def looked(network: Small, clips: list[Coarse], rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Embeddings and guesses, over all views of each."""
    embedded, guessed = [], []
    for row in rows:
        starts = np.linspace(0, max(0, len(clips[row]) - STRIDE * FRAMES), VIEWS).astype(int)
        seen = network.embed(torch.stack([cut(clips[row], s, mirrored=m) for s in starts for m in (False, True)]))
        embedded.append(seen.mean(0).numpy())
        guessed.append(int(network.head(seen).softmax(1).mean(0).argmax()))
    return np.stack(embedded), np.array(guessed)


class Labels(NamedTuple):
    action: NDArray[np.int64]
    person: NDArray[np.int64]
    group: NDArray[np.int64]
    rule: Rule


def judged(about: Labels, clips: list[Coarse], seed: int) -> dict[str, float]:
    torch.set_num_threads(1)
    teach, asked = np.flatnonzero(about.group < ASKED), np.flatnonzero(about.group >= ASKED)
    _, guessed = looked(taught(clips, teach, about.action, seed), clips, asked)
    people = np.full(len(clips), -1)
    people[teach] = np.unique(about.person[teach], return_inverse=True)[1]
    attacker = taught(clips, teach, people, seed)
    known, sought = (looked(attacker, clips, rows)[0] for rows in (teach, asked))
    spaces = {"cosine": sought - known.mean(0), "whitened": whitening(known)(sought)}
    spaces["LDA"] = lda(known, about.person[teach])(sought)
    setup = LinkageSetup(person=about.person[asked], rule=about.rule, action=about.action[asked])
    found = {name: rank(space, setup, precision=False) for name, space in spaces.items()}
    return {
        "top1": float((guessed == about.action[asked]).mean()),
        "linkage": max(one.rank1 for one in found.values()),
        "chance": found["cosine"].floor,
        "clips": len(asked),
    }


def measured(data: ClipSet, method: str, seeds: int, workers: int) -> list[dict[str, float]]:
    with ThreadPoolExecutor(workers) as threads:
        clips = list(threads.map(lambda row: coarse(data, row, method), range(len(data))))
    groups = np.array([int(str(group).rpartition("g")[2]) for group in data.group])
    about = Labels(data.action, data.person, groups, data.gallery)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return list(pool.map(judged, [about] * seeds, [clips] * seeds, range(seeds)))


def page(found: dict[str, list[dict[str, float]]]) -> str:
    lines = ["| method | top-1 | linkage | of each seed |", "|---|---|---|---|"]
    for method, seeds in found.items():
        means = [float(np.mean([one[key] for one in seeds])) for key in ("top1", "linkage")]
        each = ", ".join(f"{one['top1']:.2f} / {one['linkage']:.2f}" for one in seeds)
        lines.append(f"| `{method}` | {means[0]:.2f} | {means[1]:.2f} | {each} |")
    first = next(iter(found.values()))[0]
    return "\n".join([*lines, "", f"{first['clips']} clips; linkage by chance is {first['chance']:.2f}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", help="figure:14, recast:14,40; those that are known are not done again")
    parser.add_argument("--data", type=Path, help="folder that has ucf101_5")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file that they are kept in")
    parser.add_argument("--page", action="store_true", help="what is known, as Markdown")
    options = parser.parse_args()
    if not options.methods and not options.page:
        parser.error("say a method, or --page")
    try:
        go(options)
    except VidveilError as error:
        raise SystemExit(f"error: {error}") from error


def go(options: argparse.Namespace) -> None:
    found = json.loads(options.results.read_text(encoding="utf-8")) if options.results.is_file() else {}
    missing = [method for method in options.methods if method not in found]
    for method in missing:
        load(method)  # one that does not exist is told now
    if missing:
        data = person_crops(load_data("ucf101_5", frames=16, size=128, root=options.data))
        for method in missing:
            found[method] = measured(data, method, options.seeds, options.workers)
            part = options.results.with_name(f".{options.results.name}.part")
            part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            part.replace(options.results)
            print(page({method: found[method]}).splitlines()[2], flush=True)
    if options.page:
        print(page(found) if found else f"nothing is known yet in {options.results}")


if __name__ == "__main__":
    main()
