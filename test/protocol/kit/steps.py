"""Payloads of the task `act`: do(write="began", until="go") is a list of two steps."""


def do(**steps):
    return [{kind: value} for kind, value in steps.items()]


# Writes a line, waits until the kit opens the gate, writes another line.
THROUGH_GATE = do(write="began", until="go", **{"result": 1}) + do(write="ended")
