"""Features of long videos, in their order, with what happens in them: what detection and anomaly detection read.

data = load_untrimmed("puppets_untrimmed", "run:encoder_puppets")       # tasks.detection.Untrimmed
data = load_watched("surveillance_fight:0", "i3d", half=True)           # tasks.anomaly.Watched

    detection    puppets_untrimmed, thumos14                      a feature every quarter of a clip
    anomalies    puppets_anomalies, surveillance_fight[:FOLD]     every half of one
                 ucf_crime                                        every clip: its videos last for minutes

A feature is of a whole clip, around the middle of the frames that it stands for (`extract`, `hop`). Features are made
once, and found again in the cache. Files of THUMOS14 and UCF-Crime are read frame by frame and not decoded into it.
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
from vidveil.data.features.labels import FeatureRows
from vidveil.data.features.sets import FeatureSet, cached, on_device
from vidveil.data.puppets.long import Films
from vidveil.data.readers import thumos14, ucf_crime
from vidveil.data.readers.published import MARGIN
from vidveil.data.untrimmed import NORMAL, Untrimmed, frame_labels, length_of
from vidveil.data.whole import WholeFiles
from vidveil.models.encoders import check_encoder, load_encoder
from vidveil.tasks import anomaly, detection
from vidveil.tasks.anomaly.folds import FOLDS, folds_of, split_of

FIGHTS = "surveillance_fight"
DETECTION = {"puppets_untrimmed": 4, "thumos14": 4}
ANOMALY = {"puppets_anomalies": 2, FIGHTS: 2, "ucf_crime": 1}
"""Features in the time of a clip."""
CALM = "none"
"""What surveillance_fight calls a video in which nothing happens."""


@dataclass(frozen=True, eq=False)
class LongFeatures:
    """Of a set of long videos."""

    data: FeatureSet
    """One row a video: its features in the order of time; static clips, too, where videos are long."""
    told: tuple[Untrimmed, ...]
    """What happens in each."""
    frames: tuple[int, ...]
    """Of each video."""
    rate: tuple[float, ...]
    """Frames a second, of each."""
    hop: int
    """Frames that a feature stands for."""
    classes: tuple[str, ...]
    """Of what happens."""

    @property
    def features(self) -> list[NDArray[np.float32]]:
        """(T_i, D) a video."""
        clips = self.data.clips
        whole = clips.all.float().cpu().numpy()
        ends = zip(clips.first, clips.first + clips.count, strict=True)
        return [whole[first:end] for first, end in ends]

    def untrimmed(self) -> detection.Untrimmed:
        features, labels = self.features, self.data.labels
        seconds = [self.hop / rate for rate in self.rate]
        until = [len(own) * each for own, each in zip(features, seconds, strict=True)]
        return detection.Untrimmed(
            features,
            seconds,
            [self._segments(row, end) for row, end in enumerate(until)],
            labels.split.tolist(),
            self.classes,
            labels.name,
        )

    def _segments(self, row: int, until: float) -> list[tuple[float, float, int]]:
        """In seconds. What goes on after the last frame is cut off there."""
        video, rate = self.told[row], self.rate[row]
        found = []
        for event in video.events:
            start, end = event.start, event.end
            if video.unit == "frames":  # from 1, the last one is part of it
                start, end = (start - 1) / rate, end / rate
            if start < min(end, until):
                found.append((start, min(end, until), self.classes.index(event.label)))
        return found

    def watched(self) -> anomaly.Watched:
        labels = self.data.labels
        return anomaly.Watched(
            name=labels.name,
            features=tuple(self.features),
            label=np.array([video.label != NORMAL for video in self.told], np.int64),
            split=np.asarray(labels.split),
            frames=tuple(
                None if video.label != NORMAL and not video.events else frame_labels(video, frames)
                for video, frames in zip(self.told, self.frames, strict=True)
            ),
        )


def load_untrimmed(data: str, encoder: str, **how: Any) -> detection.Untrimmed:
    """Videos in which actions begin and end; `how` as of `long_features`."""
    return long_features(data, encoder, "detection", **how).untrimmed()


def load_watched(data: str, encoder: str, **how: Any) -> anomaly.Watched:
    """Videos in which something abnormal happens, or nothing; `how` as of `long_features`."""
    return long_features(data, encoder, "anomaly", **how).watched()


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
    """Features of the videos of a set by an encoder, with what is told of them.

    Args:
        task: what they are for, detection or anomaly.
        frames, size: of the encoder's clips; 0 is its own choice.
        strict: a video that cannot be decoded is an error; those that are read out of their files always are.
        hop: frames from one feature to the next; 0: as above.
    """
    each = features_a_clip(data, task)
    if not encoder:
        raise UsageError(f"features of {data} need an encoder: encoder=i3d")
    check_encoder(encoder)
    sees = load_encoder(encoder, frames=frames or None, size=size or None, half=half, device=device)
    if data.startswith(("thumos14", "ucf_crime")):
        clips, told = _whole(data, sees.size, root)
    else:
        clips, told = _decoded(data, sees.frames, sees.size, root, seed, strict)
    hop = hop or max(1, sees.frames * stride // each)
    static = 0 if data.partition(":")[0] == FIGHTS else STATIC  # videos of two seconds: they would be as many
    store = cached(clips, sees, stride=stride, static=static, hop=hop, device=device)
    found = on_device(clips.with_videos(FeatureRows(store)), store, device)
    lengths, rates = _lengths(clips, told)
    classes = thumos14.CLASSES if data == "thumos14" else tuple(clips.actions)
    return LongFeatures(replace(found, pixels=clips.videos), tuple(told), lengths, rates, hop, classes)


def features_a_clip(data: str, task: str) -> int:
    """In the time of one. Sets that do not tell when something happens, or whether, are refused."""
    known = DETECTION if task == "detection" else ANOMALY
    name, colon, argument = data.partition(":")
    if name not in known:
        told = ", ".join(known).replace(FIGHTS, f"{FIGHTS}:0 to :{FOLDS - 1}")
        what = "actions begin and end" if task == "detection" else "something abnormal happens"
        raise UsageError(f"{data} does not tell when {what}: take {told}")
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
        assert isinstance(films, Films)
        return films, films.told
    clips = load_data(name, frames=frames, size=size, root=root, seed=seed, strict=strict)
    if fold:  # the test of one is the validation of another
        clips = replace(clips, split=split_of(folds_of(clips, CALM), int(fold)), name=data)
    calm = clips.actions.index(CALM)
    told = [
        Untrimmed(clips.ids[row], Path(clips.ids[row]), split, NORMAL if action == calm else "fight", (), "frames")
        for row, (split, action) in enumerate(zip(clips.split.tolist(), clips.action.tolist(), strict=True))
    ]
    return clips, told


def _whole(data: str, size: int, root: Path | None) -> tuple[ClipSet, Sequence[Untrimmed]]:
    """Sets whose videos stay in their files."""
    if ":" in data:
        raise UsageError(f"{data.partition(':')[0]} takes nothing after a colon, not {data!r}")
    reader = thumos14 if data == "thumos14" else ucf_crime
    told = reader.read_videos(folder_of(data, root))
    actions = thumos14.CLASSES if data == "thumos14" else (NORMAL, *ucf_crime.CRIMES)
    clips = ClipSet(
        name=data,
        videos=WholeFiles([video.path for video in told], short_side=round(size * MARGIN)),
        ids=[video.name for video in told],
        split=np.array([video.split for video in told]),
        group=np.array([video.name for video in told]),
        action=np.array([actions.index(video.label) for video in told], np.int64),
        actions=actions,
        person=np.full(len(told), -1, np.int64),
        attributes=np.zeros((len(told), 0), np.float32),
    )
    return clips, told


def _lengths(clips: ClipSet, told: Sequence[Untrimmed]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Frames, and frames a second, of each video; where nobody asks for seconds, one frame a second."""
    if isinstance(clips.videos, WholeFiles):
        found = [length_of(video) for video in told]
        return tuple(one.frames for one in found), tuple(one.frames / one.seconds for one in found)
    rate = clips.rate if isinstance(clips, Films) else 1.0
    return tuple(len(clips.videos.frames(row)) for row in range(len(clips))), (rate,) * len(clips)
