"""A proxy that fetches what its list allows and nothing else: python3 gateway.py PORT HOST:PORT.."""

import http.client
import http.server
import sys
import urllib.parse

PORT, ALLOWED = int(sys.argv[1]), set(sys.argv[2:])
MOST_BYTES = 1 << 20


class Gateway(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        target = urllib.parse.urlsplit(self.path)
        if target.scheme != "http" or target.netloc not in ALLOWED:
            self.send_error(403, "not on the list")
            return
        # Redirects are not followed: they could lead past the list.
        connection = http.client.HTTPConnection(target.netloc, timeout=10)
        try:
            connection.request("GET", target.path or "/")
            answer = connection.getresponse()
            body = answer.read(MOST_BYTES)
        except OSError as error:
            self.send_error(502, type(error).__name__)
            return
        finally:
            connection.close()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.ThreadingHTTPServer(("", PORT), Gateway).serve_forever()
