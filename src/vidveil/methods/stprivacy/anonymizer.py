"""An STPrivacy checkpoint as an anonymizer: the network drops tubelets and draws the others."""

from typing import TYPE_CHECKING, Any

from vidveil.core.errors import UsageError
from vidveil.methods.learned.anonymizer import LearnedAnonymizer
from vidveil.methods.learned.image_to_image import Drawing, ImageToImage
from vidveil.methods.learned.network import rebuilt
from vidveil.methods.masking.masker import TubeletMasker
from vidveil.methods.stprivacy.model import Network, STPrivacy, refuse_privacy_weight
from vidveil.models.checkpoint import Checkpoint, network_of

if TYPE_CHECKING:
    from torch import Tensor


def load(checkpoint: Checkpoint) -> LearnedAnonymizer:
    network = read_network(checkpoint)
    kind = STPrivacyAnonymizer if network.network.anonymize else TubeletMasker
    return kind(f"stprivacy:{checkpoint.name}", network, weights=checkpoint.weights)


def read_network(checkpoint: Checkpoint) -> STPrivacy:
    return rebuilt(checkpoint, lambda: STPrivacy(network_of(checkpoint, Network)))


class STPrivacyAnonymizer(ImageToImage):
    """The network draws what is kept, at its own size; the rest is black."""

    def __init__(self, spec: str, network: STPrivacy, **options: Any) -> None:
        super().__init__(spec, network, **options)
        if self.preprocess is not None or self.fill != "black":
            raise UsageError(f"{spec} draws from what was filmed, and black elsewhere: leave out preprocess and fill")

    def ask(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Drawing:
        refuse_privacy_weight(privacy_weight)
        return Drawing(*self.network.draw(clips, keep))
