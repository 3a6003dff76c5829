//! Formats as values: `format.dns1123Label().validate(self.name)`.

use std::sync::Arc;

use kube_cel::cel::objects::Opaque;

use super::super::validate::format::holds as holds_format;
use super::value::{Outcome, Value};
use super::words;
use crate::names::{self, NameRule};

/// A format, by its name.
#[derive(Debug, PartialEq, Eq)]
struct Format(&'static str);

impl Opaque for Format {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.NamedFormat"
    }
}

const NAMES: [&str; 13] = [
    "byte",
    "date",
    "datetime",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "labelValue",
    "qualifiedName",
    "uri",
    "uuid",
];

pub(super) fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    Some(Ok(match arguments {
        [Value::Text(wanted)] if name == "format.named" => Value::Optional(named(wanted).map(Box::new)),
        [] => named(name.strip_prefix("format.")?)?,
        [Value::Foreign(format), Value::Text(text)] if name == "validate" => {
            let Format(format) = format.downcast_ref::<Format>()?;
            let complaints: Vec<Value> = complaints(format, text).into_iter().map(Value::from).collect();
            Value::Optional((!complaints.is_empty()).then(|| Box::new(complaints.into())))
        }
        _ => return None,
    }))
}

fn named(name: &str) -> Option<Value> {
    let name = NAMES.into_iter().find(|known| *known == name)?;
    Some(Value::Foreign(Arc::new(Format(name))))
}

/// What is wrong with a text that should have a format.
fn complaints(format: &str, text: &str) -> Vec<String> {
    let unless = |holds: bool, complaint: &str| if holds { Vec::new() } else { vec![complaint.to_owned()] };
    match format {
        "dns1035Label" => NameRule::Dns1035Label.check(text),
        "dns1035LabelPrefix" => NameRule::Dns1035Label.check_prefix(text),
        "dns1123Label" => NameRule::Dns1123Label.check(text),
        "dns1123LabelPrefix" => NameRule::Dns1123Label.check_prefix(text),
        "dns1123Subdomain" => NameRule::Dns1123Subdomain.check(text),
        "dns1123SubdomainPrefix" => NameRule::Dns1123Subdomain.check_prefix(text),
        "labelValue" => names::label_value(text),
        "qualifiedName" => names::qualified_name(text),
        "uri" => unless(holds_format("uri", text), &words::no_url(text)),
        "uuid" => unless(holds_format("uuid", text), "does not match the UUID format"),
        "byte" => unless(holds_format("byte", text), "invalid base64"),
        "date" => unless(holds_format("date", text), "invalid date"),
        _ => unless(holds_format("datetime", text), "invalid datetime"),
    }
}
