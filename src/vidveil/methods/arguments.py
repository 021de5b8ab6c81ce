"""What may stand behind the colon of a method."""

from vidveil.core.errors import UsageError
from vidveil.core.text import printable


def whole_number(spec: str, argument: str | None, *, default: int, low: int, high: int) -> int:
    if argument is None:
        return default
    if not argument.isascii() or not argument.isdigit() or len(argument) > 9 or not low <= int(argument) <= high:
        raise UsageError(f"{printable(spec)}: a whole number from {low} to {high} is expected after the colon")
    return int(argument)


def no_argument(spec: str, argument: str | None) -> None:
    if argument is not None:
        raise UsageError(f"{printable(spec)}: takes nothing after a colon")
