//! One text that may be a message, or a batch of them, with a list in it.

use bytes::Bytes;
use skep_mcp::catalog::{Catalog, CatalogKind};
use skep_mcp::{Id, Kind, Message, Payload, json};

use super::{Asked, Editor, Unreadable};
use crate::middleware::ambiguity::fold;
use crate::passing::MARK;

/// Who may keep a list, in revisions that say so.
const CACHE_SCOPE: &str = "cacheScope";

/// How a result says what it is, and that it is none yet.
const RESULT_TYPE: &str = "resultType";
const INPUT_REQUIRED: &str = "\"input_required\"";

/// The text with its lists edited; nothing when it has none. A text that cannot be read for sure is refused, with the id
/// that it answers to, if that can be read.
pub(super) async fn edit(editor: &dyn Editor, asked: &Asked, text: &Bytes) -> Result<Option<Bytes>, Option<Id>> {
    let may_list = editor.kinds().iter().any(|kind| mentions(text, kind.member()));
    if !mentions(text, "result") || (!may_list && asked.0.is_empty()) {
        return Ok(None);
    }
    let trimmed = trim(text).ok_or(None)?;
    match Payload::read(trimmed).map_err(|error| error.id().cloned())? {
        Payload::Single(message) => edit_message(editor, asked, &message).await,
        Payload::Batch(messages) => {
            let mut texts = Vec::new();
            let mut is_edited = false;
            for message in messages {
                let message = message.map_err(|error| error.id().cloned())?;
                let edited = edit_message(editor, asked, &message).await?;
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

async fn edit_message(editor: &dyn Editor, asked: &Asked, message: &Message) -> Result<Option<Bytes>, Option<Id>> {
    let unreadable = || message.owned_id();
    // The result of something that is no answer.
    if message.kind() != Kind::Response && message.result().is_some() {
        return Err(unreadable());
    }
    let Some(result) = message.result() else { return Ok(None) };
    let wanted = asked.kind(message.owned_id().as_ref()).filter(|kind| editor.kinds().contains(kind));
    if wanted.is_some_and(|kind| !holds(result, kind)) {
        return Err(unreadable());
    }
    if !result.starts_with('{') {
        return Ok(None);
    }
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

/// Whether the result of a request for a list holds it, or says that there is something to be told first.
fn holds(result: &str, kind: CatalogKind) -> bool {
    let Ok(members) = json::members(result) else { return false };
    let is_question = |(name, value): &(String, &str)| name == RESULT_TYPE && *value == INPUT_REQUIRED;
    members.iter().any(|(name, _)| name == kind.member()) || members.iter().any(is_question)
}

/// The result with its list edited; nothing when it has none.
async fn edit_result(editor: &dyn Editor, kind: CatalogKind, result: &str) -> Result<Option<String>, Unreadable> {
    let members = json::members(result).map_err(|_| Unreadable)?;
    // Some clients do not care about capitals.
    if members.iter().any(|(name, _)| name != kind.member() && fold(name) == kind.member()) {
        return Err(Unreadable);
    }
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
