//! What everything that is told is about: the service, the machine, and what somebody says about them.

use std::collections::BTreeMap;

/// The attributes of a resource, by their names.
pub type Resource = BTreeMap<String, String>;

/// What a service says about itself.
#[derive(Debug, Clone, Default)]
pub struct Service {
    pub name: String,
    pub version: String,
    /// Whatever else is to be said about it.
    pub attributes: BTreeMap<String, String>,
}

impl Service {
    /// Everything together. `environment` is the text of `OTEL_RESOURCE_ATTRIBUTES`; whatever is said besides it wins.
    pub fn resource(self, environment: &str) -> Resource {
        let mut resource: Resource = environment.split(',').filter_map(pair).collect();
        resource.extend(host().map(|name| ("host.name".to_owned(), name)));
        resource.extend(self.attributes);
        let service = [("service.name", self.name), ("service.version", self.version)];
        let told = service.into_iter().filter(|(_, value)| !value.is_empty());
        resource.extend(told.map(|(name, value)| (name.to_owned(), value)));
        resource
    }
}

fn pair(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim();
    (!name.is_empty()).then(|| (decoded(name), decoded(value.trim())))
}

/// A text with characters that are written as `%` and two digits. What is written otherwise stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let mut byte = [0];
        let digits = others.split_at_checked(2).filter(|_| *first == b'%');
        (byte[0], rest) = match digits {
            Some((digits, others)) if hex::decode_to_slice(digits, &mut byte).is_ok() => (byte[0], others),
            _ => (*first, others),
        };
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_in_the_document_wins_over_the_environment() {
        let attributes = [("team".to_owned(), "bees".to_owned())].into();
        let service = Service { name: "hive".to_owned(), version: "1".to_owned(), attributes };
        let resource = service.resource("service.name=other,team=x, yard = a%2Cb ,broken,=x,odd=%zz");
        let get = |name: &str| resource.get(name).map(String::as_str);
        assert_eq!((get("service.name"), get("service.version"), get("team")), (Some("hive"), Some("1"), Some("bees")));
        assert_eq!((get("yard"), get("odd"), get("broken")), (Some("a,b"), Some("%zz"), None));
        let unnamed = Service::default().resource("service.name=other,service.namespace=apiary");
        assert_eq!(unnamed["service.name"], "other");
    }
}
