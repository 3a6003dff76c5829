//! The tools whose calls repeat arguments in headers, learned from the lists that pass.
//!
//! A server on standard input and output sees no headers, so that nobody but the proxy can check them.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use serde_json::Value;
use skep_mcp::catalog::{Catalog, CatalogKind};
use skep_mcp::fault::Fault;
use skep_mcp::{Message, Mirror, Param, header, method};

/// How many tools are remembered.
const TOOLS: usize = 4096;

/// The tools that repeat something.
#[derive(Debug, Default)]
pub(crate) struct Mirrors(Mutex<HashMap<Box<str>, Vec<Mirror>>>);

impl Mirrors {
    /// Learns from a list of tools.
    pub(crate) fn learn(&self, list: &str) {
        let Ok(catalog) = Catalog::read(CatalogKind::Tools, list) else { return };
        let mut known = self.0.lock();
        for item in catalog.items() {
            let mirrors = Mirror::of_tool(item.json);
            if mirrors.is_empty() {
                known.remove(&*item.key);
            } else if known.len() < TOOLS {
                known.insert((&*item.key).into(), mirrors);
            }
        }
    }

    /// What the calls of a tool repeat.
    pub(crate) fn of(&self, tool: &str) -> Vec<Mirror> {
        self.0.lock().get(tool).cloned().unwrap_or_default()
    }

    /// Learns from the answer among these messages, and passes all on.
    pub(crate) fn learning(self: &Arc<Self>, messages: BoxStream<'static, Message>) -> BoxStream<'static, Message> {
        let mirrors = Arc::clone(self);
        messages.inspect(move |message| message.result().into_iter().for_each(|list| mirrors.learn(list))).boxed()
    }

    /// Removes what only calls of tools that want it have to repeat.
    pub(crate) fn strip(headers: &mut HeaderMap) {
        let repeated: Vec<HeaderName> = headers.keys().filter(|name| Mirror::is_by(name)).cloned().collect();
        for name in repeated {
            headers.remove(name);
        }
    }

    /// Has the headers of a call that was changed on its way repeat what it says now. Of a tool that was not listed yet nobody
    /// knows what they repeat; what is not among the arguments any more is not told, because somebody has taken it away.
    pub(crate) fn keep_in_step(&self, headers: &mut HeaderMap, before: &Message, after: &Message) {
        if [before, after].into_iter().any(|call| self.knows(call)) {
            Self::strip(headers);
            headers.extend(self.headers(after));
            return;
        }
        let arguments = after.param(Param::Arguments).and_then(|arguments| serde_json::from_str(arguments).ok());
        let arguments: Value = arguments.unwrap_or_default();
        let is_told = |name: &HeaderName| {
            let told = header::single(headers, name).ok().flatten().and_then(header::decode);
            told.is_some_and(|told| is_said(&told, &arguments))
        };
        let gone: Vec<HeaderName> =
            headers.keys().filter(|name| Mirror::is_by(name) && !is_told(name)).cloned().collect();
        for name in gone {
            headers.remove(name);
        }
    }

    /// Whether a message calls a tool that repeats something.
    fn knows(&self, message: &Message) -> bool {
        let name = message.param_text(Param::Name).filter(|_| message.method() == method::TOOLS_CALL);
        name.is_some_and(|name| self.0.lock().contains_key(&*name))
    }

    /// Checks that a call says in its headers what it says in its arguments.
    pub(crate) fn check(&self, headers: &HeaderMap, message: &Message) -> Result<(), Fault> {
        if message.method() != method::TOOLS_CALL {
            return Ok(());
        }
        let known = self.0.lock();
        let mirrors = message.param_text(Param::Name).and_then(|name| known.get(&*name));
        mirrors.into_iter().flatten().try_for_each(|mirror| mirror.check(headers, message.param(Param::Arguments)))
    }
}

/// Whether one of the values says this, however deep it is.
fn is_said(told: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => told == if *flag { "true" } else { "false" },
        Value::Number(number) => number.to_string() == told,
        Value::String(text) => text == told,
        Value::Array(items) => items.iter().any(|item| is_said(told, item)),
        Value::Object(members) => members.values().any(|member| is_said(told, member)),
    }
}
