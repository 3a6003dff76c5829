//! Lists on their way out. A list is written from the records piece by piece, as the client takes it, so that it is not
//! in memory a second time.

use std::sync::Arc;
use std::vec;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::codec;
use super::content;
use super::exchange::Exchange;
use super::negotiate::{Encoding, Form};
use super::read::{is_shown_as_stored, load, shown};
use super::registry::Origin;
use super::representation::{not_acceptable, partial, type_name};
use super::table::{self, Rows};
use crate::protobuf::{EncodeError, ListMessage};
use crate::status::ApiError;
use crate::store::Record;

/// A piece ends with the item that makes it this long.
const PIECE_BYTES: usize = 64 * 1024;

/// A list to show.
#[derive(Debug)]
pub struct Items {
    pub records: Vec<Arc<Record>>,
    pub revision: u64,
    pub continue_: Option<String>,
    pub remaining: Option<usize>,
}

/// The answer to a request for a list, in the form and encoding that it asks for.
pub fn reply(exchange: Exchange, items: Items) -> Result<Response<Body>, ApiError> {
    let head = head(&exchange, &items)?;
    let encoding = exchange.answer.encoding;
    let written = Written::new(exchange, items.records)?;
    let body = match encoding {
        Encoding::Protobuf => messages(&head, written)?,
        Encoding::Json => pieces(Pieces::new(&head, written))?,
        Encoding::Yaml => {
            let document: Vec<Bytes> = Pieces::new(&head, written).collect::<Result<_, _>>()?;
            Body::from(content::to_yaml(&document.concat().into()))
        }
    };
    Ok(content::encoded(Response::builder().status(StatusCode::OK), encoding, body))
}

/// A short list is one piece, and what goes wrong in the first piece can still be answered.
fn pieces(mut pieces: Pieces) -> Result<Body, ApiError> {
    let first = pieces.next().transpose()?.unwrap_or_default();
    if pieces.is_done {
        return Ok(Body::from(first));
    }
    Ok(Body::from_stream(stream::iter(std::iter::once(Ok(first)).chain(pieces))))
}

/// A message begins with its length, so all of it has to be written before any of it is sent.
fn messages(head: &Value, mut written: Written) -> Result<Body, ApiError> {
    let mistake = |error: EncodeError| ApiError::internal(&error.to_string());
    let list = ListMessage::new(head).map_err(mistake)?;
    let (mut pieces, mut piece, mut item) = (Vec::new(), Vec::new(), Vec::new());
    while written.next_into(&mut item)? {
        list.put_item(&item, &mut piece).map_err(mistake)?;
        item.clear();
        if piece.len() >= PIECE_BYTES {
            pieces.push(Bytes::from(std::mem::take(&mut piece)));
        }
    }
    pieces.push(piece.into());
    let length = pieces.iter().map(Bytes::len).sum();
    let (before, after) = list.around(length).map_err(mistake)?;
    let all = std::iter::once(before.into()).chain(pieces).chain([after.into()]);
    Ok(Body::from_stream(stream::iter(all.map(Ok::<Bytes, ApiError>))))
}

/// The list but for its items.
fn head(exchange: &Exchange, items: &Items) -> Result<Value, ApiError> {
    let mut metadata = json!({ "resourceVersion": items.revision.to_string() });
    if let Some(continue_) = &items.continue_ {
        metadata["continue"] = continue_.as_str().into();
    }
    if let Some(remaining) = items.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    match exchange.answer.form {
        Form::Object => {
            // The list of a custom resource says even that nothing follows.
            if exchange.resource.origin == Origin::Custom && items.continue_.is_none() {
                metadata["continue"] = "".into();
            }
            let list_kind = &exchange.resource.list_kind;
            Ok(json!({ "apiVersion": exchange.api_version(), "kind": list_kind, "metadata": metadata }))
        }
        Form::PartialMetadata => Err(not_acceptable(&format!(
            "you requested PartialObjectMetadata, but the requested object is a list (*{})",
            type_name(exchange, true)
        ))),
        Form::PartialMetadataList => Ok(json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": exchange.answer.form_version,
            "metadata": metadata,
        })),
        Form::Table => {
            let mut table = table::head(exchange, true)?;
            table["metadata"] = metadata;
            Ok(table)
        }
    }
}

