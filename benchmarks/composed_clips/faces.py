"""Clips with known faces: people on moving clutter, and for every frame where each face is and how much of it shows.

What happens in them is in `scenes.py`, how they are painted in `stage.py`, who plays in `people.py`, `portrait.py` and
`drawn_heads.py`, where they go in `routes.py`. The same seed makes the same clips. Next to clip.mp4 there are

    truth.json   width, height, fps, frames, and for each frame and face: ellipse [x, y, rx, ry, angle], yaw, the share
                 of it that is `visible`, and whether it `counts`: at least 60 % visible and turned by at most 60°
    seen.npz     `seen` (frames, height, width): the number of the face whose ellipse a pixel shows, or 0

A face is listed as long as its head is in the picture, also from behind: what is hidden there is not hidden in vain.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from composed_clips.stage import HEIGHT, RATE, WIDTH, Clip, render

CRF = 20


def write(clip: Clip, folder: Path) -> None:
    """clip.mp4, seen.npz and, last, truth.json: where that is, all is."""
    import av

    folder.mkdir(parents=True, exist_ok=True)
    facts: list[dict[str, Any]] = []
    maps = []
    with av.open(str(folder / "clip.mp4"), "w", format="mp4") as output:
        stream = output.add_stream("libx264", rate=RATE, options={"preset": "veryfast", "crf": str(CRF)})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.thread_count = 1  # x264's result depends on how many there are
        for frame, seen, found in render(clip):
            output.mux(stream.encode(av.VideoFrame.from_ndarray(frame, "rgb24")))
            maps.append(seen)
            facts += [one.as_json() for one in found]
        output.mux(stream.encode(None))
    np.savez_compressed(folder / "seen.npz", seen=np.array(maps))
    about = {"clip": clip.name, "seed": clip.seed, "width": WIDTH, "height": HEIGHT, "fps": RATE, "frames": clip.frames}
    digest = hashlib.sha256((folder / "clip.mp4").read_bytes()).hexdigest()
    (folder / "truth.json").write_text(json.dumps({**about, "sha256": digest, "faces": facts}) + "\n", "utf-8")


def fingerprint() -> str:
    """Of the code that draws: clips of another version are not taken for those of this one."""
    digest = hashlib.sha256()
    for name in ("drawn_heads", "faces", "people", "portrait", "routes", "scenes", "stage"):
        digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
    return digest.hexdigest()[:12]
