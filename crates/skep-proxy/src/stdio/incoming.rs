//! What the server says, and whose it is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use skep_mcp::fault::{Fault, INTERNAL_ERROR, METHOD_NOT_FOUND};
use skep_mcp::lines::{Ends, Line, object_in};
use skep_mcp::{Kind, Message, MetaKey, Param, Payload, json, method};

use super::audience::Audience;
use super::bridge::Bridge;
use super::unreadable;

/// How long a client may take for an answer, while its own request waits.
const QUESTION: Duration = Duration::from_mins(5);

impl Bridge {
    /// Takes a line of the server's output.
    pub(super) fn receive(&self, line: Line) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(ends) => {
                let limit = self.limits().line_bytes;
                tracing::warn!(limit, "the MCP server wrote a line that is too long");
                return self.lose_answer(&ends, &format!("it has more than {limit} bytes"));
            }
        };
        // Programs print other text around their messages, and characters of a message are never touched.
        let payload = Payload::read(line.clone()).or_else(|error| {
            let within = object_in(&line).ok_or(error)?;
            Payload::read(within)
        });
        match payload {
            Ok(Payload::Single(message)) => self.take(&message),
            Ok(Payload::Batch(messages)) => messages.iter().flatten().for_each(|message| self.take(message)),
            Err(error) => {
                self.oddities().wrote(&line, &error);
                if error.is_too_deep() {
                    self.lose_answer(&Ends::of(&line), &format!("it nests deeper than {} values", json::DEPTH));
                }
            }
        }
    }

    /// Tells whoever waits for an answer that it cannot be read.
    fn lose_answer(&self, ends: &Ends, why: &str) {
        let fault = Fault::new(INTERNAL_ERROR, format!("the answer of the MCP server cannot be read: {why}"));
        if let Some(number) = unreadable::number(ends)
            && self.calls().unreadable(number, &fault)
        {
            tracing::warn!(why, "an answer of the MCP server is lost");
        }
    }

    fn take(&self, message: &Message) {
        let is_taken = match message.kind() {
            Kind::Response => {
                if !self.limits().held.has_room(message.text().len()) {
                    self.clients().lose_left();
                }
                self.calls().answered(message)
            }
            Kind::Request => self.asked(message),
            Kind::Notification => self.spread(message),
        };
        if !is_taken {
            tracing::debug!(method = message.method(), "dropped a message of the MCP server that is nobody's");
        }
    }

    /// Takes a question of the server. One of a server that clients share cannot be handed on, because nobody knows which
    /// client it is about.
    fn asked(&self, message: &Message) -> bool {
        let Some(id) = message.owned_id() else { return false };
        let refused = |code, told: String| Fault::new(code, told).answer(Some(&id));
        let answer = match (message.method(), self.audience()) {
            (method::PING, _) => format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id.as_json()),
            (name, Audience::Everybody) => refused(
                METHOD_NOT_FOUND,
                format!("server-initiated {name} is not supported by a server that clients share"),
            ),
            (name, Audience::OneSession) => {
                let listening = || self.clients().only().filter(|client| client.background().is_open());
                let heard = self.calls().newest_stream();
                match heard.or_else(|| listening().map(|client| Arc::clone(client.background()))) {
                    Some(stream) if stream.has_room() => {
                        stream.push(kept(message));
                        // A person may have to think about it.
                        self.calls().extend(QUESTION);
                        return true;
                    }
                    Some(_) => {
                        self.warn_unread();
                        refused(
                            INTERNAL_ERROR,
                            format!("server-initiated {name} has to wait: the client reads too slowly"),
                        )
                    }
                    None => {
                        let told = format!("server-initiated {name} reaches nobody: the client does not listen");
                        refused(METHOD_NOT_FOUND, told)
                    }
                }
            }
        };
        self.calls().insist(answer.into()).is_ok()
    }

    /// Hands a notification to those it is for.
    fn spread(&self, message: &Message) -> bool {
        if let (Some(place), Some(listener)) =
            (message.meta_span(MetaKey::SubscriptionId), message.meta(MetaKey::SubscriptionId))
        {
            return self.calls().reported(message, place, listener);
        }
        match message.method() {
            method::PROGRESS => {
                let token = message.param_span(Param::ProgressToken).zip(message.param(Param::ProgressToken));
                token.is_some_and(|(place, token)| self.calls().reported(message, place, token))
            }
            name => match self.audience() {
                Audience::Everybody => self.spread_among_all(name, message),
                Audience::OneSession => self.tell_client(name, message),
            },
        }
    }

    fn spread_among_all(&self, name: &str, message: &Message) -> bool {
        match name {
            method::RESOURCE_UPDATED => {
                let watchers = message.param_text(Param::Uri).map(|uri| self.subscriptions().watchers(&uri));
                self.clients().tell(&watchers.unwrap_or_default(), message.text());
                true
            }
            name if method::LISTS_CHANGED.contains(&name) => {
                self.clients().tell_all(message.text());
                true
            }
            _ => false,
        }
    }

    /// Tells the client of a session: with what it asked last, or on its own. Changes belong to no request. What comes
    /// before the client listens waits for it.
    fn tell_client(&self, name: &str, message: &Message) -> bool {
        let is_change = name == method::RESOURCE_UPDATED || method::LISTS_CHANGED.contains(&name);
        let heard = self.calls().newest_stream().filter(|_| !is_change);
        let stream = heard.or_else(|| self.clients().only().map(|client| Arc::clone(client.background())));
        stream.inspect(|stream| stream.offer(kept(message))).is_some()
    }
}

/// A message that may wait for its client. What came is a piece of whatever was read with it, and would keep that.
fn kept(message: &Message) -> Bytes {
    Bytes::copy_from_slice(message.text())
}
