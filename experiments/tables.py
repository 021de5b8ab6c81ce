"""The tables of the README, drawn from committed results.

    python benchmarks/readme_table.py

prints them; made with: video_speed.py --sizes 720p, --sizes 1080p --seconds 4; guard.py --takes 1 --rounds 2
"""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    rows: dict[str, list[str]] = {}
    for size in ("720p", "1080p"):
        report = json.loads((RESULTS / f"video_speed_{size}.json").read_text("utf-8"))
        for found in report["ratios"]:
            rows.setdefault(f"`{found['method']}` / `{found['against']}`", []).append(f"{found['median']:.2f}")
    print("| vidveil / ffmpeg's filter | 720p | 1080p |\n|---|---|---|")
    for name, ratios in rows.items():
        print(f"| {name} | {' | '.join(ratios)} |")
    memory = json.loads((RESULTS / "video_memory.json").read_text("utf-8"))["memory"][0]
    print(f"\nPeak memory at 720p, one minute and ten: {memory['peak_mb']} MB")
    guard = json.loads((RESULTS / "guard.json").read_text("utf-8"))
    print(f"\n{_faces(guard)}\n\n{_speed(guard)}\n\n{_people(guard)}")


def _faces(guard: dict[str, Any]) -> str:
    ours, theirs = guard["clips"]["vidveil"], guard["clips"]["deface"]
    lines = ["| size of the face | face-frames | vidveil | deface |", "|---|---|---|---|"]
    for band in [*ours["bands"], "all"]:
        mine, other = (side["all"] if band == "all" else side["bands"][band] for side in (ours, theirs))
        if mine["face_frames"]:
            name = "all" if band == "all" else f"{band} px"
            shares = [f"{row['recall']:.1%} ({row['uncovered']} uncovered)" for row in (mine, other)]
            lines.append(f"| {name} | {mine['face_frames']} | {' | '.join(shares)} |")
    glimpses = guard["clips"]["glimpses"]
    shares = [f"{row['recall']:.1%}" for row in glimpses.values()]
    lines.append(f"| shows for 1 to 5 frames | {glimpses['vidveil']['face_frames']} | {' | '.join(shares)} |")
    areas = [f"{side['false_area']:.2%}" for side in (ours, theirs)]
    return "\n".join([*lines, f"| picture hidden next to heads | | {' | '.join(areas)} |"])


def _speed(guard: dict[str, Any]) -> str:
    lines = ["| clip, 720p | vidveil | deface, onnxrt | deface, opencv | faster backend's time by vidveil's |"]
    lines.append("|---|---|---|---|---|")
    rows = [row for row in guard["speed"]["rows"] if row["clip"] != "startup"]
    for clip in dict.fromkeys(row["clip"] for row in rows):
        found = {row["tool"]: row for row in rows if row["clip"] == clip}
        fps = [f"{found[tool]['fps']:.1f} fps" for tool in ("vidveil", "deface onnxrt", "deface opencv")]
        times = min(row["times_slower_than_vidveil"] for row in found.values() if "times_slower_than_vidveil" in row)
        lines.append(f"| {clip} | {' | '.join(fps)} | {times:.1f} |")
    return "\n".join(lines)


def _people(guard: dict[str, Any]) -> str:
    found = guard["people"]
    bands = [f"{band} px: {covered} of {count}" for band, (covered, count) in found["bands"].items() if count]
    return f"people, by height: {', '.join(bands)}; hidden next to people: {found['false_area']:.2%}"


if __name__ == "__main__":
    main()
