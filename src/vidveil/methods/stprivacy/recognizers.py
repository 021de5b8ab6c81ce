"""Who looks at what STPrivacy draws while it learns: video ViTs that attend to kept tubelets only.

    x = tokens of the drawn clip, each of its own pixels alone
    depth ×   masked self-attention under Î (eq. 8-10), MLP
    logits = W · norm(Σ Î x / Σ Î)

Dropped tubelets come in, too, as they would be drawn: nobody sees them, so the answers are those of the shown clip, but
Î gets the gradient of what each would add. Were they black, as they are shown, it would be that of something black.
"""

from collections.abc import Mapping

from torch import Tensor, nn

from vidveil.methods.stprivacy.model import Backbone, Network
from vidveil.methods.stprivacy.token_retention import averages
from vidveil.models.layers.attribution import apart
from vidveil.models.recognizers.vit import ConvolvedTubelets

GROUPS = 4
KEPT_VIT = "kept_vit"
DEPTHS = {"mini": 4}
"""Blocks of a player, where it has fewer than the anonymizer: two CPU cores have three networks to teach."""


class KeptViT(Backbone):
    """One of the anonymizer's size, with a linear head for each named output: `{"action": 10}`."""

    def __init__(self, network: Network, outputs: Mapping[str, int]) -> None:
        super().__init__(network, DEPTHS.get(network.size))
        if isinstance(self.patch_embed, ConvolvedTubelets):
            self.patch_embed.stem = each_by_itself(self.patch_embed.stem)
        self.heads = nn.ModuleDict({name: nn.Linear(self.width, count) for name, count in outputs.items()})

    def looks(self, clip: Tensor) -> Tensor:
        """Convolutions would look across the borders of tubelets, at what is dropped: each is a clip of its own."""
        if not isinstance(self.patch_embed, ConvolvedTubelets):
            return super().looks(clip)
        tokens: Tensor = self.patch_embed(apart(clip, self.tubelet))  # (B·M, 1, 1, D)
        return tokens.view(len(clip), self.grid[0], self.places, self.width)

    def forward(self, pixels: Tensor, decision: Tensor | None) -> dict[str, Tensor]:
        """(B, 3, T, H, W) in [0, 1] and Î (B, M), None if nothing is dropped → logits by name."""
        x = self.embed(pixels)
        for block in self.blocks:
            x = block(x, decision)
        features = self.norm(averages(x, None, 1, decision)[:, 0].to(x.dtype))
        return {name: head(features) for name, head in self.heads.items()}


def each_by_itself(layers: nn.Sequential) -> nn.Sequential:
    """The same with norms over each input alone. Those of a batch would tell of dropped tubelets."""
    return nn.Sequential(
        *(nn.GroupNorm(GROUPS, each.num_features) if isinstance(each, nn.BatchNorm3d) else each for each in layers)
    )
