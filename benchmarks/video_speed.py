"""vidveil's whole-frame methods against the system's ffmpeg doing the same, on the same clips; or vidveil's memory.

    python benchmarks/video_speed.py                                            half an hour on two cores
    python benchmarks/video_speed.py --sizes 720p --methods blur:strong,solid   less of it
    python benchmarks/video_speed.py --clip ward.mp4 --rounds 3                 on a video of yours
    python benchmarks/video_speed.py --memory                                   peak memory: 1 and 10 minutes of 720p

Each round runs every contestant once, vidveil and its opponent one after the other, so that a machine that is busy
for a while is busy for both. Both are run as a user runs them: a command, from its start to its exit.

    wall, CPU   seconds, medians over rounds; CPU is user + system of all threads
    fps         frames of the source (not those that `stride` leaves over) by wall seconds
    ratio       ffmpeg's wall seconds / vidveil's, median over rounds: above 1, vidveil is the faster
    ... alone   the same ratio after taking from each side the time that it needs for one frame: starting Python and
                importing, opening, closing. What remains is the speed on a long video.

Both encode with libx264, same preset, crf and B-frames, index in front, no sound. vidveil also hashes input and output,
writes a manifest and waits for the disk; that is not taken off. `plain transcode` is ffmpeg without any filter. ffmpeg
blurs at full size (`gblur`), vidveil a small picture; `scale+gblur` is ffmpeg with that shortcut, the fairer limit.
MB is the size of the output: where the two differ much, so did the work.

The JSON: machine, versions, commit, settings, clips, x264 (version and threads of both), startup and runs (each with
all rounds' wall_s, cpu_s, peak_mb and their medians), ratios, notes; with --memory, memory in place of the last six.
"""

import argparse
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, ParamSpec, TypeVar

from clips import RATE, Clip, copy_packets, describe, draw  # next to this file

P = ParamSpec("P")
T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent
METHODS = ("blur:weak", "blur:strong", "pixelate:16", "downsample:2", "downsample:4", "solid", "stride:5")
DRAWING = 1  # counted up when clips are drawn in another way: cached ones are then drawn anew
METHOD = re.compile(r"blur:(weak|strong)|(pixelate|downsample|stride):[1-9]\d*|solid")


def aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call in a process of its own. Linux counts the memory of whoever starts a program into the program's peak, so
    this process, which starts them, must stay small: no numpy here."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def drawn_clip(folder: Path, size: str, seconds: float) -> Path:
    path = folder / f"{size}_{seconds:g}s_{DRAWING}.mp4"
    if not path.exists():
        say(f"drawing {seconds:g} s of {size}")
        aside(draw, path, int(size.rstrip("p")), max(1, round(seconds * RATE)))
    return path


# ---- contestants --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FFmpeg:
    path: str
    version: str
    filters: frozenset[str]
    vfr: tuple[str, str]

    @staticmethod
    def find() -> "FFmpeg | str":
        """The system's ffmpeg, or what is wrong."""
        path = shutil.which("ffmpeg")
        if path is None:
            return "ffmpeg is not installed (not on PATH): there is nothing to compare with"
        version, filters, encoders, options = (
            subprocess.run([path, "-hide_banner", *words], capture_output=True, text=True).stdout
            for words in (["-version"], ["-filters"], ["-encoders"], ["-h", "long"])
        )
        if " libx264 " not in encoders:
            return "this ffmpeg was built without libx264: there is nothing to compare with"
        names = frozenset(re.findall(r"^ [T.][S.]\S? +(\w+) ", filters, re.MULTILINE))
        vfr = ("-fps_mode", "vfr") if "-fps_mode" in options else ("-vsync", "vfr")  # the name changed with 5.1
        return FFmpeg(path, version.split()[2], names, vfr)

    def command(self, source: Path, target: Path, filters: str, preset: str, crf: int) -> list[str]:
        # No turning by tags: vidveil leaves pictures as they are stored, and hands the tag on.
        front = [self.path, "-nostdin", "-loglevel", "error", "-y", "-noautorotate", "-i", str(source)]
        codec = ["-c:v", "libx264", "-preset", preset, "-crf", str(crf), "-bf", "2", "-movflags", "+faststart"]
        chain = ",".join(filter(None, ["format=yuv420p", filters]))
        only = ["-map", "0:V:0", "-map_metadata", "-1", "-map_chapters", "-1"]  # the picture, as with vidveil
        return [*front, *only, "-vf", chain, *self.vfr, *codec, str(target)]

    def has(self, filters: str) -> bool:
        return set(re.findall(r"(?:^|(?<!\\),)(\w+)", filters)) <= self.filters


def vidveil_command(source: Path, target: Path, method: str, preset: str, crf: int) -> list[str]:
    front = [sys.executable, "-m", "vidveil", "anonymize", str(source), "-o", str(target), "--overwrite"]
    return [*front, "--region", "frame", "--method", method, "--preset", preset, "--crf", str(crf)]


