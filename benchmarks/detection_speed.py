"""How long vidveil's detection and deface take for the same clips, in turns: see detection.py."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from clips import copy_packets, draw
from contestants import BACKENDS, Deface, vidveil_command
from video_speed import Contestant, aside, measure, say, table

NAMES = ("drifting_1", "crowd_1")
EMPTY_FRAMES = 90


def sources(folders: Sequence[Path], cache: Path) -> dict[str, Path]:
    """Some of the composed clips, and one without anybody."""
    chosen = [folder for folder in folders if folder.name in NAMES] or list(folders[:1])
    empty = cache / "nobody_720p.mp4"
    if not empty.exists():
        aside(draw, empty, 720, EMPTY_FRAMES)
    return {folder.name: folder / "clip.mp4" for folder in chosen} | {"nobody": empty}


def speed_part(options: argparse.Namespace, deface: Deface, folders: Sequence[Path]) -> dict[str, Any]:
    found = sources(folders, options.cache)
    with tempfile.TemporaryDirectory(prefix="vidveil-bench-") as name:
        folder = Path(name)
        single = folder / "one_frame.mp4"
        aside(copy_packets, next(iter(found.values())), single, 1, 1)
        entered = [(clip, tool) for clip in ("startup", *found) for tool in ("vidveil", *BACKENDS)]
        runs = {}
        for clip, tool in entered:
            source, target = (single if clip == "startup" else found[clip]), folder / "out.mp4"
            command = vidveil_command(source, target) if tool == "vidveil" else deface.command(source, target, tool)
            runs[clip, tool] = Contestant(clip, tool, "", "", "", command)
        for number in range(options.rounds):
            say(f"speed: round {number + 1} of {options.rounds}")
            for run in runs.values():
                (folder / "out.mp4").unlink(missing_ok=True)
                run.rounds.append(measure(run.command, folder / "log.txt"))
                if number == 0:  # a run that wrote too little would look fast
                    run.output_frames = aside(_frames, folder / "out.mp4")
    return report(runs, {clip: aside(_frames, path) for clip, path in found.items()})


def report(runs: dict[tuple[str, str], Contestant], frames: dict[str, int]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for (clip, tool), run in runs.items():
        start = runs["startup", tool].middle("wall_s")
        wall = run.middle("wall_s")
        row: dict[str, Any] = {"clip": clip, "tool": tool if tool == "vidveil" else f"deface {tool}"}
        row |= {"rounds": [{"wall_s": r.wall_s, "cpu_s": r.cpu_s} for r in run.rounds]}
        row |= {key: round(run.middle(key), 3) for key in ("wall_s", "cpu_s")}
        if clip != "startup":
            count = frames[clip]
            row |= {"frames": count, "output_frames": run.output_frames, "fps": round(count / wall, 2)}
            # Where a clip takes hardly longer than one frame, the difference of the two is noise.
            row["fps_alone"] = round((count - 1) / (wall - start), 2) if wall > 1.5 * start else None
            if tool != "vidveil":
                pairs = zip(runs[clip, "vidveil"].rounds, run.rounds, strict=True)
                row["times_slower_than_vidveil"] = round(median(b.wall_s / a.wall_s for a, b in pairs), 3)
        rows.append(row)
    return {"rows": rows}


def speed_table(part: dict[str, Any]) -> str:
    header = ("clip", "tool", "wall s", "fps", "fps alone", "CPU s", "x vidveil's time")
    lines = []
    for row in part["rows"]:
        line = [
            row["clip"],
            row["tool"],
            f"{row['wall_s']:.2f}",
            f"{row.get('fps', '')}",
            f"{row.get('fps_alone') or ''}",
        ]
        line += [f"{row['cpu_s']:.2f}", f"{row.get('times_slower_than_vidveil', '')}"]
        lines.append(line)
    return table(header, lines)


def _frames(path: Path) -> int:
    """Counted, not believed: what a header says is not what was written."""
    import av

    with av.open(str(path)) as container:
        return sum(packet.size > 0 for packet in container.demux(container.streams.video[0]))
