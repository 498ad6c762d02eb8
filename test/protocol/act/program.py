#!/usr/bin/env python3
"""The task `act` as a program of pulse-worker: a thread for each job, lines of JSON on a socket."""
import os
import socket

from lines import Lines

worker = socket.socket(fileno=int(os.environ["PULSE_FD"]))
worker.sendall(b'{"hello": {"protocol": 1, "takes": 2, "tasks": {"act": {}}}}\n')
lines = Lines(lambda message: message.get("id") or message["cancel"], worker.sendall)
lines.serve(worker.makefile())
