"""Callbacks that want to see who asks, and a signature. One changes what is echoed to the key of signatures, one refuses
to add thirteen. All keys are read again for every connection."""

import hashlib
import hmac
import http.server
import json
import ssl

KEYS = "/callbacks/keys/"


class Callback(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(KEYS + "hmac", "rb") as file:
            key = file.read()
        signed = self.headers.get("X-ToolHive-Timestamp", "").encode() + b"." + body
        expected = "sha256=" + hmac.new(key, signed, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, self.headers.get("X-ToolHive-Signature", "")):
            return self.answer(401, {})
        asked = json.loads(body)
        params = asked["mcp_request"].get("params", {})
        verdict = {"version": asked["version"], "uid": asked["uid"], "allowed": True}
        if self.path == "/change" and params.get("name") == "echo":
            place = "/mcp_request/params/arguments/message"
            verdict["patch_type"] = "json_patch"
            verdict["patch"] = [{"op": "replace", "path": place, "value": "signed with " + key.decode().strip()}]
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


class Callbacks(http.server.ThreadingHTTPServer):
    def get_request(self):
        connection, address = super().get_request()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(KEYS + "server.crt", KEYS + "server.key")
        context.load_verify_locations(KEYS + "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address


Callbacks(("0.0.0.0", 8443), Callback).serve_forever()
