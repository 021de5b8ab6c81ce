"""Ctrl-C and SIGTERM while something is recorded."""

import signal

import pytest

from vidveil.app.interrupts import interrupts_as


def test_an_interrupt_calls_instead_of_raising_and_raises_the_second_time():
    calls: list[int] = []
    with interrupts_as(lambda: calls.append(1)):
        signal.raise_signal(signal.SIGINT)
        assert calls == [1]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert calls == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_others_are_left_alone():
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with interrupts_as(lambda: heard.append(0)):
            signal.raise_signal(signal.SIGTERM)
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
