"""`splavu_table.py`'s numbers as a page and as a picture."""

from pathlib import Path
from typing import Any

from experiments.markdown import interval
from experiments.splavu.table import SETTINGS, SHARES, WEIGHTS

TITLES = {
    "puppets": "Built-in people",
    "ucf101_5": "Five classes of UCF101, splits 1 to 3",
    "weizmann": "Weizmann, three folds of three people",
}
WAYS = {"anew": "as it is", "black_box": "black box: by pairs", "white_box": "white box: by the adapter"}
WORDS = """# Features after an adapter

![Curves](results/splavu.png)

What heads and attackers get of features that went through an adapter ([SPLAVU](../docs/methods/splavu.md)), all of them
trained anew on what comes out. `python benchmarks/splavu_table.py --page` writes this page from
[results](results/splavu.json); `--list` says the command of each number, `--only SETTING` runs one again.

- **Features.** Of built-in people by a small encoder that was trained on others (`encoder_puppets`); of real video by
  Kinetics I3D, 16 frames of 224 × 224. Three adapters a setting and split, one for each seed of the evaluators.
- **Use.** *top-1*: a linear head tells the action; *retrieval*: mAP of clips of the same action among training clips,
  by cosine, which no loss asks for; *old heads*: top-1 of heads that were trained on raw features alone.
- **Leakage.** *Linkage* is rank-1, by cosine, whitened, by discriminants and by a small network; *attributes* is cMAP,
  by a linear head and by networks of one and two hidden layers. All try on the features, and on what pairs of training
  videos bring back of raw ones; who does best on validation people counts. *Highest* is the best on test people, in
  hindsight. *Excess*: 1 as much as raw features beyond chance, 0 none. On UCF101 person and place are linked together.
- Settings of `splavu_table.py` that are not here were not run.
- Brackets are 95 % intervals over test people, and of *changes* over the same draws of people: {people}."""


def page(found: dict[str, Any]) -> str:
    people = ", ".join(f"{one['people']} people in {one['clips']} clips of {name}" for name, one in found.items())
    lines = [WORDS.format(people=people), ""]
    for of, one in found.items():
        lines += [f"## {TITLES[of]}", "", grid(one["settings"], of == "puppets"), ""]
        inverted = {name: kinds for name, kinds in one["settings"].items() if "black_box" in kinds}
        if inverted:
            lines += [f"### {TITLES[of]}: inverted", "", INVERTED, "", inversions(inverted, of == "puppets"), ""]
        pictured = {name: kinds for name, kinds in one["settings"].items() if "reconstruction_psnr" in kinds["anew"]}
        if pictured:
            lines += [f"### {TITLES[of]}: pictures out of features", "", pictures(pictured), ""]
    return "\n".join(lines)


def worth(found: dict[str, Any]) -> str:
    """The short of it, for the page of the method."""
    rows = [["", "top-1", "change", "linkage", "excess", "attributes, cMAP", "excess"]]
    for of, one in found.items():
        for name in ("raw", "ours", "apart", "published"):
            if name in one["settings"]:
                told = one["settings"][name]["anew"]
                use, link, attributes = (told.get(key) for key in ("action_top1", "linkage_rank1", "cmap"))
                cells = [
                    f"{TITLES[of]}: {SETTINGS[name].title}",
                    interval(use["value"]),
                    _unless(name, use.get("change")),
                ]
                cells += [interval(link["value"]), _unless(name, link.get("excess"))]
                cells += (
                    [interval(attributes["value"]), _unless(name, attributes["excess"])] if attributes else ["", ""]
                )
                rows.append(cells)
    return _table(rows)


INVERTED = (
    "What an attacker recovers of raw features, told by heads that were trained on raw features (*old*), and by heads "
    "and attackers that were trained on what was recovered (*anew*)."
)


def grid(settings: dict[str, Any], attributes: bool) -> str:
    head = ["", "top-1", "change", "old heads", "retrieval", "change", "linkage", "excess", "highest"]
    head += ["attributes", "excess"] if attributes else []
    rows = [head]
    for name in SETTINGS:
        if name not in settings:
            continue
        one = settings[name]["anew"]
        use, looked, link = (one[key] for key in ("action_top1", "retrieval_map", "linkage_rank1"))
        old = one.get("action_top1_raw_heads")
        cells = [settings[name]["title"], interval(use["value"]), _unless(name, use.get("change"))]
        cells += [
            f"{old['value'][0]:.2f}" if old else "",
            interval(looked["value"]),
            _unless(name, looked.get("change")),
        ]
        cells += [interval(link["value"]), _unless(name, link.get("excess")), f"{link['highest']:.2f}"]
        if attributes:
            cells += [interval(one["cmap"]["value"]), _unless(name, one["cmap"]["excess"])]
        rows.append(cells)
    return _table(rows)


