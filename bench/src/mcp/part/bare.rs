//! A reverse proxy that passes everything on and looks at nothing: what hyper costs.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::uri::{Authority, Parts, Scheme};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

pub(super) async fn serve(listener: TcpListener, server: SocketAddr) -> anyhow::Result<()> {
    let authority: Authority = server.to_string().parse()?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (client, authority) = (client.clone(), authority.clone());
        let service = service_fn(move |request| {
            let (client, authority) = (client.clone(), authority.clone());
            async move { Ok::<_, Infallible>(pass(&client, authority, request).await) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn pass(
    client: &Client<HttpConnector, Incoming>,
    authority: Authority,
    mut request: Request<Incoming>,
) -> Response<BoxBody<Bytes, hyper::Error>> {
    let mut parts = Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(authority);
    parts.path_and_query = request.uri().path_and_query().cloned();
    let mut failed = Response::new(Empty::new().map_err(|never| match never {}).boxed());
    *failed.status_mut() = StatusCode::BAD_GATEWAY;
    let Ok(uri) = Uri::from_parts(parts) else { return failed };
    *request.uri_mut() = uri;
    client.request(request).await.map_or(failed, |response| response.map(BodyExt::boxed))
}
