"""Tracks written, edited and rendered; tracks left visible; runs that need not be done again."""

import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import vidveil
from tests.detect.hiding import HIDDEN, hide
from tests.detect.stage import RED, YELLOW, Film, Head, Shot, film, matrix_of, still, turned, walk
from tests.media import lumas
from vidveil.app.jobs import Options, Status
from vidveil.core.anonymizer import FrameMethod
from vidveil.core.errors import InputError, UsageError
from vidveil.detect.settings import DetectionSettings


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path, regions):
    path.write_text("".join(json.dumps(line) + "\n" for line in regions))
    return path


class Painter(FrameMethod):
    """Paints what a tracks file says, from its description alone: black where a shape touches a pair of pixels."""

    def __init__(self, regions):
        super().__init__("solid")
        self.regions = regions

    def hide(self, frame):
        wanted = [line for line in self.regions if line["frame"] == frame.index]
        if any(line["box"] is None for line in wanted):
            return frame.black(None)

        def paint(source, target, shrink):
            target[:] = source
            for line in wanted:
                left, top = (np.floor(v / 2) * 2 for v in line["box"][:2])
                right, bottom = (np.ceil(v / 2) * 2 for v in line["box"][2:])
                for row, column in np.ndindex(*target.shape):
                    x0, y0 = column * shrink, row * shrink
                    if not (left <= x0 < right and top <= y0 < bottom):
                        continue
                    if line.get("shape") == "ellipse":
                        x = min(max((left + right) / 2, x0), x0 + shrink) - (left + right) / 2
                        y = min(max((top + bottom) / 2, y0), y0 + shrink) - (top + bottom) / 2
                        if (2 * x / (right - left)) ** 2 + (2 * y / (bottom - top)) ** 2 > 1:
                            continue
                    target[row, column] = 0 if shrink == 1 else 128

        return frame.paint(paint)

    def paint(self, source, target, shrink, /):
        raise NotImplementedError


