"""Frozen video encoders by name, behind one interface (`encoder.Encoder`).

encoder = load_encoder("i3d", frames=16, size=224)
z = encoder.encode(clip)                             # (B, 3, T, H, W) in [0, 1] → (B, D)

i3d, i3d_r50, resnet50, vit_s …    our own networks with published weights, fetched when first needed
run:NAME                           a network that `vidveil train` trained
videomae:WHERE, vjepa2:WHERE,      through the library transformers (`pip install 'vidveil[encoders]'`); WHERE is a
vivit:WHERE, timesformer:WHERE     name on its hub, or a folder
"""

from typing import TYPE_CHECKING

from vidveil.core.errors import UsageError
from vidveil.core.text import close_to, printable
from vidveil.models.recognizers import RECOGNIZERS

if TYPE_CHECKING:
    from vidveil.models.encoders.encoder import Encoder

__all__ = ["HUB", "OWN", "check_encoder", "load_encoder"]

OWN = tuple(name for name, entry in RECOGNIZERS.items() if entry.weights)
"""Our networks with published weights."""
HUB = ("videomae", "vjepa2", "vivit", "timesformer")
"""Families that transformers knows."""


def check_encoder(spec: str) -> None:
    """A name that does not exist is refused now, before anything is loaded."""
    name, colon, where = spec.partition(":")
    known = (*OWN, "run", *HUB)
    if name not in known:
        hint = close_to(name, known, f"there are {', '.join(OWN)}, run:NAME and {', '.join(HUB)}")
        raise UsageError(f"no encoder is called {printable(repr(name))}; {hint}")
    if name in OWN and colon:
        raise UsageError(f"{name} has weights of its own: leave out :{where}")
    if name not in OWN and not where:
        what = "the name of a training run" if name == "run" else "a name on the hub, or a folder"
        raise UsageError(f"{name} needs {what} behind a colon")


def load_encoder(
    spec: str, *, frames: int | None = None, size: int | None = None, half: bool = False, device: str = "cpu"
) -> "Encoder":
    """The encoder that `spec` describes; frames and size are its own unless they are given.

    Args:
        half: our networks compute in bfloat16. That is faster on accelerators and new processors; it counts as another
            encoder, since its vectors differ a little.
    """
    check_encoder(spec)
    name, _, where = spec.partition(":")
    if name in HUB:
        from vidveil.models.encoders.hub import load_hub

        if half:
            raise UsageError(f"{spec}: only networks of ours compute in bfloat16 when asked to")

        return load_hub(name, where, frames=frames, size=size, device=device)
    from vidveil.models.encoders.recognizer import load_own, load_run

    if name == "run":
        return load_run(where, frames=frames, size=size, half=half, device=device)
    return load_own(name, frames=frames, size=size, half=half, device=device)
