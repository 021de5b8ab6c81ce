"""`vidveil anonymize`: videos, folders, globs, cameras and streams."""

import os
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vidveil.cli.device import device_for
from vidveil.cli.old_options import TakesOldOptions
from vidveil.cli.reported import reported
from vidveil.core.errors import UsageError
from vidveil.core.registry import DEFAULT
from vidveil.core.text import printable
from vidveil.video.x264 import CRF, PRESET, PRESETS

if TYPE_CHECKING:
    from vidveil.methods.learned.anonymizer import LearnedAnonymizer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=TakesOldOptions)
@reported("anonymize", "finished files are whole; run again to do the others, each from its beginning")
def anonymize(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE", help="Video, image, folder, glob, camera, stream URL, or a store of features."
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="OUT", help="File or folder. Default: NAME_anonymized next to the source."
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="NAME[:ARG] from `vidveil ls methods`; several with | between them.")
    ] = DEFAULT,
    region: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Where the method works: frame, faces, people, FILE.onnx. Default: faces. faces:2: twice as large.",
        ),
    ] = None,
    also_hide: Annotated[
        str, typer.Option(metavar="WHOM", help="Hide on top of a method: none, faces, people, FILE.onnx.")
    ] = "none",
    also_hide_with: Annotated[str, typer.Option(metavar="METHOD", help="How --also-hide hides.")] = "solid",
    shape: Annotated[
        Literal["ellipse", "box"] | None, typer.Option(help="Of regions. Default: ellipse for faces, box for others.")
    ] = None,
    on_lost: Annotated[
        Literal["hold", "hide"],
        typer.Option(help="Somebody lost from sight: their box stays and grows, or the frame is black."),
    ] = "hold",
    hide_for: Annotated[float, typer.Option(metavar="SECONDS", help="How long --on-lost hide lasts at most.")] = 2.0,
    delay: Annotated[
        float, typer.Option(metavar="SECONDS", help="Frames are kept back this long, to hide backwards in time.")
    ] = 1.0,
    search_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="How often the whole picture is searched; 0: every frame.")
    ] = 0.2,
    tracks_out: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Write who was hidden where, to look at and to edit.")
    ] = None,
    tracks_in: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Hide what this file says; look for nobody.")
    ] = None,
    leave_visible: Annotated[
        list[int] | None, typer.Option(metavar="TRACK", help="Do not hide this track; may be repeated.")
    ] = None,
    audio: Annotated[Literal["drop", "keep", "distort"], typer.Option(help="What becomes of the sound.")] = "drop",
    metadata: Annotated[
        Literal["drop", "keep"], typer.Option(help="What becomes of tags, chapters, subtitles, data streams.")
    ] = "drop",
    start: Annotated[str | None, typer.Option(metavar="TIME", help="Begin here: 90, 1:30 or 0:01:30.5.")] = None,
    end: Annotated[str | None, typer.Option(metavar="TIME", help="End before here.")] = None,
    reconnect: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for a stream that broke off.")
    ] = 60.0,
    preview: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write original and result side by side. Not for sharing.")
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            help="Learned methods: share of the picture's blocks that each of their steps keeps, up to 1. dual_cls has "
            "three: 0.8 leaves about half. Of stprivacy, less need not hide more: see its page.",
        ),
    ] = None,
    privacy_weight: Annotated[
        float | None, typer.Option(metavar="L", help="dual_cls: how much privacy counts, from 0.")
    ] = None,
    size: Annotated[
        Literal["original", "network"],
        typer.Option(help="Of the output. network: what stprivacy draws, at the small size at which it draws."),
    ] = "original",
    heatmap: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a learned method's scores over the original. Not for sharing."),
    ] = None,
    manifest: Annotated[
        Literal["full", "share", "none"] | None,
        typer.Option(
            help="What is written about each output. share: without the source's name, hash, size and place; you can "
            "resume; outputs keep their names, unless --rename changes them. none: nothing, and so no way to resume. "
            "Default: full, and share with --rename."
        ),
    ] = None,
    rename: Annotated[
        bool,
        typer.Option(
            "--rename", help="Random names for outputs, without the source's folders. New each time: no resuming."
        ),
    ] = False,
    rename_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Write which source got which random name, for you alone; with it a run can be resumed. "
            "Not among the outputs. Implies --rename.",
        ),
    ] = None,
    max_pixels: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2**31 - 1,
            metavar="N",
            help="Refuse larger pictures. Default: 100 million for images, 40 million for video.",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Redo what is done; replace what is in the way.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")] = False,
    preset: Annotated[str, typer.Option(help="x264's preset: slower makes smaller files.")] = PRESET,
    crf: Annotated[int, typer.Option(min=1, max=51, help="x264's quality: lower is better and larger.")] = CRF,
) -> None:
    """Hide what identifies people in videos, folders and camera streams.

    \b
    vidveil anonymize clip.mp4                          clip_anonymized.mp4: faces blurred, no sound, no metadata
    vidveil anonymize ward/ -o safe/                    a whole tree; run again to resume
    vidveil anonymize clip.mov --method solid --region people           black boxes over whole people
    vidveil anonymize clip.mov --method pixelate:24 --region frame      the whole picture
    vidveil anonymize clip.mp4 --tracks-out t.jsonl     look at the tracks; edit them; then
    vidveil anonymize clip.mp4 --tracks-in t.jsonl --leave-visible 3 --overwrite
    vidveil anonymize clip.mp4 --method "blur:strong | stride:5" --audio distort
    vidveil anonymize talk.mkv --start 1:30 --end 2:00 --preview look.mp4
    vidveil anonymize ward/ -o safe/ --rename-map ~/names.csv           random names, and manifests to give away
    vidveil anonymize clip.mp4 --method my_run --keep 0.8 --also-hide faces     a learned method, and faces on top
    vidveil anonymize clip.mp4 --method stprivacy:my_run --size network     as it is drawn: a small square
    vidveil anonymize rtsp://door/1 -o door.mp4         a camera (or 0: the first one here), until Ctrl-C
    vidveil anonymize features.h5 --method splavu:my_adapter            stored features: features_anonymized.h5

    A manifest (NAME_anonymized.json) next to each output says what was done. It holds the source's name and hash
    unless you say --manifest share. A frame that cannot be decoded or
    anonymized becomes black. Exit code 1 if any source failed; the others are done.
    """
    import cv2  # these take most of the time of --help

    from vidveil.app.jobs import run
    from vidveil.app.options import Options
    from vidveil.app.task import task_of
    from vidveil.cli.progress import Screen
    from vidveil.cli.stores import anonymize_stores, refuse_features
    from vidveil.detect.settings import DetectionSettings
    from vidveil.methods import load, works_on_features
    from vidveil.methods.learned.anonymizer import learned_in, tuned

    if works_on_features(method):
        of_video = {
            "--region": region, "--also-hide": also_hide if also_hide != "none" else None, "--keep": keep,
            "--privacy-weight": privacy_weight, "--tracks-out": tracks_out, "--tracks-in": tracks_in,
            "--start": start, "--end": end, "--preview": preview, "--heatmap": heatmap,
            "--size": size if size != "original" else None, "--max-pixels": max_pixels,
            "--manifest": manifest, "--rename": rename or None, "--rename-map": rename_map,
        }  # fmt: skip
        given = [name for name, value in of_video.items() if value is not None]
        raise typer.Exit(anonymize_stores(sources, output, method, given, device, overwrite, dry_run))
    refuse_features(sources, method)
    if preset not in PRESETS:
        raise UsageError(f"x264 has no preset {printable(repr(preset))}; there are {', '.join(PRESETS)}")
    anonymizer = load(method)
    place = device_for(device, learned=learned_in(anonymizer) is not None)
    anonymizer = tuned(anonymizer, keep, privacy_weight, place)
    learned = learned_in(anonymizer)
    if learned is not None and also_hide == "none":
        _refuse_to_hide_nothing(learned)
    detection = DetectionSettings(
        region=region,
        also_hide=also_hide,
        also_hide_with=also_hide_with,
        shape=shape,
        on_lost=on_lost,
        hide_for=hide_for,
        delay=delay,
        search_every=search_every,
        tracks_in=tracks_in,
        tracks_out=tracks_out,
        leave_visible=tuple(sorted(set(leave_visible or ()))),
    )
    options = Options(
        audio=audio,
        metadata=metadata,
        start=_seconds(start),
        end=_seconds(end),
        overwrite=overwrite,
        dry_run=dry_run,
        preview=preview,
        heatmap=heatmap,
        size=size,
        manifest=manifest,
        rename=rename,
        rename_map=rename_map,
        device=place,
        preset=preset,
        crf=crf,
        detection=detection,
        reconnect=reconnect,
        max_pixels=max_pixels,
    )
    task = task_of(anonymizer, options)
    cv2.setNumThreads(1)  # decoder and encoder keep all cores busy; more threads would only take them turns
    if learned is not None or anonymizer.weights is not None:
        import torch

        # For the same reason: on busy cores, threads that wait for each other take longer than one by itself.
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // 4))
    with Screen() as screen:
        screen.say(str(task))
        try:
            outcomes = run(task, sources, output, screen)
        except KeyboardInterrupt as stopped:
            if options.manifest_form == "none" or (options.renames and options.rename_map is None):
                stopped.add_note(
                    "what is finished is whole; no run can resume this one: it has no manifests, or no map"
                )
            raise
        screen.sum_up(outcomes)
    raise typer.Exit(0 if all(outcome.ok for outcome in outcomes) else 1)


def _seconds(text: str | None) -> Fraction | None:
    if text is None:
        return None
    if not re.fullmatch(r"([0-9]{1,9}:){0,2}[0-9]{1,9}(\.[0-9]{1,18})?", text):
        raise UsageError(
            f"{printable(repr(text))} is no time: write seconds, or minutes:seconds, or hours:minutes:seconds"
        )
    seconds = Fraction(0)
    for at, part in enumerate(text.split(":")):
        if at and Fraction(part) >= 60:
            raise UsageError(f"{printable(repr(text))} is no time: after a colon there are less than 60")
        seconds = seconds * 60 + Fraction(part)
    return seconds


def _refuse_to_hide_nothing(method: "LearnedAnonymizer") -> None:
    """Nobody should find the original under the name of an anonymized file. In Python it may be asked for: measuring
    what a mask costs needs a mask that hides nothing."""
    if method.shows_everything:
        keep = (method.knobs or {})["keep"]
        raise UsageError(f"{method.spec} hides nothing at keep {keep:g}: take a smaller --keep, or --also-hide faces")
