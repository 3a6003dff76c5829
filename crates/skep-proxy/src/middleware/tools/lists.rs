//! Lists of tools, as clients may see them.

use std::borrow::Cow;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use skep_mcp::catalog::{CatalogKind, Item};
use skep_mcp::json;

use super::ToolRules;
use crate::answer::Answer;
use crate::middleware::exchange::Exchange;
use crate::middleware::layer::{Layer, Next, with_body};
use crate::middleware::lists::{Editor, Unreadable, edited};

/// What it has something to say about.
const KINDS: [CatalogKind; 1] = [CatalogKind::Tools];

/// Renames, then hides.
#[derive(Debug)]
pub(crate) struct ToolLists(Arc<ToolRules>);

impl ToolLists {
    pub(crate) fn new(rules: ToolRules) -> Self {
        Self(Arc::new(rules))
    }
}

impl Layer for ToolLists {
    fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        with_body(exchange, move |exchange| edited(exchange, next, &KINDS, move |_| Arc::<ToolRules>::clone(&self.0)))
    }
}

impl Editor for ToolRules {
    fn kinds(&self) -> &'static [CatalogKind] {
        &KINDS
    }

    fn edit<'a>(
        &'a self,
        _kind: CatalogKind,
        items: &'a [Item<'a>],
    ) -> BoxFuture<'a, Result<Vec<Cow<'a, str>>, Unreadable>> {
        let shown: Result<Vec<_>, _> = items.iter().filter_map(|item| self.show(item).transpose()).collect();
        std::future::ready(shown).boxed()
    }
}

impl ToolRules {
    /// A tool as clients see it, if they do.
    fn show<'a>(&self, item: &Item<'a>) -> Result<Option<Cow<'a, str>>, Unreadable> {
        let Some(shown) = self.shown(&item.key) else {
            return Ok(self.is_shown(&item.key).then_some(Cow::Borrowed(item.json)));
        };
        let name = if shown.name.is_empty() { &*item.key } else { shown.name.as_str() };
        if !self.is_shown(name) {
            return Ok(None);
        }
        let mut tool = Cow::Borrowed(item.json);
        for (member, value) in [("name", &shown.name), ("description", &shown.description)] {
            if !value.is_empty() {
                tool = Cow::Owned(json::set(&tool, &[member], &json::quote(value)).map_err(|_| Unreadable)?);
            }
        }
        if let Some(annotated) = shown.annotations.replaced(&tool).map_err(|_| Unreadable)? {
            tool = Cow::Owned(annotated);
        }
        Ok(Some(tool))
    }
}
