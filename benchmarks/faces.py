"""Clips with known faces: people on moving clutter, and for every frame where each face is and how much of it shows.

    python benchmarks/faces.py FOLDER --seed 1            all clips of a seed, each a folder with clip.mp4 and truth
    python benchmarks/faces.py FOLDER --seed 1 --sheets   also contact sheets, to look at (not for a repository)

What happens in them is in `scenes.py`, how they are painted in `stage.py`, who plays in `people.py`, `portrait.py` and
`drawn_heads.py`, where they go in `routes.py`. The same seed makes the same clips. Next to clip.mp4 there are

    truth.json   width, height, fps, frames, and for each frame and face: ellipse [x, y, rx, ry, angle], yaw, the share
                 of it that is `visible`, and whether it `counts`: at least 60 % visible and turned by at most 60°
    seen.npz     `seen` (frames, height, width): the number of the face whose ellipse a pixel shows, or 0

A face is listed as long as its head is in the picture, also from behind: what is hidden there is not hidden in vain.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from scenes import PLAYS, clips
from stage import HEIGHT, RATE, WIDTH, Clip, render

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1, help="1: to develop with; 2: to report (1)")
    parser.add_argument("--plays", nargs="*", default=list(PLAYS), choices=list(PLAYS))
    parser.add_argument("--sheets", action="store_true", help="also a picture of some frames, faces outlined")
    options = parser.parse_args()
    for clip in clips(options.seed, options.plays):
        folder = options.folder / clip.name
        if not (folder / "truth.json").exists():
            write(clip, folder)
            print(folder, flush=True)
        if options.sheets:
            sheet(folder, options.folder / f"{clip.name}.png")


def sheet(folder: Path, target: Path, count: int = 12) -> None:
    """Frames of a written clip, its faces outlined: green what counts, red what does not."""
    import av

    truth = json.loads((folder / "truth.json").read_text("utf-8"))
    chosen = {round(i) for i in np.linspace(0, truth["frames"] - 1, count)}
    tiles = []
    with av.open(str(folder / "clip.mp4")) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number not in chosen:
                continue
            picture = frame.to_ndarray(format="bgr24")
            for one in truth["faces"]:
                if one["frame"] == number:
                    x, y, rx, ry, angle = one["ellipse"]
                    colour = (0, 255, 0) if one["counts"] else (0, 0, 255)
                    cv2.ellipse(picture, ((x, y), (2 * rx, 2 * ry), angle), colour, 1, cv2.LINE_AA)
            tiles.append(cv2.resize(picture, (640, 360), interpolation=cv2.INTER_AREA))
    rows = [np.hstack(tiles[i : i + 3]) for i in range(0, len(tiles) // 3 * 3, 3)]
    cv2.imwrite(str(target), np.vstack(rows))


if __name__ == "__main__":
    main()
