"""Detectors at work on one stream: each look in limited time, and a count of the searches that failed.

Looks are done by threads that nobody waits for longer than TIME_LIMIT, nor after `stop`. They are daemons and in no
pool, so what never returns keeps neither the stream nor the process from ending. Handing a look over costs 20 µs.
"""

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from weakref import WeakSet

from vidveil.core.errors import DetectorError
from vidveil.core.frame import Frame
from vidveil.core.rotation import Picture, whole
from vidveil.detect.detections import Boxes
from vidveil.detect.detectors import Detector

TIME_LIMIT = 30.0  # seconds for a look; the largest networks take a few on a slow core
SLICE = 0.5  # seconds waited at once: of the time for which the whole process was stopped, only this much counts
IN_A_ROW = 5  # failed searches after which a stream has failed


_given_up: "WeakSet[Thread]" = WeakSet()


def given_up() -> bool:
    """Whether a look that nobody waits for any more is still under way, in any stream of this process.

    A process must not end as usual then: if a run returns while Python shuts down, Python ends its thread in the middle
    of C++ code, and that aborts the process.
    """
    return any(thread.is_alive() for thread in tuple(_given_up))


class StoppedError(Exception):
    """Nobody wants to know any more what is in the picture."""


class Searches:
    """All that the detectors do for one stream. `frame` and `look` may be called from several threads."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self.detectors = tuple(detectors)
        self._lock = Lock()
        self._stopped = False
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._count = self._failed = self._in_a_row = 0
        self._last = ""

    def frame(self, frame: Frame) -> list[Boxes]:
        """Everything that each detector sees in a frame."""
        picture = whole(frame)
        height, width = picture.shape[:2]
        return [self.look(detector, picture, detector.scale(width, height)) for detector in self.detectors]

    def look(self, detector: Detector, picture: Picture, scale: float = 1.0) -> Boxes:
        """`detector.look`. Raises DetectorError also if it does not return in time, and StoppedError after `stop`."""
        with self._lock:
            if self._stopped:
                raise StoppedError
            worker = self._idle.pop() if self._idle else _Worker()
            self._busy.add(worker)
        returned = False
        try:
            found = worker.run(lambda: detector.look(picture, scale))
            returned = not isinstance(found, StoppedError)
        except Empty:
            found = DetectorError(f"did not return within {TIME_LIMIT:g} seconds", "whether a smaller `size` will do")
        finally:
            with self._lock:
                self._busy.discard(worker)
                reusable = returned and not self._stopped
                if reusable:
                    self._idle.append(worker)
            if not reusable:
                worker.dismiss()
            if not returned:
                _given_up.add(worker.thread)
                detector.give_up(worker.thread)
        if isinstance(found, DetectorError):
            raise DetectorError(f"the detector of {detector.kind} {found}", _advice(detector, found)) from found
        if isinstance(found, BaseException):
            raise found
        return found

    def stop(self) -> None:
        """Nothing more is wanted: looks under way raise StoppedError. May be called from any thread, more than once."""
        with self._lock:
            self._stopped = True
            for worker in self._busy:
                worker.answers.put(StoppedError())
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.dismiss()

    def succeeded(self) -> None:
        """A key frame was searched, and all close looks up to it."""
        self._count += 1
        self._in_a_row = 0

    def failed(self, error: Exception) -> None:
        """It was not. Raises DetectorError if that happens again and again."""
        self._count += 1
        self._failed += 1
        self._in_a_row += 1
        self._last = f"{_reason(error)}{error.check if isinstance(error, DetectorError) else f': {error}'}"
        if self._in_a_row == IN_A_ROW:
            raise DetectorError(f"{IN_A_ROW} searches in a row failed: {self._last}") from error

    def finish(self) -> None:
        """Raises DetectorError if most searches of the stream failed."""
        if 2 * self._failed > self._count:
            raise DetectorError(f"{self._failed} of {self._count} searches failed: {self._last}")


class _Worker:
    """A thread that does one thing after the other."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], Boxes] | None] = SimpleQueue()
        self.answers: SimpleQueue[Boxes | BaseException] = SimpleQueue()
        self.thread = Thread(target=self._work, name="vidveil-look", daemon=True)
        self.thread.start()

    def run(self, job: Callable[[], Boxes]) -> Boxes | BaseException:
        """What came of it, or what somebody else put into `answers`. Raises Empty after TIME_LIMIT."""
        self._jobs.put(job)
        left = TIME_LIMIT
        while left > SLICE:
            try:
                return self.answers.get(timeout=SLICE)
            except Empty:
                left -= SLICE
        return self.answers.get(timeout=left)

    def dismiss(self) -> None:
        """End the thread when it has done what it does."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self.answers.put(job())
            except BaseException as error:
                self.answers.put(error)
            del job  # and with it the picture


def why(error: Exception) -> str:
    """Why a frame becomes black, for the manifest: without the name of a user's own detector."""
    if isinstance(error, DetectorError):
        return f"could not be searched (the detector {error.__cause__ or error})"
    return f"could not be searched ({_reason(error)})"


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, DetectorError) else type(error).__name__


def _advice(detector: Detector, error: DetectorError) -> str:
    if detector.notes is None:
        return "; please report it"
    return f"; check in {detector.notes} {error.check}" if error.check else ""
