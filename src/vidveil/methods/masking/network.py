"""What every network that masks tubelets knows of itself; a checkpoint fills it in."""

from torch import nn

from vidveil.methods.masking.masker import RAW
from vidveil.models.recognizers.recognizer import Standardize


class MaskingNetwork(nn.Module):
    stride = 2
    """Every how many-th frame of a long video it is shown."""
    after = RAW
    """The method whose output it looks at."""
    drawn = False
    """Whether it learned on synthetic people."""
    learned = True
    """Whether it predicts the action better than chance."""
    standardize: Standardize
