"""Everything vidveil raises on purpose.

    VidveilError
    ├── UsageError     what was asked for makes no sense: unknown method, bad time, two inputs for one output
    ├── DeviceError    the device that was asked for is not there
    ├── InputError     a source cannot be opened, or holds no picture
    ├── OutputError    the result cannot be written, or something of the user's is in the way
    ├── WeightsError   learned weights are not here and cannot be fetched
    ├── DetectorError  what a detector returned makes no sense, or it did not return in time
    ├── DataError      a dataset is not where it should be, is damaged, or its splits overlap
    ├── RecipeError    a recipe has an unknown key or a value that makes no sense
    └── TrainingError  training cannot go on: the loss is not a number, a checkpoint does not fit

The message is one line, made for the person at the terminal; the command puts the file's name before it.
"""

from vidveil.core.text import printable

LONGEST = 1000
"""Characters of a message. It may contain file names and values from files, of any length."""


class VidveilError(Exception):
    """Base of all errors that vidveil raises on purpose."""

    def __str__(self) -> str:
        return printable(super().__str__(), LONGEST)


class UsageError(VidveilError):
    """What was asked for makes no sense."""


class DeviceError(VidveilError):
    """The device that was asked for is not there."""


class InputError(VidveilError):
    """A source cannot be opened, or holds no picture."""


class OutputError(VidveilError):
    """The result cannot be written, or something of the user's is in the way."""


class WeightsError(VidveilError):
    """Learned weights are not here and cannot be fetched."""


class DetectorError(VidveilError):
    """What a detector returned makes no sense, or it did not return in time."""

    def __init__(self, reason: str, check: str = "") -> None:
        """`check` names the key that may be wrong in the description of a user's own detector."""
        super().__init__(reason)
        self.check = check


class DataError(VidveilError):
    """A dataset is not where it should be, is damaged, or its splits overlap."""


class RecipeError(VidveilError):
    """A recipe has an unknown key or a value that makes no sense."""


class TrainingError(VidveilError):
    """Training cannot go on."""
