"""Tables of speed and detection (benchmarks/results), and of what raw video leaks (raw_video/results)."""

from pathlib import Path
from typing import Any

from experiments.job_queue import read_json
from experiments.markdown import table
from vidveil.evaluation.results import Metric
from vidveil.evaluation.results import read as read_results

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
RAW = Path(__file__).parent / "raw_video" / "results"
SETS = {
    "puppets, small networks": "raw_puppets.json",
    "puppets, full size": "raw_puppets_large.json",
    "five classes of UCF101": "raw_ucf101_5.json",
}
PARTS = {
    "everything": "linkage_rank1",
    "one frame": "one_frame_rank1",
    "motion alone": "motion_rank1",
    "the true mask alone": "mask_rank1",
    "the place alone": "background_rank1",
}
"""What an attacker sees → its metric."""
EXPORTED = {
    "PyTorch, all 12 blocks": "whole",
    "PyTorch, up to the last selection": "mask",
    "ONNX Runtime": "ONNX Runtime",
    "OpenVINO": "OpenVINO",
    "OpenVINO, 8 bits": "OpenVINO int8",
}
VARIANTS = {
    "anonymizer_speed.json": {
        "all 12 blocks, CUDA graphs": "full 16 rows graphs",
        "all 12 blocks": "full 16 rows",
        "training, CUDA graphs": "train 16 rows graphs",
        "training": "train 16 rows",
    },
    "anonymizer_speed_mask.json": {
        "up to the last selection, CUDA graphs": "mask 16 rows graphs",
        "all 12 blocks, CUDA graphs": "full 16 rows graphs",
    },
}
"""File → title → name of a variant in it."""


def raw_video() -> str:
    rows = []
    for title, file in SETS.items():
        results = read_results(RAW / file)
        metrics, device = results.raw.metrics, str(results.machine["device"])
        cells = [f"{_value(metrics[key])}, floor {metrics[key].floor:.2f}"
                 for key in ("action_top1", "linkage_rank1", "cmap")]  # fmt: skip
        machine = f"{results.machine['cores']} cores" if device == "cpu" else device
        rows.append([title, *cells, f"{len(metrics['action_top1'].seeds)}, {machine}"])
    return table(["raw video", "action, top-1", "linkage, rank-1", "attributes, cMAP", "seeds, machine"], rows)


def puppets_leaks() -> str:
    found: dict[str, Metric] = {}
    for file in ("raw_puppets.json", "puppets_leaks.json"):
        results = read_results(RAW / file)
        found |= {**results.raw.metrics, **results.controls}
    rows = [[title, _value(found[key]), f"{found[key].floor:.3f}"] for title, key in PARTS.items()]
    return table(["what the attacker sees", "linkage, rank-1", "floor"], rows)


def _value(metric: Metric) -> str:
    low, high = metric.interval
    return f"{metric.value:.3f} [{low:.2f}, {high:.2f}]"


def video_speed() -> str:
    rows: dict[str, list[str]] = {}
    for size in ("720p", "1080p"):
        for found in read_json(RESULTS / f"video_speed_{size}.json")["ratios"]:
            rows.setdefault(f"`{found['method']}` / `{found['against']}`", []).append(f"{found['median']:.2f}")
    return table(["vidveil / ffmpeg's filter", "720p", "1080p"], [[name, *ratios] for name, ratios in rows.items()])


def _detection() -> dict[str, Any]:
    found: dict[str, Any] = read_json(RESULTS / "detection.json")
    return found


def faces() -> str:
    clips = _detection()["clips"]
    tools = clips["vidveil"], clips["deface"]
    rows = []
    for band in [*tools[0]["bands"], "all"]:
        counts = [tool["all"] if band == "all" else tool["bands"][band] for tool in tools]
        if counts[0]["face_frames"]:
            shares = [f"{one['recall']:.1%} ({one['uncovered']} uncovered)" for one in counts]
            rows.append([band if band == "all" else f"{band} px", str(counts[0]["face_frames"]), *shares])
    glimpses = clips["glimpses"]
    shares = [f"{one['recall']:.1%}" for one in glimpses.values()]
    rows.append(["visible for 1 to 5 frames", str(glimpses["vidveil"]["face_frames"]), *shares])
    rows.append(["picture hidden next to heads", "", *(f"{tool['false_area']:.2%}" for tool in tools)])
    return table(["size of the face", "face-frames", "vidveil", "deface"], rows)


def detection_speed() -> str:
    tools = ("vidveil", "deface onnxrt", "deface opencv")
    rows = [row for row in _detection()["speed"]["rows"] if row["clip"] != "startup"]
    lines = []
    for clip in dict.fromkeys(row["clip"] for row in rows):
        found = {row["tool"]: row for row in rows if row["clip"] == clip}
        slower = min(row["times_slower_than_vidveil"] for row in found.values() if "times_slower_than_vidveil" in row)
        lines.append([clip, *(f"{found[tool]['fps']:.1f} fps" for tool in tools), f"{slower:.1f}"])
    head = ["clip, 720p", "vidveil", "deface, onnxrt", "deface, opencv", "faster backend's time by vidveil's"]
    return table(head, lines)


def exported_speed() -> str:
    found = read_json(RESULTS / "exported_speed.json")
    rows = [[title, f"{found[name]['ms']:.1f}", f"{found[name]['by_whole']:.2f}", f"{found[name]['alike']:.3f}"]
            for title, name in EXPORTED.items()]  # fmt: skip
    return table(["", "ms per clip", "times as fast as the whole network", "tubelets selected alike"], rows)


def anonymizer_speed(file: str) -> str:
    found = {one["name"]: one for one in read_json(RESULTS / file)["variants"]}
    rows = []
    for title, name in VARIANTS[file].items():
        one = found[name]
        cells = [f"{one['clips_per_s']:.0f}", f"{one['share_of_ceiling']:.2f}", f"{one['peak_gib']:.1f}"]
        rows.append([title, *cells, f"{one['alike']:.3f}" if "alike" in one else ""])
    return table(["", "clips per second", "share of the ceiling", "GiB", "tubelets selected as in float32"], rows)


def training_speed() -> str:
    found = {(row["case"], row["label"]): row for row in read_json(RESULTS / "training_speed_h200.json")}
    rows = []
    for case in dict.fromkeys(case for case, _ in found):
        before, now, compiled = (found.get((case, label)) for label in ("before", "now", "now, compile=true"))
        if before is None or now is None:
            continue
        if "steady_clips_per_s" in now:
            rates = [one["steady_clips_per_s"] if one else None for one in (before, now, compiled)]
            rows.append([case, *(f"{rate:.0f} clips/s" if rate else "" for rate in rates)])
        else:
            rows.append([case, f"{before['seconds']:.0f} s", f"{now['seconds']:.0f} s", ""])
    return table(["", "before", "recorded steps", "recorded, and compiled from the first step on"], rows)


TABLES = {
    "training-speed": training_speed,
    "raw-video": raw_video,
    "puppets-leaks": puppets_leaks,
    "video-speed": video_speed,
    "faces": faces,
    "detection-speed": detection_speed,
    "exported-speed": exported_speed,
    "anonymizer-speed": lambda: anonymizer_speed("anonymizer_speed.json"),
    "anonymizer-speed-mask": lambda: anonymizer_speed("anonymizer_speed_mask.json"),
}
