"""The speed table of the README, drawn from committed results.

python benchmarks/readme_table.py          prints it; made with: video_speed.py --sizes 720p, --sizes 1080p --seconds 4
"""

import json
from pathlib import Path

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


if __name__ == "__main__":
    main()
