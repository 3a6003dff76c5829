"""AWS, as others have written it: moto gives credentials, and botocore says how a request is signed with them.

Prints the port of the service. Then it reads requests as a server got them, a line of JSON each, and prints the
signature that they should have.
"""

import json
import sys

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import ThreadedMotoServer
from moto.sts.models import sts_backends


def assumed(key):
    for account in sts_backends.values():
        for backend in account.values():
            for role in backend.assumed_roles:
                if role.access_key_id == key:
                    return role
    return None


def signature(seen):
    authorization = dict(part.split("=", 1) for part in seen["headers"]["authorization"].split(" ", 1)[1].split(", "))
    key, _, region, service, _ = authorization["Credential"].split("/")
    role = assumed(key)
    signed = authorization["SignedHeaders"].split(";")
    headers = {name: value for name, value in seen["headers"].items() if name in signed}
    request = AWSRequest(seen["method"], seen["url"], headers, seen["body"].encode())
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials(key, role.secret_access_key, role.session_token), service, region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return {
        "role": role.arn if hasattr(role, "arn") else "",
        "token": role.session_token,
        "signature": signer.signature(text, request),
    }


server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
for line in sys.stdin:
    print(json.dumps(signature(json.loads(line))), flush=True)