def inversions(settings: dict[str, Any], attributes: bool) -> str:
    head = ["", "attack", "top-1, old", "top-1, anew", "linkage, anew", "excess"]
    head += ["attributes, old", "attributes, anew", "excess"] if attributes else []
    rows = [head]
    for name, kinds in settings.items():
        for way, shown in WAYS.items():
            one = kinds[way]
            cells = [SETTINGS[name].title, shown, f"{one['action_top1_raw_heads']['value'][0]:.2f}"]
            cells += [f"{one['action_top1']['value'][0]:.2f}", f"{one['linkage_rank1']['value'][0]:.2f}"]
            cells += [interval(one["linkage_rank1"]["excess"])]
            if attributes:
                told = one["cmap"]
                cells += [f"{told['raw_heads']:.2f}", f"{told['value'][0]:.2f}", interval(told["excess"])]
            rows.append(cells)
    return _table(rows)


def pictures(settings: dict[str, Any]) -> str:
    rows = [
        ["", "PSNR, dB", "that of the mean picture", "SSIM", "that of the mean picture", "linked by pictures", "excess"]
    ]
    for name, kinds in settings.items():
        one = kinds["anew"]
        near, alike, link = (one[f"reconstruction_{key}"] for key in ("psnr", "ssim", "rank1"))
        cells = [SETTINGS[name].title, interval(near["value"]), f"{near['floor']:.2f}", interval(alike["value"])]
        rows.append([*cells, f"{alike['floor']:.2f}", interval(link["value"]), _unless(name, link.get("excess"))])
    return _table(rows)


def picture(found: dict[str, Any], path: Path) -> None:
    """Use and leakage over the weight of latent consistency, and over the share that is erased."""
    from matplotlib.figure import Figure

    shown = [of for of in ("puppets", "ucf101_5") if of in found]
    figure = Figure(figsize=(10, 3.4 * len(shown)), layout="constrained")
    axes = figure.subplots(len(shown), 2, squeeze=False, sharey=True)
    for line, of in zip(axes, shown, strict=True):
        settings = found[of]["settings"]
        for axis, kinds in zip(line, ("weights", "shares"), strict=True):
            _curves(axis, settings, kinds)
        line[0].set_ylabel(f"{TITLES[of]}\n", fontsize=9)
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), fontsize=7, loc="outside lower center", ncols=2, handlelength=4
    )
    figure.savefig(path, dpi=130)


def _curves(axis: Any, settings: dict[str, Any], kind: str) -> None:
    if kind == "weights":
        curves = {
            "erased": [(float(weight), "ours" if weight == 100 else f"ours-lc{weight}") for weight in sorted(WEIGHTS)],
            "as published": [
                (float(weight), "apart" if weight == 100 else f"apart-lc{weight}") for weight in sorted(WEIGHTS)
            ],
        }
        axis.set(xscale="symlog", xlabel="weight of latent consistency")
        axis.set_xticks(sorted(WEIGHTS), map(str, sorted(WEIGHTS)))
    else:
        curves = {
            "erased": [(0.0, "apart"), *((share, "ours" if share == 0.75 else f"erase{share:g}") for share in SHARES)]
        }
        axis.set(xlabel="share of directions that is erased", xlim=(-0.03, 1.03))
    styles = {
        "action_top1": ("#2a6fbb", "top-1"),
        "linkage_rank1": ("#c0392b", "linkage"),
        "cmap": ("#d99a2b", "attributes, cMAP"),
    }
    for name, places in curves.items():
        there = [(x, settings[run]["anew"]) for x, run in places if run in settings]
        for metric, (colour, told) in styles.items():
            if there and all(metric in one for _, one in there):
                values = [one[metric]["value"] for _, one in there]
                dashed = "--" if name == "as published" else "-"
                axis.plot(
                    [x for x, _ in there],
                    [value[0] for value in values],
                    dashed,
                    color=colour,
                    marker="o",
                    ms=3,
                    label=f"{told}, {name}",
                )
                axis.fill_between(
                    [x for x, _ in there], *([value[i] for value in values] for i in (1, 2)), color=colour, alpha=0.1
                )
    for metric, (colour, _) in styles.items():
        if metric in settings["raw"]["anew"]:
            axis.axhline(settings["raw"]["anew"][metric]["floor"], color=colour, lw=0.8, ls=":")
    axis.set_ylim(0, 1.02)
    axis.grid(alpha=0.2)


def _unless(name: str, value: Any) -> str:
    """Raw features are no share of themselves."""
    return "" if name == "raw" or value is None else interval(value)


def _table(rows: list[list[str]]) -> str:
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))
