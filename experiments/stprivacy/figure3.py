"""STPrivacy's figure 3: a clip as filmed, after dropping tubelets, and as the network draws it.

    python -m experiments.stprivacy.figure3 stprivacy_puppets                     synthetic people
    python -m experiments.stprivacy.figure3 RUN walk.mp4 jump.mp4 -o figure3.png  videos
    python -m experiments.stprivacy.figure3 RUN walk.mp4 --alpha 0.9              keeping more

Three rows per clip, six frames each, at the size that the network sees. The first row is the original video: do not
share it.
"""

import argparse
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.core.errors import InputError, VidveilError
from vidveil.data import load_data
from vidveil.methods.stprivacy.anonymizer import read_network
from vidveil.methods.stprivacy.model import STPrivacy
from vidveil.models.checkpoint import find
from vidveil.models.layers.tubelets import over_pixels

Picture = NDArray[np.uint8]
COLUMNS, GAP, MARGIN = 6, 3, 9
CLIPS = 4  # of synthetic people


def of_video(path: Path, network: STPrivacy) -> Tensor:
    """(3, T, H, W) in [0, 1]: a window from the middle, squashed to the network's square."""
    if not path.is_file():
        raise InputError(f"there is no video {path}")
    capture = cv2.VideoCapture(str(path))
    pictures = []
    while (read := capture.read())[0]:
        square = cv2.resize(read[1], (network.size, network.size), interpolation=cv2.INTER_AREA)
        pictures.append(cv2.cvtColor(square, cv2.COLOR_BGR2RGB))
    if not pictures:
        raise InputError(f"{path} has no picture that can be read")
    span = (network.frames - 1) * network.stride + 1
    first = max(0, (len(pictures) - span) // 2)
    picks = np.minimum(first + network.stride * np.arange(network.frames), len(pictures) - 1)
    return torch.from_numpy(np.stack([pictures[i] for i in picks])).movedim(3, 0).float() / 255


def built_in(network: STPrivacy) -> list[Tensor]:
    """Clips of test people, one per action."""
    data = load_data("puppets", frames=network.frames, size=network.size)
    tested = data.indices("test")
    firsts = [tested[data.action[tested] == action][0] for action in range(CLIPS)]
    return [torch.from_numpy(np.array(data.videos.frames(row))).movedim(3, 0).float() / 255 for row in firsts]


def rows_of(clip: Tensor, network: STPrivacy, alpha: float | None) -> Picture:
    """Three rows of pictures: filmed, sparsified, drawn."""
    drawn, kept, _ = network.draw(clip[None], alpha)
    mask = over_pixels(kept[0].float(), network.tubelet)  # (T, H, W)
    times = np.linspace(0, network.frames - 1, COLUMNS).round().astype(int)
    return np.concatenate([in_a_row(each, times) for each in (clip, clip * mask, drawn[0])])


def in_a_row(clip: Tensor, times: NDArray[np.int64]) -> Picture:
    """(3, T, H, W) → its frames in one row, (H, W, 3), with gaps."""
    frames = (clip[:, times].movedim(0, 3) * 255).round().to(torch.uint8).numpy()
    spaced = np.pad(frames, ((0, 0), (0, GAP), (0, GAP), (0, 0)), constant_values=255)
    return np.concatenate(list(spaced), axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a finished run of `vidveil train`, or the folder of a checkpoint")
    parser.add_argument("videos", nargs="*", type=Path, help="none: synthetic people")
    parser.add_argument("--alpha", type=float, help="share that each stage keeps; by default, as trained")
    parser.add_argument("-o", type=Path, default=Path("figure3.png"))
    options = parser.parse_args()
    try:
        network = read_network(find(options.run))
        clips = [of_video(path, network) for path in options.videos] or built_in(network)
        parts = [np.pad(rows_of(clip, network, options.alpha), ((0, MARGIN), (0, MARGIN), (0, 0)), constant_values=255)
                 for clip in clips]  # fmt: skip
    except VidveilError as error:
        raise SystemExit(f"error: {error}") from error
    if len(parts) % 2 and len(parts) > 1:
        parts.append(np.full_like(parts[0], 255))
    pairs = [np.concatenate(parts[i : i + 2], axis=1) for i in range(0, len(parts), 2)]
    if not cv2.imwrite(str(options.o), cv2.cvtColor(np.concatenate(pairs), cv2.COLOR_RGB2BGR)):
        raise SystemExit(f"error: {options.o} cannot be written")
    print(f"{options.o}: {len(clips)} clips")


if __name__ == "__main__":
    main()
