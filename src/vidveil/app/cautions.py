"""What whoever shares an output should know: warnings, on the terminal and in the manifest."""

from collections.abc import Iterator

from vidveil.app.frame_counts import FrameCounts
from vidveil.app.manifest import kept_tags
from vidveil.app.task import Task
from vidveil.methods.masking.masker import masker_in
from vidveil.video.read import Reader
from vidveil.video.sources import Kind, Source
from vidveil.video.write import ImageWriter, Mp4Writer

VOICES = "the sound is kept, and voices identify people: --audio drop or distort does not keep them"

Writer = Mp4Writer | ImageWriter


def warnings_of(task: Task, source: Source, reader: Reader, writer: Writer, counts: FrameCounts) -> Iterator[str]:
    """Of a video that was read and written with these."""
    options, side, learned = task.options, min(reader.size or (0, 0)), masker_in(task.method)
    yield from counts.warnings(writer.frames)
    caution = task.method.caution(side)
    if caution is None and learned is not None and learned.draws:  # what is hidden on top changes nothing of a drawing
        caution = learned.caution(side)
    if caution is not None:
        yield caution
    if learned is not None and learned.scorer.trained_on_puppets:
        yield f"{learned.spec} was trained on synthetic people: on other videos it is an experiment"
    if learned is not None and not learned.scorer.learned:
        yield f"{learned.spec} predicted the action no better than chance: train it longer"
    if learned is not None and learned.draws and options.detection.also_hide != "none":
        yield f"{learned.spec} shows nothing that was filmed: --also-hide marks where somebody is"
    kept = () if writer.tracks is None else writer.tracks.kept
    if options.audio == "keep" and any(name.startswith("audio") for name in kept):
        yield VOICES
    if options.metadata == "keep" and source.kind is not Kind.IMAGE:
        tags = reader.info.tags
        if warning := kept_tags(tags, len(tags) + reader.info.unknown_tags):
            yield warning
