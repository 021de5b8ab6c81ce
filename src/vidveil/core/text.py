"""Words of somebody else, fit to be printed."""


def one_line(text: object) -> str:
    """As it is, but line feeds, control and broken characters become question marks."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def printable(text: object, limit: int = 80) -> str:
    """`one_line`, of at most `limit` characters."""
    words = str(text)
    return one_line(words) if len(words) <= limit else one_line(words[: limit - 1]) + "…"
