"""Serves `/total?customer=NAME`: what `answer.py` says, which is run anew for each request."""

import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

SECONDS = 30
# What the exit codes of `answer.py` mean. Any other is its failure.
STATUS = {0: 200, 4: 404}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        customer = parse_qs(urlsplit(self.path).query).get("customer", [""])[0]
        try:
            answer = subprocess.run(
                [sys.executable, "/app/answer.py", customer], capture_output=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return self.say(504, "no answer in time\n")
        self.say(STATUS.get(answer.returncode, 500), answer.stdout[:4096].decode(errors="replace"))

    def say(self, status, text):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("", 8080), Handler).serve_forever()
