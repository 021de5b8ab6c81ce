"""Who is where, in every frame: from frames in memory to regions."""

import threading
from itertools import pairwise

import pytest

from tests.detect.stage import RED, YELLOW, Discs, Film, Head, Shot, film, still, turned, walk
from vidveil.core.errors import UsageError
from vidveil.detect import scene as scene_module
from vidveil.detect.finder import Finder
from vidveil.detect.moments import Findings
from vidveil.detect.scene import IN_FLIGHT
from vidveil.detect.settings import DetectionSettings, detector, kind_of
from vidveil.detect.tracks import TrackSettings


class Counting(Discs):
    """Notes what it is shown: the sizes of whole pictures and of pieces."""

    def __init__(self):
        super().__init__()
        self.looks = []
        self._count = threading.Lock()

    def look(self, picture, scale=1.0, threshold=None):
        with self._count:
            self.looks.append(picture.shape[:2])
        return super().look(picture, scale, threshold)

    @property
    def whole(self):
        return sum(shape == (160, 240) for shape in self.looks)

    @property
    def close(self):
        return sum(shape == (96, 96) for shape in self.looks)


def follow(scene, detector=None, **settings):
    """The frames of a film with their regions, counted as the pipeline counts them."""
    finder = Finder([detector or Discs()], TrackSettings(**settings))
    frames = []
    for frame in finder.follow(scene.frames()):
        finder.findings.frame_done(frame)
        frames.append(frame)
    return finder, frames


def holds(region, x, y, radius=14):
    x0, y0, x1, y1 = region.box
    return x0 <= x - radius and y0 <= y - radius and x1 >= x + radius and y1 >= y + radius


def numbers(frames):
    return [{region.track for region in frame.regions} for frame in frames]


def test_frames_come_out_once_each_in_order_with_their_regions():
    _, frames = follow(film(Head(walk(40, 80, 60))))
    assert [frame.index for frame in frames] == list(range(50))
    assert all(any(holds(r, 40 + 2.4 * frame.index, 80) for r in frame.regions) for frame in frames)


def test_an_empty_stream_and_an_empty_scene_have_no_regions():
    assert follow(Film(shots=[]))[1] == []
    finder, frames = follow(film(frames=12))
    assert all(frame.regions == () for frame in frames)
    assert finder.findings.as_dict() == {
        "tracks": 0,
        "frames_with_regions": 0,
        "hidden_area": 0.0,
        "moments": [],
        "moments_left_out": 0,
    }


@pytest.mark.parametrize(("rate", "frames"), [(10, 21), (25, 51), (60, 121)])
def test_the_whole_picture_is_searched_five_times_a_second_and_on_the_last_frame(rate, frames):
    detector = Counting()
    follow(film(Head(still(100, 80)), frames=frames, rate=rate), detector)
    assert detector.whole == 11


@pytest.mark.parametrize("rate", [5.1, 7.0, 9.9, 12.0, 24.0])
def test_searches_are_never_further_apart_than_wanted_or_every_frame_is_searched(rate):
    class Noting(Counting):
        def look(self, picture, scale=1.0, threshold=None):
            if picture.shape[:2] == (160, 240):
                searched.append(int(picture[0, 0, 0]))
            return super().look(picture, scale, threshold)

    searched = []
    ticks = [round(1000 * i / rate) for i in range(30)]
    scene = film(Head(still(100, 80)), frames=30, ticks=ticks)
    for i, (luma, _, _) in enumerate(scene.upright):
        luma[:8, :8] = 60 + 4 * i  # so that a picture says which it is
    follow(scene, Noting())
    seen = sorted(round((value - min(searched)) / (4 * 255 / 219)) for value in searched)
    assert (seen[0], seen[-1]) == (0, 29)
    assert all(b - a == 1 or ticks[b] - ticks[a] <= 201 for a, b in pairwise(seen))
    assert len(seen) <= 5 * ticks[-1] / 1000 * 1.7 + 2 or rate < 10


