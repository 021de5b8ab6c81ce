"""`vidveil demo`: the main job on built-in material, a picture, and a number with its floor."""

import sys
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
import typer

from vidveil.app.demo import Person, clip, draw_video, linkage
from vidveil.app.jobs import Options, anonymize
from vidveil.cli.reported import reported
from vidveil.core.atomic import write_bytes
from vidveil.core.bounded import read_json
from vidveil.core.errors import OutputError
from vidveil.core.progress import phase
from vidveil.methods import Anonymizer, load

METHODS = (
    ("blur:strong", "faces"),
    ("blur:strong", "frame"),
    ("pixelate:16", "frame"),
    ("downsample:4", "frame"),
    ("solid", "frame"),
)
PEOPLE = 24

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@reported("demo")
def demo(
    folder: Annotated[Path, typer.Option("-o", "--output", help="Where the results go.")] = Path("vidveil_demo"),
) -> None:
    """Anonymize a built-in video, show the result, and attack it.

    \b
    vidveil demo            results in ./vidveil_demo
    """
    command = sys.argv[0] if "/" in sys.argv[0] else "vidveil"
    if Path(command).name == "__main__.py":
        command = "python -m vidveil"
    folder.mkdir(parents=True, exist_ok=True)
    video = folder / "visitor.mp4"
    typer.echo(f"drawing {video}: four seconds of a person, with sound, a place and a time in its tags")
    draw_video(video)
    typer.echo(f"$ vidveil anonymize {video} --preview {folder / 'preview.mp4'}")
    options = Options(overwrite=True, preview=folder / "preview.mp4")
    with phase(f"anonymizing {video.name}"):
        outcome = anonymize(video, options=options)[0]
    if outcome.output is None or not outcome.ok:
        raise OutputError(f"the demo failed: {outcome.error}")
    manifest = read_json(outcome.output.with_suffix(".json"))
    dropped = manifest["dropped"]
    found = manifest["detection"]
    typer.echo(
        f"  {manifest['frames']['written']} frames anonymized by {manifest['order']['method']} on faces: "
        f"a face is hidden in {found['frames_with_regions']} of them"
    )
    typer.echo(f"  dropped: {', '.join(dropped['streams'] + dropped['tags'])}")

    typer.echo(f"\nattack: of {PEOPLE} people, how many does a simple program find again in a second video?")
    rows = [("raw", _attack(None, "raw"))]
    methods = {f"{name}, {where}": load(name, region=where) for name, where in METHODS}
    rows += [(name, _attack(method, name)) for name, method in methods.items()]
    for name, found in rows:
        typer.echo(f"  {name:20} {found:6.1%}   (chance {1 / PEOPLE:.1%})")
    _draw_picture(folder / "demo.png", rows, methods)

    typer.echo("\nWhat looks anonymous need not be: clothes identify people whose faces are hidden.")
    typer.echo(
        f"results: {outcome.output}, its manifest {outcome.output.stem}.json, preview.mp4, demo.png in {folder}/"
    )
    typer.echo(f"next:    {command} anonymize YOUR_VIDEO.mp4, or {command} --help")


def _attack(method: Anonymizer | None, name: str) -> float:
    with phase(f"attack on {name}"):
        return linkage(method, PEOPLE)


def _draw_picture(path: Path, rows: list[tuple[str, float]], methods: dict[str, Anonymizer]) -> None:
    """One frame as each method leaves it, with what the attacker made of it."""
    import torch

    frame = list(clip(Person.random(0), take=0, frames=10))[-1]
    tensor = torch.from_numpy(frame).permute(2, 0, 1)[:, None].float() / 255
    tiles = []
    for name, found in rows:
        shown = tensor if name == "raw" else methods[name].anonymize(tensor).video
        tile = (shown[:, 0].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
        caption = np.full((44, tile.shape[1], 3), 255, np.uint8)
        text = f"{name}: found again {found:.0%} (chance {1 / PEOPLE:.0%})"
        cv2.putText(caption, text, (10, 30), cv2.FONT_HERSHEY_SIMPLEX, 0.75, (20, 20, 20), 2, cv2.LINE_AA)
        tiles.append(np.vstack([tile, caption]))
    sheet = np.vstack([np.hstack(tiles[i : i + 2]) for i in range(0, len(tiles), 2)])
    write_bytes(path, cv2.imencode(".png", np.ascontiguousarray(sheet[..., ::-1]))[1].tobytes())
