"""The benchmark of detection, without deface and weights: its clips state the truth, and it counts correctly."""

import json
import math
from pathlib import Path
from typing import Any

import detection_people
import numpy as np
import pytest
import torch
from composed_clips import drawn_heads, scenes
from composed_clips.people import Ellipse, Person, Sprite
from composed_clips.scoring import (
    BANDS,
    FaceFrame,
    Hidden,
    Tracks,
    band_of,
    paired,
    score,
    share_covered,
    stretches,
    summary,
)
from composed_clips.stage import HEIGHT, WIDTH, Actor, Clip, Occluder, Pose, Scene, face_of, render
from deface_driver import drawn
from numpy.typing import NDArray

from vidveil import load
from vidveil.core.frame import Region
from vidveil.methods.regional import InRegions


def tracks(
    regions: dict[int, list[Hidden]], size: tuple[int, int] = (100, 80), frames: int = 2, pixels: str = "centres"
):
    return Tracks(*size, frames, pixels, regions)


# ---- geometry -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0, 20, 90, -45])
def test_a_tilted_ellipse_keeps_its_area_and_fills_its_box(angle: float) -> None:
    ellipse = Ellipse(100.3, 90.7, 40, 60, angle)
    mask = ellipse.mask(0, 0, 200, 200)
    assert mask.sum() == pytest.approx(math.pi * 40 * 60, rel=0.01)
    rows, columns = np.nonzero(mask)
    found = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert found == pytest.approx(ellipse.box(), abs=1.5)


def test_a_size_on_the_edge_belongs_to_the_band_above() -> None:
    assert [band_of(low) for low, _ in BANDS] == ["16-24", "24-32", "32-48", "48-80", "80-130", "130-200"]
    assert (band_of(23.99), band_of(15.9), band_of(200)) == ("16-24", "<16", ">=200")


def test_the_share_covered_is_that_of_the_wanted_pixels_alone() -> None:
    wanted, hidden = np.zeros((10, 10), bool), np.zeros((10, 10), bool)
    wanted[2:6], hidden[4:] = True, True
    assert share_covered(hidden, wanted) == 0.5
    assert share_covered(hidden, np.zeros((10, 10), bool)) == 1


@pytest.mark.parametrize("box", [(10.3, 8.0, 45.9, 61.2), (-12.0, 30.1, 20.0, 99.0), (60.5, 60.5, 63.0, 65.1)])
@pytest.mark.parametrize("shape", ["ellipse", "box"])
def test_what_counts_as_hidden_is_what_vidveil_paints(box: tuple[float, ...], shape: str) -> None:
    region = Region(box=box, shape=shape, kind="faces", track=1, score=1.0, source="detected")
    painter = InRegions(load("solid"), find_regions=lambda _: [(region,)])
    painted = painter.anonymize(torch.ones(3, 1, 80, 100)).video[0, 0].numpy() < 0.5
    np.testing.assert_array_equal(tracks({0: [Hidden(box, shape)]}, pixels="touched").mask(0), painted)


