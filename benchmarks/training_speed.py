"""Speed of `vidveil train` and `vidveil evaluate` as users get them: clips per second from the log, and seconds.

    python benchmarks/training_speed.py --data FOLDER -o benchmarks/results/training_speed_h200.json
    python benchmarks/training_speed.py --data FOLDER --source ../older/src --label before     another version's source
    python benchmarks/training_speed.py --quick                                                its logic, on any CPU

Each case is a command line with a recipe that comes with vidveil. Videos are decoded before, and lie on the
accelerator.

    steady     clips per second over the last half of training, without validation: steps, loading and checkpoints
    whole      clips per second from the first step to the end: with compilation, validation and the last checkpoint
    seconds    of the whole command. Of an evaluation: anonymizing, trainings on raw and anonymized video, statistics
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REAL = ("preprocess=raw", "pretrained=false")


@dataclass(frozen=True)
class Case:
    recipe: str
    overrides: tuple[str, ...]
    epochs: int
    """0: the recipe's own."""
    verb: str = "train"


CASES = {
    "ViT-B 224, heads": Case(
        "dual_cls_ucf101_5",
        (*REAL, "train_on=heads", "network=vit_b", "size=224", "keep=0.9"),
        80,
    ),
    "ViT-S 112, heads": Case("dual_cls_ucf101_5", (*REAL, "train_on=heads"), 60),
    "ViT-S 112, attribution": Case(
        "dual_cls_ucf101_5", (*REAL, "train_on=attribution", "privacy_attention=plain", "smooth=true"), 60
    ),
    "ViT-S 112, pixels": Case("dual_cls_ucf101_5", (*REAL, "train_on=pixels"), 60),
    "STPrivacy, ViT-S 112": Case("stprivacy_ucf101_5", ("pretrained=false",), 60),
    "r3d_tiny, 32 frames of 32": Case(
        "action_puppets", ("data=ucf101_5", "frames=32", "size=32", "stride=2", "batch=16"), 60
    ),
    "I3D, 16 frames of 224": Case(
        "action_puppets",
        ("data=ucf101_5", "frames=16", "size=224", "batch=16", "recognizer=i3d", "augment=crop"),
        20,
    ),
    "a row of the table of real video": Case("real_table_small", ("method=figure:14", "seeds=[0]"), 0, verb="evaluate"),
}
QUICK = {
    "dual-CLS, mini": Case("dual_cls_puppets", ("data=puppets:rho=0,share=0.1",), 2),
    "r3d_tiny": Case("action_puppets", ("data=puppets:share=0.1",), 2),
}


def run(name: str, case: Case, epochs: int, data: str, source: Path, more: list[str]) -> dict[str, Any]:
    """The figures of one command, in a process and folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPATH": str(source), "VIDVEIL_RUNS": folder}
        command = [
            sys.executable, "-m", "vidveil", case.verb, case.recipe, *case.overrides, "name=speed", *more,
            *((f"epochs={epochs}", f"validate_every={epochs}") if epochs else ()), *(["--data", data] if data else []),
        ]  # fmt: skip
        began = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        if done.returncode:
            return {"case": name, "error": done.stderr[-1500:]}
        lines = [json.loads(line) for line in (Path(folder) / "speed/log.jsonl").read_text().splitlines()]
        machine = json.loads((Path(folder) / "speed/machine.json").read_text())
        recipe = json.loads((Path(folder) / "speed/recipe.json").read_text())
    words = " ".join(word for word in command[3:] if word not in ("--data", data))
    found = {"case": name, "command": words, "machine": machine, "seconds": round(seconds, 1)}
    return found | (figures(lines, recipe["batch"]) if case.verb == "train" else {})


def figures(lines: list[dict[str, Any]], batch: int) -> dict[str, Any]:
    started = [line for line in lines if line["event"] == "started"]
    finished = [line for line in lines if line["event"] == "finished"]
    steps = [line for line in lines if line["event"] == "step"]
    total = sum(line["steps"] for line in started)
    seconds = sum(end["time"] - begin["time"] for begin, end in zip(started, finished, strict=True))
    found: dict[str, Any] = {"clips": total * batch, "whole_clips_per_s": total * batch / seconds}
    late = [line for line in steps if line["fit"] == steps[-1]["fit"]]
    late = [line for line in late if line["step"] >= late[-1]["step"] / 2]
    if len(late) > 1:
        count = late[-1]["step"] - late[0]["step"]
        found["steady_clips_per_s"] = count * batch / (late[-1]["time"] - late[0]["time"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="", help="folder of datasets")
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="source tree that is measured")
    parser.add_argument("--label", default="now", help="what the results call that source tree")
    parser.add_argument("--only", default="", help="cases, with semicolons between them (all)")
    parser.add_argument("--epochs", type=int, default=0, help="of each training (those of the case)")
    parser.add_argument("--override", nargs="*", default=[], help="key=value, for all trainings")
    parser.add_argument("--quick", action="store_true", help="small, on synthetic people")
    parser.add_argument("-o", "--out", type=Path, help="JSON; other labels and cases in it stay")
    arguments = parser.parse_args()
    cases = QUICK if arguments.quick else CASES
    wanted = [name.strip() for name in arguments.only.split(";") if name.strip()] or list(cases)
    rows = json.loads(arguments.out.read_text()) if arguments.out and arguments.out.is_file() else []
    for name in wanted:
        row = {"label": arguments.label} | run(
            name,
            cases[name],
            arguments.epochs or cases[name].epochs,
            arguments.data,
            arguments.source.resolve(),
            arguments.override,
        )
        rows = [old for old in rows if (old["label"], old["case"]) != (row["label"], name)] + [row]
        print(line(row), flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


def line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['label']:8}{row['case']:34}failed: {row['error'].strip().splitlines()[-1]}"
    steady, whole = (row.get(f"{name}_clips_per_s", float("nan")) for name in ("steady", "whole"))
    return f"{row['label']:8}{row['case']:34}{steady:8.1f} steady{whole:8.1f} whole clips/s{row['seconds']:8.1f} s"


if __name__ == "__main__":
    main()
