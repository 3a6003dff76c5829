//! What a collector gets: OTLP over HTTP, as protocol buffers.

pub(super) mod wire;

use std::borrow::Cow;
use std::time::SystemTime;

use bytes::Bytes;

use self::wire::Message;
use super::meters::{Kind, Reading};
use super::series::{BOUNDS, Label, Point};

/// Who says it.
const SCOPE: &str = "skep-proxy";
/// Numbers count from the beginning of the process.
const CUMULATIVE: u64 = 2;

/// A moment in nanoseconds.
pub(super) fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// What all of it is about.
pub(super) fn resource<'a>(attributes: impl IntoIterator<Item = (&'a String, &'a String)>) -> Message {
    let mut resource = Message::default();
    for (key, value) in attributes {
        resource.attribute(1, key, value.as_str());
    }
    resource
}

fn scope() -> Message {
    let mut scope = Message::default();
    scope.text(1, SCOPE);
    scope.text(2, env!("CARGO_PKG_VERSION"));
    scope
}

/// A request that hands over what belongs to one resource: the same frame for spans and metrics.
fn export<'a>(resource: &Message, items: impl Iterator<Item = &'a Message>) -> Bytes {
    let (mut of_scope, mut of_resource, mut request) = (Message::default(), Message::default(), Message::default());
    of_scope.message(1, &scope());
    for item in items {
        of_scope.message(2, item);
    }
    of_resource.message(1, resource);
    of_resource.message(2, &of_scope);
    request.message(1, &of_resource);
    request.into_bytes().into()
}

/// A request that hands over spans.
pub(super) fn traces(resource: &Message, spans: &[Message]) -> Bytes {
    export(resource, spans.iter())
}

/// A request that hands over what metrics say, counted since `began`.
pub(super) fn metrics(resource: &Message, readings: &[Reading], began: SystemTime, now: SystemTime) -> Bytes {
    let metrics: Vec<_> = readings.iter().map(|reading| metric(reading, began, now)).collect();
    export(resource, metrics.iter())
}

fn metric(reading: &Reading, began: SystemTime, now: SystemTime) -> Message {
    let (mut metric, mut data) = (Message::default(), Message::default());
    metric.text(1, reading.metric.name);
    metric.text(2, reading.metric.description);
    metric.text(3, reading.metric.unit);
    for (labels, point) in &reading.points {
        data.message(1, &data_point(labels, point, nanoseconds(began), nanoseconds(now)));
    }
    data.varint(2, CUMULATIVE);
    match reading.metric.kind {
        Kind::Histogram => metric.message(9, &data),
        Kind::Counter => {
            data.varint(3, 1);
            metric.message(7, &data);
        }
        Kind::UpDown => metric.message(7, &data),
    }
    metric
}

fn data_point(labels: &[Label<'static>], point: &Point, began: u64, now: u64) -> Message {
    let mut data = Message::default();
    data.fixed64(2, began);
    data.fixed64(3, now);
    let attributes_at = match point {
        Point::Count(count) => {
            data.fixed64(6, *count);
            7
        }
        Point::Level(level) => {
            data.fixed64(6, level.cast_unsigned());
            7
        }
        Point::Spread(spread) => {
            data.fixed64(4, spread.count());
            data.double(5, spread.sum);
            data.packed(6, spread.ranges.iter().copied());
            data.packed(7, BOUNDS.iter().map(|bound| bound.to_bits()));
            9
        }
    };
    for (name, value) in labels {
        let value: &Cow<'static, str> = value;
        data.attribute(attributes_at, name, value.as_ref());
    }
    data
}