def test_an_edited_tracks_file_is_rendered_exactly_and_without_any_detector(tmp_path):
    scene = film(Head(walk(30, 30, 30)), Head(still(80, 60), lambda _: RED), frames=12, width=112, height=80)
    hide(scene, tmp_path, tracks_out=tmp_path / "t.jsonl")
    header, *regions = lines(tmp_path / "t.jsonl")
    assert header | {"video": ""} == {
        "tracks": 1, "width": 112, "height": 80, "frames": 12, "video": "", "start": None, "end": None,
    }  # fmt: skip
    assert len(header["video"]) == 16
    first, second = sorted({line["track"] for line in regions})
    regions = [line for line in regions if line["track"] == first and line["frame"] != 5]
    next(line for line in regions if line["frame"] == 3)["box"] = [61.2, -7.0, 99.9, 31.5]
    regions.append({"frame": 5, "track": 9, "box": None})
    regions.append({"frame": 7, "track": second, "box": [70, 50, 130, 95.5]})
    write(tmp_path / "t.jsonl", [header, *regions])
    script = f"""
import sys
class NoRuntime:
    def find_spec(self, name, path=None, target=None):
        assert name != "onnxruntime", "a detector's runtime was loaded"
sys.meta_path.insert(0, NoRuntime())
import vidveil
from vidveil.detect.detectors import Detector
from vidveil.detect.settings import DetectionSettings
from vidveil.app.jobs import Options
from pathlib import Path
def refuse(*_): raise AssertionError("a detector was made")
Detector.__init__ = refuse
options = Options(overwrite=True, detection=DetectionSettings(tracks_in=Path({str(tmp_path / "t.jsonl")!r})))
(outcome,) = vidveil.anonymize({str(scene.path)!r}, method="solid", output={str(tmp_path / "a.mp4")!r}, options=options)
assert outcome.error is None, outcome.error
assert "onnxruntime" not in sys.modules
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    vidveil.anonymize(scene.path, method=Painter(regions), region="frame", output=tmp_path / "b.mp4")
    assert (lumas(tmp_path / "a.mp4") == lumas(tmp_path / "b.mp4")).all()
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_tracks_that_nobody_edited_hide_what_was_hidden(tmp_path):
    scene = film(Head(walk(60, 80, 40), turned((0.3, 0.9))), frames=40, matrix=matrix_of("90"))
    hide(scene, tmp_path, tracks_out=tmp_path / "t.jsonl")
    again = hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl", again=True)
    assert not again.bad
    assert again.manifest["detection"]["looked_for"] == ["discs"]
    assert again.manifest["order"]["weights"] is None


def test_frames_that_could_not_be_searched_stay_black_when_their_tracks_are_rendered(tmp_path):
    scene = film(Head(still(100, 80), turned((0.78, 0.82), hue=YELLOW)), frames=50)
    hide(scene, tmp_path, tracks_out=tmp_path / "t.jsonl")
    assert not hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl", again=True).bad


def test_tracks_of_black_frames_say_so(tmp_path):
    scene = film(Head(still(100, 80), turned((0.6, 1.4))), frames=50)
    hide(scene, tmp_path, on_lost="hide", tracks_out=tmp_path / "t.jsonl")
    gone = {line["frame"] for line in lines(tmp_path / "t.jsonl")[1:] if line["box"] is None}
    assert gone == set(range(15, 35))


@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_a_track_left_visible_shows_and_nobody_else(tmp_path, delay):
    scene = film(Head(walk(60, 40, 30)), Head(still(180, 110), lambda _: RED))
    hide(scene, tmp_path, tracks_out=tmp_path / "t.jsonl")
    one = next(line["track"] for line in lines(tmp_path / "t.jsonl")[1:] if line["box"][0] < 100)
    done = hide(scene, tmp_path, leave_visible=(one,), delay=delay, again=True)
    assert done.shown_of(0).min() > 0.9
    assert done.shown_of(1).max() < HIDDEN
    assert done.manifest["order"]["detection"]["leave_visible"] == [one]


def test_a_number_that_no_track_of_the_file_has_is_refused_before_anything_is_replaced(tmp_path):
    scene = film(Head(walk(60, 40, 30)), frames=20)
    hide(scene, tmp_path, tracks_out=tmp_path / "t.jsonl")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    listed = ", ".join(map(str, sorted({line["track"] for line in lines(tmp_path / "t.jsonl")[1:]})))
    refused = hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl", leave_visible=(77,), again=True)
    assert str(refused.outcome.error) == f"t.jsonl has no track 77: its tracks are {listed}"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_track_that_is_not_there_uncovers_nobody_and_is_warned_of(tmp_path):
    done = hide(film(Head(walk(60, 40, 30))), tmp_path, leave_visible=(77,))
    assert not done.bad
    assert "--leave-visible 77: there is no such track" in done.manifest["warnings"]


def test_tracks_left_visible_are_of_one_video(tmp_path):
    paths = [film(Head(still(60, 60)), frames=3).make(tmp_path / name) for name in ("a.mp4", "b.mp4")]
    options = Options(detection=DetectionSettings(region="discs", leave_visible=(1,)))
    with pytest.raises(UsageError, match="take one source"):
        vidveil.anonymize(*paths, method="solid", options=options)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mp4", "b.mp4"]


@pytest.mark.parametrize("aside", [0, 8, 16, 24])
def test_a_track_is_not_left_visible_beyond_a_change_of_the_picture_that_may_be_a_cut(tmp_path, aside):
    one, other = Head(still(100, 80)), Head(still(100 + aside, 80), lambda _: RED)
    scene = Film(shots=[Shot([one], 23, light=100), Shot([other], 27, light=115)])
    done = hide(scene, tmp_path, leave_visible=(1,))
    assert done.exposed[:20].min() > 0.9
    assert done.exposed[23:].max() < HIDDEN


def test_an_insert_of_somebody_else_at_the_same_place_is_not_left_visible(tmp_path):
    one, other = Head(still(100, 80)), Head(still(100, 80), lambda _: RED)
    scene = Film(shots=[Shot([one], 25, light=80), Shot([other], 7, light=140), Shot([one], 25, light=80)])
    done = hide(scene, tmp_path, leave_visible=(1,))
    assert done.exposed[:20].min() > 0.9
    assert done.exposed[25:32].max() < HIDDEN


@pytest.mark.parametrize("away", [20.0, 30.0])
def test_nobody_else_is_left_visible_when_two_meet_and_turn_back(tmp_path, away):
    """They come close and go back where they came from: whoever followed them by their speed alone swaps them."""

    def way(x, sign):
        return lambda t: (x + sign * 75 * (1 - abs(t - 1)), 80 + sign * 3)

    gap = 75 + away / 2
    pair = Head(way(120 - gap, 1)), Head(way(120 + gap, -1), lambda _: RED)
    scene = film(*pair, frames=50)
    hide(scene, tmp_path, tracks_out=tmp_path / "t.jsonl")
    one = next(line["track"] for line in lines(tmp_path / "t.jsonl")[1:] if line["box"][0] < 60)
    done = hide(scene, tmp_path, leave_visible=(one,), again=True)
    assert done.shown_of(0)[0] > 0.9
    assert done.shown_of(1).max() < HIDDEN


def test_a_run_is_done_again_with_other_detection_settings_only(tmp_path):
    scene = film(Head(still(60, 60)), frames=10)
    assert hide(scene, tmp_path).outcome.status is Status.DONE
    assert hide(scene, tmp_path).outcome.status is Status.UP_TO_DATE
    others = ({"on_lost": "hide"}, {"delay": 0.5}, {"shape": "box"}, {"leave_visible": (4,)})
    for other in (*others, {"also_hide": "discs"}):
        assert hide(scene, tmp_path, **other).outcome.status is Status.DONE, other
        assert hide(scene, tmp_path, **other).outcome.status is Status.UP_TO_DATE, other
    assert "was made with --also-hide discs" in str(hide(scene, tmp_path).outcome.error)


def test_a_changed_tracks_file_is_rendered_again(tmp_path):
    scene = film(Head(still(60, 60)), frames=10)
    hide(scene, tmp_path, tracks_out=tmp_path / "t.jsonl")
    assert hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl").outcome.status is Status.DONE
    assert hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl").outcome.status is Status.UP_TO_DATE
    write(tmp_path / "t.jsonl", lines(tmp_path / "t.jsonl")[:-1])
    again = hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl")
    assert again.outcome.status is Status.DONE
    assert list(again.bad) == [9]


def test_tracks_of_another_size_are_refused_and_frames_behind_their_end_are_black(tmp_path):
    scene = film(Head(still(60, 60)), frames=10)
    write(tmp_path / "t.jsonl", [{"tracks": 1, "width": 160, "height": 240, "frames": 10}])
    refused = hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl").outcome
    assert isinstance(refused.error, InputError)
    assert "160 × 240" in str(refused.error)
    assert not (tmp_path / "film_anonymized.mp4").exists()
    write(tmp_path / "t.jsonl", [{"tracks": 1, "width": 240, "height": 160, "frames": 11}])
    refused = hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl").outcome
    assert isinstance(refused.error, InputError)
    assert "was made for 11" in str(refused.error)
    assert not (tmp_path / "film_anonymized.mp4").exists()
    write(tmp_path / "t.jsonl", [{"tracks": 1, "width": 240, "height": 160, "frames": 7}])
    done = hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl")
    assert [i for i in range(10) if done.black(i)] == [7, 8, 9]
    assert done.exposed[:7].min() > 0.9


def test_a_tracks_file_of_another_video_or_of_another_part_is_refused(tmp_path):
    scene = film(Head(still(100, 80)), frames=30)
    hide(scene, tmp_path, tracks_out=tmp_path / "t.jsonl")
    header, *lines = (tmp_path / "t.jsonl").read_text("utf-8").splitlines()
    for name, other in (("video", "0123456789abcdef"), ("start", "1"), ("end", "2")):
        changed = json.dumps(json.loads(header) | {name: other})
        (tmp_path / "t.jsonl").write_text("\n".join([changed, *lines]), "utf-8")
        refused = hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl", again=True).outcome
        assert f"delete '{name}' from its first line" in str(refused.error)


def test_tracks_from_the_beginning_on_are_those_from_time_zero(tmp_path):
    scene = film(Head(still(100, 80)), frames=10)
    scene.make(tmp_path / "film.mp4")
    settings_ = DetectionSettings(region="discs", tracks_out=tmp_path / "t.jsonl")
    (done,) = vidveil.anonymize(scene.path, method="solid", options=Options(start=Fraction(0), detection=settings_))
    assert done.error is None
    assert lines(tmp_path / "t.jsonl")[0]["start"] == "0"


def test_corrected_output_is_not_replaced_by_a_plain_run(tmp_path):
    scene = film(Head(still(100, 80)), frames=10)
    hide(scene, tmp_path, tracks_out=tmp_path / "t.jsonl")
    assert hide(scene, tmp_path, tracks_in=tmp_path / "t.jsonl").outcome.ok
    assert "was made with --tracks-in" in str(hide(scene, tmp_path).outcome.error)
