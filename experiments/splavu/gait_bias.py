"""Gait and bias of features before and after adapters (SPLAVU's tables 7 and 3), in our numbers.

    python benchmarks/gait_bias.py --list       the commands; adapters whose names begin with s- are splavu_table's
    python benchmarks/gait_bias.py --keep       finished runs, into results/gait_bias/
    python benchmarks/gait_bias.py --page       the tables of docs/methods/splavu.md

Three adapters a row, one a seed. Runs are found in VIDVEIL_RUNS, real videos in VIDVEIL_DATA.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "gait_bias"
PAGE = HERE.parent / "docs" / "methods" / "splavu.md"
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Row:
    run: str
    title: str
    adapter: str
    """Without the seed."""
    training: tuple[str, ...] = ()
    """Its command, where `splavu_table` does not make it."""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    recipe: str
    rows: tuple[Row, ...]
    metrics: tuple[str, ...]
    """Those whose change is told, too."""
    head: tuple[str, ...]


BIASED = ("splavu_puppets", "data=puppets:bias_f")
SCOPES = tuple(f"gait_rank1_{scope}_view" for scope in ("same", "cross", "any"))
GAIT_HEAD = ("features", "same view", "change", "cross view", "change", "any view", "change")
TABLES = {
    "gait-casia": Table(
        "gait_features",
        (
            Row("gait_casia_latent", "published losses, each clip by itself", "s-apart-u1"),
            Row("gait_casia_no_latent", "the same without latent consistency", "s-apart-lc0-u1"),
            Row("gait_casia_ours", "ours, 0.75 erased", "s-ours-u1"),
            Row("gait_casia_ours_no_latent", "ours without latent consistency", "s-ours-lc0-u1"),
        ),
        SCOPES,
        GAIT_HEAD,
    ),
    "gait-puppets": Table(
        "gait_features_puppets",
        (
            Row("gait_puppets_published", "published losses, each clip by itself", "s-apart-p"),
            Row("gait_puppets_published_no_latent", "the same without latent consistency", "s-apart-lc0-p"),
            Row("gait_puppets_latent", "ours, 0.75 erased", "s-ours-p"),
            Row("gait_puppets_no_latent", "ours without latent consistency", "s-ours-lc0-p"),
        ),
        SCOPES,
        GAIT_HEAD,
    ),
    "bias": Table(
        "bias_features_puppets",
        (
            Row("bias_puppets_published", "published losses, learned there", "splavu_bias_kept", (*BIASED, "erase=0")),
            Row("bias_puppets", "ours, learned there", "splavu_bias", BIASED),
            Row(
                "bias_puppets_no_latent",
                "ours, learned there without latent consistency",
                "splavu_bias_lc0",
                (*BIASED, "latent_weight=0"),
            ),
            Row("bias_puppets_elsewhere_published", "published losses, learned without the shortcut", "s-apart-p"),
            Row("bias_puppets_elsewhere", "ours, learned without the shortcut", "s-ours-p"),
            Row(
                "bias_puppets_elsewhere_m",
                "turned round: ours, learned without the shortcut",
                "s-ours-p",
                (),
                ("data=puppets:bias_m",),
            ),
        ),
        ("action_top1_shortcut_gap",),
        ("features", "women", "men", "gap", "p", "change of the gap", "top-1 of all"),
    ),
}


def commands() -> list[str]:
    found = []
    for table in TABLES.values():
        for row in table.rows:
            if row.training:
                recipe, *words = row.training
                found += [f"train {recipe} {' '.join(words)} seed={seed} name={row.adapter}-{seed}" for seed in SEEDS]
            seeds = f"seeds=[{','.join(map(str, SEEDS))}]"
            words = [*row.words, f"method=splavu:{row.adapter}-{{seed}}", seeds, f"name={row.run}"]
            found.append(f"evaluate {table.recipe} {' '.join(words)}")
    return [f"vidveil {one}" for one in found]


def keep() -> None:
    from vidveil.training.runs import runs_folder

    RESULTS.mkdir(parents=True, exist_ok=True)
    for table in TABLES.values():
        for row in table.rows:
            file = runs_folder() / row.run / "results.json"
            if file.is_file():
                found = json.loads(file.read_text(encoding="utf-8"))
                (RESULTS / f"{row.run}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


def read(run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{run}.json").read_text(encoding="utf-8"))
    return found


def lines(name: str) -> list[str]:
    """The table in Markdown."""
    table = TABLES[name]
    found = ["| " + " | ".join(table.head) + " |", "|" + "---|" * len(table.head)]
    raw: Any = None
    for row in table.rows:
        results = read(row.run)
        if results["raw"] != raw:  # of another set, or the first
            raw = results["raw"]
            title = "turned round: raw" if "turned round" in row.title else "raw"
            found.append(_line(table, title, raw["metrics"]))
        found.append(_line(table, row.title, results["points"][0]["metrics"]))
    return found


def _line(table: Table, title: str, metrics: dict[str, Any]) -> str:
    cells = [title]
    if "gap" in table.head:
        cells += [_value(metrics[f"action_top1_shortcut_{who}"]) for who in ("f", "m")]
        (of,) = table.metrics
        cells += [_value(metrics[of]), f"{metrics[of]['p']:.3f}", _change(metrics[of])]
        cells.append(f"{metrics['action_top1']['value']:.2f}")
    else:
        cells += [cell for of in table.metrics for cell in (_value(metrics[of]), _change(metrics[of]))]
    return "| " + " | ".join(cells) + " |"


def _value(metric: dict[str, Any]) -> str:
    low, high = metric["interval"]
    return f"{metric['value']:.2f} [{low:.2f}, {high:.2f}]"


def _change(metric: dict[str, Any]) -> str:
    if metric.get("change") is None:
        return ""
    low, high = metric["change_interval"]
    return f"{metric['change']:+.2f} [{low:+.2f}, {high:+.2f}]"


def write(text: str) -> str:
    """The page with its tables as they are now."""
    for name in TABLES:
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = before + begin + "\n".join(lines(name)) + end + rest.split(end)[1]
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the commands")
    parser.add_argument("--keep", action="store_true", help="results of finished runs")
    parser.add_argument("--page", action="store_true", help="the tables of the page")
    options = parser.parse_args()
    if options.keep:
        keep()
    if options.page:
        PAGE.write_text(write(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    if options.list or not (options.keep or options.page):
        print(*commands(), sep="\n")


if __name__ == "__main__":
    main()
