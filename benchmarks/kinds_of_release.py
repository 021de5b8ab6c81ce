"""What is left of who it is in real video, by the kind of picture that is shown.

    python benchmarks/kinds_of_release.py --data FOLDER               five classes of UCF101, split 1, two cores

Masks leave raw pixels, and on real video those identify (docs/methods/dual_cls.md). Would motion alone do so, too? Each
kind makes something else out of the same clips; a frozen Kinetics I3D looks at it (the middle 16 frames at 112 × 112),
and nothing but linear maps is learned on what it sees:

    use        nearest class in the discriminants of the actions of training clips
    linkage    rank-1 within the class, by cosine, whitened, or in the discriminants of training people: by what is best
               on validation people

Frozen networks are weak judges of pictures like these, so both numbers are lower bounds: what is linked here, a trained
attacker links, too. Features are kept under --work, and found again.
"""

import argparse
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from vidveil.data import load_data
from vidveil.data.clips import ClipSet
from vidveil.data.views import even_picks
from vidveil.evaluation.measures.measure import choose
from vidveil.methods import load
from vidveil.models.recognizers import build
from vidveil.models.recognizers.recognizer import Recognizer
from vidveil.statistics.intervals import Resamples
from vidveil.statistics.linkage import LinkageSetup, rank
from vidveil.statistics.projections import lda, whitening

Floats = NDArray[np.floating[Any]]
Video = NDArray[np.uint8]
"""(T, S, S, 3)"""

RESULTS = Path(__file__).parent / "results" / "kinds_of_release.json"
FRAMES, SIZE = 16, 112
TUBELET = 16
BATCH = 16
CHANGED = 8  # grey levels between two frames that count as motion
COARSE = 14  # pixels a side
GREY = np.array([0.299, 0.587, 0.114], np.float32)


def motion(clip: Video, *, held: bool = False) -> Floats:
    """By how many grey levels each pixel differs from the frame before, after a slight blur against noise. (T, S, S)

    Args:
        held: the frame before is first shifted as the whole picture was, so that a camera that pans shows no walls.
    """
    grey = np.stack([cv2.GaussianBlur(frame @ GREY, (0, 0), 1) for frame in clip.astype(np.float32)])
    before = np.stack([_shifted(*pair) for pair in pairwise(grey)]) if held else grey[:-1]
    changes: Floats = np.abs(grey[1:] - before)
    return np.concatenate([changes[:1], changes])


def _shifted(before: Floats, after: Floats) -> Floats:
    """The picture before, where it would be had only the camera moved. What comes in at the edge is that of after."""
    (x, y), _ = cv2.phaseCorrelate(before, after, cv2.createHanningWindow((SIZE, SIZE), cv2.CV_32F))
    to = np.array([[1, 0, x], [0, 1, y]], np.float32)
    moved = cv2.warpAffine(before, to, (SIZE, SIZE), borderValue=-1)
    return np.where(moved < 0, after, moved)


def shown(changes: Floats) -> Floats:
    """As bright in every clip: how much somebody moves, and how much light there is, is not told. (T, S, S)"""
    return np.clip(255 * changes / (np.quantile(changes, 0.98) + 1e-3), 0, 255)


def coarse(pictures: Floats, side: int = COARSE) -> Floats:
    """So many pixels a side, drawn at the old size. (T, S, S)"""
    small = [cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA) for picture in pictures]
    return np.stack([cv2.resize(picture, (SIZE, SIZE), interpolation=cv2.INTER_NEAREST) for picture in small])


