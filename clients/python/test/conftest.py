import os
import pathlib
import sys

clients = os.environ.get("PULSE_CLIENTS") or pathlib.Path(__file__).parents[2]
sys.path.insert(0, f"{clients}/python")