def equivalents(method: str, clip: Clip, ffmpeg: FFmpeg) -> dict[str, str]:
    """What ffmpeg can do in the method's place, plainest first: name → filters. Empty if it lacks filters."""
    name, _, argument = method.partition(":")
    back = f"scale={clip.width}:{clip.height}:flags="
    found: dict[str, str] = {}
    if name == "blur":
        from vidveil.methods.classical import BLUR_STRENGTHS, FINE

        sigma = max(0.8, min(clip.width, clip.height) / BLUR_STRENGTHS[argument])
        # gblur takes sigma in pixels of each plane, however small the plane (seen on an edge: the same in Y and U).
        # Chroma planes have half the size and vidveil halves their sigma, so they need a second gblur. It costs
        # nothing: gblur passes by the planes that it is not asked for.
        found["gblur"] = f"gblur=sigma={sigma:g}:planes=1,gblur=sigma={sigma / 2:g}:planes=6"
        shrink = int(sigma / FINE)
        if shrink > 1:
            rest = sigma / shrink
            small = f"gblur=sigma={rest:g}:planes=1,gblur=sigma={rest / 2:g}:planes=6"
            found["scale+gblur"] = f"scale=iw/{shrink}:ih/{shrink}:flags=area,{small},{back}bilinear"
    elif name == "pixelate":
        found["pixelize"] = f"pixelize=w={argument}:h={argument}"  # halves the blocks of chroma planes by itself
        if not ffmpeg.has(found["pixelize"]):  # it came with 5.1
            found = {"scale": f"scale=iw/{argument}:ih/{argument}:flags=area,{back}neighbor"}
    elif name == "downsample":
        found["scale"] = f"scale=iw/{argument}:ih/{argument}:flags=area,{back}bilinear"
    elif name == "solid":
        found["lutyuv"] = "lutyuv=y=minval:u=128:v=128"  # a third less time than drawbox=color=black:t=fill
    elif name == "stride":
        found["select"] = rf"select=not(mod(n\,{argument}))"
    return {label: filters for label, filters in found.items() if ffmpeg.has(filters)}


# ---- measuring ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    wall_s: float
    cpu_s: float
    peak_mb: float


@dataclass
class Contestant:
    clip: str
    tool: str
    method: str
    against: str
    """For ffmpeg: the equivalent's name, with `filter` in full."""
    filter: str
    command: list[str]
    rounds: list[Run] = field(default_factory=list)
    output_frames: int = 0
    output_bytes: int = 0

    def middle(self, what: str) -> float:
        return float(median(getattr(run, what) for run in self.rounds))

    def as_json(self, frames: int) -> dict[str, Any]:
        row = {key: value for key, value in asdict(self).items() if key != "command"}
        middles = {key: round(self.middle(key), 4) for key in ("wall_s", "cpu_s", "peak_mb")}
        middles["fps"] = round(frames / middles["wall_s"], 2)
        return {**row, "median": {**middles, "output_mb": round(self.output_bytes / 1e6, 4)}}