def tubelets(values: Floats) -> Floats:
    """The mean of each tubelet of 2 × 16 × 16, at each of its pixels. (T, S, S)"""
    cells = values.reshape(FRAMES // 2, 2, SIZE // TUBELET, TUBELET, SIZE // TUBELET, TUBELET)
    means: Floats = cells.mean(axis=(1, 3, 5), keepdims=True)
    return np.broadcast_to(means, cells.shape).reshape(values.shape)


def masked(clip: Video, score: Floats, share: float) -> Floats:
    """The tubelets with the highest scores, as they were filmed, the others black. (T, S, S, 3)"""
    kept = score >= np.quantile(score, 1 - share)
    return clip.astype(np.float32) * kept[..., None]


def framed(pictures: Floats | Video, changes: Floats) -> Floats:
    """What moves, in the middle and at one size, wherever it was in the picture. (T, S, S[, 3])"""
    where = (changes > CHANGED).sum(axis=0).astype(np.float64) + 1e-6
    places = np.arange(SIZE)
    across, along = where.sum(axis=0) / where.sum(), where.sum(axis=1) / where.sum()
    x, y = float(across @ places), float(along @ places)
    half = 2.2 * float(np.sqrt(max(across @ (places - x) ** 2, along @ (places - y) ** 2, 25.0)))
    to = np.array([[SIZE / (2 * half), 0, SIZE / 2 - x * SIZE / (2 * half)]] * 2, np.float32)
    to[1] = [0, SIZE / (2 * half), SIZE / 2 - y * SIZE / (2 * half)]
    return np.stack([cv2.warpAffine(picture.astype(np.float32), to, (SIZE, SIZE)) for picture in pictures])


def lots(clip: Video, share: float) -> Floats:
    """Tubelets by lot, the same ones for the same clip."""
    draws = np.random.default_rng(int(clip.sum())).random((FRAMES // 2, SIZE // TUBELET, SIZE // TUBELET))
    score = draws.repeat(2, 0).repeat(TUBELET, 1).repeat(TUBELET, 2)
    return masked(clip, score, share)


def by_method(clip: Video, spec: str) -> Floats:
    """What a method of `vidveil ls methods` leaves. (T, S, S, 3)"""
    given = torch.from_numpy(clip).permute(3, 0, 1, 2).float() / 255
    left: Floats = 255 * load(spec).anonymize(given).video.permute(1, 2, 3, 0).numpy()
    return left


KINDS: dict[str, Callable[[Video], Floats]] = {
    "raw": lambda clip: clip.astype(np.float32),
    "lots, 0.25 of all tubelets": lambda clip: lots(clip, 0.25),
    "most-moving tubelets, 0.15": lambda clip: masked(clip, tubelets(motion(clip)), 0.15),
    "motion": lambda clip: shown(motion(clip)),
    "motion, black and white": lambda clip: 255.0 * (motion(clip) > CHANGED),
    "motion, 14 × 14": lambda clip: coarse(shown(motion(clip))),
    "motion, one number a tubelet": lambda clip: shown(tubelets(motion(clip))),
    "raw, what moves in the middle": lambda clip: framed(clip, motion(clip)),
    "motion in the middle": lambda clip: framed(shown(motion(clip)), motion(clip)),
    "motion in the middle, 14 × 14": lambda clip: coarse(framed(shown(motion(clip)), motion(clip))),
    "motion, camera held still": lambda clip: shown(motion(clip, held=True)),
    "motion in the middle, camera held still, 14 × 14": lambda clip: coarse(
        framed(shown(motion(clip, held=True)), motion(clip, held=True))
    ),
    "--method motion": lambda clip: by_method(clip, "motion"),
    "--method motion:16": lambda clip: by_method(clip, "motion:16"),
    "--method figure:14": lambda clip: by_method(clip, "figure:14"),
    "--method figure:8": lambda clip: by_method(clip, "figure:8"),
}


def middle(video: Video) -> Video:
    """The middle square of the middle frames."""
    frames = video[even_picks(len(video), FRAMES, 1, 1)[0]]
    height, width = frames.shape[1:3]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = frames[:, top : top + side, left : left + side]
    return np.stack([cv2.resize(frame, (SIZE, SIZE), interpolation=cv2.INTER_AREA) for frame in square])


@torch.inference_mode()
def features(data: ClipSet, network: Recognizer, kind: Callable[[Video], Floats]) -> Floats:
    """(N, D)"""
    found = []
    for start in range(0, len(data), BATCH):
        pictures = []
        for row in range(start, min(start + BATCH, len(data))):
            made = np.asarray(kind(middle(np.asarray(data.videos.frames(row)))), np.float32)
            pictures.append(made if made.ndim == 4 else np.repeat(made[..., None], 3, axis=-1))
        clips = torch.from_numpy(np.stack(pictures)).permute(0, 4, 1, 2, 3) / 255
        found.append(network(clips).numpy())
    return np.concatenate(found)


def judged(data: ClipSet, seen: Floats) -> dict[str, Any]:
    """Use and linkage on test clips, with intervals over people."""
    train, test = data.indices("train"), data.indices("test")
    told = lda(seen[train], data.action[train])
    means = np.stack([told(seen[train][data.action[train] == a]).mean(axis=0) for a in range(len(data.actions))])
    nearest = np.linalg.norm(told(seen[test])[:, None] - means, axis=-1).argmin(axis=1)
    spaces: dict[str, Callable[[Floats], Floats]] = {
        "cosine": lambda x: x - seen[train].mean(axis=0),
        "whitened": whitening(seen[train]),
        "LDA": lda(seen[train], data.person[train]),
    }
    linked = {}
    for split in ("val", "test"):
        rows = data.indices(split)
        setup = LinkageSetup(person=data.person[rows], rule=data.gallery, action=data.action[rows])
        linked[split] = {name: rank(to(seen[rows]), setup, precision=False) for name, to in spaces.items()}
    best = choose({name: one.rank1 for name, one in linked["val"].items()}, "linkage")
    draws = Resamples(data.person[test])
    use, linkage = draws.mean(nearest == data.action[test]), draws.mean(linked["test"][best].hit)
    return {
        "use": _told(use.value, use.interval),
        "linkage": _told(linkage.value, linkage.interval) | {"floor": round(linked["test"][best].floor, 4), "by": best},
        "spaces": {name: round(one.rank1, 4) for name, one in linked["test"].items()},
    }


def _told(value: float, interval: tuple[float, float]) -> dict[str, Any]:
    return {"value": round(value, 4), "interval": [round(end, 4) for end in interval]}


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--data", type=Path, required=True, help="folder that holds ucf101_5")
    about.add_argument("--work", type=Path, default=Path("runs/kinds_of_release"), help="where features are kept")
    about.add_argument("--fresh", action="store_true", help="look again, after a kind or the data has changed")
    about.add_argument("--out", type=Path, default=RESULTS)
    given = about.parse_args()
    data = load_data("ucf101_5:1", frames=FRAMES, size=SIZE, root=given.data)
    network = build("i3d", frames=FRAMES, size=SIZE, pretrained=True).eval()
    given.work.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name, kind in KINDS.items():
        file = given.work / f"{re.sub('[^a-z0-9]+', '-', name).strip('-')}.npy"
        if given.fresh or not file.is_file():
            np.save(file, features(data, network, kind))
        results[name] = judged(data, np.load(file))
        use, linkage = results[name]["use"], results[name]["linkage"]
        print(
            f"{name:48} use {use['value']:.3f} {use['interval']}  linkage {linkage['value']:.3f} {linkage['interval']}"
        )
    whole = {"data": data.name, "clips": len(data), "frames": FRAMES, "size": SIZE, "kinds": results}
    given.out.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
