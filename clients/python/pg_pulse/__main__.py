"""python -m pg_pulse MODULE…: runs the jobs of the tasks that modules define."""
import argparse
import importlib
import logging
import sys

from .pulse_error import PulseError
from .task import Task
from .work import work


def main():
    parser = argparse.ArgumentParser(
        prog="python -m pg_pulse", description="Runs the jobs of the tasks that modules define.",
        epilog="pulse-worker --database NAME --program 'python3 -m pg_pulse app.tasks'")
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="as for import: app.tasks")
    parser.add_argument("--takes", type=int, help="so many jobs at once")
    parser.add_argument("--connection", help="without pulse-worker: a URL; else PGHOST and so on")
    parser.add_argument("--grace", type=float,
                        help="without pulse-worker: seconds of handlers when the worker leaves")
    options = parser.parse_args()
    modules = [importlib.import_module(name) for name in options.modules]
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    tasks = {id(each): each for module in modules for each in vars(module).values()
             if isinstance(each, Task)}
    more = {name: value for name, value in vars(options).items()
            if value is not None and name != "modules"}
    try:
        work(tasks.values(), name=f"pg_pulse {' '.join(options.modules)}", **more)
    except (RuntimeError, TypeError, ValueError, PulseError) as error:
        sys.exit(f"pg_pulse: {error}")


if __name__ == "__main__":
    main()
