"""A server that tells how it was called, everybody who gives credentials for it (a token endpoint and STS), and a
decision point that allows one tool.

Whoever gives credentials for a token says with which one it was asked, by a digest: so that a server that is shown them
has not seen the token.
"""

import base64
import hashlib
import hmac
import http.server
import json
import os
import queue
import ssl
import urllib.parse
import uuid

KEYS = "/endpoints/keys/"
SECRET = "secret"
CREDENTIALS = """<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>KEY</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>"""

# What is to be said on the streams of HTTP+SSE, and how each of them was opened.
streams = {}


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        place = urllib.parse.urlsplit(self.path)
        if place.path == "/mcp":
            return self.serve(json.loads(body), self.seen(body))
        if place.path == "/messages":
            return self.take(place.query, json.loads(body), self.seen(body))
        if place.path == "/decision":
            may = json.loads(body)["resource"].endswith(":tool:headers")
            return self.answer(200, json.dumps({"allow": may}), "application/json")
        form = dict(urllib.parse.parse_qsl(body.decode()))
        if place.path == "/sts":
            given = (digest(form["WebIdentityToken"]), form["RoleSessionName"], form["RoleArn"])
            return self.answer(200, CREDENTIALS % (SECRET, "%s as %s in %s" % given), "text/xml")
        return self.issue(form)

    def do_GET(self):
        if self.path != "/sse":
            return self.answer(405, "", "text/plain")
        session = str(uuid.uuid4())
        streams[session] = said, _ = queue.Queue(), self.seen(b"")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        event = "event: endpoint\ndata: /messages?session_id=%s\n\n" % session
        while True:
            self.wfile.write(event.encode())
            self.wfile.flush()
            event = "event: message\ndata: %s\n\n" % said.get()

    def issue(self, form):
        """Tokens that say whom they are for, and who asked for them."""
        kind, _, pair = self.headers.get("Authorization", "").partition(" ")
        client = base64.b64decode(pair).decode() if kind == "Basic" else "nobody"
        if form["grant_type"] == "client_credentials":
            token = "we"
        else:
            subject = digest(form["subject_token"])
            given = [client, form.get("actor_token", "-"), subject, form.get("audience", "-"), form.get("scope", "-")]
            token = " ".join(given)
        issued = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
        issued["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token"
        self.answer(200, json.dumps(issued), "application/json")

    def seen(self, body):
        """The headers of a request, and whether its signature is good, if it has one."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("authorization", "").startswith("AWS4-"):
            headers["is signed"] = self.is_signed(headers, body)
        return headers

    def is_signed(self, headers, body):
        """Signature Version 4, by what its description says."""
        algorithm, _, parts = headers["authorization"].partition(" ")
        parts = dict(part.strip().split("=", 1) for part in parts.split(","))
        scope = parts["Credential"].split("/")[1:]
        place = urllib.parse.urlsplit(self.path)
        pairs = sorted(urllib.parse.parse_qsl(place.query, keep_blank_values=True))
        lines = ["%s:%s" % (name, " ".join(headers[name].split())) for name in parts["SignedHeaders"].split(";")]
        query = urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote, safe="-_.~")
        request = [self.command, place.path, query, *lines, "", parts["SignedHeaders"], hashlib.sha256(body).hexdigest()]
        signable = [algorithm, headers["x-amz-date"], "/".join(scope), digest("\n".join(request))]
        key = ("AWS4" + SECRET).encode()
        for step in scope + ["\n".join(signable)]:
            key = hmac.new(key, step.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(key.hex(), parts["Signature"])

    def serve(self, message, seen):
        """By streamable HTTP."""
        if "id" not in message:
            return self.answer(202, "", "application/json")
        headers = {"Mcp-Session-Id": str(uuid.uuid4())} if message["method"] == "initialize" else {}
        self.answer(200, reply(message, seen), "application/json", headers)

    def take(self, query, message, seen):
        """By HTTP+SSE."""
        said, opened = streams[urllib.parse.parse_qs(query)["session_id"][0]]
        if "id" in message:
            said.put(reply(message, {**seen, "stream": opened}))
        self.answer(202, "", "text/plain")

    def answer(self, status, text, kind, headers={}):
        body = text.encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def reply(message, seen):
    """A tool that tells the headers of its call, one that nobody may call, and one that nobody is shown."""
    result = {"content": [], "structuredContent": seen}
    if message["method"] == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ["headers", "burn", "sting"]]}
    if message["method"] == "initialize":
        info = {"name": "endpoints", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})


# A proxy in the same cluster that this is the server of says where to listen, and speaks plain HTTP.
port = os.environ.get("MCP_PORT")
server = http.server.ThreadingHTTPServer(("0.0.0.0", int(port or 8443)), Endpoint)
if not port:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(KEYS + "server.crt", KEYS + "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
