"""Printable versions of untrusted text, and suggestions for unknown names."""

from collections.abc import Iterable
from difflib import get_close_matches


def one_line(text: object) -> str:
    """The text with line feeds, control and invalid characters replaced by question marks."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def printable(text: object, limit: int = 80) -> str:
    """`one_line`, of at most `limit` characters."""
    words = str(text)
    return one_line(words) if len(words) <= limit else one_line(words[: limit - 1]) + "…"


def close_to(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """`did you mean X?` if a known name is close; else `otherwise`, or a list of the known names."""
    names = {one.lower(): one for one in known}
    close = get_close_matches(name[:100].lower(), names, n=1)
    if close:
        return f"did you mean {names[close[0]]}?"
    return f"there are {', '.join(names.values())}" if otherwise is None else otherwise
