//! What the name server knows.

use std::net::{IpAddr, Ipv4Addr};

use hickory_proto::rr::rdata::{A, CNAME, PTR, SRV};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::service::directory::{Directory, Entry, Host};

/// The domain of the cluster.
pub(super) const DOMAIN: [&str; 2] = ["cluster", "local"];
/// Short, because pods come and go.
pub(super) const LIFE: u32 = 5;

/// The answer to a question.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The name exists; there may be nothing of the type that was asked for.
    Records(Vec<Record>),
    NoName,
    /// The name is not one of the cluster.
    Elsewhere,
}

pub(super) fn answer(directory: &Directory, name: &Name, kind: RecordType) -> Answer {
    let lower = name.to_lowercase();
    let labels: Vec<String> = lower.iter().map(|label| String::from_utf8_lossy(label).into_owned()).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    if let Some(front) = labels.strip_suffix(&["in-addr", "arpa"]) {
        return reverse(directory, name, front, kind);
    }
    let Some(front) = labels.strip_suffix(&DOMAIN) else { return Answer::Elsewhere };
    match front {
        [] | ["svc" | "pod"] => Answer::Records(Vec::new()),
        [namespace, "svc"] => {
            let known = directory.services.keys().any(|(other, _)| other == namespace);
            if known { Answer::Records(Vec::new()) } else { Answer::NoName }
        }
        [front @ .., service, namespace, "svc"] => {
            let key = ((*namespace).to_owned(), (*service).to_owned());
            match directory.services.get(&key) {
                Some(entry) => of_service(entry, name, front, kind),
                None => Answer::NoName,
            }
        }
        [address, _, "pod"] => match address.replace('-', ".").parse::<Ipv4Addr>() {
            Ok(address) => Answer::Records(addresses(name, [IpAddr::V4(address)], kind)),
            Err(_) => Answer::NoName,
        },
        _ => Answer::NoName,
    }
}

fn of_service(entry: &Entry, name: &Name, front: &[&str], kind: RecordType) -> Answer {
    match front {
        [] => {
            if let Some(target) = &entry.external_name {
                let target = Name::from_ascii(format!("{}.", target.trim_end_matches('.')));
                let record = target.map(|target| Record::from_rdata(name.clone(), LIFE, RData::CNAME(CNAME(target))));
                return record.map_or(Answer::NoName, |record| Answer::Records(vec![record]));
            }
            match entry.address {
                Some(address) => Answer::Records(addresses(name, [address], kind)),
                // A service without an address is the set of its pods; without pods there is no such name.
                None if entry.hosts.is_empty() => Answer::NoName,
                None => Answer::Records(addresses(name, entry.hosts.iter().map(|host| host.address), kind)),
            }
        }
        [host] => {
            let found: Vec<IpAddr> =
                entry.hosts.iter().filter(|other| label(other) == *host).map(|other| other.address).collect();
            if found.is_empty() || entry.address.is_some() {
                return Answer::NoName;
            }
            Answer::Records(addresses(name, found, kind))
        }
        [port, protocol] => servers(entry, name, port, protocol, kind),
        _ => Answer::NoName,
    }
}

/// The name of a pod within its service.
fn label(host: &Host) -> String {
    host.name.clone().unwrap_or_else(|| host.address.to_string().replace(['.', ':'], "-"))
}

fn servers(entry: &Entry, name: &Name, port: &str, protocol: &str, kind: RecordType) -> Answer {
    let (Some(port), Some(protocol)) = (port.strip_prefix('_'), protocol.strip_prefix('_')) else {
        return Answer::NoName;
    };
    let found = entry
        .ports
        .iter()
        .find(|other| other.name.as_deref() == Some(port) && other.protocol.eq_ignore_ascii_case(protocol));
    let Some(found) = found else { return Answer::NoName };
    if kind != RecordType::SRV && kind != RecordType::ANY {
        return Answer::Records(Vec::new());
    }
    let service = name.trim_to(usize::from(name.num_labels()).saturating_sub(2));
    let record = |number: u16, target: Name| {
        Record::from_rdata(name.clone(), LIFE, RData::SRV(SRV::new(0, 100, number, target)))
    };
    if entry.address.is_some() {
        return Answer::Records(vec![record(found.number, service)]);
    }
    let pods = entry.hosts.iter().filter_map(|host| {
        let number = found.backends.iter().find(|backend| backend.ip() == host.address)?.port();
        Some(record(number, service.prepend_label(label(host).as_str()).ok()?))
    });
    Answer::Records(pods.collect())
}

fn addresses(name: &Name, addresses: impl IntoIterator<Item = IpAddr>, kind: RecordType) -> Vec<Record> {
    if kind != RecordType::A && kind != RecordType::ANY {
        return Vec::new();
    }
    let record = |address| match address {
        IpAddr::V4(address) => Some(Record::from_rdata(name.clone(), LIFE, RData::A(A(address)))),
        IpAddr::V6(_) => None,
    };
    addresses.into_iter().filter_map(record).collect()
}

