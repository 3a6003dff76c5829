//! One text that may be a message, or a batch of them, with a list in it.

use std::borrow::Cow;

use bytes::Bytes;
use skep_mcp::catalog::{Catalog, CatalogKind};
use skep_mcp::{Id, Kind, Message, Payload, json};

use super::{Asked, Editor, Unreadable};
use crate::middleware::ambiguity::fold;
use crate::passing::MARK;

/// What an answer that is no error holds.
pub(super) const RESULT: &str = "result";

/// How names may be written that are not there letter by letter: escaped, or with the two capitals beyond ASCII.
const OTHER_LETTERS: [&[u8]; 3] = [b"\\u", "\u{17f}".as_bytes(), "\u{212a}".as_bytes()];

/// Who may keep a list, in revisions that say so.
const CACHE_SCOPE: &str = "cacheScope";

/// How a result says what it is, and that it is none yet.
const RESULT_TYPE: &str = "resultType";
const INPUT_REQUIRED: &str = "\"input_required\"";

/// The text with its lists edited; nothing when it has none. A text that cannot be read for sure is refused, with the id
/// that it answers to, if that can be read.
pub(super) async fn edit(editor: &dyn Editor, asked: &Asked, text: &Bytes) -> Result<Option<Bytes>, Option<Id>> {
    let may_list = || editor.kinds().iter().any(|kind| mentions(text, kind.member()));
    if !(asked.has_lists() || mentions(text, RESULT) && may_list()) {
        return Ok(None);
    }
    let trimmed = trim(text).ok_or(None)?;
    if trimmed.is_empty() {
        return Ok(None);
    }
    match Payload::read(trimmed.clone()) {
        Err(_) if is_error(&trimmed) => Ok(None),
        Err(error) => Err(error.id().cloned()),
        Ok(Payload::Single(message)) => edit_message(editor, asked, &message).await,
        Ok(Payload::Batch(messages)) => {
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

/// Whether a text may have a member of that name: it is there, in whatever capitals, or something is written in another way.
pub(super) fn mentions(text: &[u8], name: &str) -> bool {
    let is_name = |at: usize| {
        let rest = &text[at + 1..];
        rest.get(name.len()) == Some(&b'"') && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes())
    };
    memchr::memchr_iter(b'"', text).any(is_name)
        || OTHER_LETTERS.iter().any(|other| memchr::memmem::find(text, other).is_some())
}

/// Whether nobody can take a text for the result of a request, in whatever capitals and letters.
pub(super) fn holds_no_result(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && !is_wide(text) && !mentions(text, RESULT)
}

/// Whether the letters of a text may be wider than a byte. No text that we could read has such a byte.
pub(super) fn is_wide(text: &[u8]) -> bool {
    memchr::memchr(0, text).is_some()
}

/// Whether a text is a message, or a batch of them, and nothing else.
pub(super) fn is_clear(text: &[u8]) -> bool {
    match Payload::read(Bytes::copy_from_slice(text)) {
        Ok(Payload::Single(_)) => true,
        Ok(Payload::Batch(messages)) => messages.iter().all(Result::is_ok),
        Err(_) => is_error(text),
    }
}

/// Whether a text that is no message for us says that something went wrong, and nothing else, as it does without an id.
fn is_error(text: &[u8]) -> bool {
    let members = std::str::from_utf8(text).ok().and_then(|text| json::members(text).ok()).unwrap_or_default();
    let is_failure = |(name, value): &(Cow<'_, str>, &str)| name == "error" && value.starts_with('{');
    members.iter().any(is_failure) && !members.iter().any(|(name, _)| fold(name) == RESULT)
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
    // Some clients do not care about capitals.
    let members = json::members(message.as_str()).map_err(|_| unreadable())?;
    if members.iter().any(|(name, _)| name != RESULT && fold(name) == RESULT) {
        return Err(unreadable());
    }
    let Some(result) = message.result() else { return Ok(None) };
    let wanted = asked.kind(message.owned_id().as_ref());
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
    let place = json::find(message.as_str(), &[RESULT]).ok().flatten().ok_or_else(unreadable)?;
    Ok(Some(message.with([(place, changed.as_bytes())])))
}

/// Whether the result of a request for a list holds it, or says that there is something to be told first.
fn holds(result: &str, kind: CatalogKind) -> bool {
    let Ok(members) = json::members(result) else { return false };
    let is_question = |(name, value): &(Cow<'_, str>, &str)| name == RESULT_TYPE && *value == INPUT_REQUIRED;
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