def measure(command: list[str], log: Path) -> Run:
    """Run a command to its end. Not with `subprocess`: that keeps what a child used to itself."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
    errors = (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    began = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=[*quiet, errors])
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - began
    if status:
        sys.exit(f"failed: {' '.join(command)}\n{log.read_text(errors='replace')}")
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
    return Run(round(wall, 4), round(used.ru_utime + used.ru_stime, 4), round(used.ru_maxrss * unit / 1e6, 1))


def race(
    source: Path, clip: Clip, ffmpeg: FFmpeg, options: argparse.Namespace, folder: Path, notes: list[str]
) -> dict[str, Any]:
    """All rounds on one clip: everything measured, and the ratios."""
    preset, crf = options.preset, options.crf
    target, log, single = folder / "out.mp4", folder / "log.txt", folder / "one_frame.mp4"
    aside(copy_packets, source, single, 1, 1)
    starts = [
        Contestant(clip.name, "vidveil", "", "", "", vidveil_command(single, target, options.methods[0], preset, crf)),
        Contestant(clip.name, "ffmpeg", "", "", "", ffmpeg.command(single, target, "", preset, crf)),
    ]
    plain = ffmpeg.command(source, target, "", preset, crf)
    entered = [Contestant(clip.name, "ffmpeg", "", "plain transcode", "", plain)]
    pairs: list[tuple[Contestant, Contestant]] = []
    for method in options.methods:
        command = vidveil_command(source, target, method, preset, crf)
        entered.append(ours := Contestant(clip.name, "vidveil", method, "", "", command))
        opponents = aside(equivalents, method, clip, ffmpeg)
        if not opponents:
            notes.append(f"{method}: ffmpeg {ffmpeg.version} lacks the filters for it; no ratio")
        for label, filters in opponents.items():
            command = ffmpeg.command(source, target, filters, preset, crf)
            entered.append(theirs := Contestant(clip.name, "ffmpeg", method, label, filters, command))
            pairs.append((ours, theirs))
    x264 = {}
    for number in range(options.rounds):
        say(f"{clip.name}: round {number + 1} of {options.rounds}")
        for contestant in (*starts, *entered):
            target.unlink(missing_ok=True)
            contestant.rounds.append(measure(contestant.command, log))
            if number == 0:  # a run that wrote too little would look fast
                contestant.output_bytes = target.stat().st_size
                contestant.output_frames = aside(describe, target, "", False).frames
                x264[contestant.tool] = encoder_of(target)
    for ours, theirs in pairs:
        if ours.output_frames != theirs.output_frames:
            counts = f"vidveil wrote {ours.output_frames} frames, ffmpeg {theirs.output_frames}"
            notes.append(f"{clip.name}, {ours.method} against {theirs.against}: {counts}")
    return {
        "x264": x264,
        "startup": [c.as_json(1) for c in starts],
        "runs": [c.as_json(clip.frames) for c in entered],
        "ratios": [ratio(*pair, *starts) for pair in pairs],
    }


def ratio(ours: Contestant, theirs: Contestant, start: Contestant, their_start: Contestant) -> dict[str, Any]:
    walls = [(a.wall_s, b.wall_s) for a, b in zip(ours.rounds, theirs.rounds, strict=True)]
    began, they_began = start.middle("wall_s"), their_start.middle("wall_s")
    # Where a clip takes hardly longer than one frame, the difference of the two is noise.
    alone = [(b - they_began) / (a - began) for a, b in walls if a > 1.5 * began and b > 1.5 * they_began]
    rounds = [round(b / a, 4) for a, b in walls]
    return {
        "clip": ours.clip,
        "method": ours.method,
        "against": theirs.against,
        "rounds": rounds,
        "median": median(rounds),
        "median_alone": round(median(alone), 4) if alone else None,
    }


def encoder_of(path: Path) -> str | None:
    """x264's version and threading, as it notes them in its first packet: they differ between builds, and matter."""
    with path.open("rb") as file:
        found = re.search(rb"x264 - (core \d+).*? (threads=\d+).*?(sliced_threads=\d)", file.read(4 << 20), re.DOTALL)
    return None if found is None else ", ".join(group.decode() for group in found.groups())


def memory(options: argparse.Namespace, cache: Path, folder: Path) -> list[dict[str, Any]]:
    """Peak memory of vidveil on a short and a long video of the same content."""
    rows = []
    for size in options.sizes:
        short, long = drawn_clip(cache, size, options.short), folder / "long.mp4"
        aside(copy_packets, short, long, math.ceil(options.long / options.short))
        clips = [asdict(aside(describe, path, size, True)) for path in (short, long)]
        for method in options.methods:
            say(f"{size}, {method}: {clips[0]['frames']} and {clips[1]['frames']} frames")
            peaks = []
            for path in (short, long):
                command = vidveil_command(path, folder / "out.mp4", method, options.preset, options.crf)
                peaks.append(measure(command, folder / "log.txt").peak_mb)
            difference = round(peaks[1] - peaks[0], 1)
            rows.append({"method": method, "clips": clips, "peak_mb": peaks, "difference_mb": difference})
    return rows


# ---- report -------------------------------------------------------------------------------------------------------


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def about(options: argparse.Namespace, ffmpeg: FFmpeg | None) -> dict[str, Any]:
    """Machine, versions and settings: enough to assess the numbers, nothing that identifies whose machine it was."""
    from vidveil.app.manifest import versions

    found = aside(versions)
    found["ffmpeg_in_av"] = found.pop("ffmpeg")
    try:
        describe_it = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        commit = subprocess.run(describe_it, capture_output=True, text=True, cwd=ROOT).stdout.strip() or None
    except OSError:
        commit = None
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return {
        "benchmark": "video_memory" if options.memory else "video_speed",
        "machine": {
            "cpu": model.group(1) if model else platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "ram_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            "load_before": round(os.getloadavg()[0], 2),
        },
        "versions": {**found, "ffmpeg": ffmpeg.version if ffmpeg else None},
        "commit": commit,
        "settings": {"preset": options.preset, "crf": options.crf, "rounds": 1 if options.memory else options.rounds},
    }


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def speed_table(report: dict[str, Any]) -> str:
    """A line for each opponent; of a pair of columns the first is vidveil's."""
    header = ("clip", "method", "ffmpeg by", "wall s", "ffmpeg", "fps", "ffmpeg", "CPU s", "ffmpeg", "MB", "ffmpeg")
    ours = {(run["clip"], run["method"]): run for run in report["runs"] if run["tool"] == "vidveil"}
    ratios = {(found["clip"], found["method"], found["against"]): found for found in report["ratios"]}
    lines = []
    for run in report["runs"]:
        if run["tool"] == "vidveil":
            continue
        key = run["clip"], run["method"]
        line = [*key, run["against"]]
        for what, digits in ("wall_s", 2), ("fps", 0), ("cpu_s", 2), ("output_mb", 2):
            line += [f"{side['median'][what]:.{digits}f}" if side else "" for side in (ours.get(key), run)]
        found = ratios.get((*key, run["against"]), {})
        line += [f"{found[name]:.2f}" if found.get(name) else "" for name in ("median", "median_alone")]
        lines.append(line)
    return table((*header, "ratio", "... alone"), lines)


