"""One of several processes that render a world: `python -m vidveil.data.puppets.worker TASK`, see `build.py`."""

import json
import sys
from contextlib import suppress

import cv2

from vidveil.data.puppets.build import send
from vidveil.data.puppets.plan import rows
from vidveil.data.puppets.render import render
from vidveil.data.puppets.world import World


def main(task: str) -> None:
    cv2.setNumThreads(1)
    values = json.loads(task)
    world = World(**values["world"])
    for index in range(values["first"], len(rows(world)), values["step"]):
        send(sys.stdout.buffer, render(world, index))


if __name__ == "__main__":
    with suppress(BrokenPipeError, KeyboardInterrupt):  # nobody reads any more
        main(sys.argv[1])
