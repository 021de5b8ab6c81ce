"""`vidveil extract`: features of the videos of a dataset, by a frozen encoder."""

from pathlib import Path
from typing import Annotated

import typer

from vidveil.cli.device import device_for
from vidveil.cli.recipe_words import Data, Strict
from vidveil.cli.reported import reported
from vidveil.core.bounded import is_folder
from vidveil.data import load_data
from vidveil.data.catalogue import DATA
from vidveil.data.features.labels import FILE, write_labels
from vidveil.data.readers.folder import videos_in
from vidveil.data.undecodable import without_failed
from vidveil.models.encoders import load_encoder

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@reported("extract", "run again to go on")
def extract(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Dataset, as `vidveil ls data` names it; or a folder of videos.")
    ],
    encoder: Annotated[
        str,
        typer.Option(metavar="ENCODER", help="i3d, vit_s …, run:NAME, videomae:WHERE, vjepa2:, vivit:, timesformer:"),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Default: DATA_ENCODER in this folder.")
    ] = None,
    root: Data = None,
    frames: Annotated[int | None, typer.Option(min=1, help="Frames a clip. Default: the encoder's own.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Side of the square it sees. Default: its own.")] = None,
    stride: Annotated[int, typer.Option(min=1, help="Every how many-th frame is one of a clip.")] = 1,
    static: Annotated[int, typer.Option(min=0, help="Static clips a video: one frame each, which adapters need.")] = 4,
    half: Annotated[bool, typer.Option("--half", help="Compute in bfloat16: faster where processors know it.")] = False,
    batch: Annotated[int, typer.Option(min=1, help="Clips at once.")] = 8,
    seed: Annotated[int, typer.Option(help="Of built-in worlds.")] = 0,
    labels: Annotated[bool, typer.Option(help="Write labels.csv: who and what is seen, for training.")] = True,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    strict: Strict = False,
) -> None:
    """Compute features of every clip of a dataset, once, into a folder that adapters learn on.

    \b
    vidveil extract puppets --encoder run:encoder_puppets          after `vidveil train encoder_puppets`
    vidveil extract ucf101_5 --encoder i3d --data sets/ -o ucf_i3d
    vidveil extract my_videos/ --encoder i3d                       videos of your own, without labels
    vidveil extract hmdb51 --encoder videomae:MCG-NJU/videomae-base --data sets/
    vidveil train splavu_store data=features:ucf_i3d               learns on what is there, without any video

    Clips do not overlap. What was cut off goes on where it was; a folder of another encoder is refused.
    """
    from vidveil.data.features.extract import extract as run
    from vidveil.data.features.extract import progress_of

    place = device_for(device, learned=True)
    sees = load_encoder(encoder, frames=frames, size=size, half=half, device=place)
    own = data.partition(":")[0] not in DATA and is_folder(data)
    if own:
        clips = without_failed(videos_in(Path(data), size=sees.size), strict=strict)
    else:
        clips = load_data(data, frames=sees.frames, size=sees.size, root=root, seed=seed, strict=strict)
    folder = output or Path(
        "_".join(
            "".join(c if c.isalnum() else "_" for c in word) for word in (Path(data).name if own else data, encoder)
        )
    )
    with progress_of(f"features of {data}", len(clips)) as progress:
        store = run(clips, sees, folder, stride=stride, static=static, batch=batch, device=place, progress=progress)
    if labels and not own:
        write_labels(clips, folder / FILE)
    clips_there, static_there = store.counts().sum(), store.counts("static").sum()
    typer.echo(f"{folder}: {clips_there:,} clips and {static_there:,} static clips of {len(store):,} videos")
    if own:
        typer.echo(f"note: to train on it, say in {folder / FILE} who and what is seen (docs/features.md)", err=True)
