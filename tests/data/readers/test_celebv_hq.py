"""CelebV-HQ as its downloader leaves it."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.data.made_celebv_hq import clip, made, video
from tests.media import Film
from vidveil.core.errors import DataError
from vidveil.data import available, load_data
from vidveil.data.readers import celebv_hq

CHANGES = {
    "sep_flag": True,
    "labels": [
        {"emotion": "happy", "start_sec": 0, "end_sec": 1},
        {"emotion": "neutral", "start_sec": 1, "end_sec": 2.5},
        {"emotion": "sadness", "start_sec": 2.5, "end_sec": 3},
        {"emotion": "happy", "start_sec": 3, "end_sec": 4},
    ],
}


def loaded(root: Path, draw: str | None = None) -> "celebv_hq.ClipSet":
    return celebv_hq.load(draw, root=root, size=28)


def test_celebv_hq_is_read_as_the_downloader_leaves_it(tmp_path):
    ids = [i for i in range(100) if celebv_hq.split_of(video(i), "0") == "train"][:1]
    ids += [i for i in range(100) if celebv_hq.split_of(video(i), "0") == "test"][:1]
    folder = made(tmp_path, {f"{video(i)}_0": clip(i, CHANGES if i == ids[0] else None) for i in ids})
    for n, i in enumerate(ids):
        Film(frames=12 + 4 * n, width=64, height=64).make(folder / "35666" / f"{video(i)}_0.mp4")
    clips = load_data("celebv_hq", root=tmp_path, frames=4, size=28)
    assert available("celebv_hq", tmp_path).startswith("part: ")
    assert clips.ids == [f"{video(i)}_0" for i in ids]
    assert clips.split.tolist() == ["train", "test"]
    assert clips.group.tolist() == [video(i) for i in ids]
    assert clips.actions == celebv_hq.EXPRESSIONS
    assert clips.attribute_names == ("young", "pointy_nose", "male", "rosy_cheeks", "brown_hair")
    assert clips.attributes.tolist() == [[0, 1, 1, 0, 1]] * 2
    assert set(clips.person.tolist()) == {-1}
    assert clips.videos.frames(0).shape == (6, 32, 32, 3)


@pytest.mark.usefixtures("undecoded")
def test_of_several_expressions_the_one_that_lasts_longest_counts(tmp_path):
    tie = [{"emotion": word, "start_sec": start, "end_sec": start + 1} for start, word in ((1, "fear"), (0, "disgust"))]
    made(
        tmp_path,
        {
            f"{video(0)}_0": clip(0, CHANGES),  # happy twice for a second, neutral once for longer than one
            f"{video(1)}_0": clip(1, {"sep_flag": True, "labels": tie}),
            f"{video(2)}_0": clip(2, {"sep_flag": False, "labels": "Anger"}),
        },
    )
    clips = loaded(tmp_path)
    assert [clips.actions[i] for i in clips.action] == ["happy", "disgust", "anger"]
    assert clips.tags["expressions"].tolist() == [3, 2, 1]


@pytest.mark.usefixtures("undecoded")
def test_clips_of_one_video_stay_together_and_another_draw_parts_them_otherwise(tmp_path):
    made(tmp_path, {f"{video(i)}_{n}": clip(i) for i in range(40) for n in range(2)})
    splits = [loaded(tmp_path, draw).split.tolist() for draw in (None, "0", "1")]  # which refuses a torn group
    assert splits[0] == splits[1] != splits[2]
    assert loaded(tmp_path, "1").name == "celebv_hq:1"


def test_training_is_60_percent_and_a_tenth_of_it_is_validation():
    count = Counter(celebv_hq.split_of(video(i), "0") for i in range(20_000))
    assert [count[split] / 20_000 for split in ("train", "val", "test")] == pytest.approx([0.54, 0.06, 0.4], abs=0.01)


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("place", celebv_hq.CELEBV_HQ)
def test_clips_that_are_gone_from_youtube_are_left_out_and_counted(tmp_path, capsys, place):
    folder = made(tmp_path, place=place)
    whole = dict(zip(loaded(tmp_path).ids, loaded(tmp_path).split.tolist(), strict=True))
    assert capsys.readouterr().err == ""
    (folder / place / f"{video(0)}_0.mp4").unlink()
    (folder / place / f"{video(3)}_1.mp4").write_bytes(b"")
    clips = loaded(tmp_path)
    assert capsys.readouterr().err == "celebv_hq: 18 of the 20 clips of celebvhq_info.json are there\n"
    assert all(whole[name] == split for name, split in zip(clips.ids, clips.split.tolist(), strict=True))
    for path in (folder / place).iterdir():
        path.unlink()
    with pytest.raises(
        DataError, match=r"none of the 20 clips that .*info\.json lists is there: they are called -_ytb0"
    ):
        loaded(tmp_path)


@pytest.mark.usefixtures("undecoded")
def test_labels_are_those_of_the_clip_and_not_of_its_neighbour(tmp_path):
    bits = [[int(b) for b in f"{i:06b}"] for i in range(20)]
    made(tmp_path, {f"{video(i)}_0": clip(i, appearance=bits[i]) for i in range(20)})
    clips = loaded(tmp_path)
    np.testing.assert_array_equal(clips.attributes, np.array(bits)[:, [2, 4, 1, 3, 5]])
