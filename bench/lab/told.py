"""Signals to stop: the lab removes its hosts before it ends.

The exception that a signal raises is lost if it comes while Python frees an object. So the signal is also stored, and checked
between measurements.
"""

import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
told = []


def stop(number, _):
    told.append(number)
    check()


def listen():
    for number in SIGNALS:
        signal.signal(number, stop)


def check():
    """Ends the program if a signal to stop has come."""
    if told:
        sys.exit(f"told to stop ({signal.Signals(told[0]).name})")
