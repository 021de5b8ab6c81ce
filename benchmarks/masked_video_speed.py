"""A learned mask at full resolution against ffmpeg's plain transcode of the same video: 720p, without detection.

    python benchmarks/masked_video_speed.py                          ViT-S at 16 × 112 × 112, weights drawn at random
    python benchmarks/masked_video_speed.py --network runs/mine/checkpoint --json mine.json
    python benchmarks/masked_video_speed.py --video people --rounds 3

    street       a textured scene that drifts, with the noise of a sensor: as costly to encode as a hand-held camera
    testsrc2     ffmpeg's test picture: flat colours, cheap to encode, so that the network weighs most
    people       the people that `vidveil demo` draws

Each round runs ffmpeg and vidveil one after the other, as a user runs them: a command, from its start to its exit.
`ratio` is the median of ffmpeg's wall seconds by the median of vidveil's: at 0.5, hiding takes twice the time of
copying. `alone` is the same after taking from each side the time that it needs for one frame. A network whose weights
are drawn at random takes the time of a trained one, and hides the same share.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from clips import RATE, copy_packets, describe  # next to this file
from video_speed import ROOT, FFmpeg, Run, about, aside, drawn_clip, measure, say, table

VIDEOS = ("street", "testsrc2", "people")
HEIGHT, CRF, PRESET = 720, 20, "veryfast"


def made(folder: Path, name: str, seconds: float, ffmpeg: FFmpeg) -> Path:
    if name == "street":
        return drawn_clip(folder, f"{HEIGHT}p", seconds)
    path = folder / f"{name}.mp4"
    say(f"drawing {seconds:g} s of {name}")
    if name == "people":
        from vidveil.app.demo import draw_video

        raw = folder / "small.mp4"
        aside(draw_video, raw, frames=round(seconds * RATE))
        source = ["-i", str(raw), "-vf", f"scale=-2:{HEIGHT}"]
    else:
        source = ["-f", "lavfi", "-i", f"testsrc2=size=1280x{HEIGHT}:rate={RATE}:duration={seconds:g}"]
    front = [ffmpeg.path, "-nostdin", "-loglevel", "error", "-y", *source]
    subprocess.run([*front, "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", PRESET, str(path)], check=True)
    return path


def vidveil_command(network: str, source: Path, target: Path) -> list[str]:
    words = ["anonymize", str(source), "-o", str(target), "--overwrite", "--preset", PRESET, "--crf", str(CRF)]
    way = [str(Path(__file__).resolve()), "--as-command"] if network == "random" else ["-m", "vidveil"]
    return [sys.executable, *way, *words, "--method", network]


def as_command(words: list[str]) -> None:
    """`vidveil`, with one method more: a network of the usual size whose weights are drawn at random."""
    from vidveil.cli.app import app
    from vidveil.methods import METHODS, Anonymizer, Method

    def build(spec: str, _: str | None) -> Anonymizer:
        import torch

        from vidveil.methods.dual_cls.model import DualCLS, Network
        from vidveil.methods.masking.masker import TubeletMasker

        torch.manual_seed(0)
        # A trained network is not drawn, and drawing it well takes longer than loading it.
        torch.nn.init.trunc_normal_ = torch.nn.init.normal_  # type: ignore[assignment]
        return TubeletMasker(spec, DualCLS(Network(actions=51, budget={"attributes": 5})), weights="none")

    METHODS["random"] = Method(build, "random", "for this benchmark")
    app(words)


def race(source: Path, ffmpeg: FFmpeg, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    clip = aside(describe, source, options.video, True)
    target, log, single = folder / "out.mp4", folder / "log.txt", folder / "one_frame.mp4"
    aside(copy_packets, source, single, 1, 1)
    commands = {
        "ffmpeg": ffmpeg.command(source, target, "", PRESET, CRF),
        "vidveil": vidveil_command(options.network, source, target),
        "ffmpeg, one frame": ffmpeg.command(single, target, "", PRESET, CRF),
        "vidveil, one frame": vidveil_command(options.network, single, target),
    }
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(options.rounds):
        say(f"round {number + 1} of {options.rounds}")
        for name, command in commands.items():
            target.unlink(missing_ok=True)
            runs[name].append(measure(command, log))
            frames = aside(describe, target, "", False).frames
            if frames != (1 if name.endswith("frame") else clip.frames):  # too little would look fast
                sys.exit(f"{name} wrote {frames} frames of {clip.frames}")
    walls = {name: median(run.wall_s for run in found) for name, found in runs.items()}
    alone = {tool: walls[tool] - walls[f"{tool}, one frame"] for tool in ("ffmpeg", "vidveil")}
    return {
        "clip": asdict(clip),
        "runs": {name: [asdict(run) for run in found] for name, found in runs.items()},
        "median_wall_s": walls,
        "ratio": round(walls["ffmpeg"] / walls["vidveil"], 4),
        "alone": round(alone["ffmpeg"] / alone["vidveil"], 4),
    }


def shown(report: dict[str, Any]) -> str:
    lines = []
    for name in ("ffmpeg", "vidveil"):
        runs, wall = report["runs"][name], report["median_wall_s"][name]
        used = median(run["cpu_s"] for run in runs), max(run["peak_mb"] for run in runs)
        start = report["median_wall_s"][f"{name}, one frame"]
        speed = report["clip"]["frames"] / wall
        lines.append([name, f"{wall:.2f}", f"{speed:.0f}", f"{used[0]:.2f}", f"{used[1]:.0f}", f"{start:.2f}"])
    ratios = f"ratio {report['ratio']:.2f}, alone {report['alone']:.2f}"
    return table(("", "wall s", "fps", "CPU s", "peak MB", "one frame s"), lines) + f"\n{ratios}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--network", default="random", help="random, or a checkpoint (random)")
    add("--video", choices=VIDEOS, default="street")
    add("--seconds", type=float, default=20, help="length of the video (20)")
    add("--rounds", type=int, default=5)
    add("--json", type=Path, metavar="FILE", help="(benchmarks/results/masked_video_speed.json)")
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("rounds and seconds must be above 0")
    ffmpeg = FFmpeg.find()
    if isinstance(ffmpeg, str):
        say(ffmpeg)
        sys.exit(2)
    options.memory, options.preset, options.crf = False, PRESET, CRF
    report = about(options, ffmpeg) | {"benchmark": "masked_video_speed", "network": Path(options.network).name}
    with tempfile.TemporaryDirectory(prefix="vidveil-bench-") as name:
        report |= race(made(Path(name), options.video, options.seconds, ffmpeg), ffmpeg, options, Path(name))
    print(shown(report))
    target = options.json or ROOT / "benchmarks" / "results" / "masked_video_speed.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    say(f"written: {target}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-command"]:
        as_command(sys.argv[2:])
    else:
        main()
