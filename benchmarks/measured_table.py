"""Tables of what was measured on raw video, drawn from committed results of `vidveil evaluate`.

    python benchmarks/measured_table.py

The first stands in the README, the second in docs/puppets.md.
"""

from pathlib import Path

from vidveil.evaluation.results import Metric, Results, read

RESULTS = Path(__file__).parent / "results"
SETS = {
    "puppets, small networks": "raw_puppets.json",
    "puppets, full size": "raw_puppets_large.json",
    "five classes of UCF101": "raw_ucf101_5.json",
}
LEFT = {
    "everything": "linkage_rank1",
    "one frame": "one_frame_rank1",
    "motion alone": "motion_rank1",
    "the true mask alone": "mask_rank1",
    "the place alone": "background_rank1",
}


def main() -> None:
    rows = {name: read(RESULTS / file) for name, file in SETS.items() if (RESULTS / file).is_file()}
    print("\n".join(overview(rows)), end="\n\n")
    print("\n".join(leaks(*(read(RESULTS / name) for name in ("raw_puppets.json", "puppets_leaks.json")))))


def overview(rows: dict[str, Results]) -> list[str]:
    lines = [
        "| raw video | action, top-1 | linkage, rank-1 | attributes, cMAP | seeds, machine |",
        "|---|---|---|---|---|",
    ]
    for name, results in rows.items():
        metrics = results.raw.metrics
        seeds, device = len(metrics["action_top1"].seeds), str(results.machine["device"])
        where = f"{results.machine['cores']} cores" if device == "cpu" else device
        told = [_told(metrics[key]) for key in ("action_top1", "linkage_rank1", "cmap")]
        lines.append(f"| {name} | {' | '.join(told)} | {seeds}, {where} |")
    return lines


def leaks(*several: Results) -> list[str]:
    lines = ["| what the attacker sees | linkage, rank-1 | floor |", "|---|---|---|"]
    numbers: dict[str, Metric] = {}
    for results in several:
        numbers |= {**results.raw.metrics, **results.controls}
    for name, key in LEFT.items():
        metric = numbers[key]
        lines.append(f"| {name} | {_value(metric)} | {metric.floor:.3f} |")
    return lines


def _told(metric: Metric) -> str:
    return f"{_value(metric)}, floor {metric.floor:.2f}"


def _value(metric: Metric) -> str:
    low, high = metric.interval
    return f"{metric.value:.3f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
