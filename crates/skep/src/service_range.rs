//! The range of the services' addresses. It belongs to the data: services keep the addresses that they have.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use skep_kube::server::ServiceRange;

use crate::hint::Hinted;
use crate::machine;

/// Says which range was used last. Without it, that was the usual one.
const FILE: &str = "service-range";
/// How many services are named when there are too many.
const NAMED: usize = 5;

/// The range that a start uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    range: Ipv4Net,
    addresses: ServiceRange,
    /// That of the services that are there.
    before: Ipv4Net,
}

impl Chosen {
    /// What was asked for, or what the data has, or the usual.
    pub(crate) fn new(data: &Path, asked: Option<Ipv4Net>) -> anyhow::Result<Self> {
        let before = fs::read_to_string(data.join(FILE)).ok().and_then(|text| text.trim().parse().ok());
        let before = before.map_or_else(|| machine::SERVICE_RANGE.parse(), Ok)?;
        let range = asked.map_or(before, |range| range.trunc());
        let addresses = ServiceRange::new(range.network(), range.prefix_len()).ok_or_else(|| {
            Hinted::new(format!("--service-range {range} has too few addresses, or too many"))
                .hint("choose a range from /28 to /12, such as 10.96.0.0/16")
        })?;
        Ok(Self { range, addresses, before })
    }

    pub(crate) fn range(&self) -> Ipv4Net {
        self.range
    }

    pub(crate) fn addresses(&self) -> ServiceRange {
        self.addresses
    }

    /// Pods and services need different addresses.
    pub(crate) fn keep_apart_from(&self, pods: Ipv4Net) -> Result<(), Hinted> {
        let range = self.range;
        if !pods.contains(&range) && !range.contains(&pods) {
            return Ok(());
        }
        Err(Hinted::new(format!("the pod range {} and the service range {range} overlap", pods.trunc()))
            .hint("choose another range with --pod-range or with --service-range"))
    }

    /// Makes it the range of the data, unless services have addresses of another one.
    pub(crate) async fn settle(&self, data: &Path, client: &Client) -> anyhow::Result<()> {
        let Self { range, before, .. } = self;
        if range == before {
            return Ok(());
        }
        self.refuse_for(&services_in(client, *before).await?)?;
        let path = data.join(FILE);
        // A disk that is full leaves the range that was there.
        let beside = path.with_extension("next");
        fs::write(&beside, format!("{range}\n"))
            .and_then(|()| fs::rename(&beside, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn refuse_for(&self, services: &[String]) -> Result<(), Hinted> {
        let Self { range, before, .. } = self;
        if services.is_empty() {
            return Ok(());
        }
        let further = services.len().saturating_sub(NAMED);
        let mut named: Vec<String> = services.iter().take(NAMED).cloned().collect();
        named.extend((further > 0).then(|| format!("{further} more")));
        let named = named.join(", ");
        Err(Hinted::new(format!(
            "--service-range {range} cannot be used: services have addresses of {before} ({named})"
        ))
        .hint(format!("go on with --service-range {before}, or without the flag"))
        .hint("or delete these services first, or begin with another folder (--data-dir FOLDER)"))
    }
}

/// The services with addresses in a range, apart from that of the API server, which moves along.
async fn services_in(client: &Client, range: Ipv4Net) -> anyhow::Result<Vec<String>> {
    let services = Api::<Service>::all(client.clone()).list(&ListParams::default()).await;
    let is_in = |service: &Service| {
        let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()?.parse().ok());
        address.is_some_and(|address: std::net::Ipv4Addr| range.contains(&address))
    };
    let name = |service: &Service| format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any());
    let all = services.context("cannot look for services")?.items;
    Ok(all.iter().filter(|service| is_in(service)).map(name).filter(|name| name != "default/kubernetes").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    #[test]
    fn what_was_used_last_is_used_again() {
        let data = tempfile::tempdir().unwrap();
        let chosen = |asked: Option<&str>| Chosen::new(data.path(), asked.map(range)).unwrap().range();
        assert_eq!(chosen(None), range("10.96.0.0/16"));
        assert_eq!(chosen(Some("10.97.3.4/16")), range("10.97.0.0/16"));
        fs::write(data.path().join(FILE), "10.98.0.0/20\n").unwrap();
        assert_eq!(chosen(None), range("10.98.0.0/20"));
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let data = tempfile::tempdir().unwrap();
        let small = Chosen::new(data.path(), Some(range("10.97.0.0/29"))).unwrap_err();
        assert_eq!(small.to_string(), "--service-range 10.97.0.0/29 has too few addresses, or too many");
        let chosen = Chosen::new(data.path(), Some(range("10.240.0.0/12"))).unwrap();
        let told = chosen.keep_apart_from(range("10.244.0.0/16")).unwrap_err().to_string();
        assert_eq!(told, "the pod range 10.244.0.0/16 and the service range 10.240.0.0/12 overlap");
        chosen.keep_apart_from(range("10.0.0.0/16")).unwrap();
        chosen.refuse_for(&[]).unwrap();
        let many: Vec<String> = (0..7).map(|number| format!("default/s{number}")).collect();
        let told = chosen.refuse_for(&many).unwrap_err().to_string();
        assert!(
            told.ends_with(
                "addresses of 10.96.0.0/16 (default/s0, default/s1, default/s2, default/s3, default/s4, 2 more)"
            ),
            "{told}"
        );
    }
}
