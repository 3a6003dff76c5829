//! Pods reach each other and the addresses of services, and leave nothing behind.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use skep_node::isolation::Isolation;
use skep_node::network::{Network, NetworkConfig, NetworkError, PodNetwork};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use crate::role::Role;
use crate::support::{eventually, network, output, role, start_on};

crate::trials![
    two_pods_listen_on_the_same_port,
    a_pod_reaches_the_address_of_a_service,
    work_is_done_inside_the_network_of_a_pod,
    the_network_of_a_pod_goes_away,
    addresses_are_restored_after_a_restart,
    without_namespaces_pods_are_on_the_loopback,
    addresses_are_given_back,
    ranges_must_not_overlap,
];

async fn two_pods_listen_on_the_same_port() {
    let network = network().await;
    let (one, other) = (network.add_pod().await.unwrap(), network.add_pod().await.unwrap());
    let mut containers = Vec::new();
    for (pod, word) in [(&one, "one"), (&other, "other")] {
        let mut container = start_on(&role(Role::Serve, &["8080", word]), pod).await;
        let mut lines = BufReader::new(container.take_stdout().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "listening");
        containers.push((container, lines));
    }
    for (from, to, word) in [(&one, &other, "other"), (&other, &one, "one"), (&one, &one, "one")] {
        let address = format!("{}:8080", to.address());
        let mut container = start_on(&role(Role::Connect, &[&address]), from).await;
        assert_eq!(output(&mut container).await.0, word);
    }
    // The node reaches pods as well, as for probes.
    let mut answer = String::new();
    let mut connection = tokio::net::TcpStream::connect((one.address(), 8080)).await.unwrap();
    connection.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "one");
}

async fn a_pod_reaches_the_address_of_a_service() {
    let network = network().await;
    let pod = network.add_pod().await.unwrap();
    let listener = tokio::net::TcpListener::bind("10.96.12.34:80").await.unwrap();
    let served = tokio::spawn(async move {
        let (mut connection, from) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut connection, b"service").await.unwrap();
        from
    });
    let mut container = start_on(&role(Role::Connect, &["10.96.12.34:80"]), &pod).await;
    assert_eq!(output(&mut container).await.0, "service");
    assert_eq!(served.await.unwrap().ip(), pod.address(), "the service sees who asks");
    // Nobody listens here: the answer is a refusal, at once.
    let mut container = start_on(&role(Role::Connect, &["10.96.12.35:80"]), &pod).await;
    assert!(output(&mut container).await.0.contains("ConnectionRefused"));
}

async fn work_is_done_inside_the_network_of_a_pod() {
    let pod = network().await.add_pod().await.unwrap();
    let listener = pod.run_inside(|| TcpListener::bind("127.0.0.1:8081").unwrap()).unwrap();
    std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"inside").unwrap());
    assert!(TcpStream::connect("127.0.0.1:8081").is_err(), "the loopback of the pod is its own");
    let mut connection = pod.run_inside(|| TcpStream::connect("127.0.0.1:8081").unwrap()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "inside");
}

fn cable(address: Ipv4Addr) -> std::path::PathBuf {
    // Not in /sys, which shows the network that it was mounted in.
    format!("/proc/sys/net/ipv4/conf/pod{:08x}", u32::from(address)).into()
}

async fn the_network_of_a_pod_goes_away() {
    let network = network().await;
    let pod = network.add_pod().await.unwrap();
    let address = pod.address();
    assert!(cable(address).exists());
    drop(pod);
    eventually("the end of a cable", || !cable(address).exists()).await;
    assert_ne!(network.add_pod().await.unwrap().address(), address, "an address rests after use");
}

async fn addresses_are_restored_after_a_restart() {
    let network = network().await;
    let address = Ipv4Addr::new(10, 244, 200, 7);
    let pod = network.restore_pod(address).await.unwrap();
    assert_eq!(pod.address(), address);
    assert!(matches!(network.restore_pod(address).await, Err(NetworkError::InUse(_))));
    assert!(matches!(network.restore_pod(network.node_address()).await, Err(NetworkError::OutOfRange { .. })));
    drop(pod);
    eventually("the end of a cable", || !cable(address).exists()).await;
    let mut again = network.restore_pod(address).await;
    while matches!(again, Err(NetworkError::InUse(_))) {
        tokio::task::yield_now().await;
        again = network.restore_pod(address).await;
    }
    let again = again.unwrap();
    let listener = again.run_inside(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
    TcpStream::connect(listener.local_addr().unwrap()).unwrap();
}

fn config(pods: &str, services: &str) -> NetworkConfig {
    NetworkConfig { pod_range: pods.parse().unwrap(), service_range: services.parse().unwrap() }
}

async fn without_namespaces_pods_are_on_the_loopback() {
    let network = Network::start(Isolation::None, config("10.244.0.0/16", "10.96.0.0/16")).await.unwrap();
    let (one, other) = (network.add_pod().await.unwrap(), network.add_pod().await.unwrap());
    assert_eq!((one.address(), one.place()), (Ipv4Addr::new(10, 244, 0, 2), Ipv4Addr::new(127, 244, 0, 2)));
    assert_eq!(other.place(), Ipv4Addr::new(127, 244, 0, 3));
    assert!(one.namespace().is_none());
    // Whoever comes while this one is there gets other addresses, and these when it is gone.
    let guest = Network::start(Isolation::None, config("10.244.0.0/24", "10.96.0.0/16")).await.unwrap();
    let of_guest = guest.add_pod().await.unwrap();
    assert_eq!((of_guest.address(), of_guest.place()), (Ipv4Addr::new(10, 244, 0, 2), Ipv4Addr::new(127, 245, 0, 2)));
    assert_eq!(guest.reach().host(Ipv4Addr::new(10, 96, 0, 9)), Ipv4Addr::new(127, 97, 0, 9));
    let listeners = [&one, &other, &of_guest].map(|pod| TcpListener::bind(SocketAddr::from((pod.place(), 8082))));
    assert!(listeners.iter().all(Result::is_ok), "{listeners:?}");
    drop((one, other, network));
    let next = Network::start(Isolation::None, config("10.244.0.0/16", "10.96.0.0/16")).await.unwrap();
    assert_eq!(next.add_pod().await.unwrap().place(), Ipv4Addr::new(127, 244, 0, 2));
}

async fn addresses_are_given_back() {
    let network = network().await;
    let pods = futures::future::try_join_all((0..50).map(|_| network.add_pod())).await.unwrap();
    let addresses: Vec<Ipv4Addr> = pods.iter().map(PodNetwork::address).collect();
    let taken = network.taken();
    assert!(addresses.iter().all(|address| taken.contains(address)));
    drop(pods);
    eventually("the return of all addresses", || {
        let taken = network.taken();
        !addresses.iter().any(|address| taken.contains(address))
    })
    .await;
}

async fn ranges_must_not_overlap() {
    for (pods, services) in [("10.0.0.0/8", "10.96.0.0/16"), ("10.96.4.0/24", "10.96.0.0/16")] {
        let error = Network::start(Isolation::Namespaces, config(pods, services)).await.unwrap_err();
        assert!(matches!(error, NetworkError::Overlap { .. }), "{error}");
    }
}