fn reverse(directory: &Directory, name: &Name, front: &[&str], kind: RecordType) -> Answer {
    let octets: Option<Vec<u8>> = front.iter().rev().map(|label| label.parse().ok()).collect();
    let Some(Ok(octets)) = octets.map(<[u8; 4]>::try_from) else { return Answer::Elsewhere };
    let address = IpAddr::from(octets);
    for ((namespace, service), entry) in &directory.services {
        let full = if entry.address == Some(address) {
            format!("{service}.{namespace}.svc.cluster.local.")
        } else if let Some(host) = entry.hosts.iter().find(|host| host.address == address && host.name.is_some()) {
            format!("{}.{service}.{namespace}.svc.cluster.local.", label(host))
        } else {
            continue;
        };
        let Ok(target) = Name::from_ascii(full) else { continue };
        let wanted = kind == RecordType::PTR || kind == RecordType::ANY;
        let record = Record::from_rdata(name.clone(), LIFE, RData::PTR(PTR(target)));
        return Answer::Records(wanted.then_some(record).into_iter().collect());
    }
    Answer::Elsewhere
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::service::directory::tests::directory;

    fn known() -> Directory {
        let service =
            |name: &str, spec: serde_json::Value| json!({"metadata": {"namespace": "n", "name": name}, "spec": spec});
        let services = json!([
            service("web", json!({"clusterIP": "10.96.0.9", "ports": [{"name": "http", "port": 80}]})),
            service("db", json!({"clusterIP": "None", "ports": [{"name": "sql", "port": 5432}]})),
            service("empty", json!({"clusterIP": "None"})),
            service("far", json!({"type": "ExternalName", "externalName": "example.org"}))
        ]);
        let slices = json!([{
            "metadata": {"namespace": "n", "name": "db", "labels": {"kubernetes.io/service-name": "db"}},
            "addressType": "IPv4", "ports": [{"name": "sql", "port": 5432}],
            "endpoints": [{"addresses": ["10.244.0.3"], "hostname": "db-0"}, {"addresses": ["10.244.0.4"]}]}]);
        directory(services, slices)
    }

    fn ask(name: &str, kind: RecordType) -> String {
        match answer(&known(), &Name::from_ascii(name).unwrap(), kind) {
            Answer::NoName => "no name".to_owned(),
            Answer::Elsewhere => "elsewhere".to_owned(),
            Answer::Records(records) => {
                let records: Vec<String> = records.iter().map(|record| record.data.to_string()).collect();
                records.join(", ")
            }
        }
    }

    #[test]
    fn names_of_the_cluster() {
        use RecordType::{A, AAAA, PTR, SRV};
        let table = [
            ("web.n.svc.cluster.local.", A, "10.96.0.9"),
            ("WEB.N.svc.Cluster.local.", A, "10.96.0.9"),
            ("web.n.svc.cluster.local.", AAAA, ""),
            ("_http._tcp.web.n.svc.cluster.local.", SRV, "0 100 80 web.n.svc.cluster.local."),
            ("_nope._tcp.web.n.svc.cluster.local.", SRV, "no name"),
            ("x.web.n.svc.cluster.local.", A, "no name"),
            ("db.n.svc.cluster.local.", A, "10.244.0.3, 10.244.0.4"),
            ("db-0.db.n.svc.cluster.local.", A, "10.244.0.3"),
            ("10-244-0-4.db.n.svc.cluster.local.", A, "10.244.0.4"),
            ("db-9.db.n.svc.cluster.local.", A, "no name"),
            (
                "_sql._tcp.db.n.svc.cluster.local.",
                SRV,
                "0 100 5432 db-0.db.n.svc.cluster.local., 0 100 5432 10-244-0-4.db.n.svc.cluster.local.",
            ),
            ("empty.n.svc.cluster.local.", A, "no name"),
            ("far.n.svc.cluster.local.", A, "example.org."),
            ("absent.n.svc.cluster.local.", A, "no name"),
            ("n.svc.cluster.local.", A, ""),
            ("m.svc.cluster.local.", A, "no name"),
            ("cluster.local.", A, ""),
            ("10-244-0-7.n.pod.cluster.local.", A, "10.244.0.7"),
            ("x.n.pod.cluster.local.", A, "no name"),
            ("9.0.96.10.in-addr.arpa.", PTR, "web.n.svc.cluster.local."),
            ("3.0.244.10.in-addr.arpa.", PTR, "db-0.db.n.svc.cluster.local."),
            ("8.8.8.8.in-addr.arpa.", PTR, "elsewhere"),
            ("example.org.", A, "elsewhere"),
        ];
        for (name, kind, expected) in table {
            assert_eq!(ask(name, kind), expected, "{name} {kind}");
        }
    }
}
