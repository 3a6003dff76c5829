//! What the path of a request is about.

/// An object, a collection, or a part of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourcePath {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    /// The plural name of the resource.
    pub resource: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// What follows the subresource, as in `pods/x/proxy/some/path`.
    pub rest: Vec<String>,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `/api`
    LegacyVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`
    GroupVersion {
        group: String,
        version: String,
    },
    Resource(ResourcePath),
    /// Anything else: health, version, schemas.
    Other(Vec<String>),
}

/// Reads a decoded path. Empty segments are left out, as the real server does.
pub fn parse(path: &str) -> Target {
    let segments: Vec<String> = path.split('/').filter(|segment| !segment.is_empty()).map(decoded).collect();
    match segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["api"] => Target::LegacyVersions,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group((*group).to_owned()),
        ["api", version] => Target::GroupVersion { group: String::new(), version: (*version).to_owned() },
        ["apis", group, version] => Target::GroupVersion { group: (*group).to_owned(), version: (*version).to_owned() },
        ["api", version, ..] => Target::Resource(resource("", version, &segments[2..])),
        ["apis", group, version, ..] => Target::Resource(resource(group, version, &segments[3..])),
        _ => Target::Other(segments),
    }
}

/// A name may be percent-encoded; a malformed encoding is taken literally and then found nowhere.
fn decoded(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let encoded = (bytes[index] == b'%').then(|| segment.get(index + 1..index + 3)).flatten();
        if let Some(byte) = encoded.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            text.push(byte);
            index += 3;
        } else {
            text.push(bytes[index]);
            index += 1;
        }
    }
    String::from_utf8(text).unwrap_or_else(|_| segment.to_owned())
}

/// Parts of a namespace itself; anything else below a namespace is a resource in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

fn resource(group: &str, version: &str, segments: &[String]) -> ResourcePath {
    let in_namespace =
        segments.len() > 2 && segments[0] == "namespaces" && !NAMESPACE_SUBRESOURCES.contains(&segments[2].as_str());
    let (namespace, segments) =
        if in_namespace { (Some(segments[1].clone()), &segments[2..]) } else { (None, segments) };
    ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        resource: segments.first().cloned().unwrap_or_default(),
        name: segments.get(1).cloned(),
        subresource: segments.get(2).cloned(),
        rest: segments.get(3..).unwrap_or_default().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> ResourcePath {
        match parse(path) {
            Target::Resource(path) => path,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn objects_collections_and_parts() {
        let pod = of("/api/v1/namespaces/default/pods/web-0/log");
        assert_eq!((pod.group.as_str(), pod.version.as_str()), ("", "v1"));
        assert_eq!(pod.namespace.as_deref(), Some("default"));
        assert_eq!((pod.resource.as_str(), pod.name.as_deref()), ("pods", Some("web-0")));
        assert_eq!(pod.subresource.as_deref(), Some("log"));

        let all = of("/apis/apps/v1/deployments");
        assert_eq!((all.namespace, all.resource.as_str(), all.name), (None, "deployments", None));
    }

    #[test]
    fn a_namespace_is_an_object_and_a_place() {
        let itself = of("/api/v1/namespaces/default");
        assert_eq!(
            (itself.namespace, itself.resource.as_str(), itself.name.as_deref()),
            (None, "namespaces", Some("default"))
        );
        let status = of("/api/v1/namespaces/default/status");
        assert_eq!((status.resource.as_str(), status.subresource.as_deref()), ("namespaces", Some("status")));
        let inside = of("/api/v1/namespaces/default/configmaps");
        assert_eq!((inside.namespace.as_deref(), inside.resource.as_str()), (Some("default"), "configmaps"));
    }

    #[test]
    fn discovery_and_everything_else() {
        assert_eq!(parse("/api/"), Target::LegacyVersions);
        assert_eq!(parse("/apis/apps"), Target::Group("apps".into()));
        assert_eq!(parse("/apis/apps/v1"), Target::GroupVersion { group: "apps".into(), version: "v1".into() });
        assert_eq!(parse("/healthz"), Target::Other(vec!["healthz".into()]));
        assert_eq!(parse("/"), Target::Other(vec![]));
    }

    #[test]
    fn names_are_decoded_once() {
        assert_eq!(
            of("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode").name.as_deref(),
            Some("system:node")
        );
        assert_eq!(of("/api/v1/nodes/a%252e").name.as_deref(), Some("a%2e"));
        assert_eq!(of("/api/v1/nodes/%zz%4").name.as_deref(), Some("%zz%4"));
    }
}
