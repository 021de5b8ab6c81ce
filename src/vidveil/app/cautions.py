"""What whoever shares an output should know: warnings, on the terminal and in the manifest."""

from collections.abc import Iterator

from vidveil.app.frame_counts import FrameCounts
from vidveil.app.manifest import kept_tags
from vidveil.app.task import Task
from vidveil.video.read import Reader
from vidveil.video.sources import Kind, Source
from vidveil.video.write import ImageWriter, Mp4Writer

VOICES = "the sound is kept, and voices identify people: --audio drop or distort does not keep them"

Writer = Mp4Writer | ImageWriter


def warnings_of(task: Task, source: Source, reader: Reader, writer: Writer, counts: FrameCounts) -> Iterator[str]:
    """Of a video that was read and written with these."""
    options, method, side = task.options, task.method, min(reader.size or (0, 0))
    yield from counts.warnings(writer.frames)
    caution = method.caution(side)
    if caution is not None:
        yield caution
    yield from method.warnings()
    if task.named.draws and options.detection.also_hide != "none":
        yield f"{task.spec} shows nothing that was filmed: --also-hide marks where somebody is"
    kept = () if writer.tracks is None else writer.tracks.kept
    if options.audio == "keep" and any(name.startswith("audio") for name in kept):
        yield VOICES
    if options.metadata == "keep" and source.kind is not Kind.IMAGE:
        tags = reader.info.tags
        if warning := kept_tags(tags, len(tags) + reader.info.unknown_tags):
            yield warning
