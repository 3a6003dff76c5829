"""Callbacks that want to see who asks, and a signature. One changes what is echoed, one refuses to add thirteen."""

import hashlib
import hmac
import http.server
import json
import ssl

KEYS = "/callbacks/keys/"


class Callback(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(KEYS + "hmac", "rb") as key:
            signed = self.headers.get("X-ToolHive-Timestamp", "").encode() + b"." + body
            expected = "sha256=" + hmac.new(key.read(), signed, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, self.headers.get("X-ToolHive-Signature", "")):
            return self.answer(401, {})
        asked = json.loads(body)
        params = asked["mcp_request"].get("params", {})
        verdict = {"version": asked["version"], "uid": asked["uid"], "allowed": True}
        if self.path == "/change" and params.get("name") == "echo":
            place = "/mcp_request/params/arguments/message"
            verdict["patch_type"] = "json_patch"
            verdict["patch"] = [{"op": "replace", "path": place, "value": "changed on the way"}]
        if self.path == "/refuse":
            verdict["allowed"] = params.get("arguments", {}).get("a") != 13
        self.answer(200, verdict)

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(KEYS + "server.crt", KEYS + "server.key")
context.load_verify_locations(KEYS + "ca.crt")
context.verify_mode = ssl.CERT_REQUIRED
server = http.server.ThreadingHTTPServer(("0.0.0.0", 8443), Callback)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
