"""Holds orders in memory: `put JSON` adds one, `clear` removes all, `all` gives a list of them. A line each."""

import json
import socketserver
import threading

ORDERS = []
LOCK = threading.Lock()


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            word, _, rest = line.decode().strip().partition(" ")
            self.wfile.write((self.answer(word, rest) + "\n").encode())

    def answer(self, word, rest):
        with LOCK:
            if word == "put":
                ORDERS.append(json.loads(rest))
                return "ok"
            if word == "clear":
                ORDERS.clear()
                return "ok"
            if word == "all":
                return json.dumps(ORDERS)
        return "what?"


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


with Server(("", 7000), Handler) as server:
    server.serve_forever()