def test_what_counts_as_hidden_is_what_deface_draws() -> None:
    draw = pytest.importorskip("skimage.draw", reason="deface draws with scikit-image: pip install -e '.[dev]'")
    for x1, y1, x2, y2 in ((10, 12, 41, 50), (0, 0, 22, 35), (60, 40, 99, 79), (5, 5, 8, 9)):
        there = np.zeros((80, 100), bool)
        rows, columns = draw.ellipse((y2 - y1) // 2, (x2 - x1) // 2, (y2 - y1) // 2, (x2 - x1) // 2)
        there[rows + y1, columns + x1] = True
        box = tuple(drawn(x1, y1, x2, y2))
        np.testing.assert_array_equal(tracks({0: [Hidden(box, "ellipse")]}).mask(0), there)


def test_a_region_without_a_box_hides_the_whole_frame_and_only_that_one() -> None:
    found = tracks({1: [Hidden(None, "box")]})
    assert (found.mask(0).mean(), found.mask(1).mean()) == (0, 1)


# ---- composed clips -----------------------------------------------------------------------------------------------


def plain(layers: tuple[Actor | Occluder, ...], frames: int = 1) -> Clip:
    backdrop = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    scene = Scene(backdrop, lambda _: (WIDTH / 2, HEIGHT / 2, 1.0), layers, frames, noise=0.0)
    return Clip("plain", 1, (scene,))


def cardboard(tone: int = 200) -> Person:
    """Nothing but a face, 100 x 120, on a canvas of 200 x 200."""
    rgba = np.zeros((200, 200, 4), np.uint8)
    face = Ellipse(100, 90, 50, 60)
    rgba[face.mask(0, 0, 200, 200)] = (tone, 150, 120, 255)
    sprite = Sprite(rgba, face)
    return Person("cardboard", lambda _: sprite, np.zeros((200, 200, 4), np.uint8), (100, 150))


def wall(x: int, y: int, width: int, height: int) -> Occluder:
    return Occluder(np.full((height, width, 4), 255, np.uint8), lambda _: (x, y))


@pytest.fixture(scope="module")
def drawn_person() -> Person:
    return drawn_heads.person(drawn_heads.Looks.draw(np.random.default_rng(5)))


def test_the_face_is_painted_where_the_truth_says(drawn_person: Person) -> None:
    actor = Actor(drawn_person, "still", lambda _: Pose(600, 300, 120, 10), 1.1)
    (with_face, _, found), (without, _, nobody) = (next(render(plain(layers))) for layers in ((actor,), ()))
    changed = (with_face != without).any(-1)
    ellipse = found[0].ellipse
    assert nobody == []
    assert ellipse.size == pytest.approx(120, rel=0.01)
    assert changed[ellipse.mask(0, 0, WIDTH, HEIGHT)].mean() > 0.97  # corners of an ellipse may pass a cheek
    above_chin = slice(0, int(ellipse.y + ellipse.ry))
    head = ellipse.grown(1.75).mask(0, 0, WIDTH, HEIGHT)  # with its hair, a head is larger than 1.5 faces
    assert not (changed & ~head)[above_chin].any()


def test_a_painted_ellipse_lies_on_its_truth_to_a_pixel() -> None:
    actor = Actor(cardboard(), "still", lambda _: Pose(400.25, 300.75, 60, -15), 0.9)
    frame, seen, found = next(render(plain((actor,))))
    painted = (frame != 90).any(-1)
    truth = found[0].ellipse.mask(0, 0, WIDTH, HEIGHT)
    assert (painted & truth).sum() / (painted | truth).sum() > 0.95
    np.testing.assert_array_equal(seen == found[0].face, truth)


def test_the_same_seed_makes_the_same_clip_and_another_seed_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "person", lambda rng: cardboard(int(rng.integers(100, 250))))

    def begin(seed: int) -> tuple[NDArray[np.uint8], list[dict[str, Any]]]:
        frame, _, found = next(render(next(scenes.clips(seed, ["sizing"]))))
        return frame, [one.as_json() for one in found]

    first, again, other = begin(1), begin(1), begin(2)
    np.testing.assert_array_equal(first[0], again[0])
    assert first[1] == again[1] != other[1]


def test_a_head_is_drawn_alike_every_time(drawn_person: Person) -> None:
    again = drawn_heads.person(drawn_heads.Looks.draw(np.random.default_rng(5)))
    np.testing.assert_array_equal(drawn_person.head(0.0).rgba, again.head(0.0).rgba)
    np.testing.assert_array_equal(drawn_person.body, again.body)


def test_a_face_behind_a_wall_counts_by_what_is_left_of_it() -> None:
    for covered, counts in ((0.3, True), (0.5, False), (1.0, False)):
        actor = Actor(cardboard(), "still", lambda _: Pose(400, 300, 100))
        width = 2 * face_of(actor, Pose(400, 300, 100)).rx
        left = round(400 - width / 2 + _cut_at(covered) * width)
        found = next(render(plain((actor, wall(left - 300, 0, 300, HEIGHT)))))[2][0]
        assert found.visible == pytest.approx(1 - covered, abs=0.03)
        assert found.counts is counts


