"""A collector that prints what it is told: the path, the headers that concern it, and the body in hexadecimal digits."""

import http.server


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told = [self.headers.get(name, "-") for name in ("x-tenant", "x-api-key")]
        print("told", self.path, *told, body.hex(), flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("", 4318), Collector).serve_forever()
