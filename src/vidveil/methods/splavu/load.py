"""Adapters that were trained, and whether they fit the features that they are to be evaluated on."""

from vidveil.core.errors import DataError, UsageError
from vidveil.data.features.sets import FeatureSet
from vidveil.methods.splavu.model import AAM, rebuilt
from vidveil.models.checkpoint import find


def load_adapter(method: str) -> tuple[AAM, str] | None:
    """The adapter of a run, and the fingerprint of the encoder that it belongs to; None for raw."""
    if method == "raw":
        return None
    try:
        checkpoint = find(method.removeprefix("splavu:"))
    except UsageError as error:
        raise UsageError(f"{error}; method=raw needs no adapter: it evaluators features as they are") from error
    if checkpoint.method != "splavu":
        raise UsageError(f"{method} is a checkpoint of {checkpoint.method}, which does not work on features")
    encoder = checkpoint.about.get("encoder") or {}
    return rebuilt(checkpoint.about["network"], checkpoint.tensors()), str(encoder.get("fingerprint", ""))


def refuse_other_encoder(data: FeatureSet, adapter: AAM, encoder: str) -> None:
    if adapter.shape.width != data.width:
        raise DataError(
            f"{data.labels.name} has features of {data.width} numbers, the adapter is for {adapter.shape.width}"
        )
    if encoder != data.store.encoder:
        raise DataError(f"the features of {data.labels.name} were made by another encoder than the adapter's")
