"""Methods at work only where somebody is."""

import tracemalloc

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import vidveil
from tests.detect.stage import YELLOW, Discs, Film, Head, Shot, frame_of, matrix_of, still, turned
from vidveil.core.anonymizer import Chain, fail_closed
from vidveil.core.errors import UsageError
from vidveil.core.frame import Region
from vidveil.detect.settings import DETECTORS
from vidveil.methods import load
from vidveil.methods.regional import InRegions, ellipse, in_regions, paints

METHODS = ["solid", "blur:weak", "blur:strong", "pixelate:4", "downsample:2"]


@pytest.fixture(autouse=True)
def _discs(monkeypatch):
    monkeypatch.setitem(DETECTORS, "discs", Discs)


def region(box, shape="box", kind="faces", track=1):
    return Region(box=box, shape=shape, kind=kind, track=track, score=0.9, source="detected")


def noise(width, height, *regions, seed=1):
    rng = np.random.default_rng(seed)
    chroma = ((height + 1) // 2, (width + 1) // 2)
    frame = frame_of([rng.integers(16, 235, s).astype(np.uint8) for s in ((height, width), chroma, chroma)])
    frame.regions = tuple(regions)
    return frame


def planes(frame, width, height):
    return [plane[: height // s, : width // s] for plane, s in zip(frame.planes, (1, 2, 2), strict=True)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", ["box", "ellipse"])
@pytest.mark.parametrize("box", [(21.3, 10.0, 50.7, 41.9), (-9.0, -5.0, 18.0, 22.0), (80.0, 60.0, 130.0, 99.0)])
def test_nothing_outside_of_a_region_changes_and_everything_inside_does(method, shape, box):
    frame = noise(100, 80, region(box, shape))
    safe = InRegions(load(method)).hide(frame)
    for scale, before, after in zip((1, 2, 2), frame.planes, safe.planes, strict=True):
        rows, columns = np.mgrid[: before.shape[0], : before.shape[1]]
        near = (columns >= box[0] / scale - 2) & (columns < box[2] / scale + 2)
        near &= (rows >= box[1] / scale - 2) & (rows < box[3] / scale + 2)
        assert (before[~near] == after[: before.shape[0], : before.shape[1]][~near]).all()
        x, y = ((a + b) / 2 for a, b in ((box[0], box[2]), (box[1], box[3])))
        core = ((columns * scale - x) / (box[2] - box[0])) ** 2 + ((rows * scale - y) / (box[3] - box[1])) ** 2 < 0.2
        assert (before[core] != after[: before.shape[0], : before.shape[1]][core]).mean() > 0.9


@settings(deadline=None)
@given(st.floats(-20, 60), st.floats(-20, 60), st.floats(3, 80), st.floats(3, 80), st.sampled_from(["box", "ellipse"]))
def test_the_whole_shape_is_hidden_to_its_edge(x, y, width, height, shape):
    """Every pixel whose middle lies in the shape, but for a rim of one pixel: ellipses lie on whole pixels."""
    frame = noise(64, 48, region((x, y, x + width, y + height), shape))
    safe = InRegions(load("solid")).hide(frame)
    rows, columns = np.mgrid[:48, :64] + 0.5
    if shape == "ellipse":
        a, b = width / 2 - 1, height / 2 - 1
        if min(a, b) <= 0:
            return
        inside = ((columns - x - width / 2) / a) ** 2 + ((rows - y - height / 2) / b) ** 2 <= 1
    else:
        inside = (x <= columns) & (columns <= x + width) & (y <= rows) & (rows <= y + height)
    assert (safe.planes[0][:48, :64][inside] == 0).all()
    pairs = inside[::2, ::2] & inside[1::2, ::2] & inside[::2, 1::2] & inside[1::2, 1::2]
    assert (safe.planes[1][:24, :32][pairs] == 128).all()


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 60))
def test_an_ellipse_touches_all_four_sides_of_its_box_and_is_even(height, width):
    mask = ellipse(height, width)
    assert mask[0].any()
    assert mask[-1].any()
    assert mask[:, 0].any()
    assert mask[:, -1].any()
    assert (mask == mask[::-1]).all()
    assert (mask == mask[:, ::-1]).all()
    assert mask.mean() >= np.pi / 4 - 1e-9


@pytest.mark.parametrize("method", ["blur:strong", "blur:weak", "pixelate:2", "downsample:2"])
def test_a_face_twice_as_large_is_hidden_twice_as_strongly(method):
    """Enlarged by two before or after: the same, but for rounding."""
    small = cv2.GaussianBlur(noise(96, 96).planes[0].copy(), (0, 0), 2)
    large = cv2.resize(small, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    painted = []
    for plane, side in ((small, 96), (large, 192)):
        target = np.empty((side, side), np.uint8)
        load(method).paint_region(plane, target, 1, side)
        painted.append(cv2.resize(target, (96, 96), interpolation=cv2.INTER_AREA).astype(int))
    assert np.abs(painted[0] - painted[1])[16:-16, 16:-16].mean() < 2


def left_over(method, width, height, box):
    """How much of a coarse pattern, eight stripes across the box, is left in the middle of what is seen of it."""
    stripes = 128 + 60 * np.sin(2 * np.pi * 8 * (np.arange(width) - box[0]) / (box[2] - box[0]))
    chroma = np.full((height // 2, width // 2), 128, np.uint8)
    frame = frame_of([np.tile(stripes, (height, 1)).astype(np.uint8), chroma, chroma])
    frame.regions = (region(box),)
    x0, x1 = max(0, int(box[0])), min(width, int(box[2]))
    luma = InRegions(load(method)).hide(frame).planes[0]
    return float(luma[height // 2, x0 + 2 : x1 - 2].std())


@pytest.mark.parametrize(("method", "most"), [("blur:strong", 1.5), ("pixelate:4", 2.0)])  # blocks are cut, too
def test_half_a_face_at_the_border_is_hidden_as_strongly_as_a_whole_one(method, most):
    whole = left_over(method, 400, 240, (100, 20, 300, 220))
    cut = left_over(method, 400, 240, (-150, 20, 50, 220))
    assert cut < most * whole


def test_regions_are_laid_on_the_picture_as_it_is_shown():
    frame = noise(100, 80, region((4, 10, 24, 40)))
    frame.matrix = matrix_of("90")  # shown, it is 80 × 100
    luma = InRegions(load("solid")).hide(frame).planes[0]
    assert (np.rot90(luma, -1)[10:40, 4:24] == 0).all()
    assert (luma == 0).sum() == 20 * 30


def test_only_the_wanted_kinds_are_hidden():
    frame = noise(100, 80, region((0, 0, 20, 20)), region((40, 40, 60, 60), kind="people"))
    luma = InRegions(load("solid"), {"people"}).hide(frame).planes[0]
    assert (luma[40:60, 40:60] == 0).all()
    assert (luma[:20, :20] == frame.planes[0][:20, :20]).all()


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_a_part_of_an_ellipse_is_cut_out_of_the_whole(height, width, data):
    top, left = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
    bottom, right = data.draw(st.integers(top + 1, height)), data.draw(st.integers(left + 1, width))
    part = ellipse(height, width, (top, left, bottom, right))
    assert (part == ellipse(height, width)[top:bottom, left:right]).all()


@pytest.mark.parametrize("method", ["pixelate:4", "blur:weak"])
@pytest.mark.parametrize("largest_first", [False, True])
def test_of_overlapping_regions_the_largest_is_painted_last(method, largest_first):
    """A small region is painted more finely: on top of the large one it would undo it."""
    large, small = region((10, 10, 70, 70)), region((30, 30, 42, 42), track=2)
    both = (large, small) if largest_first else (small, large)
    painted, alone = (InRegions(load(method)).hide(noise(100, 80, *r)) for r in (both, (large,)))
    assert all((a == b).all() for a, b in zip(painted.planes, alone.planes, strict=True))
    clip = torch.rand(3, 1, 80, 100, generator=torch.Generator().manual_seed(1))
    videos = [InRegions(load(method), None, lambda _, r=r: [r]).anonymize(clip).video for r in (both, (large,))]
    assert (videos[0] == videos[1]).all()


@pytest.mark.parametrize("kind", ["faces", "people"])
def test_a_frame_in_which_somebody_is_lost_is_black_whatever_the_kind(kind):
    safe = InRegions(load("blur"), {"people"}).hide(noise(40, 30, region(None, kind=kind)))
    assert safe.hidden == "somebody was lost from sight"
    assert safe.planes[0].max() == 16


def test_a_frame_that_nobody_searched_is_black():
    frame = noise(40, 30)
    frame.regions = None
    safe = fail_closed(InRegions(load("blur")), frame)
    assert safe.hidden == "was not searched"
    assert safe.planes[0].max() == 16


def test_a_region_that_cannot_be_painted_makes_the_frame_black():
    class Broken(type(load("blur"))):
        def paint_region(self, *_):
            raise RuntimeError

    safe = fail_closed(InRegions(Broken("blur", None)), noise(40, 30, region((1, 1, 9, 9))))
    assert safe.planes[0].max() == 16
    assert "RuntimeError" in safe.hidden


def test_regions_outside_of_the_picture_change_nothing():
    frame = noise(40, 30, region((-50, 3, -10, 9), "ellipse"), region((41, 3, 60, 9)))
    safe = InRegions(load("solid")).hide(frame)
    assert (safe.planes[0] == frame.planes[0]).all()


def test_a_region_far_larger_than_the_picture_costs_no_more_than_the_picture(monkeypatch):
    made = []

    def counted(*box):
        made.append(ellipse(*box))
        return made[-1]

    monkeypatch.setattr("vidveil.methods.regional.ellipse", counted)
    InRegions(load("solid")).hide(noise(40, 30, region((-2000, -2000, 2000, 2000), "ellipse")))
    assert 0 < sum(mask.size for mask in made) <= 40 * 30 * 4


def test_every_stage_that_paints_is_bound_and_others_are_not():
    bound = in_regions(load("blur | stride:2 | pixelate:8"), None)
    assert isinstance(bound, Chain)
    assert [isinstance(stage, InRegions) for stage in bound.stages] == [True, False, True]
    assert bound.spec == "blur | stride:2 | pixelate:8"
    assert paints(load("blur | stride:2"))
    assert not paints(load("stride:2"))
    assert in_regions(load("stride:2"), None).spec == "stride:2"


def clip_of(film):
    pictures = [frame.rgb() for frame in film.frames()]
    return torch.from_numpy(np.stack(pictures)).permute(3, 0, 1, 2).float() / 255  # (3, T, H, W)


def test_a_clip_is_hidden_where_somebody_is_and_the_mask_says_what_was_kept():
    clip = clip_of(Film(shots=[Shot([Head(still(100, 80))], 12)]))
    done = vidveil.load("solid", region="discs").anonymize(clip)
    assert done.video.shape == clip.shape
    assert done.mask.shape == clip.shape[1:]
    assert (done.video[:, :, 66:95, 86:115] == 0).all()
    assert not done.mask[:, 66:95, 86:115].any()
    kept = done.mask.expand_as(clip)
    assert (done.video[kept] == (clip[kept] * 255).round() / 255).all()
    assert done.mask.float().mean() > 0.9


def test_frames_of_a_clip_that_cannot_be_searched_are_black():
    clip = clip_of(Film(shots=[Shot([Head(still(100, 80), turned((0.2, 0.3), hue=YELLOW))], 12)]))
    done = vidveil.load("solid", region="discs").anonymize(clip)
    assert (done.video[:, 5] == 0).all()
    assert not done.mask[5].any()


def test_a_clip_in_which_somebody_is_lost_is_black_whatever_the_kind():
    clip = torch.rand(3, 2, 30, 40)
    method = InRegions(load("solid"), {"people"}, lambda _: [(region(None),), ()])
    assert (method.anonymize(clip).video[:, 0] == 0).all()


def test_clips_need_somebody_who_searches_and_methods_have_no_knobs():
    clip = torch.rand(3, 2, 30, 40)
    with pytest.raises(ValueError, match="nothing to search"):
        InRegions(load("solid")).anonymize(clip)
    with pytest.raises(UsageError):
        InRegions(load("solid")).anonymize(clip, keep=0.5)
    with pytest.raises(UsageError):
        vidveil.load("stride:2", region="discs")


def test_a_weak_blur_is_weak_on_regions_too_and_mosaics_are_coarse_there():
    for spec, warned in (
        ("blur:weak", True),
        ("blur:64", True),
        ("blur:strong", False),
        ("blur:4", False),
        ("pixelate:2", False),
    ):
        caution = in_regions(load(spec), {"faces"}).caution(720)
        assert (caution is not None and "is weak" in caution) is warned, spec


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", ["box", "ellipse"])
def test_a_region_of_millions_of_pixels_takes_no_more_memory_than_the_picture(method, shape):
    frame = noise(100, 80, region((-1e6, -1e6, 1e6, 1e6), shape))
    tracemalloc.start()
    safe = InRegions(load(method)).hide(frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert safe.hidden is None
    assert peak < 50_000_000
    assert np.ptp(planes(safe, 100, 80)[0].astype(int)) < 40  # of 219: nothing of the noise is left
