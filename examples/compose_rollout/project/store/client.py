"""Talks to the store. `client.py FILE` puts the orders of a file into it."""

import json
import os
import socket
import sys


def ask(*lines):
    """The answers to some lines, in order."""
    host, _, port = os.environ.get("STORE", "127.0.0.1:7000").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        stream = connection.makefile("rw")
        for line in lines:
            stream.write(line + "\n")
            stream.flush()
            yield stream.readline().strip()


def put(orders):
    return all(answer == "ok" for answer in ask(*("put " + json.dumps(order) for order in orders)))


def orders():
    return json.loads(next(ask("all")))


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        sys.exit(0 if put(json.load(file)) else 1)
