//! What the operator is told when it starts.

use std::collections::BTreeSet;
use std::sync::Arc;

use skep_api::names::env::operator as variables;

use crate::handshake::Handshake;
use crate::object_names::is_label;

/// Everything that can be set from outside.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespaces to look after; none means all of them.
    pub namespaces: Vec<String>,
    /// The kinds to reconcile, by name; see [`crate::operator::KINDS`].
    pub controllers: BTreeSet<&'static str>,
    /// How many objects of a kind are worked on at a time.
    pub concurrency: usize,
    pub proxy: ProxySettings,
    /// Who finds out whether servers answer; nobody does when unset.
    pub handshake: Option<Arc<dyn Handshake>>,
    /// How many objects are read at a time when those of older versions are stored anew; none are when unset.
    pub migration_page: Option<u32>,
}

/// Enough to keep an API server busy: with fewer, many objects at once wait for each other's round trips.
pub const CONCURRENCY: u16 = 16;

/// The page size of the reference.
const MIGRATION_PAGE: u32 = 100;

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            controllers: crate::operator::KINDS.into(),
            concurrency: CONCURRENCY.into(),
            proxy: ProxySettings::default(),
            handshake: None,
            migration_page: None,
        }
    }
}

impl Settings {
    /// What the environment says. `get` looks a variable up. The text says what is wrong with one.
    pub fn from_environment(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let list = |name: &str| -> Vec<String> {
            let value = get(name).unwrap_or_default();
            value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
        };
        let defaults = ProxySettings::default();
        let password = set(variables::DEFAULT_REDIS_SECRET_NAME).map(|name| {
            let key = set(variables::DEFAULT_REDIS_SECRET_KEY);
            (name, key.unwrap_or_else(|| variables::REDIS_SECRET_KEY.to_owned()))
        });
        let image_pull_secrets = list(variables::DEFAULT_IMAGE_PULL_SECRETS);
        if image_pull_secrets.is_empty() && set(variables::DEFAULT_IMAGE_PULL_SECRETS).is_some() {
            tracing::warn!("{} names no secret", variables::DEFAULT_IMAGE_PULL_SECRETS);
        }
        let proxy = ProxySettings {
            runner_image: set(variables::RUNNER_IMAGE).unwrap_or(defaults.runner_image),
            host: set(variables::PROXY_HOST).unwrap_or(defaults.host),
            image_pull_secrets,
            redis: set(variables::DEFAULT_REDIS_ADDRESS).map(|address| DefaultRedis { address, password }),
            openshift: defaults.openshift,
            enforce_network_profiles: defaults.enforce_network_profiles,
        };
        let namespaces = list(variables::WATCH_NAMESPACE);
        check_namespaces(&namespaces, &get(variables::WATCH_NAMESPACE).unwrap_or_default())?;
        Ok(Self { namespaces, proxy, ..Self::default() })
    }
}

/// Whether what the variable says is a list of namespaces. One that says something and names none does not mean all of them.
fn check_namespaces(found: &[String], said: &str) -> Result<(), String> {
    let name = variables::WATCH_NAMESPACE;
    if found.is_empty() && !said.is_empty() {
        return Err(format!("{name} {said:?} names no namespace"));
    }
    match found.iter().find(|namespace| !is_label(namespace)) {
        Some(other) => Err(format!("{name} names {other:?}, which is no name of a namespace")),
        None => Ok(()),
    }
}

/// How many objects a migration reads at a time, from what its variable says; none when it is off. The text says what is
/// wrong with the variable.
pub fn migration_page(said: Option<&str>) -> Result<Option<u32>, String> {
    match said {
        None | Some("0" | "f" | "F" | "false" | "False" | "FALSE") => Ok(None),
        Some("1" | "t" | "T" | "true" | "True" | "TRUE") => Ok(Some(MIGRATION_PAGE)),
        Some(other) => {
            Err(format!("{} {other:?} is neither true nor false", variables::ENABLE_STORAGE_VERSION_MIGRATOR))
        }
    }
}

/// What all proxies have in common.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// The image of proxy pods.
    pub runner_image: String,
    /// The address that proxies listen on.
    pub host: String,
    /// Secrets for image registries that every pod gets, after those of the object.
    pub image_pull_secrets: Vec<String>,
    /// The session store of workloads that say nothing about one.
    pub redis: Option<DefaultRedis>,
    /// Whether the cluster is OpenShift, which chooses users and groups itself.
    pub openshift: bool,
    /// Whether the network of a server is what its permission profile says, by a NetworkPolicy.
    pub enforce_network_profiles: bool,
}

/// A session store that is there for everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultRedis {
    /// `host:port`.
    pub address: String,
    /// Name and key of the Secret with the password, in the namespace of the workload.
    pub password: Option<(String, String)>,
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self {
            // The image of the operator itself, which is a proxy, too.
            runner_image: concat!("skep:", env!("CARGO_PKG_VERSION")).to_owned(),
            host: "0.0.0.0".to_owned(),
            image_pull_secrets: Vec::new(),
            redis: None,
            openshift: false,
            enforce_network_profiles: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migration_is_on_or_off_and_nothing_else() {
        assert_eq!(migration_page(None), Ok(None));
        assert_eq!(migration_page(Some("0")), Ok(None));
        assert_eq!(migration_page(Some("True")), Ok(Some(100)));
        for said in ["", "yes"] {
            let expected = format!("TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR {said:?} is neither true nor false");
            assert_eq!(migration_page(Some(said)), Err(expected));
        }
    }

    #[test]
    fn the_environment_is_read() {
        let settings = Settings::from_environment(|name| {
            let value = match name {
                "WATCH_NAMESPACE" => "a, b,,",
                "TOOLHIVE_RUNNER_IMAGE" => "runner:1",
                "TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS" => " one ,two",
                "TOOLHIVE_DEFAULT_REDIS_ADDR" => "redis:6379",
                "TOOLHIVE_DEFAULT_REDIS_SECRET_NAME" => "secret",
                _ => return None,
            };
            Some(value.to_owned())
        })
        .unwrap();
        assert_eq!(settings.namespaces, ["a", "b"]);
        assert_eq!(settings.proxy.runner_image, "runner:1");
        assert_eq!(settings.proxy.host, "0.0.0.0");
        assert_eq!(settings.proxy.image_pull_secrets, ["one", "two"]);
        let password = Some(("secret".to_owned(), "redis-password".to_owned()));
        assert_eq!(settings.proxy.redis, Some(DefaultRedis { address: "redis:6379".to_owned(), password }));
        let empty = Settings::from_environment(|_| Some(String::new())).unwrap();
        assert!(empty.namespaces.is_empty() && empty.proxy.redis.is_none());
    }

    #[test]
    fn namespaces_are_names() {
        for (said, expected) in [
            (",", "WATCH_NAMESPACE \",\" names no namespace"),
            ("a,x y", "WATCH_NAMESPACE names \"x y\", which is no name of a namespace"),
            ("Bad_NS", "WATCH_NAMESPACE names \"Bad_NS\", which is no name of a namespace"),
        ] {
            let read = Settings::from_environment(|name| (name == "WATCH_NAMESPACE").then(|| said.to_owned()));
            assert_eq!(read.unwrap_err(), expected);
        }
    }
}
