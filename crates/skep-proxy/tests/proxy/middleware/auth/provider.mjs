// An OpenID provider that somebody else wrote. It prints its port.
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const server = createServer().listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [{ client_id: 'bee', client_secret: 'honey', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }],
    extraTokenClaims: (_context, token) => (token.resourceServer?.accessTokenFormat === 'opaque' ? { sub: 'opaque bee' } : {}),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          scope: 'mcp',
          audience: 'https://hive.example/mcp',
          accessTokenTTL: 600,
          accessTokenFormat: resource.endsWith('/opaque') ? 'opaque' : 'jwt',
        }),
      },
    },
  });
  server.on('request', provider.callback());
  console.log(port);
});
