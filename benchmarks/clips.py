"""Clips for benchmarks: drawn like what a hand-held camera sees, repeated without decoding, described."""

import math
from dataclasses import dataclass
from pathlib import Path

RATE = 30


@dataclass(frozen=True)
class Clip:
    name: str
    width: int
    height: int
    fps: float
    frames: int
    codec: str
    bytes: int
    drawn: bool


def draw(path: Path, height: int, frames: int) -> None:
    """What a hand-held camera sees: a textured scene that drifts, things that move in it, noise of the sensor."""
    import av
    import cv2
    import numpy as np

    rng = np.random.default_rng(1)
    width, margin = height * 16 // 9 // 2 * 2, height // 2
    size = (width + margin, height + margin)
    scene = np.full((size[1], size[0], 3), 115, np.float32)
    for cells in (6, 24, 96, 384):  # large shades to fine grain, each weaker than the last
        grid = rng.normal(0, 1, (cells, cells, 1)) + rng.normal(0, 0.25, (cells, cells, 3))  # more shade than colour
        scene += cv2.resize(grid.astype(np.float32) * 50 * cells**-0.3, size, interpolation=cv2.INTER_CUBIC)
    wall = scene.clip(0, 255).astype(np.uint8)
    noise = [rng.normal(0, 3.5, (height, width)).astype(np.int16) for _ in range(12)]
    things = rng.uniform(0, 1, (8, 6))
    part = path.with_name(path.name + ".part")
    with av.open(str(part), "w", format="mp4") as output:
        stream = output.add_stream("libx264", rate=RATE, options={"preset": "veryfast", "crf": "20"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for i in range(frames):
            seconds = i / RATE
            drift = (0.48 * margin * math.sin(seconds * speed) for speed in (0.9, 0.6))  # by parts of pixels
            middle = [side / 2 + way for side, way in zip(size, drift, strict=True)]
            picture = cv2.getRectSubPix(wall, (width, height), middle)
            for a, b, c, d, e, f in things:
                sway, bob = 0.3 * math.sin(seconds + 9 * c), 0.3 * math.cos(3 * e * seconds)
                centre = (int(width * (a + sway)), int(height * (b + bob)))
                axes = (int(height * (0.03 + 0.1 * d)), int(height * (0.05 + 0.15 * e)))
                colour = (255 * c, 255 * d, 255 * f)
                cv2.ellipse(picture, centre, axes, 90 * f * seconds, 0, 360, colour, -1, cv2.LINE_AA)
            planes = cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420)
            planes[:height] = (planes[:height] + noise[int(rng.integers(len(noise)))]).clip(16, 235)
            output.mux(stream.encode(av.VideoFrame.from_ndarray(np.asarray(planes, np.uint8), "yuv420p")))
        output.mux(stream.encode(None))
    part.replace(path)


def copy_packets(source: Path, target: Path, times: int = 1, limit: int | None = None) -> None:
    """The picture of `source`, `times` after another or only its first `limit` packets, without decoding."""
    import av

    with av.open(str(target), "w", format="mp4") as output:
        copy = None
        shift = 0
        for _ in range(times):
            with av.open(str(source)) as container:
                stream = container.streams.video[0]
                copy = copy or output.add_stream_from_template(stream)
                end = shift
                for count, packet in enumerate(container.demux(stream)):
                    if packet.pts is None or packet.dts is None or count == limit:
                        break
                    packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                    end = max(end, packet.pts + (packet.duration or 0))
                    packet.stream = copy
                    output.mux(packet)
                shift = end


def describe(path: Path, name: str, drawn: bool) -> Clip:
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = stream.frames or sum(packet.size > 0 for packet in container.demux(stream))
        fps = float(stream.average_rate or RATE)
        return Clip(name, stream.width, stream.height, fps, frames, stream.codec.name, path.stat().st_size, drawn)
