//! Leader election by a Lease.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};

use crate::{eventually, soon};

const LEASE: &str = "leader";

async fn candidate(client: &Client, namespace: &str, identity: &str) -> LeaseManager {
    let builder = LeaseManagerBuilder::new(client.clone(), LEASE).with_namespace(namespace).with_identity(identity);
    builder.with_duration(3).with_grace(1).build().await.unwrap()
}

async fn holder(client: &Client, namespace: &str) -> Option<String> {
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get(LEASE).await.unwrap();
    lease.spec?.holder_identity
}

pub(crate) async fn one_of_two_candidates_leads(client: Client, namespace: &str) {
    let (mut first, first_task) = candidate(&client, namespace, "first").await.watch().await;
    soon("the first leads", first.wait_for(|leads| *leads)).await.unwrap();
    let (mut second, second_task) = candidate(&client, namespace, "second").await.watch().await;
    // Longer than the lease: it is renewed.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(*first.borrow() && !*second.borrow());
    assert_eq!(holder(&client, namespace).await.as_deref(), Some("first"));

    drop(first);
    soon("the second leads", second.wait_for(|leads| *leads)).await.unwrap();
    assert_eq!(holder(&client, namespace).await.as_deref(), Some("second"));
    drop(second);
    for task in [first_task, second_task] {
        soon("a candidate ends", task).await.unwrap().unwrap();
    }
    eventually("the lease is free", || async { holder(&client, namespace).await.is_none().then_some(()) }).await;
}

pub(crate) async fn an_expired_lease_is_taken_over(client: Client, namespace: &str) {
    let first = candidate(&client, namespace, "first").await;
    assert!(soon("the first leads", first.changed()).await.unwrap());
    // It is not heard of again: nothing is released, and nothing renewed.
    let second = candidate(&client, namespace, "second").await;
    assert!(soon("the second leads", second.changed()).await.unwrap());
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get(LEASE).await.unwrap();
    let spec = lease.spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions.is_some()), (Some("second"), true));
    drop(first);
}

/// What every elector relies on: of two that write what they have both just read, one is refused.
pub(crate) async fn only_one_of_two_writes_at_once_wins(client: Client, namespace: &str) {
    let leases: Api<Lease> = Api::namespaced(client, namespace);
    let mut lease = Lease::default();
    lease.metadata.name = Some(LEASE.to_owned());
    let read = leases.create(&PostParams::default(), &lease).await.unwrap();
    let claim = |identity: &str| {
        let mut claimed = read.clone();
        claimed.spec.get_or_insert_default().holder_identity = Some(identity.to_owned());
        claimed
    };
    let (one, other) = (claim("one"), claim("other"));
    let parameters = PostParams::default();
    let outcomes = tokio::join!(leases.replace(LEASE, &parameters, &one), leases.replace(LEASE, &parameters, &other));
    let (won, lost) = match outcomes {
        (Ok(won), Err(lost)) | (Err(lost), Ok(won)) => (won, lost),
        both => panic!("{both:?}"),
    };
    assert!(matches!(&lost, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict"), "{lost:?}");
    let stored = leases.get(LEASE).await.unwrap();
    assert_eq!(stored.spec, won.spec);
}
