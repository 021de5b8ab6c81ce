"""One of several processes that apply a method to the videos of a store: `python -m vidveil.methods.painting_worker
TASK`, see `painting.py`."""

import json
import sys
from contextlib import suppress
from pathlib import Path

import cv2
import torch

from vidveil.data.store.videos import VideoStore
from vidveil.methods import load
from vidveil.methods.painting import painted


def main(task: str) -> None:
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    values = json.loads(task)
    videos = VideoStore.open(Path(values["folder"]))
    if values["without_failed"]:
        videos = videos.without_failed()
    method = load(values["method"])
    for row in range(values["first"], len(videos), values["step"]):
        sys.stdout.buffer.write(painted(method, videos.frames(row)).tobytes())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    with suppress(BrokenPipeError, KeyboardInterrupt):  # nobody reads any more
        main(sys.argv[1])
