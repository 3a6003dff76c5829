// An OpenID provider that somebody else wrote. It prints its port.
//
// HOST and PORT say where it listens, ISSUER what it calls itself. With KEYS, a folder with a certificate, it also serves
// https on port 8443.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { Provider } from 'oidc-provider';

const { HOST = '127.0.0.1', PORT = '0', ISSUER, KEYS } = process.env;

const client = (id) => ({
  client_id: id,
  client_secret: 'honey',
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
});

const isOpaque = (token) => token.resourceServer?.accessTokenFormat === 'opaque';

const server = createServer().listen(Number(PORT), HOST, () => {
  const { port } = server.address();
  const provider = new Provider(ISSUER ?? `http://127.0.0.1:${port}`, {
    clients: ['bee', 'keeper', 'helper', 'guest'].map(client),
    extraTokenClaims: (_context, token) => ({
      groups: token.clientId === 'guest' ? ['guests'] : ['keepers'],
      ...(isOpaque(token) ? { sub: `opaque ${token.clientId}` } : {}),
    }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          scope: 'mcp',
          audience: resource.endsWith('/elsewhere') ? 'https://elsewhere.example/mcp' : 'https://hive.example/mcp',
          accessTokenTTL: 600,
          accessTokenFormat: resource.endsWith('/opaque') ? 'opaque' : 'jwt',
        }),
      },
    },
  });
  server.on('request', provider.callback());
  if (KEYS) {
    const identity = { cert: readFileSync(`${KEYS}/server.crt`), key: readFileSync(`${KEYS}/server.key`) };
    createSecureServer(identity, provider.callback()).listen(8443, HOST);
  }
  console.log(port);
});
