"""deface as it is, with what it hides written down. Runs in deface's own environment, not in vidveil's.

    python deface_driver.py CLIP.mp4 TRACKS.jsonl [options of deface]

Nothing of deface is changed: its drawing function is called as ever, and where it was called is noted. deface draws
`skimage.draw.ellipse` of radii h // 2 and w // 2 about the pixel (h // 2, w // 2) of a box cut at the picture's edges.
Written as a box whose inscribed ellipse contains the centres of just those pixels.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any


def drawn(x1: int, y1: int, x2: int, y2: int) -> list[float]:
    return [x1 + 0.5, y1 + 0.5, x1 + 0.5 + (x2 - x1) // 2 * 2, y1 + 0.5 + (y2 - y1) // 2 * 2]


def main() -> None:
    clip, target, *options = sys.argv[1:]
    deface: Any = importlib.import_module("deface.deface")
    draw, anonymize = deface.draw_det, deface.anonymize_frame
    lines: list[dict[str, Any]] = []
    frames: list[tuple[int, int]] = []

    def watched_draw(frame: Any, score: Any, number: int, x1: int, y1: int, x2: int, y2: int, **look: Any) -> Any:
        box = drawn(int(x1), int(y1), int(x2), int(y2))
        if not (look["ellipse"] and look["replacewith"] == "blur"):
            raise SystemExit("only deface's own way of hiding is understood here: ellipses, blurred")
        line = {"frame": len(frames), "track": number, "kind": "faces", "box": box, "shape": "ellipse"}
        lines.append({**line, "score": round(float(score), 3), "source": "detected"})
        return draw(frame, score, number, x1, y1, x2, y2, **look)

    def watched_anonymize(dets: Any, frame: Any, *rest: Any, **look: Any) -> Any:
        result = anonymize(dets, frame, *rest, **look)
        frames.append((frame.shape[1], frame.shape[0]))
        return result

    deface.draw_det, deface.anonymize_frame = watched_draw, watched_anonymize
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["deface", clip, "-o", str(Path(folder) / "out.mp4"), *options]
        deface.main()
    width, height = frames[0]
    header = {"tracks": 1, "width": width, "height": height, "frames": len(frames), "pixels": "centres"}
    part = Path(target + ".part")
    part.write_text("".join(json.dumps(line) + "\n" for line in [header, *lines]), "utf-8")
    part.replace(target)


if __name__ == "__main__":
    main()
