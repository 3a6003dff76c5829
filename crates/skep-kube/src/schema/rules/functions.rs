//! The functions that rules may call: those of kube-cel, and our own where those differ from the server's.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use kube_cel::KubeCelExt;
use kube_cel::cel::extractors::This;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value as Cel};
use regex::Regex;

use super::super::{duration, pattern};

/// Compiled expressions that `matches` keeps. When there are more it starts anew.
const MAX_PATTERNS: usize = 256;

thread_local! {
    // A context cannot be shared between threads, and costs too much to make for each object.
    static CONTEXT: Context<'static> = context();
    static PATTERNS: RefCell<HashMap<String, Result<Regex, String>>> = RefCell::default();
}

/// The names of types, which are values in CEL.
const TYPES: [&str; 8] = ["bool", "bytes", "double", "int", "list", "map", "string", "uint"];

pub(super) fn with_context<T>(run: impl FnOnce(&Context<'_>) -> T) -> T {
    CONTEXT.with(|context| run(context))
}

fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("duration", read_duration);
    context.add_function("timestamp", read_timestamp);
    context.add_function("matches", matches);
    context.add_function("size", size);
    context.add_function("type", type_of);
    context.add_function("dyn", |value: Cel| -> Result<Cel, ExecutionError> { Ok(value) });
    super::costly::register(&mut context);
    for name in TYPES {
        context.add_variable_from_value(name, type_value(name));
    }
    context.add_variable_from_value("null_type", type_value("null_type"));
    context
}

/// Whether rules may call a function of this name. The server has some that the interpreter does not.
pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.contains(&name)
}

const FUNCTIONS: [&str; 140] = [
    "add",
    "asApproximateFloat",
    "asInteger",
    "base64.decode",
    "base64.encode",
    "bool",
    "bytes",
    "charAt",
    "cidr",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "distinct",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "family",
    "find",
    "findAll",
    "first",
    "flatten",
    "format",
    "format.byte",
    "format.date",
    "format.datetime",
    "format.dns1035Label",
    "format.dns1035LabelPrefix",
    "format.dns1123Label",
    "format.dns1123LabelPrefix",
    "format.dns1123Subdomain",
    "format.dns1123SubdomainPrefix",
    "format.labelValue",
    "format.named",
    "format.qualifiedName",
    "format.uri",
    "format.uuid",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "hasValue",
    "indexOf",
    "int",
    "ip",
    "ip.isCanonical",
    "isCIDR",
    "isCIDRv4",
    "isCIDRv6",
    "isGlobalUnicast",
    "isGreaterThan",
    "isIP",
    "isIPv4",
    "isIPv6",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isQuantity",
    "isSemver",
    "isSorted",
    "isURL",
    "isUnspecified",
    "join",
    "jsonpatch.escapeKey",
    "last",
    "lastIndexOf",
    "lists.range",
    "lowerAscii",
    "major",
    "masked",
    "matches",
    "math.abs",
    "math.bitAnd",
    "math.bitNot",
    "math.bitOr",
    "math.bitShiftLeft",
    "math.bitShiftRight",
    "math.bitXor",
    "math.ceil",
    "math.floor",
    "math.greatest",
    "math.isFinite",
    "math.isInf",
    "math.isNaN",
    "math.least",
    "math.round",
    "math.sign",
    "math.sqrt",
    "math.trunc",
    "max",
    "min",
    "minor",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "patch",
    "prefixLength",
    "quantity",
    "replace",
    "reverse",
    "semver",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "sign",
    "size",
    "slice",
    "sort",
    "split",
    "startsWith",
    "string",
    "strings.quote",
    "sub",
    "substring",
    "sum",
    "timestamp",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "url",
    "validate",
    "value",
];

/// A type as a value. Nothing that an object holds can be equal to it.
fn type_value(name: &str) -> Cel {
    Cel::Bytes(Arc::new([b"\xfftype ", name.as_bytes()].concat()))
}

#[expect(clippy::unnecessary_wraps, clippy::needless_pass_by_value, reason = "the shape that the interpreter asks for")]
fn type_of(value: Cel) -> Result<Cel, ExecutionError> {
    Ok(type_value(match value {
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::Bool(_) => "bool",
        Cel::Null => "null_type",
        _ => "other",
    }))
}

/// kube-cel's reads neither `µs` nor refuses what does not fit.
fn read_duration(context: &FunctionContext<'_, '_>, value: Cel) -> Result<Cel, ExecutionError> {
    match value {
        Cel::Duration(_) => Ok(value),
        Cel::Int(nanoseconds) => Ok(Cel::Duration(TimeDelta::nanoseconds(nanoseconds))),
        Cel::String(text) => match duration::parse(&text) {
            Some(nanoseconds) => Ok(Cel::Duration(TimeDelta::nanoseconds(nanoseconds))),
            None => Err(context.error("type conversion error from 'string' to 'google.protobuf.Duration'")),
        },
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn read_timestamp(context: &FunctionContext<'_, '_>, value: Cel) -> Result<Cel, ExecutionError> {
    match value {
        Cel::Timestamp(_) => Ok(value),
        Cel::Int(seconds) => DateTime::from_timestamp(seconds, 0)
            .map(|time| Cel::Timestamp(time.fixed_offset()))
            .ok_or_else(|| context.error("timestamp overflow")),
        Cel::String(text) => DateTime::parse_from_rfc3339(&text)
            .map(Cel::Timestamp)
            .map_err(|_| context.error("type conversion error from 'string' to 'google.protobuf.Timestamp'")),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// Whether a text matches a regular expression, with the meaning that expressions have on the server.
fn matches(context: &FunctionContext<'_, '_>, This(text): This<Cel>, regex: Cel) -> Result<bool, ExecutionError> {
    let (Cel::String(text), Cel::String(regex)) = (text, regex) else {
        return Err(ExecutionError::NoSuchOverload);
    };
    PATTERNS.with_borrow_mut(|patterns| {
        if patterns.len() > MAX_PATTERNS {
            patterns.clear();
        }
        let compiled = patterns.entry(regex.to_string()).or_insert_with(|| pattern::compile(&regex));
        compiled.as_ref().map(|regex| regex.is_match(&text)).map_err(|problem| context.error(problem))
    })
}

/// Texts are measured in characters; the interpreter's own counts bytes.
#[expect(clippy::cast_possible_wrap, reason = "nothing in memory is that large")]
fn size(This(value): This<Cel>) -> Result<i64, ExecutionError> {
    let size = match value {
        Cel::List(items) => items.len(),
        Cel::Map(entries) => entries.map.len(),
        Cel::String(text) => text.chars().count(),
        Cel::Bytes(bytes) => bytes.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(size as i64)
}
