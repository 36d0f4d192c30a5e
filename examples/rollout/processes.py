"""Prints the ids of all processes of this sandbox but itself and what started it, one a line.

It is the judge's, as run_tests.py: with it the judge sees what a run of the tests left alive.
"""

import os

# Those that are dead and only wait to be collected do nothing any more.
DEAD = "ZX"


def state(pid):
    """Gives the letter of its state; none of a process that ended meanwhile."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name before it is in parentheses and may hold anything.
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


if __name__ == "__main__":
    # The agent has a process for each command, as its parent.
    own = (os.getpid(), os.getppid())
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        if pid not in own and (state(pid) or "X") not in DEAD:
            print(pid)
