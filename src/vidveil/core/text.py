"""Words of somebody else, fit to be printed."""


def printable(text: object, limit: int = 80) -> str:
    """One line of at most `limit` characters: line feeds, control and broken characters become question marks."""
    words = str(text)
    clean = "".join(c if c.isprintable() else "?" for c in words[:limit])
    return clean if len(words) <= limit else clean[: limit - 1] + "…"
