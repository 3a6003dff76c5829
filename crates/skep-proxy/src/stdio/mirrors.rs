//! The tools whose calls repeat arguments in headers, learned from the lists that pass.
//!
//! A server on standard input and output sees no headers, so that nobody but the proxy can check them.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use skep_mcp::catalog::{Catalog, CatalogKind};
use skep_mcp::fault::Fault;
use skep_mcp::{Message, Mirror, Param, method};

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