def memory_table(report: dict[str, Any]) -> str:
    lines = []
    for row in report["memory"]:
        pairs = zip(row["clips"], row["peak_mb"], strict=True)
        peaks = [f"{clip['frames'] / clip['fps']:g} s: {peak:.1f} MB" for clip, peak in pairs]
        lines.append([row["clips"][0]["name"], row["method"], *peaks, f"{row['difference_mb']:+.1f} MB"])
    return table(("clip", "method", "short", "long", "difference"), lines)


def main() -> None:
    options = _options()
    ffmpeg = None
    if not options.memory:
        found = FFmpeg.find()
        if isinstance(found, str):
            say(found)
            sys.exit(2)
        ffmpeg = found
    report = about(options, ffmpeg)
    with tempfile.TemporaryDirectory(prefix="vidveil-bench-") as name:
        folder = Path(name)
        clips = options.cache or folder
        clips.mkdir(parents=True, exist_ok=True)
        if ffmpeg is None:
            report["memory"] = memory(options, clips, folder)
            print(memory_table(report))
        else:
            report.update(clips=[], x264={}, startup=[], runs=[], ratios=[], notes=[])
            sources = [(size, drawn_clip(clips, size, options.seconds), True) for size in options.sizes]
            sources += [(f"clip {i}", path, False) for i, path in enumerate(options.clip, 1)]
            for label, path, drawn in sources:
                clip = aside(describe, path, label, drawn)
                report["clips"].append(asdict(clip))
                for key, value in race(path, clip, ffmpeg, options, folder, report["notes"]).items():
                    report[key] = report[key] | value if key == "x264" else report[key] + value
            print(speed_table(report), *(f"note: {note}" for note in report["notes"]), sep="\n")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    say(f"written: {options.json}")


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _options() -> argparse.Namespace:
    title, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(description=title, epilog=rest, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--sizes", type=_listed, help="sizes to draw, 16:9 (720p,1080p; with --clip none; with --memory 720p)")
    add("--clip", type=Path, action="append", default=[], metavar="FILE", help="a video of yours; may be repeated")
    add("--seconds", type=float, default=10, help="length of drawn clips (10)")
    add("--methods", type=_listed, help=f"({','.join(METHODS)}; with --memory blur:strong)")
    add("--rounds", type=int, default=5, help="(5)")
    add("--preset", default="veryfast", help="x264's, both sides (veryfast)")
    add("--crf", type=int, default=20, help="x264's, both sides (20)")
    add("--cache", type=Path, metavar="FOLDER", help="keep drawn clips here")
    add("--json", type=Path, metavar="FILE", help="(benchmarks/results/video_speed.json or video_memory.json)")
    add("--memory", action="store_true", help="measure vidveil's peak memory instead; one round, no ffmpeg needed")
    add("--short", type=float, default=60, help="seconds of the short video of --memory (60)")
    add("--long", type=float, default=600, help="seconds of the long one, made of whole copies of the short one (600)")
    options = parser.parse_args()
    if options.rounds < 1 or not 0 < options.short < options.long or options.seconds <= 0:
        parser.error("rounds and seconds must be above 0, and --short below --long")
    if missing := [str(path) for path in options.clip if not path.is_file()]:
        parser.error(f"no such file: {', '.join(missing)}")
    if unknown := [word for word in options.methods or [] if not METHOD.fullmatch(word)]:
        parser.error(f"nothing to compare with is known for {', '.join(unknown)}")
    if odd := [word for word in options.sizes or [] if not re.fullmatch(r"[1-9]\d{1,3}p", word)]:
        parser.error(f"a size is written 720p, not {', '.join(odd)}")
    options.sizes = options.sizes or (["720p"] if options.memory else [] if options.clip else ["720p", "1080p"])
    options.methods = options.methods or (["blur:strong"] if options.memory else list(METHODS))
    name = "video_memory.json" if options.memory else "video_speed.json"
    options.json = options.json or ROOT / "benchmarks" / "results" / name
    return options


if __name__ == "__main__":
    main()
