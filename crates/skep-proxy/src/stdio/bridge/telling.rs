//! What the bridge tells the server by itself: nobody waits for the answer.

use serde_json::{Value, json};
use skep_mcp::method;

use super::Bridge;
use crate::eras::line;

impl Bridge {
    /// Asks the server for something whose answer nobody needs.
    pub(in crate::stdio) fn tell(&self, method: &str, params: &Value) {
        if self.calls.tell(&line::request(method, params)).is_err() {
            warn_unread(method);
        }
    }

    /// Tells a server that took the place of another what that one knew.
    pub(in crate::stdio) async fn renew(&self) {
        if !self.handshake.forget() {
            return;
        }
        if let Err(refusal) = self.handshake.agree(&self.calls, None).await {
            tracing::warn!(?refusal, "the MCP server did not agree to the handshake of the one before");
            return;
        }
        for uri in self.subscriptions.uris() {
            let is_watched = || !self.subscriptions.watchers(&uri).is_empty();
            if !self.tell_in_time(method::SUBSCRIBE, &json!({"uri": &*uri}), is_watched).await {
                return;
            }
        }
        if let Some(level) = self.log_levels.level() {
            self.tell_in_time(method::SET_LOG_LEVEL, &json!({"level": level}), || true).await;
        }
    }

    /// The same as [`Bridge::tell`], as fast as the server reads, if there still `is_need` by then. Whether it reads at all.
    async fn tell_in_time(&self, method: &str, params: &Value, is_need: impl FnOnce() -> bool) -> bool {
        let Ok(Ok(room)) = tokio::time::timeout(self.limits.request, self.calls.room()).await else {
            warn_unread(method);
            return false;
        };
        if is_need() {
            self.calls.tell_in(room, &line::request(method, params));
        }
        true
    }
}

fn warn_unread(method: &str) {
    tracing::warn!(method, "the MCP server does not read what it is told");
}
