//! What the operator tells about itself over HTTP: metrics at one address, health at another.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::metrics::Metrics;

/// Serves `/metrics` for ever.
pub async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) -> io::Result<()> {
    let router = Router::new().route("/metrics", get(async |State(metrics): State<Arc<Metrics>>| metrics.text()));
    axum::serve(listener, router.with_state(metrics)).await
}

/// Serves `/healthz`, which answers while the process does, and `/readyz`, which answers once everything that is watched
/// is known.
pub async fn serve_health(listener: TcpListener, ready: watch::Receiver<bool>) -> io::Result<()> {
    let readiness = get(async |State(ready): State<watch::Receiver<bool>>| {
        if *ready.borrow() {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not everything that is watched is known yet")
        }
    });
    let router = Router::new().route("/healthz", get(async || "ok")).route("/readyz", readiness);
    axum::serve(listener, router.with_state(ready)).await
}
