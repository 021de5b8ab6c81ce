"""Features of long videos in order, with their annotations: the input of detection and of anomaly detection.

    data = load_detection_videos("puppets_untrimmed", "run:encoder_puppets")       # tasks.detection.DetectionVideos
    data = load_anomaly_videos("surveillance_fight:0", "i3d", half=True)           # tasks.anomaly.AnomalyVideos

    detection    puppets_untrimmed, thumos14                      a feature every quarter of a clip
    anomalies    puppets_anomalies, surveillance_fight[:FOLD]     every half of a clip
                 ucf_crime                                        every clip: its videos last for minutes

A feature is of a whole clip, centred on the frames that it stands for (`extract`, `hop`). Features are computed once,
and cached. Files of THUMOS14 and UCF-Crime are read frame by frame; their pixels are not cached.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import UsageError
from vidveil.data import folder_of, load_data
from vidveil.data.clips import ClipSet
from vidveil.data.features.extract import STATIC
from vidveil.data.features.sets import Extraction, FeatureSet
from vidveil.data.puppets.long import PuppetVideos
from vidveil.data.readers import thumos14, ucf_crime
from vidveil.data.readers.subsampled import MARGIN
from vidveil.data.store.videos import UndecodedVideos
from vidveil.data.untrimmed import NORMAL, Untrimmed, frame_labels, length_of
from vidveil.data.video_files import VideoFiles
from vidveil.models.encoders import check_encoder, load_encoder
from vidveil.models.encoders.encoder import Encoder
from vidveil.tasks import anomaly, detection
from vidveil.tasks.anomaly.folds import FOLDS, folds_of, split_of

FIGHTS = "surveillance_fight"
DETECTION = {"puppets_untrimmed": 4, "thumos14": 4}
ANOMALY = {"puppets_anomalies": 2, FIGHTS: 2, "ucf_crime": 1}
"""Features per length of a clip."""
NO_FIGHT = "none"
"""The action of normal videos in surveillance_fight."""


@dataclass(frozen=True, eq=False)
class LongFeatures:
    """Features of a set of long videos."""

    data: FeatureSet
    """One row per video: its features in the order of time; static clips, too, where videos are long."""
    annotations: tuple[Untrimmed, ...]
    """Of each video."""
    frames: tuple[int, ...]
    """Number of frames of each video."""
    rate: tuple[float, ...]
    """Frames per second of each video."""
    hop: int
    """Frames that a feature stands for."""
    classes: tuple[str, ...]
    """Of events."""

    @property
    def features(self) -> list[NDArray[np.float32]]:
        """(T_i, D) per video."""
        clips = self.data.clips
        whole = clips.all.float().cpu().numpy()
        ends = zip(clips.first, clips.first + clips.count, strict=True)
        return [whole[first:end] for first, end in ends]

    def detection_videos(self) -> detection.DetectionVideos:
        features, labels = self.features, self.data.labels
        seconds = [self.hop / rate for rate in self.rate]
        until = [len(own) * each for own, each in zip(features, seconds, strict=True)]
        return detection.DetectionVideos(
            features,
            seconds,
            [self._segments(row, end) for row, end in enumerate(until)],
            labels.split.tolist(),
            self.classes,
            labels.name,
        )

    def _segments(self, row: int, until: float) -> list[tuple[float, float, int]]:
        """In seconds; cut off after the last feature."""
        video, rate = self.annotations[row], self.rate[row]
        segments = []
        for event in video.events:
            start, end = event.start, event.end
            if video.unit == "frames":  # counted from 1, the last one included
                start, end = (start - 1) / rate, end / rate
            if start < min(end, until):
                segments.append((start, min(end, until), self.classes.index(event.label)))
        return segments

    def anomaly_videos(self) -> anomaly.AnomalyVideos:
        labels = self.data.labels
        return anomaly.AnomalyVideos(
            name=labels.name,
            features=tuple(self.features),
            label=np.array([video.label != NORMAL for video in self.annotations], np.int64),
            split=np.asarray(labels.split),
            frames=tuple(
                None if video.label != NORMAL and not video.events else frame_labels(video, frames)
                for video, frames in zip(self.annotations, self.frames, strict=True)
            ),
        )


def load_detection_videos(data: str, encoder: str, **how: Any) -> detection.DetectionVideos:
    """Videos in which actions begin and end; `how` as of `long_features`."""
    return long_features(data, encoder, "detection", **how).detection_videos()


def load_anomaly_videos(data: str, encoder: str, **how: Any) -> anomaly.AnomalyVideos:
    """Normal and abnormal videos; `how` as of `long_features`."""
    return long_features(data, encoder, "anomaly", **how).anomaly_videos()


def long_features(
    data: str,
    encoder: str,
    task: str,
    *,
    frames: int = 0,
    size: int = 0,
    stride: int = 1,
    half: bool = False,
    root: Path | None = None,
    seed: int = 0,
    strict: bool = False,
    device: str = "cpu",
    hop: int = 0,
) -> LongFeatures:
    """Features of the videos of a set by an encoder, with their annotations.

    Args:
        task: detection or anomaly.
        frames, size: of the encoder's clips; 0 is the encoder's own choice.
        strict: a video that cannot be decoded is an error; for videos that stay in their files it always is.
        hop: frames from one feature to the next; 0: as above.
    """
    made, annotations, network = long_extraction(
        data, encoder, task, frames=frames, size=size, stride=stride, half=half, root=root, seed=seed, strict=strict,
        device=device, hop=hop,
    )  # fmt: skip
    clips = made.clips
    lengths, rates = _lengths(clips, annotations)
    classes = thumos14.CLASSES if data == "thumos14" else tuple(clips.actions)
    return LongFeatures(made.of(clips, network), tuple(annotations), lengths, rates, made.hop, classes)


def long_extraction(
    data: str,
    encoder: str,
    task: str,
    *,
    frames: int = 0,
    size: int = 0,
    stride: int = 1,
    half: bool = False,
    root: Path | None = None,
    seed: int = 0,
    strict: bool = False,
    device: str = "cpu",
    hop: int = 0,
) -> tuple[Extraction, Sequence[Untrimmed], Encoder]:
    """How `long_features` makes features, with the annotations of the videos and the encoder; nothing is extracted."""
    per_clip = features_per_clip(data, task)
    if not encoder:
        raise UsageError(f"features of {data} need an encoder: encoder=i3d")
    check_encoder(encoder)
    network = load_encoder(encoder, frames=frames or None, size=size or None, half=half, device=device)
    if data.startswith(("thumos14", "ucf_crime")):
        clips, annotations = _from_files(data, network.size, root)
    else:
        clips, annotations = _decoded(data, network.frames, network.size, root, seed, strict)
    hop = hop or max(1, network.frames * stride // per_clip)
    static = 0 if data.partition(":")[0] == FIGHTS else STATIC  # its videos last two seconds, as long as static clips
    made = Extraction(
        clips=clips, encoder=encoder, frames=frames, size=size, half=half, stride=stride, static=static, hop=hop,
        device=device,
    )  # fmt: skip
    return made, annotations, network


def features_per_clip(data: str, task: str) -> int:
    """How many features per length of a clip. UsageError for sets without the annotations that the task needs."""
    known = DETECTION if task == "detection" else ANOMALY
    name, colon, argument = data.partition(":")
    if name not in known:
        choices = ", ".join(known).replace(FIGHTS, f"{FIGHTS}:0 to :{FOLDS - 1}")
        what = "the start and end of actions" if task == "detection" else "abnormal events"
        raise UsageError(f"{data} has no annotations of {what}: take {choices}")
    if name == FIGHTS and colon and argument not in map(str, range(FOLDS)):
        raise UsageError(f"{FIGHTS} has {FOLDS} folds, :0 to :{FOLDS - 1}, not {data!r}")
    return known[name]


def _decoded(
    data: str, frames: int, size: int, root: Path | None, seed: int, strict: bool
) -> tuple[ClipSet, Sequence[Untrimmed]]:
    """Sets whose videos are in the cache as pixels."""
    name, _, fold = data.partition(":")
    if name != FIGHTS:
        films = load_data(data, frames=frames, size=size, root=root, seed=seed, strict=strict)
        assert isinstance(films, PuppetVideos)
        return films, films.annotations
    clips = load_data(name, frames=frames, size=size, root=root, seed=seed, strict=strict)
    if fold and not isinstance(clips.videos, UndecodedVideos):  # the test of one is the validation of another
        clips = replace(clips, split=split_of(folds_of(clips, NO_FIGHT), int(fold)), name=data)
    no_fight = clips.actions.index(NO_FIGHT)
    annotations = [
        Untrimmed(clips.ids[row], Path(clips.ids[row]), split, NORMAL if action == no_fight else "fight", (), "frames")
        for row, (split, action) in enumerate(zip(clips.split.tolist(), clips.action.tolist(), strict=True))
    ]
    return clips, annotations


def _from_files(data: str, size: int, root: Path | None) -> tuple[ClipSet, Sequence[Untrimmed]]:
    """Sets whose videos stay in their files."""
    if ":" in data:
        raise UsageError(f"{data.partition(':')[0]} takes nothing after a colon, not {data!r}")
    reader = thumos14 if data == "thumos14" else ucf_crime
    annotations = reader.read_videos(folder_of(data, root))
    actions = thumos14.CLASSES if data == "thumos14" else (NORMAL, *ucf_crime.CRIMES)
    clips = ClipSet(
        name=data,
        videos=VideoFiles([video.path for video in annotations], short_side=round(size * MARGIN)),
        ids=[video.name for video in annotations],
        split=np.array([video.split for video in annotations]),
        group=np.array([video.name for video in annotations]),
        action=np.array([actions.index(video.label) for video in annotations], np.int64),
        actions=actions,
        person=np.full(len(annotations), -1, np.int64),
        attributes=np.zeros((len(annotations), 0), np.float32),
    )
    return clips, annotations


def _lengths(clips: ClipSet, annotations: Sequence[Untrimmed]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Frames, and frames per second, of each video; 1 per second where no task needs seconds."""
    if isinstance(clips.videos, VideoFiles):
        lengths = [length_of(video) for video in annotations]
        return tuple(one.frames for one in lengths), tuple(one.frames / one.seconds for one in lengths)
    rate = clips.rate if isinstance(clips, PuppetVideos) else 1.0
    return tuple(len(clips.videos.frames(row)) for row in range(len(clips))), (rate,) * len(clips)
