"""Networks that draw several pictures at a time, in windows that overlap."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.stage import TURNS, matrix_of, stored_as
from tests.methods.known_masks import frames
from vidveil.core.errors import UsageError
from vidveil.methods.learned.image_to_image import Drawing, ImageToImage
from vidveil.methods.learned.network import PictureNetwork
from vidveil.methods.learned.windows import ROW, Plan, frames_of, small_picture

FRAMES, SIZE, CELL = 4, 32, 8


class Steady(PictureNetwork):
    """Each picture, half replaced by the mean of its window."""

    frames, size = FRAMES, SIZE

    def __init__(self, breaks_at=None):
        super().__init__()
        self.calls, self.breaks_at = 0, breaks_at

    def forward(self, clips):
        self.calls += 1
        shown = (clips + clips.mean(2, keepdim=True)) / 2
        return shown * torch.nan if self.calls == self.breaks_at else shown


class Masked(Steady):
    """It also hides the upper left cell, in the second half of a window."""

    tubelet = (2, CELL, CELL)
    own = {"privacy_weight": 0.5}  # noqa: RUF012


class Masks(ImageToImage):
    asked = ()

    def ask(self, clips, keep, privacy_weight):
        self.asked = (*self.asked, (keep, privacy_weight))
        scores = torch.arange(2 * 16.0).view(2, 4, 4).expand(len(clips), -1, -1, -1)
        kept = torch.ones_like(scores, dtype=torch.bool)
        kept[:, 1, 0, 0] = False
        return Drawing(self.network(clips), kept, scores)


def luma(pictures):
    """(3, H, W) → (H, W), as videos store it."""
    return (16 + 219 * torch.einsum("chw,c->hw", pictures, torch.tensor([0.299, 0.587, 0.114]))).numpy()


@pytest.mark.parametrize("count", [1, 3, 4, 9, 23])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_stream_shows_what_a_clip_of_its_pictures_shows(count, stride):
    method = ImageToImage("steady", Steady(), stride=stride)
    raw = list(frames(count, SIZE, SIZE))
    pictures = torch.from_numpy(np.stack([small_picture(frame, SIZE) for frame in raw], 1))
    wanted = method.anonymize(pictures).video
    for i, frame in enumerate(method.stream(iter(raw))):
        assert frame.hidden is None
        assert np.abs(frame.planes[0][:SIZE, :SIZE] - luma(wanted[:, i])).max() <= 1


def test_a_window_that_is_no_number_is_black_and_the_others_are_not():
    safe = list(ImageToImage("steady", Steady(breaks_at=3)).stream(frames(12)))  # of windows 0-3, 2-5, 4-7 …
    assert [frame.index for frame in safe if frame.hidden] == [4, 5, 6, 7]


def test_a_mask_is_optional_and_where_there_is_one_its_cells_are_black():
    method = Masks("masked", Masked())
    clips = torch.rand(2, 3, FRAMES, SIZE, SIZE) * 0.5 + 0.5
    found = method.anonymize_batch(clips, privacy_weight=0.7)
    assert method.asked == ((None, 0.7),)
    assert not found.video[:, :, 2:, :CELL, :CELL].any()
    assert (found.mask.sum((2, 3)) == torch.tensor([SIZE**2, SIZE**2, SIZE**2 - CELL**2, SIZE**2 - CELL**2])).all()
    assert found.scores.shape == found.mask.shape
    frame = next(method.stream(frames(4)))
    assert frame.heat.kept.all()
    assert method.knobs == {"keep": None, "privacy_weight": 0.5, "fill": "black", "stride": 1}
    assert "draws what it keeps" in method.caution(100)
    with pytest.raises(UsageError, match="has no keep"):
        method.tuned(0.5, None)
    method.fill = "mask"
    assert torch.equal(method.anonymize_batch(clips).video[:, 0], found.mask.float())


def test_a_mask_that_is_missing_or_of_another_shape_is_refused():
    clips = torch.rand(1, 3, FRAMES, SIZE, SIZE)
    with pytest.raises(ValueError, match="without its mask"):
        ImageToImage("masked", Masked()).anonymize_batch(clips)
    network = Masked()
    network.tubelet = (1, CELL, CELL)
    with pytest.raises(ValueError, match="tubelets instead of"):
        Masks("masked", network).anonymize_batch(clips)


@pytest.mark.parametrize("name", TURNS)
def test_turned_pictures_are_drawn_as_they_are_stored(name):
    method, matrix = ImageToImage("steady", Steady()), matrix_of(name)
    upright = list(method.stream(frames(FRAMES, 64, 48)))
    turned = list(method.stream(frames(FRAMES, 64, 48, matrix)))
    for plain, other in zip(upright, turned, strict=True):
        for wanted, found in zip(plain.planes, other.planes, strict=True):
            assert np.abs(found.astype(int) - stored_as(wanted, matrix).astype(int)).mean() < 2


def test_an_output_beyond_white_is_white():
    class Glaring(Steady):
        def forward(self, clips):
            return clips + 5

    assert (ImageToImage("glaring", Glaring()).anonymize(torch.rand(3, 4, 8, 8)).video == 1).all()


@given(st.integers(1, 4), st.integers(1, 100))
def test_single_pictures_are_drawn_once_each_and_frames_between_them_repeat_the_one_before(stride, length):
    plan = Plan(1, 1, stride, single=True)
    ends = [*range(plan.span, length + 1, plan.span)]
    of_stream = [plan.whole(end - plan.span) for end in ends]
    if length % plan.span:
        of_stream.append(plan.last(length, ends[-1]) if ends else plan.short(length))
    for windows in (plan.windows(length), of_stream):
        shown = {frame: window.samples[picture] for window in windows for frame, _, picture in frames_of(window, 1)}
        assert shown == {frame: frame - frame % stride for frame in range(length)}
        assert sum(len(window.samples) for window in windows) == -(-length // stride)
    assert all(len(window.samples) <= ROW for window in of_stream)
