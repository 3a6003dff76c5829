//! The race of a rolling update, with this node on a real control plane.

use std::sync::Arc;

use skep_conformance::race::{self, Place};

use crate::cluster::{Cluster, SHELL};

crate::trials![generation_race];

async fn generation_race(cluster: Arc<Cluster>) {
    let server = cluster.run(&["config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"]).await.out;
    // It listens on the loopback of the node alone.
    let place = Place { server, host_network: true, image: SHELL.to_owned() };
    println!("figure: {} on the real control plane", race::run(cluster.client.clone(), place).await.unwrap());
}
