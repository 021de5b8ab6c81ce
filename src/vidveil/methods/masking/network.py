"""What every network that masks tubelets has in common."""

from vidveil.methods.learned.network import PictureNetwork
from vidveil.methods.masking.masker import Scorer
from vidveil.models.recognizers.recognizer import Standardize


class MaskingNetwork(PictureNetwork, Scorer):
    standardize: Standardize
