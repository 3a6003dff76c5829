//! What is counted, as Prometheus reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use http::Method;

use super::meters::{Kind, Meters, Metric};
use super::process;
use super::resource::Resource;
use super::series::{BOUNDS, Label, Point, Spread};
use crate::answer::{self, Answer};

/// Where it is served.
pub(crate) const PATH: &str = "/metrics";

/// The page.
#[derive(Debug)]
pub(super) struct Page {
    meters: Arc<Meters>,
    resource: String,
}

impl Page {
    pub(super) fn new(meters: Arc<Meters>, resource: &Resource) -> Self {
        Self { meters, resource: labels(named(resource)) }
    }

    /// Answers a request for it.
    pub(super) fn answer(&self, method: &Method) -> Answer {
        if method != Method::GET && method != Method::HEAD {
            return answer::wrong_method("GET");
        }
        answer::metrics(self.text())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for reading in self.meters.read() {
            let name = name(reading.metric);
            head(&mut text, &name, kind(reading.metric.kind), reading.metric.description);
            for (of, point) in &reading.points {
                match point {
                    Point::Count(count) => line(&mut text, &name, &labels(pairs(of)), count),
                    Point::Level(level) => line(&mut text, &name, &labels(pairs(of)), level),
                    Point::Spread(spread) => histogram(&mut text, &name, of, spread),
                }
            }
        }
        head(&mut text, "target_info", "gauge", "What all of it is about");
        line(&mut text, "target_info", &self.resource, 1);
        for measure in process::read() {
            head(&mut text, measure.name, measure.kind, measure.description);
            line(&mut text, measure.name, "", measure.value);
        }
        text
    }
}

fn head(text: &mut String, name: &str, kind: &str, description: &str) {
    // Writing into a text does not fail.
    let _ = writeln!(text, "# HELP {name} {description}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name}{labels} {value}");
}

fn histogram(text: &mut String, name: &str, of: &[Label<'static>], spread: &Spread) {
    let mut below = 0;
    let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(spread.ranges) {
        below += count;
        let labels = labels(pairs(of).chain([("le".to_owned(), bound.as_str())]));
        line(text, &format!("{name}_bucket"), &labels, below);
    }
    let labels = labels(pairs(of));
    line(text, &format!("{name}_sum"), &labels, spread.sum);
    line(text, &format!("{name}_count"), &labels, below);
}

/// The name with what it says about unit and kind.
fn name(metric: &Metric) -> String {
    let unit = if metric.unit == "s" { "_seconds" } else { "" };
    let total = if metric.kind == Kind::Counter { "_total" } else { "" };
    format!("{}{unit}{total}", plain(metric.name))
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::UpDown => "gauge",
        Kind::Histogram => "histogram",
    }
}

/// A name without the characters that names here do not have.
fn plain(name: &str) -> String {
    let mut plain: String =
        name.chars().map(|char| if char.is_ascii_alphanumeric() || char == '_' { char } else { '_' }).collect();
    if plain.starts_with(|first: char| first.is_ascii_digit()) {
        plain.insert(0, '_');
    }
    plain
}

fn pairs<'a>(of: &'a [Label<'static>]) -> impl Iterator<Item = (String, &'a str)> {
    of.iter().map(|(name, value)| (plain(name), value.as_ref()))
}

/// Attributes under names that labels can have. What falls under one name is told there together.
fn named(resource: &Resource) -> impl Iterator<Item = (String, String)> {
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in resource {
        named
            .entry(plain(name))
            .and_modify(|known| *known = format!("{known};{value}"))
            .or_insert_with(|| value.clone());
    }
    named.into_iter()
}

fn labels(pairs: impl Iterator<Item = (String, impl AsRef<str>)>) -> String {
    let told: Vec<_> = pairs
        .map(|(name, value)| {
            let value = value.as_ref().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{value}\"")
        })
        .collect();
    if told.is_empty() { String::new() } else { format!("{{{}}}", told.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_kind_stay_on_their_line() {
        let resource = [("a.b", "x\"\\\ny"), ("a-b", "z"), ("1", "one")];
        let resource: Resource =
            resource.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let text = Page::new(Arc::new(Meters::new("hive", "sse")), &resource).text();
        let line = text.lines().find(|line| line.starts_with("target_info")).unwrap();
        assert_eq!(line, r#"target_info{_1="one",a_b="z;x\"\\\ny"} 1"#);
    }
}
