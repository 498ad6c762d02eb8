#!/usr/bin/env python3
"""The task `act` as a persistent process of pulse-worker: a thread for each job, lines of JSON."""
import os
import sys

from lines import Lines


def write(data):
    while data:
        data = data[os.write(1, data):]


Lines(lambda message: message["id_text"], write).serve(sys.stdin)
