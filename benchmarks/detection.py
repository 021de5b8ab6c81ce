"""vidveil's detection against deface: whose faces stay uncovered, how much is hidden in vain, how long it takes.

    pip install scikit-image                                  for its photograph of an astronaut
    python benchmarks/detection.py                            everything; an hour on two cores, the second time less
    python benchmarks/detection.py --only clips               one part: clips, speed or people
    python benchmarks/detection.py --quick                    a smoke run of some minutes; proves nothing

    clips    composed clips in which every face is known (composed_clips). A face-frame is one face in a frame, of which
             at least 60 % can be seen, turned by at most 60°. It is covered if 90 % of what is seen of its ellipse is
             hidden. Faces visible for five frames or less are counted apart: vidveil does not search every frame.
    speed    both as commands, from start to exit, in turns on the same clips; fps are frames by seconds, medians over
             rounds. `alone` takes off what each needs for a clip of one frame.
    people   `--region people` on frames of videos under $VIDVEIL_DATA whose people were marked by hand
             (people_labels.json). deface has no such region.

deface 1.5.0 runs with its defaults: the network that vidveil has, on every frame at full size. Clips of seed 1 are for
development, those of seed 2 for the report. Clips, deface's masks and its environment are kept in the cache.

The JSON: machine, versions, commit, settings; clips (by tool: all, bands, behaviours, kinds, false_area, and every
stretch [clip, face, first frame, last frame] left uncovered; paired: face-frames that both, one or neither covers);
speed (rounds, medians, startup); people (by video and band).
"""

import argparse
import json
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from composed_clips.scoring import paired, score, summary, tally
from contestants import DEFACE, Deface, cache_folder, vidveil_tracks
from detection_people import people_part, people_table
from detection_speed import speed_part, speed_table
from video_speed import ROOT, about, say, table

PARTS = ("clips", "speed", "people")
RESULTS = ROOT / "benchmarks" / "results"


def composed(seed: int, cache: Path, quick: bool, takes: int = 2) -> list[Path]:
    """Folders of the clips of a seed, written where they are missing."""
    from composed_clips.faces import fingerprint, write
    from composed_clips.scenes import PLAYS, clips

    if find_spec("skimage") is None:
        sys.exit("error: scikit-image is not installed (pip install scikit-image): half of the faces are its astronaut")
    plays = ("fast", "turning") if quick else tuple(PLAYS)
    folders = []
    for clip in clips(seed, plays, takes=1 if quick else takes):
        folder = cache / "clips" / fingerprint() / f"seed{seed}" / clip.name
        if not (folder / "truth.json").exists():
            say(f"composing {clip.name}")
            write(clip, folder)
        folders.append(folder)
    return folders


def clips_part(options: argparse.Namespace, deface: Deface) -> dict[str, Any]:
    from composed_clips.scenes import APART

    ours, theirs = [], []
    folders = composed(options.seed, options.cache, options.quick, options.takes)
    apart: dict[str, list[Any]] = {"vidveil": [], "deface": []}
    for folder in folders:
        say(f"{folder.name}: vidveil, deface")
        clip = folder / "clip.mp4"
        mine = score(folder, vidveil_tracks(clip, keep=options.cache / "tracks" / f"{folder.name}.jsonl"))
        other = score(folder, deface.tracks(clip, options.cache / "masks"))
        if folder.name.startswith(APART):
            apart["vidveil"] += mine.faces
            apart["deface"] += other.faces
        else:
            ours.append(mine)
            theirs.append(other)
    hashes = {f.name: json.loads((f / "truth.json").read_text("utf-8"))["sha256"][:16] for f in folders}
    pairs = paired([face for one in ours for face in one.faces], [face for one in theirs for face in one.faces])
    found = {"vidveil": summary(ours), "deface": summary(theirs)}
    glimpses = {tool: tally(faces) for tool, faces in apart.items()}
    return {"seed": options.seed, "sha256": hashes, **found, "paired": pairs, "glimpses": glimpses}


def clips_table(part: dict[str, Any]) -> str:
    ours, theirs = part["vidveil"], part["deface"]
    rows = []
    for band in [*ours["bands"], "all"]:
        mine, other = (side["all"] if band == "all" else side["bands"][band] for side in (ours, theirs))
        if mine["face_frames"]:
            pair = part["paired"][band]
            counts = f"+{pair['only_ours']} -{pair['only_theirs']}"
            rows.append([band, str(mine["face_frames"]), *map(_percent, (mine["recall"], other["recall"])), counts])
            rows[-1] += [f"{side['mask_size'] or 0:.2f}" for side in (mine, other)]
    header = ("face px", "face-frames", "vidveil", "deface", "pairs", "mask / face", "deface")
    false = f"false area: vidveil {ours['false_area']:.2%}, deface {theirs['false_area']:.2%}"
    glimpses = ", ".join(f"{tool} {_percent(row['recall'])}" for tool, row in part["glimpses"].items())
    return f"{table(header, rows)}\n{false}\nfaces that show for one to five frames: {glimpses}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


# ---- run ----------------------------------------------------------------------------------------------------------


def run(part: str, options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """A part's figures, and its table."""
    if part == "people":
        found = people_part(options)
        return found, people_table(found)
    deface = Deface.ready(options.deface_env)
    if part == "clips":
        found = clips_part(options, deface)
        return found, clips_table(found)
    found = speed_part(options, deface, composed(options.seed, options.cache, options.quick, options.takes))
    return found, speed_table(found)


def main() -> None:
    options = _options()
    report: dict[str, Any] = {"benchmark": "detection"}
    if options.json.exists():  # parts that are not run now stay, each with where and of what it was made
        report = json.loads(options.json.read_text("utf-8"))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    tables = []
    for part in options.only or PARTS:
        where = about(argparse.Namespace(memory=False, preset="veryfast", crf=20, rounds=options.rounds), None)
        found, lines = run(part, options)
        versions = {**where["versions"], **in_use(), "deface": DEFACE}
        report[part] = {"machine": where["machine"], "versions": versions, "commit": where["commit"], **found}
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
        tables.append(f"\n{part}\n{lines}")
    print(*tables, sep="\n")
    say(f"written: {options.json}")


def in_use() -> dict[str, str]:
    return {name: version(name) for name in ("onnxruntime", "scikit-image")}


def _options() -> argparse.Namespace:
    title, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=title, epilog=rest, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--only", choices=PARTS, action="append", help="this part; may be repeated (all)")
    add("--seed", type=int, default=2, help="of the composed clips: 1 to develop with, 2 to report (2)")
    add("--takes", type=int, default=2, choices=(1, 2), help="how often each way of coming and going is played (2)")
    add("--rounds", type=int, default=3, help="of speed (3)")
    add("--quick", action="store_true", help="two clips, one video of each set, one round")
    add("--deface-env", type=Path, metavar="FOLDER", help="deface's environment; made there if missing (in the cache)")
    add("--cache", type=Path, metavar="FOLDER", help="clips and masks ($XDG_CACHE_HOME/vidveil/benchmarks)")
    add("--json", type=Path, metavar="FILE", help="(benchmarks/results/detection.json; with --quick in the cache)")
    options = parser.parse_args()
    options.cache = options.cache or cache_folder()
    options.deface_env = options.deface_env or options.cache / "deface_env"
    options.rounds = 1 if options.quick else max(1, options.rounds)
    options.json = options.json or (
        options.cache / "detection_quick.json" if options.quick else RESULTS / "detection.json"
    )
    return options


if __name__ == "__main__":
    main()