def _cut_at(share: float) -> float:
    """Where a line across a unit circle's width leaves this share of its area to the left."""
    at = np.linspace(0, 1, 1001)
    x = 2 * at - 1
    area = (x * np.sqrt(1 - x**2) + np.arcsin(x)) / np.pi + 0.5
    return float(np.interp(share, area, at))


def test_who_stands_in_front_covers_the_face_behind() -> None:
    behind = Actor(cardboard(), "crossing", lambda _: Pose(400, 300, 80))
    front = Actor(cardboard(), "crossing", lambda _: Pose(400, 300, 120))
    _, _, (far, near) = next(render(plain((behind, front))))
    assert (far.visible, far.counts) == (0, False)
    assert (near.visible, near.counts) == (1, True)


def test_a_turned_face_moves_to_its_side_and_stops_counting(drawn_person: Person) -> None:
    def at(yaw: float) -> Any:
        return next(render(plain((Actor(drawn_person, "turning", lambda _: Pose(600, 300, 90, 0, yaw)),))))[2][0]

    ahead, side, gone = at(0), at(48), at(90)
    assert side.ellipse.x > ahead.ellipse.x + 5
    assert side.ellipse.rx < ahead.ellipse.rx
    assert (ahead.counts, side.counts, gone.counts) == (True, True, False)


def test_every_play_keeps_faces_within_the_bands_and_in_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "person", lambda _: cardboard())
    monkeypatch.setattr(scenes, "clutter", lambda *_: np.zeros((1, 1, 3), np.uint8))
    bands = set()
    for clip in scenes.clips(3):
        for scene in clip.scenes:
            for actor in (layer for layer in scene.layers if isinstance(layer, Actor)):
                poses = [actor.pose(frame / 30) for frame in range(scene.frames)]
                assert all(16 <= pose.size < 200 for pose in poses if pose)
                assert any(0 < pose.x < WIDTH and 0 < pose.y < HEIGHT for pose in poses if pose), clip.name
                bands |= {band_of(pose.size) for pose in poses if pose}
    assert bands >= {band_of(low) for low, _ in BANDS}