/// The items of a list, each written when it is its turn.
struct Written {
    exchange: Exchange,
    api_version: String,
    /// For a table.
    rows: Option<Rows>,
    records: vec::IntoIter<Arc<Record>>,
}

impl Written {
    fn new(exchange: Exchange, records: Vec<Arc<Record>>) -> Result<Self, ApiError> {
        let rows = (exchange.answer.form == Form::Table).then(|| Rows::of(&exchange)).transpose()?;
        Ok(Self { api_version: exchange.api_version(), exchange, rows, records: records.into_iter() })
    }

    /// Appends the next item, if there is one.
    fn next_into(&mut self, output: &mut Vec<u8>) -> Result<bool, ApiError> {
        let Some(record) = self.records.next() else { return Ok(false) };
        match (&self.rows, self.exchange.answer.form) {
            (Some(rows), _) => write(&rows.row(&self.exchange, load(&self.exchange, &record)?)?, output),
            (None, Form::Object) => self.object(&record, output)?,
            (None, _) => write(&partial(&self.exchange, &load(&self.exchange, &record)?), output),
        }
        Ok(true)
    }

    /// A whole object is not parsed where it is stored as it is shown.
    fn object(&self, record: &Record, output: &mut Vec<u8>) -> Result<(), ApiError> {
        let is_stored_so = is_shown_as_stored(&self.exchange, record);
        match self.exchange.resource.origin {
            Origin::Custom if is_stored_so => {
                codec::serve(record, record.revision, shown(&self.api_version, &self.exchange), output);
            }
            // A typed list says once what its items are.
            Origin::BuiltIn(_) if is_stored_so => codec::serve_bare(record, output),
            Origin::Custom => write(&load(&self.exchange, record)?, output),
            Origin::BuiltIn(_) => {
                let mut object = load(&self.exchange, record)?;
                if let Some(members) = object.as_object_mut() {
                    members.retain(|name, _| name != "apiVersion" && name != "kind");
                }
                write(&object, output);
            }
        }
        Ok(())
    }
}

fn write(value: &Value, output: &mut Vec<u8>) {
    output.extend_from_slice(value.to_string().as_bytes());
}

/// The JSON text of a list.
struct Pieces {
    /// What comes before all items.
    open: Vec<u8>,
    items: Written,
    is_first: bool,
    close: &'static [u8],
    is_done: bool,
}

impl Pieces {
    fn new(head: &Value, items: Written) -> Self {
        let (member, can_be_empty) = match &items.rows {
            Some(_) => ("rows", table::can_be_empty(&items.exchange)),
            None => ("items", true),
        };
        let is_null = items.records.len() == 0 && !can_be_empty;
        let (bracket, close): (_, &[u8]) = if is_null { ("null", b"}") } else { ("[", b"]}") };
        let mut open = head.to_string().into_bytes();
        // The brace at the end comes later.
        open.pop();
        open.extend_from_slice(format!(",\"{member}\":{bracket}").as_bytes());
        Self { open, items, is_first: true, close, is_done: false }
    }

    fn piece(&mut self) -> Result<Bytes, ApiError> {
        let mut piece = std::mem::take(&mut self.open);
        // The last item goes beyond.
        piece.reserve(PIECE_BYTES * 5 / 4);
        while piece.len() < PIECE_BYTES && !self.is_done {
            if self.items.records.len() == 0 {
                piece.extend_from_slice(self.close);
                self.is_done = true;
            } else {
                if !std::mem::take(&mut self.is_first) {
                    piece.push(b',');
                }
                self.items.next_into(&mut piece)?;
            }
        }
        Ok(piece.into())
    }
}

impl Iterator for Pieces {
    type Item = Result<Bytes, ApiError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let piece = self.piece();
        self.is_done |= piece.is_err();
        Some(piece)
    }
}
