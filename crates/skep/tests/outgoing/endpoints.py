"""A server that tells how it was called, everybody who gives credentials for it (a token endpoint and STS), and a
decision point that allows one tool."""

import base64
import http.server
import json
import ssl
import urllib.parse
import uuid

KEYS = "/endpoints/keys/"
CREDENTIALS = """<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>KEY</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>%s</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>"""


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/mcp":
            return self.serve(json.loads(body))
        if self.path == "/decision":
            may = json.loads(body)["resource"].endswith(":tool:headers")
            return self.answer(200, json.dumps({"allow": may}), "application/json")
        form = dict(urllib.parse.parse_qsl(body.decode()))
        if self.path == "/sts":
            given = "%s as %s in %s" % (form["WebIdentityToken"], form["RoleSessionName"], form["RoleArn"])
            return self.answer(200, CREDENTIALS % given, "text/xml")
        return self.issue(form)

    def do_GET(self):
        self.answer(405, "", "text/plain")

    def issue(self, form):
        """Tokens that say whom they are for, and who asked for them."""
        kind, _, pair = self.headers.get("Authorization", "").partition(" ")
        client = base64.b64decode(pair).decode() if kind == "Basic" else "nobody"
        if form["grant_type"] == "client_credentials":
            token = "we"
        else:
            parts = ["actor_token", "subject_token", "audience", "scope"]
            token = " ".join([client] + [form.get(part, "-") for part in parts])
        issued = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
        issued["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token"
        self.answer(200, json.dumps(issued), "application/json")

    def serve(self, message):
        """A tool that tells the headers of its call."""
        if "id" not in message:
            return self.answer(202, "", "application/json")
        headers = {}
        result = {"content": [], "structuredContent": {name.lower(): value for name, value in self.headers.items()}}
        if message["method"] == "initialize":
            capabilities = {"tools": {}}
            info = {"name": "endpoints", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
            headers["Mcp-Session-Id"] = str(uuid.uuid4())
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.answer(200, json.dumps(answer), "application/json", headers)

    def answer(self, status, text, kind, headers={}):
        body = text.encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(KEYS + "server.crt", KEYS + "server.key")
server = http.server.ThreadingHTTPServer(("0.0.0.0", 8443), Endpoint)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