def test_every_frame_is_searched_where_that_is_wanted():
    detector = Counting()
    follow(film(Head(still(100, 80)), frames=30), detector, every=0.0)
    assert (detector.whole, detector.close) == (30, 0)


@pytest.mark.parametrize(("every", "searches"), [(0.2, 5), (0.0, 100)])
def test_times_that_are_too_short_make_searches_no_rarer(every, searches):
    """As in a damaged header: all of the film within a hundredth of a second."""
    detector = Counting()
    ticks = [i // 10 for i in range(100)]
    follow(film(Head(still(100, 80)), frames=100, ticks=ticks), detector, every=every)
    assert detector.whole == searches


def test_both_sides_of_a_cut_are_searched():
    detector = Counting()
    follow(Film(shots=[Shot([], 13, light=80), Shot([], 13, light=140)]), detector)
    assert detector.whole == 4 + 4  # frames 0, 5, 10, 12 of each


def test_who_moves_far_is_looked_for_on_all_frames_in_between_and_who_stands_twice():
    standing, running = Counting(), Counting()
    follow(film(Head(walk(100, 80, 5))), standing)
    follow(film(Head(walk(20, 80, 100))), running)
    assert standing.close == 20  # 11 key frames
    assert running.close >= 35  # of 39 frames between them


def test_who_is_lost_is_looked_for_twice_and_then_given_up():
    detector = Counting()
    follow(film(Head(still(100, 80), turned((0.62, 9))), frames=30), detector)
    while_seen, key_frames_without = 6, 3
    assert while_seen + 2 <= detector.close <= while_seen + 2 * key_frames_without


@pytest.mark.parametrize("delay", [0.0, 0.3, 1.0])
def test_the_regions_do_not_depend_on_the_number_of_cores(delay, monkeypatch):
    scene = film(Head(walk(40, 80, 60), turned((0.5, 1.1))), Head(still(180, 40, since=0.9), lambda _: RED), frames=60)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    _, alone = follow(scene, delay=delay)
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    _, many = follow(scene, delay=delay)
    assert [f.regions for f in alone] == [f.regions for f in many]


def test_a_gap_of_more_than_half_a_second_changes_the_number_for_good():
    _, frames = follow(film(Head(lambda t: (30 + 60 * t + 100 * max(0, t - 1.3), 80), turned((0.4, 1.0))), frames=50))
    tracks = numbers(frames)
    assert tracks[0] == {1}
    assert tracks[16] == {1, 2}
    again = [{r.track for r in frame.regions if r.source == "detected"} for frame in frames[25:]]
    assert 2 in again[0]
    assert 1 not in set().union(*again)


def test_a_cut_changes_the_number():
    _, frames = follow(
        Film(shots=[Shot([Head(still(60, 80))], 12, light=80), Shot([Head(still(60, 80))], 12, light=140)])
    )
    assert numbers(frames) == [{1}] * 12 + [{2}] * 12


def test_a_key_frame_that_cannot_be_searched_takes_the_frames_along_up_to_its_neighbours():
    _, frames = follow(film(Head(still(100, 80), turned((0.79, 0.81), hue=YELLOW))))
    lost = [frame.index for frame in frames if frame.picture is None]
    assert lost == list(range(16, 25))
    assert all(frame.regions is None for frame in frames if frame.index in lost)
    assert all(frame.lost == "could not be searched (RuntimeError)" for frame in frames if frame.index in lost)
    assert all(frame.regions for frame in frames if frame.index not in lost)


def test_frames_without_a_picture_pass_without_regions():
    _, frames = follow(film(Head(still(100, 80)), broken=(0, 1, 24, 25, 49)))
    assert [f.index for f in frames if f.picture is None] == [0, 1, 24, 25, 49]
    assert all(f.regions for f in frames if f.picture is not None)
    _, nothing = follow(film(Head(still(100, 80)), frames=5, broken=range(5)))
    assert [f.regions for f in nothing] == [()] * 5


@pytest.mark.parametrize("delay", [0.0, 0.5, 1.0])
def test_a_frame_leaves_when_what_comes_within_the_delay_was_seen(delay):
    taken = []

    def source():
        for frame in film(Head(still(100, 80)), frames=150).frames():
            taken.append(frame.index)
            yield frame

    finder = Finder([Discs()], TrackSettings(delay=delay))
    first = next(iter(finder.follow(source())))
    assert first.index == 0
    assert len(taken) / 25 <= delay + (IN_FLIGHT + 1) * 0.2 + 0.2
    assert len(taken) / 25 >= delay


def test_no_more_pictures_are_kept_back_than_memory_allows(monkeypatch):
    monkeypatch.setattr(scene_module, "WINDOW_BYTES", 10 * 240 * 160 * 3 // 2)
    taken = []

    def source():
        for frame in film(Head(still(100, 80)), frames=100).frames():
            taken.append(frame.index)
            yield frame

    finder = Finder([Discs()], TrackSettings(delay=5.0))
    most = max(len(taken) - frame.index for frame in finder.follow(source()))
    assert most <= 10 + 5 + 2


def test_padding_is_a_share_of_the_face_and_never_less_than_three_pixels():
    _, frames = follow(film(Head(still(100, 80)), frames=3))
    (region,) = frames[1].regions
    width = region.box[2] - region.box[0]
    assert 29 * 1.6 - 3 < width < 29 * 1.6 + 4
    assert region.shape == "ellipse"
    _, small = follow(film(Head(still(100, 80), radius=4), frames=3))
    (region,) = small[1].regions
    assert region.box[2] - region.box[0] >= 8 + 6 - 1


def test_regions_grow_about_their_middle_by_what_stands_behind_the_colon():
    plain, large = Discs(), Discs()
    large.size = 2.0
    scene = film(Head(still(100, 80)), frames=3)
    (one,), (two,) = (
        list(Finder([each], TrackSettings()).follow(scene.frames()))[1].regions for each in (plain, large)
    )
    for low, high in ((0, 2), (1, 3)):
        assert two.box[high] - two.box[low] == pytest.approx(2 * (one.box[high] - one.box[low]), abs=0.2)
        assert two.box[high] + two.box[low] == pytest.approx(one.box[high] + one.box[low], abs=0.2)


def test_a_word_with_a_size_means_the_same_detector_and_strange_sizes_are_refused():
    assert (detector("faces:1.5").size, detector("faces").size) == (1.5, 1.0)
    assert kind_of("people:2") == "people"
    for word in ("faces:", "faces:0.5", "faces:nan", "faces:big"):
        with pytest.raises(UsageError, match="how many times as large"):
            detector(word)
    with pytest.raises(UsageError, match="give both the same word"):
        DetectionSettings(region="faces:2", also_hide="faces").region_source()


def test_one_finder_follows_one_stream_after_the_other():
    finder = Finder([Discs()], TrackSettings())
    scene = film(Head(still(100, 80)), frames=5)
    for _ in range(2):
        frames = list(finder.follow(scene.frames()))
        assert numbers(frames) == [{1}] * 5
        assert finder.findings.frames_with_regions == 0  # whoever takes the frames counts them
        for frame in frames:
            finder.findings.frame_done(frame)
        assert finder.findings.as_dict()["tracks"] == 1


def test_very_long_trajectories_stay_short_in_memory_and_note_their_moments_once(monkeypatch):
    scene = film(Head(walk(40, 80, 10), turned((2.0, 2.8), (9.0, 20.0))), frames=275)
    finder, frames = follow(scene)
    lengths = []

    class Noting(Findings):
        def trajectory_over(self, trajectory, *about):
            lengths.append(len(trajectory.sightings))
            super().trajectory_over(trajectory, *about)

    monkeypatch.setattr(scene_module, "LONG", 20)
    monkeypatch.setattr("vidveil.detect.finder.Findings", Noting)
    forgetful, same = follow(scene)
    assert max(lengths) < 60  # of about ninety: ten a second
    assert [f.regions for f in same] == [f.regions for f in frames]
    assert forgetful.findings.as_dict() == finder.findings.as_dict()
    assert [m["what"] for m in finder.findings.as_dict()["moments"]] == ["gap", "lost mid-picture"]
