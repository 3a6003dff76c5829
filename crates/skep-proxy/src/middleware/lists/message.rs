//! One text that may be a message, or a batch of them, with a list in it.

use bytes::Bytes;
use skep_mcp::catalog::{Catalog, CatalogKind};
use skep_mcp::{Id, Kind, Message, Payload, json};

use super::{Editor, Unreadable};
use crate::passing::MARK;

/// Who may keep a list, in revisions that say so.
const CACHE_SCOPE: &str = "cacheScope";

/// The text with its lists edited; nothing when it has none. A text that cannot be read for sure is refused, with the id
/// that it answers to, if that can be read.
pub(super) async fn edit(editor: &dyn Editor, text: &Bytes) -> Result<Option<Bytes>, Option<Id>> {
    if !editor.kinds().iter().any(|kind| mentions(text, kind.member())) || !mentions(text, "result") {
        return Ok(None);
    }
    let trimmed = trim(text).ok_or(None)?;
    match Payload::read(trimmed).map_err(|error| error.id().cloned())? {
        Payload::Single(message) => edit_message(editor, &message).await,
        Payload::Batch(messages) => {
            let mut texts = Vec::new();
            let mut is_edited = false;
            for message in messages {
                let message = message.map_err(|error| error.id().cloned())?;
                let edited = edit_message(editor, &message).await?;
                is_edited |= edited.is_some();
                texts.push(edited.unwrap_or_else(|| message.text().clone()));
            }
            Ok(is_edited.then(|| [&b"["[..], &texts.join(&b","[..]), b"]"].concat().into()))
        }
    }
}

/// Whether a text may have a member of that name: it is there, or something is written in another way.
pub(super) fn mentions(text: &[u8], name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    memchr::memmem::find(text, quoted.as_bytes()).is_some() || memchr::memmem::find(text, b"\\u").is_some()
}

/// Without what parsers more patient than ours would skip. Nothing when it is no text.
fn trim(text: &Bytes) -> Option<Bytes> {
    let json = std::str::from_utf8(text.strip_prefix(MARK).unwrap_or(text)).ok()?;
    Some(text.slice_ref(json.trim().as_bytes()))
}

async fn edit_message(editor: &dyn Editor, message: &Message) -> Result<Option<Bytes>, Option<Id>> {
    let unreadable = || message.owned_id();
    // The result of something that is no answer.
    if message.kind() != Kind::Response && message.result().is_some() {
        return Err(unreadable());
    }
    let Some(result) = message.result().filter(|result| result.starts_with('{')) else { return Ok(None) };
    let mut changed: Option<String> = None;
    for kind in editor.kinds() {
        let result = changed.as_deref().unwrap_or(result);
        if let Some(edited) = edit_result(editor, *kind, result).await.map_err(|_| unreadable())? {
            changed = Some(edited);
        }
    }
    let Some(changed) = changed else { return Ok(None) };
    let place = json::find(message.as_str(), &["result"]).ok().flatten().ok_or_else(unreadable)?;
    Ok(Some(message.with([(place, changed.as_bytes())])))
}

/// The result with its list edited; nothing when it has none.
async fn edit_result(editor: &dyn Editor, kind: CatalogKind, result: &str) -> Result<Option<String>, Unreadable> {
    let members = json::members(result).map_err(|_| Unreadable)?;
    if !members.iter().any(|(name, _)| name == kind.member()) {
        return Ok(None);
    }
    let catalog = Catalog::read(kind, result).map_err(|_| Unreadable)?;
    if catalog.items().iter().any(|item| item.key.is_empty()) {
        return Err(Unreadable);
    }
    let shown = editor.edit(kind, catalog.items()).await?;
    let edited = catalog.with_items(shown.iter().map(AsRef::as_ref));
    // What one reader sees of it is not for the caches of others.
    if members.iter().any(|(name, _)| name == CACHE_SCOPE) {
        return json::set(&edited, &[CACHE_SCOPE], "\"private\"").map(Some).map_err(|_| Unreadable);
    }
    Ok(Some(edited))
}
