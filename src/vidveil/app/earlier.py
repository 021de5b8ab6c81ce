"""What an earlier run left where an output should go: all that this run would do, something to replace, or in the way.

The rules are in docs/manifest.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vidveil.app.manifest import Manifest, Order, load_manifest, place, read_manifest
from vidveil.app.options import Options
from vidveil.app.sharing import input_token, old_order_token, order_token, place_token, shareable_order
from vidveil.app.user_key import key_file, read_key
from vidveil.core.bounded import reason
from vidveil.core.errors import OutputError
from vidveil.core.file_hash import file_hash
from vidveil.core.text import printable
from vidveil.video.sources import Source
from vidveil.video.tag_names import is_known

TAGS = "its manifest, of an earlier version, names tags that are not well-known"
UNNAMED = "other options, which a manifest for sharing does not name"
CHANGED = "was changed since it was made"
SOURCE_CHANGED = "the source changed"
_PLAIN = {"method": "method", "weights": "weights", "fill": "fill", "stride": "stride", "preprocess": "preprocess"}
"""Fields of an order that are not named after an option."""


@dataclass(frozen=True, slots=True)
class Earlier:
    done: Manifest | None = None
    """What an earlier run did, if it is all that this one would do."""
    replaced: str | None = None
    """Why the output that is there is made again."""


def manifest_path(path: Path) -> Path:
    return path.with_suffix(".json")


def drawn_from_tracks(order: Order) -> bool:
    return bool(order.detection and order.detection.get("tracks_in"))


def look_for_earlier(source: Source, path: Path, order: Order, options: Options, extras: Sequence[Path]) -> Earlier:
    """Raises OutputError if something is in the way. `extras` are the files that are written next to the output."""
    if options.overwrite:
        return Earlier(replaced=_by_overwrite(path, order))
    if options.manifest_form == "none":
        for file in (path, manifest_path(path), *extras):
            if _there(file):
                raise OutputError(f"{file.name} exists; --manifest none cannot resume; --overwrite replaces it")
        return Earlier()
    found = _earlier(source, path, order, options.manifest_form)
    missing = [extra for extra in extras if not _there(extra)]
    if found.done is not None and missing:
        found = Earlier(replaced=f"{missing[0].name} is to be made with it")
    if found.done is None and len(missing) < len(extras):
        in_the_way = next(extra for extra in extras if extra not in missing)
        raise OutputError(f"{in_the_way.name} exists; --overwrite replaces it")
    return found


def _earlier(source: Source, path: Path, order: Order, form: str) -> Earlier:
    """An output of another origin is in the way; one of the same origin is up to date, or to be made again."""
    notes = manifest_path(path)
    manifest = read_manifest(notes)
    if manifest is None:
        in_the_way = next(filter(_there, (path, notes)), None)
        if in_the_way is None:
            return Earlier()
        try:  # again: another process may have put both there since, the manifest first
            manifest = load_manifest(notes)
        except (OSError, ValueError) as error:
            raise OutputError(f"{_without_origin(path, notes, error)}; --overwrite replaces it") from error
    made = manifest.output
    if made["name"] != path.name:
        raise OutputError(f"{notes.name} belongs to {made['name']}; --overwrite replaces it")
    if not path.exists():
        return Earlier()
    if source.live:
        raise OutputError(f"{path.name} exists; --overwrite replaces it")
    same = _shared(manifest, source, path) if manifest.form == "share" else _full(manifest, source, path)
    if drawn_from_tracks(manifest.order) and not drawn_from_tracks(order):
        raise OutputError(f"{path.name} was made with --tracks-in; --overwrite replaces it")
    if order.detection is None and (kinds := _looked_for(manifest.order)):
        raise OutputError(
            f"{path.name} hides {' and '.join(kinds)}, this would not look for them; "
            f"--also-hide {kinds[-1]} keeps them hidden, --overwrite replaces it"
        )
    if (hidden := _also_hidden(manifest.order)) != "none" and _also_hidden(order) == "none":
        raise OutputError(
            f"{path.name} was made with --also-hide {hidden}, this would be without; --overwrite replaces it"
        )
    reasons = [f"--manifest was {manifest.form}, is {form}"] if manifest.form != form else []
    if any(isinstance(name, str) and not is_known(name) for name in manifest.tag_names):
        reasons.append(TAGS)
    reasons += _changes(manifest, order, path)
    if not reasons and (path.stat().st_size != made["bytes"] or file_hash(path) != made["sha256"]):
        reasons.append(CHANGED)
    if same is False or (same is None and not reasons and file_hash(source.path) != manifest.input["sha256"]):
        reasons.append(SOURCE_CHANGED)
    return Earlier(replaced="; ".join(reasons)) if reasons else Earlier(done=manifest)


def _without_origin(path: Path, notes: Path, error: Exception) -> str:
    """Why the origin of an output is not known."""
    if not _there(notes):
        return f"{path.name} exists and no manifest says where it is from"
    return f"{notes.name} {reason(error)}"


def _full(manifest: Manifest, source: Source, path: Path) -> bool | None:
    """Whether the source is still the same; None: it lies where it lay, and nobody looked into it."""
    of = manifest.input
    if of["name"] != source.name:
        raise OutputError(f"{path.name} was made from {of['name']}; --overwrite replaces it")
    # The same video, wherever it lies now, or the same place, with another video in it now.
    if of.get("place") == place(source.path, path.parent):
        return None
    if of["sha256"] != file_hash(source.path):
        raise OutputError(f"{path.name} was made from another file called {source.name}; --overwrite replaces it")
    return True


def _shared(manifest: Manifest, source: Source, path: Path) -> bool:
    """Whether the source is still the same."""
    key, notes = read_key(), manifest_path(path)
    if key is None:
        raise OutputError(
            f"{notes.name} is a manifest for sharing, and the key that recognises it is gone: put {key_file()} back, "
            "or --overwrite replaces it"
        )
    if manifest.input["token"] == input_token(key, file_hash(source.path), source.path, path.name):
        return True
    if manifest.input["place"] == place_token(key, source.path, path.parent, path.name):
        return False
    raise OutputError(
        f"{path.name} was made from another file, or with another key than {key_file()}; --overwrite replaces it"
    )


def _by_overwrite(path: Path, order: Order) -> str | None:
    if not _there(path):
        return None
    notes = manifest_path(path)
    try:
        manifest = load_manifest(notes)
    except (OSError, ValueError) as error:
        known = _there(notes)
        return f"--overwrite, and {f'{notes.name} {reason(error)}' if known else 'no manifest says where it is from'}"
    if manifest.output["name"] != path.name:
        return "--overwrite, and no manifest says where it is from"
    return "; ".join(_changes(manifest, order, path)) or "--overwrite"


def _changes(manifest: Manifest, order: Order, path: Path) -> list[str]:
    """What is asked for now and was not then, option by option."""
    if manifest.form == "full":
        return [] if manifest.order == order else list(_different(manifest.order, order)) or ["other options"]
    key = read_key()
    made = manifest.input["order"]
    if key is not None and made in (order_token(key, order, path.name), old_order_token(key, order, path.name)):
        return []
    return list(_different(manifest.order, shareable_order(order))) or [UNNAMED]


def _different(before: Order, now: Order) -> Iterator[str]:
    old, new = asdict(before), asdict(now)
    if old["vidveil"] != new["vidveil"]:
        yield f"made by vidveil {_shown(old['vidveil'])}, this is {new['vidveil']}"
    for name in new:
        if name not in ("detection", "knobs", "vidveil") and old[name] != new[name]:
            yield _line(name, old[name], new[name])
    whole_frame = {"region": "frame", "also_hide": "none"}
    for group, without in (("detection", whole_frame), ("knobs", {})):
        was, is_ = (order[group] if isinstance(order[group], dict) else without for order in (old, new))
        for name in is_:
            if name in was and was[name] != is_[name]:
                yield _line(name, was[name], is_[name])


def _line(name: str, old: Any, new: Any) -> str:
    called = _PLAIN.get(name) or f"--{name.replace('_', '-')}"
    if name == "tracks_in" and old and new:
        return f"{called} is another file"
    if name == "tracks_in":
        return f"{called} {'is new' if new else 'is gone'}"
    return f"{called} was {_shown(old)}, is {_shown(new)}"


def _shown(value: Any) -> str:
    """As a user writes it."""
    if value is None or value == []:
        return "not given"
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return str(value)[:80]


def _also_hidden(order: Order) -> str:
    return str((order.detection or {}).get("also_hide", "none"))


def _looked_for(order: Order) -> list[str]:
    """Whom an output hides, by --region or by --also-hide; empty where the method works on the whole frame alone."""
    words = [(order.detection or {}).get(name) for name in ("region", "also_hide")]
    return [printable(word) for word in dict.fromkeys(map(str, words)) if word not in ("frame", "none", "None")]


def _there(path: Path) -> bool:
    return path.is_symlink() or path.exists()
