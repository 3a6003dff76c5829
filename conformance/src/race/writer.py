# What a proxy runner does at its start, as far as generations go: it learns its generation, and applies a StatefulSet
# unless somebody newer has. Then it follows orders from the live mount.
import json, os, ssl, sys, time, urllib.error, urllib.request

ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount/'
NAMESPACE = open(ACCOUNT + 'namespace').read()
TARGET = f'/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/backend'
KEY = 'race/generation'
content = int(sys.argv[1])


def call(method, path, body=None):
    headers = {'Authorization': 'Bearer ' + open(ACCOUNT + 'token').read(),
               'Content-Type': 'application/apply-patch+yaml'}
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(os.environ['API'] + path, method=method, data=data, headers=headers)
    context = ssl.create_default_context(cafile=ACCOUNT + 'ca.crt')
    try:
        return json.load(urllib.request.urlopen(request, context=context, timeout=20))
    except urllib.error.HTTPError as error:
        if error.code in (404, 409):
            return error.code
        raise


def desired(generation, version):
    labels = {'app': 'backend'}
    container = {'name': 'mcp', 'image': f'content-{content}'}
    return {'apiVersion': 'apps/v1', 'kind': 'StatefulSet', 'metadata': {'name': 'backend', 'resourceVersion': version},
            'spec': {'replicas': 0, 'serviceName': 'backend', 'selector': {'matchLabels': labels},
                     'template': {'metadata': {'labels': labels, 'annotations': {KEY: str(generation)}},
                                  'spec': {'containers': [container]}}}}


def apply(generation):
    while True:
        live = call('GET', TARGET)
        exists = live != 404
        if exists and int(live['spec']['template']['metadata']['annotations'][KEY]) > generation:
            return 'skipped'
        # Somebody newer may come between the look and the write: the write is for what was looked at.
        version = live['metadata']['resourceVersion'] if exists else None
        if call('PATCH', TARGET + '?fieldManager=runner&force=true', desired(generation, version)) != 409:
            return 'applied'


def read():
    return json.load(open('/etc/race/orders'))


frozen = os.environ.get('GENERATION')
live = read()['generation']
result = apply(int(frozen) if frozen else live)
print(f'own={frozen} live={live} {result}', flush=True)
while True:
    orders = read()
    if orders['die'] == os.environ['POD'] and not os.path.exists('/state/died'):
        open('/state/died', 'w').close()
        sys.exit(1)
    if orders['go'] >= content:
        open('/state/ready', 'w').close()
    time.sleep(0.02)
