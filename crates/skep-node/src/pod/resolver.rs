//! Whom a pod asks for names, and how: what `/etc/resolv.conf` says.

use std::fmt::Write as _;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::PodDNSConfig;

/// The domain of the cluster.
pub(super) const CLUSTER: &str = "cluster.local";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResolverSettings {
    servers: Vec<String>,
    searches: Vec<String>,
    options: Vec<String>,
}

impl ResolverSettings {
    /// Those of pods that look for names in their cluster first.
    pub(super) fn of_cluster(namespace: &str, server: IpAddr) -> Self {
        Self {
            servers: vec![server.to_string()],
            searches: vec![format!("{namespace}.svc.{CLUSTER}"), format!("svc.{CLUSTER}"), CLUSTER.to_owned()],
            options: vec!["ndots:5".to_owned()],
        }
    }

    /// Those in the text of a file. Of several lists of domains the last counts.
    pub(super) fn of_machine(text: &str) -> Self {
        let mut settings = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let keyword = words.next();
            let words = words.map(str::to_owned);
            match keyword {
                Some("nameserver") => settings.servers.extend(words.take(1)),
                Some("search" | "domain") => settings.searches = words.collect(),
                Some("options") => settings.options.extend(words),
                _ => {}
            }
        }
        settings
    }

    /// Adds what a pod says itself. Its options replace those of the same name.
    pub(super) fn add(&mut self, more: &PodDNSConfig) {
        self.servers.extend(more.nameservers.iter().flatten().cloned());
        self.searches.extend(more.searches.iter().flatten().cloned());
        for option in more.options.iter().flatten() {
            let Some(name) = &option.name else { continue };
            self.options.retain(|known| known.split(':').next() != Some(name));
            self.options.push(option.value.as_ref().map_or_else(|| name.clone(), |value| format!("{name}:{value}")));
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        for server in &self.servers {
            let _ = writeln!(text, "nameserver {server}");
        }
        for (keyword, words) in [("search", &self.searches), ("options", &self.options)] {
            if !words.is_empty() {
                let _ = writeln!(text, "{keyword} {}", words.join(" "));
            }
        }
        text
    }
}