# ---- scoring ------------------------------------------------------------------------------------------------------


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Two frames of 100 x 80: one face in both, of which the right half is hidden behind something in the second."""
    folder = tmp_path / "clips" / "hand_made"
    folder.mkdir(parents=True)
    ellipse = Ellipse(40, 40, 10, 12)
    seen = np.zeros((2, 80, 100), np.uint8)
    seen[:] = ellipse.mask(0, 0, 100, 80)
    seen[1, :, 40:] = 0
    about = {"face": 1, "kind": "drawn", "behaviour": "still", "ellipse": [40, 40, 10, 12, 0], "yaw": 0}
    faces = [{**about, "frame": frame, "visible": 1.0, "counts": True} for frame in range(2)]
    np.savez_compressed(folder / "seen.npz", seen=seen)
    facts = {"clip": "hand_made", "width": 100, "height": 80, "frames": 2, "faces": faces}
    (folder / "truth.json").write_text(json.dumps(facts))
    return folder


def test_a_mask_on_the_face_is_full_recall_and_no_false_area(clip: Path) -> None:
    mask = Hidden((28, 26, 52, 54), "ellipse")
    scores = summary([score(clip, tracks({0: [mask], 1: [mask]}))])
    assert scores["all"] == {
        "face_frames": 2,
        "uncovered": 0,
        "recall": 1.0,
        "mask_size": pytest.approx(1.18, abs=0.02),
    }
    assert scores["false_area"] == 0
    assert scores["bands"]["16-24"]["face_frames"] == 2
    assert scores["uncovered"] == []


def test_a_frame_without_a_mask_is_listed_as_uncovered(clip: Path) -> None:
    mask = Hidden((28, 26, 52, 54), "ellipse")
    scores = summary([score(clip, tracks({1: [mask]}))])
    assert scores["all"]["recall"] == 0.5
    assert scores["uncovered"] == [["hand_made", 1, 0, 0]]


def test_only_what_is_seen_of_a_face_has_to_be_hidden(clip: Path) -> None:
    left_half = Hidden((28, 26, 40, 54), "box")
    shares = [face.share for face in score(clip, tracks({0: [left_half], 1: [left_half]})).faces]
    assert shares == [pytest.approx(0.5, abs=0.02), 1.0]


def test_nine_tenths_are_enough_and_less_is_not(clip: Path) -> None:
    def covered(bottom: int) -> bool:
        return score(clip, tracks({0: [Hidden((20, 20, 60, bottom), "box")]})).faces[0].covered

    assert [covered(bottom) for bottom in (46, 47, 49, 52)] == [False, False, True, True]


def test_what_is_hidden_beside_heads_is_false_area(clip: Path) -> None:
    head = math.pi * 15 * 18 / 8000
    whole = score(clip, tracks({0: [Hidden(None, "box")]}))
    assert whole.false_area == [pytest.approx(1 - head, abs=0.002), 0]
    next_to = score(clip, tracks({0: [Hidden((80, 0, 100, 20), "box")]}))
    assert next_to.false_area[0] == 400 / 8000


def test_tracks_of_another_clip_are_refused(clip: Path) -> None:
    with pytest.raises(ValueError, match="another clip"):
        score(clip, tracks({}, frames=3))


def test_tracks_are_read_from_their_file(clip: Path, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"tracks": 1, "width": 100, "height": 80, "frames": 2}]
    lines += [{"frame": 1, "track": 1, "kind": "faces", "box": [28, 26, 52, 54], "shape": "ellipse"}]
    (tmp_path / "hand_made.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = Tracks.read(tmp_path / "hand_made.jsonl")
    assert found == tracks({1: [Hidden((28, 26, 52, 54), "ellipse")]}, pixels="touched")
    scores = summary([score(clip, found)])
    assert (scores["all"]["recall"], scores["uncovered"]) == (0.5, [["hand_made", 1, 0, 0]])


def face_frame(frame: int, share: float, size: float = 20, face: int = 1) -> FaceFrame:
    return FaceFrame("clip", frame, face, "drawn", "still", size, share, None)


def test_pairs_are_counted_by_who_covers_them() -> None:
    ours = [face_frame(i, share, 20 + 10 * (i > 2)) for i, share in enumerate((1.0, 1.0, 0.5, 0.2))]
    theirs = [face_frame(i, share, 20 + 10 * (i > 2)) for i, share in enumerate((1.0, 0.8, 0.95, 0.0))]
    found = paired(ours, theirs)
    assert found["all"] == {
        "face_frames": 4, "both": 1, "only_ours": 1, "only_theirs": 1, "neither": 1, "difference": 0.0,
    }  # fmt: skip
    assert found["24-32"]["neither"] == 1


def test_frames_in_a_row_become_one_stretch() -> None:
    found = stretches(face_frame(frame, 0, face=face) for frame, face in ((3, 1), (1, 1), (2, 1), (5, 1), (6, 2)))
    assert found == [["clip", 1, 1, 3], ["clip", 1, 5, 5], ["clip", 2, 6, 6]]


# ---- people --------------------------------------------------------------------------------------------------


def test_people_are_scored_by_their_boxes() -> None:
    marked = {0: [[10.0, 10.0, 30.0, 60.0], [50.0, 10.0, 60.0, 70.0]]}
    found = detection_people.people_score(
        tracks({0: [Hidden((8, 8, 32, 62), "box"), Hidden((90, 0, 100, 10), "box")]}), marked
    )
    assert found["bands"]["0-80"] == [1, 2]
    assert found["uncovered"] == [[0, [50, 10, 60, 70], 0.0]]
    assert found["false_area"] == pytest.approx(100 / 8000)


def test_every_marked_person_is_a_box_with_an_area() -> None:
    labels = json.loads(detection_people.LABELS.read_text("utf-8"))
    boxes = [box for video in labels.values() for found in video.values() for box in found]
    assert len(boxes) >= 50
    assert all(0 <= x0 < x1 and 0 <= y0 < y1 for x0, y0, x1, y1 in boxes)
