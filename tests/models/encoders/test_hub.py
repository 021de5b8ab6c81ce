"""Encoders of transformers: tiny networks with random weights, saved and loaded as published ones are."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from vidveil.core.errors import UsageError, VidveilError, WeightsError
from vidveil.models.encoders.hub import FAMILIES, load_hub

huggingface_hub = pytest.importorskip("huggingface_hub")
transformers = pytest.importorskip("transformers")

FRAMES, SIZE = 4, 32
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
CLIP = {"num_frames": FRAMES, "image_size": SIZE, "intermediate_size": 64}
MASKED = {f"decoder_{name}": value for name, value in SMALL.items()} | {"decoder_intermediate_size": 64}
PREDICTOR = {"pred_hidden_size": 24, "pred_num_attention_heads": 2, "pred_num_hidden_layers": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "videomae": SMALL | CLIP | MASKED,
    "vjepa2": SMALL | PREDICTOR | {"frames_per_clip": FRAMES, "crop_size": SIZE, "num_pooler_layers": 1},
    "vivit": SMALL | CLIP,
    "timesformer": SMALL | CLIP,
}
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
DEFAULTS = {
    "videomae": IMAGENET,
    "vjepa2": IMAGENET,
    "vivit": ([0.5] * 3, [0.5] * 3),  # 2x - 1
    "timesformer": ([0.45] * 3, [0.225] * 3),
}
each_family = pytest.mark.parametrize("family", FAMILIES)


def save(folder: Path, family: str, part: str = "Model", seed: int = 0, **changes: Any) -> Path:
    """A random network as `save_pretrained` leaves it. Tokens that start as zeros get values, too."""
    name = FAMILIES[family].name
    config = getattr(transformers, f"{name}Config")(**SETTINGS[family] | changes)
    torch.manual_seed(seed)
    network = getattr(transformers, f"{name}{part}")(config)
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    network.save_pretrained(folder)
    return folder


def clips(count: int = 2, frames: int = FRAMES, size: int = SIZE) -> Tensor:
    return torch.rand(count, 3, frames, size, size, generator=torch.Generator().manual_seed(1))


def standardized(clip: Tensor, mean: list[float], deviation: list[float]) -> Tensor:
    """(B, 3, T, H, W) → (B, T, 3, H, W) as transformers wants it."""
    mean_, deviation_ = (torch.tensor(x).view(1, 3, 1, 1, 1) for x in (mean, deviation))
    return ((clip - mean_) / deviation_).transpose(1, 2)


@torch.no_grad()
def tokens_of(folder: Path, family: str, frames: Tensor) -> Tensor:
    """By transformers itself."""
    network = getattr(transformers, f"{FAMILIES[family].name}Model").from_pretrained(folder).eval()
    name = "pixel_values_videos" if family == "vjepa2" else "pixel_values"
    return network(**{name: frames}).last_hidden_state


def pooled(tokens: Tensor, family: str) -> Tensor:
    return tokens[:, 0] if family in ("vivit", "timesformer") else tokens.mean(1)


@each_family
def test_a_clip_becomes_the_pooled_tokens_of_the_network_after_the_familys_own_preprocessing(
    family: str, tmp_path: Path
) -> None:
    encoder = load_hub(family, str(save(tmp_path, family)))
    found = encoder.encode(clips())
    assert found.shape == (2, 32)
    assert found.dtype == torch.float32
    assert (encoder.spec, encoder.width, encoder.frames, encoder.size) == (f"{family}:{tmp_path}", 32, FRAMES, SIZE)
    wanted = pooled(tokens_of(tmp_path, family, standardized(clips(), *DEFAULTS[family])), family)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert (found[0] - found[1]).abs().max() > 1e-3  # it does look at the clip


@each_family
def test_a_clips_vector_does_not_depend_on_the_other_clips_of_the_batch(family: str, tmp_path: Path) -> None:
    encoder, three = load_hub(family, str(save(tmp_path, family))), clips(3)
    together = encoder.encode(three)
    for i in range(3):
        torch.testing.assert_close(encoder.encode(three[i : i + 1])[0], together[i], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(encoder.encode(three.flip(0)).flip(0), together, rtol=1e-4, atol=1e-5)
    assert torch.equal(encoder.encode(three), together)


@each_family
def test_no_part_of_it_learns(family: str, tmp_path: Path) -> None:
    encoder: Any = load_hub(family, str(save(tmp_path, family)))
    assert not encoder.encode(clips().requires_grad_()).requires_grad
    assert not any(parameter.requires_grad for parameter in encoder.network.parameters())
    assert not any(module.training for module in encoder.network.modules())


@each_family
def test_a_classifiers_file_serves_without_its_head_and_without_a_message(
    family: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, family, "ForVideoClassification")
    capfd.readouterr()
    encoder = load_hub(family, str(tmp_path))
    assert capfd.readouterr() == ("", "")
    classifier = getattr(transformers, f"{FAMILIES[family].name}ForVideoClassification").from_pretrained(tmp_path)
    backbone: Any = getattr(classifier.eval(), family)
    with torch.no_grad():
        tokens = backbone(standardized(clips(), *DEFAULTS[family])).last_hidden_state
    torch.testing.assert_close(encoder.encode(clips()), pooled(tokens, family), rtol=1e-4, atol=1e-5)


def test_a_masked_autoencoders_file_serves_without_its_decoder_and_with_its_last_norm(tmp_path: Path) -> None:
    save(tmp_path, "videomae", "ForPreTraining", use_mean_pooling=False)
    found = load_hub("videomae", str(tmp_path)).encode(clips())
    torch.testing.assert_close(found, tokens_of(tmp_path, "videomae", standardized(clips(), *IMAGENET)).mean(1))


@pytest.mark.parametrize(
    ("family", "file", "settings", "mean", "deviation"),
    [
        ("videomae", "preprocessor_config.json", {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]},
         [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]),
        ("vjepa2", "video_preprocessor_config.json", {"image_mean": [0.5] * 3, "image_std": [0.25] * 3},
         [0.5] * 3, [0.25] * 3),
        ("timesformer", "preprocessor_config.json", {"do_normalize": False}, [0.0] * 3, [1.0] * 3),
        ("videomae", "preprocessor_config.json", {"do_rescale": False}, [m / 255 for m in IMAGENET[0]],
         [s / 255 for s in IMAGENET[1]]),
        ("vivit", "preprocessor_config.json", {"do_normalize": True}, [0.75] * 3, [0.25] * 3),  # ((2x - 1) - ½) / ½
        ("vivit", "preprocessor_config.json", {"offset": False, "rescale_factor": 1 / 255, "do_normalize": True},
         [0.5] * 3, [0.5] * 3),
    ],
)  # fmt: skip
def test_the_file_next_to_the_weights_decides_how_pixels_are_standardized(
    family: str, file: str, settings: dict[str, Any], mean: list[float], deviation: list[float], tmp_path: Path
) -> None:
    plain = load_hub(family, str(save(tmp_path, family)))
    (tmp_path / file).write_text(json.dumps(settings))
    encoder: Any = load_hub(family, str(tmp_path))
    pixels = encoder.pixels(clips()).transpose(1, 2)
    torch.testing.assert_close(pixels, standardized(clips(), mean, deviation), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(encoder.encode(clips()), pooled(tokens_of(tmp_path, family, pixels), family))
    assert (encoder.fingerprint == plain.fingerprint) == ((mean, deviation) == DEFAULTS[family])


@pytest.mark.parametrize("settings", [{"image_std": [0, 1, 1]}, {"image_mean": [1, 2]}, {"rescale_factor": 0}, [1]])
def test_senseless_pixels_are_refused(settings: Any, tmp_path: Path) -> None:
    (save(tmp_path, "videomae") / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(WeightsError, match=r"preprocessor_config\.json"):
        load_hub("videomae", str(tmp_path))


@each_family
def test_the_fingerprint_is_of_the_weights_and_not_of_the_loading(family: str, tmp_path: Path) -> None:
    first, second = (str(save(tmp_path / str(seed), family, seed=seed)) for seed in (0, 1))
    assert load_hub(family, first).fingerprint == load_hub(family, first).fingerprint
    assert load_hub(family, first).fingerprint != load_hub(family, second).fingerprint


def test_a_setting_that_no_tensor_shows_changes_the_fingerprint(tmp_path: Path) -> None:
    one, two = (save(tmp_path / str(heads), "videomae", num_attention_heads=heads) for heads in (2, 4))
    assert load_hub("videomae", str(one)).fingerprint != load_hub("videomae", str(two)).fingerprint


@pytest.mark.parametrize("family", ["videomae", "vivit", "timesformer"])
def test_other_clips_than_it_was_trained_with_are_refused_where_each_token_has_its_place(
    family: str, tmp_path: Path
) -> None:
    where = str(save(tmp_path, family))
    with pytest.raises(UsageError, match="frames=4 and no other, not 8"):
        load_hub(family, where, frames=8)
    with pytest.raises(UsageError, match="size=32 and no other, not 64"):
        load_hub(family, where, size=64)
    assert load_hub(family, where, frames=FRAMES, size=SIZE).encode(clips()).shape == (2, 32)


def test_v_jepa_2_takes_other_clips_and_places_their_tokens_in_their_own_grid(tmp_path: Path) -> None:
    where = str(save(tmp_path / "own", "vjepa2"))
    encoder = load_hub("vjepa2", where, frames=6, size=48)
    assert (encoder.frames, encoder.size) == (6, 48)
    assert encoder.fingerprint != load_hub("vjepa2", where).fingerprint
    other = save(
        tmp_path / "other", "vjepa2", frames_per_clip=6, crop_size=48
    )  # the same random weights, the other grid
    wanted = tokens_of(other, "vjepa2", standardized(clips(2, 6, 48), *IMAGENET)).mean(1)
    torch.testing.assert_close(encoder.encode(clips(2, 6, 48)), wanted, rtol=1e-4, atol=1e-5)
    for asked, message in (({"frames": 5}, "multiples of 2"), ({"size": 40}, "multiples of 16"), ({"size": 0}, "16")):
        with pytest.raises(UsageError, match=message):
            load_hub("vjepa2", where, **asked)


def test_a_clip_of_another_shape_is_refused(tmp_path: Path) -> None:
    encoder = load_hub("vjepa2", str(save(tmp_path, "vjepa2")))
    with pytest.raises(UsageError, match=r"wants clips of shape \(3, 4, 32, 32\)"):
        encoder.encode(clips(1, 6, 48))


def test_a_picture_that_is_no_square_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not squares"):
        load_hub("videomae", str(save(tmp_path, "videomae", image_size=[32, 64])))


def test_weights_of_half_precision_are_computed_with_in_float32(tmp_path: Path) -> None:
    save(tmp_path, "timesformer")
    transformers.TimesformerModel.from_pretrained(tmp_path).bfloat16().save_pretrained(tmp_path)
    encoder: Any = load_hub("timesformer", str(tmp_path))
    assert {parameter.dtype for parameter in encoder.network.parameters()} == {torch.float32}
    assert encoder.encode(clips()).dtype == torch.float32


def test_another_family_is_named(tmp_path: Path) -> None:
    where = str(save(tmp_path, "vivit"))
    with pytest.raises(UsageError, match="holds vivit, not videomae: ask for vivit:"):
        load_hub("videomae", where)
    with pytest.raises(UsageError, match="no family of encoders is called 'swin'"):
        load_hub("swin", where)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=f"there is no folder {tmp_path}/none"):
        load_hub("videomae", str(tmp_path / "none"))


def _without_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _cut_off(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def _with(**changes: Any) -> Any:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "config.json is not there"),
        (lambda folder: (folder / "config.json").write_text("{"), "no readable JSON"),
        (_without_weights, r"has no model\.safetensors"),
        (_cut_off, "cannot be loaded"),
        (_with(hidden_size=64), "cannot be loaded"),
        (_with(num_hidden_layers="two"), "cannot be loaded"),
        (_with(num_hidden_layers=3), r"the file lacks encoder\.layer\.2"),
        (_with(num_hidden_layers=1), r"the config knows no .*encoder\.layer\.1"),
    ],
)
def test_a_damaged_folder_is_an_error_in_one_line(damage: Any, message: str, tmp_path: Path) -> None:
    damage(save(tmp_path, "videomae"))
    with pytest.raises(WeightsError, match=message) as caught:
        load_hub("videomae", str(tmp_path))
    assert len(str(caught.value).splitlines()) == 1


def test_a_name_that_is_not_on_the_hub_is_an_error_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unreachable(*_: Any, **__: Any) -> str:
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WeightsError, match=r"some/name is no folder here, and the hub does not give it: no route$"):
        load_hub("videomae", "some/name")


def test_a_name_on_the_hub_is_fetched_without_pickles_and_loaded_like_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {}

    def fetched(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(save(tmp_path, "vivit"))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    monkeypatch.setenv("VIDVEIL_OFFLINE", "1")
    assert load_hub("vivit", "some/name").spec == "vivit:some/name"
    assert (asked["name"], asked["local_files_only"]) == ("some/name", True)
    assert all(pattern.endswith((".json", ".safetensors")) for pattern in asked["allow_patterns"])


def test_a_folder_is_loaded_without_the_network_and_leaves_the_librarys_settings_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def settings() -> list[Any]:
        logging = transformers.utils.logging
        no_telemetry = huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY
        return [logging.get_verbosity(), logging.is_progress_bar_enabled(), no_telemetry]

    def refuse(*_: Any) -> None:
        raise AssertionError("it went out")

    where, before = str(save(tmp_path, "videomae")), settings()
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    load_hub("videomae", where)
    assert settings() == before


def test_without_transformers_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(VidveilError, match=r"pip install 'vidveil\[encoders\]'") as caught:
        load_hub("videomae", "some/name")
    assert len(str(caught.value).splitlines()) == 1
