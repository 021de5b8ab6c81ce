"""Pictures that were reconstructed from features, next to those that were filmed, as one PNG for people."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill

import numpy as np
import torch
from torch import Tensor

from vidveil.core.atomic import new_file
from vidveil.core.errors import OutputError
from vidveil.data.features.sets import FeatureSet
from vidveil.evaluation.attacks.reconstruction import of_video, psnr

SHOWN, GREY = 8, "#6b6b6b"  # videos, and the ink of decibels


def sheet(data: FeatureSet, reconstructions: Mapping[str, Tensor], path: Path) -> None:
    """Write it: the filmed pictures in the first row, then a row for each of `reconstructions`, pictures
    (N, 3, SIDE, SIDE) of the middle clips of test videos. It shows people, so it is as confidential as the set."""
    from matplotlib.figure import Figure  # slow to import; no window and no global state this way

    labels, test = data.labels, data.labels.indices("test")
    chosen = np.unique(np.linspace(0, len(test) - 1, SHOWN).astype(np.int64))
    clips = [of_video(data, row) for row in test[chosen].tolist()]
    filmed = torch.stack([these[len(these) // 2] for these in clips])  # the middle clip, as `Vectors.even` has it
    rows = {"what was filmed": filmed} | {name: these.cpu()[chosen] for name, these in reconstructions.items()}
    figure = Figure(figsize=(1.6 + 1.1 * len(chosen), 0.3 + 1.25 * len(rows)), dpi=150, layout="constrained")
    axes = figure.subplots(len(rows), len(chosen), squeeze=False)
    for line, (name, these) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(fill(name, 16), rotation=0, ha="right", va="center", fontsize=8, labelpad=6)
        for axis, picture, near in zip(line, these, psnr(these, filmed).tolist(), strict=True):
            axis.imshow(picture.permute(1, 2, 0).numpy(), vmin=0, vmax=1, interpolation="nearest")
            axis.set(xticks=[], yticks=[], xlabel="" if these is filmed else f"{near:.1f} dB")
            axis.xaxis.label.set(fontsize=7, color=GREY)
            axis.spines[:].set_visible(False)
    for axis, action in zip(axes[0], labels.action[test[chosen]].tolist(), strict=True):
        axis.set_title(labels.actions[action][:20] if action >= 0 else "", fontsize=8)
    try:
        with new_file(path) as file:
            figure.savefig(file, format="png")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
