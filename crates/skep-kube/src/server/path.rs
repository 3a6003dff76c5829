//! What the path of a request is about.

use http::Method;

use crate::percent;

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
    /// Whether the path itself asks for a watch, as `/api/v1/watch/pods` does.
    pub watch: bool,
}

impl ResourcePath {
    /// What a request does, in the words of discovery and of roles. `watches`: the query asks for a watch.
    pub fn verb(&self, method: &Method, watches: bool) -> &'static str {
        let has_name = self.name.is_some();
        match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if has_name => "delete",
            Method::DELETE => "deletecollection",
            _ if self.watch || (watches && !has_name) => "watch",
            _ if has_name => "get",
            _ => "list",
        }
    }
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

/// Reads a path that is [`decoded`]. Slashes at its end mean nothing; an empty segment within it is a segment, and an
/// encoded slash is a slash, as on the real server.
pub fn parse(path: &str) -> Target {
    let path = path.strip_prefix('/').unwrap_or(path).trim_end_matches('/');
    let segments: Vec<String> = if path.is_empty() { Vec::new() } else { path.split('/').map(str::to_owned).collect() };
    match segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["api"] => Target::LegacyVersions,
        ["apis"] => Target::Groups,
        // The core group has a name of no letters, but not here.
        ["apis", "", ..] => Target::Other(segments),
        ["apis", group] => Target::Group((*group).to_owned()),
        ["api", version] => Target::GroupVersion { group: String::new(), version: (*version).to_owned() },
        ["apis", group, version] => Target::GroupVersion { group: (*group).to_owned(), version: (*version).to_owned() },
        ["api", version, ..] => Target::Resource(resource("", version, &segments[2..])),
        ["apis", group, version, ..] => Target::Resource(resource(group, version, &segments[3..])),
        _ => Target::Other(segments),
    }
}

/// The path of a request as everybody is to understand it, whoever authorizes and whoever answers; none if its encoding
/// is malformed. What is no text is taken literally and then found nowhere.
pub fn decoded(path: &str) -> Option<String> {
    let decoded = percent::decode(path);
    decoded.is_proper.then(|| String::from_utf8(decoded.bytes).unwrap_or_else(|_| path.to_owned()))
}

/// Parts of a namespace itself; anything else below a namespace is a resource in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

fn resource(group: &str, version: &str, segments: &[String]) -> ResourcePath {
    let nothing = ResourcePath { group: group.to_owned(), version: version.to_owned(), ..ResourcePath::default() };
    let (watch, segments) = match segments {
        [first, rest @ ..] if first == "watch" && !rest.is_empty() => (true, rest),
        all => (false, all),
    };
    let in_namespace =
        segments.len() > 2 && segments[0] == "namespaces" && !NAMESPACE_SUBRESOURCES.contains(&segments[2].as_str());
    // An empty namespace is all of them.
    let (namespace, segments) = if in_namespace {
        (Some(segments[1].clone()).filter(|namespace| !namespace.is_empty()), &segments[2..])
    } else {
        (None, segments)
    };
    if segments.iter().any(String::is_empty) {
        return nothing;
    }
    ResourcePath {
        namespace,
        resource: segments.first().cloned().unwrap_or_default(),
        name: segments.get(1).cloned(),
        subresource: segments.get(2).cloned(),
        rest: segments.get(3..).unwrap_or_default().to_vec(),
        watch,
        ..nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> ResourcePath {
        match parse(&decoded(path).unwrap()) {
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
    fn empty_segments_name_nothing_but_all_namespaces() {
        assert_eq!(of("/api/v1/namespaces/default/secrets//").resource, "secrets");
        let everywhere = of("/api/v1/namespaces//secrets");
        assert_eq!((everywhere.namespace, everywhere.resource.as_str()), (None, "secrets"));
        for path in ["/api/v1//secrets", "/api/v1/namespaces/default//secrets", "/api/v1/namespaces/default/secrets//x"]
        {
            assert_eq!(of(path).resource, "", "{path}");
        }
        assert_eq!(of("/api//v1/secrets").version, "");
        for path in ["/apis//v1", "/apis//v1/secrets"] {
            assert!(matches!(parse(path), Target::Other(_)), "{path}");
        }
        assert_eq!(parse("//api/v1"), Target::Other(vec![String::new(), "api".into(), "v1".into()]));
    }

    #[test]
    fn a_path_can_ask_for_a_watch() {
        let one = of("/api/v1/watch/namespaces/default/secrets/a");
        assert_eq!((one.watch, one.namespace.as_deref(), one.name.as_deref()), (true, Some("default"), Some("a")));
        assert_eq!(one.verb(&Method::GET, false), "watch");
        let namespace = of("/api/v1/watch/namespaces/default");
        assert_eq!((namespace.watch, namespace.resource.as_str()), (true, "namespaces"));
        assert_eq!(of("/api/v1/pods").verb(&Method::GET, true), "watch");
        assert_eq!(of("/api/v1/nodes/a").verb(&Method::GET, true), "get");
    }

    #[test]
    fn names_are_decoded_once() {
        assert_eq!(
            of("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode").name.as_deref(),
            Some("system:node")
        );
        assert_eq!(of("/api/v1/nodes/a%252e").name.as_deref(), Some("a%2e"));
        assert_eq!(of("/api/v1/nodes/%ff").name.as_deref(), Some("%ff"));
        assert_eq!(decoded("/api/v1/nodes/%zz"), None);
    }
}
