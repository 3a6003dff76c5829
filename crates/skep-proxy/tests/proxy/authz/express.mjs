// A server that reads JSON as most servers of npm do. It says which tool it was asked to call, and prints its port.
import express from 'express';

const app = express();
app.use(express.json());
app.use((request, response) => {
  const { id, params } = request.body ?? {};
  response.json({ jsonrpc: '2.0', id: id ?? null, result: { called: params?.name ?? null } });
});
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
