use hickory_proto::op::Query;
use hickory_proto::rr::RecordType;
use serde_json::json;

use super::*;
use crate::service::directory::tests::directory;

/// A name server of the rest of the world, which knows one name.
async fn stand_in(known: &'static str) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        loop {
            let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
            let question = Message::from_vec(&buffer[..length]).unwrap();
            let mut message = Message::new(question.metadata.id, MessageType::Response, OpCode::Query);
            let query = question.queries[0].clone();
            if query.name().to_ascii() == known && question.metadata.recursion_desired {
                let address = RData::A("192.0.2.7".parse::<std::net::Ipv4Addr>().unwrap().into());
                message.add_answer(Record::from_rdata(query.name().clone(), 60, address));
            } else {
                message.metadata.response_code = ResponseCode::NXDomain;
            }
            message.add_query(query);
            socket.send_to(&message.to_vec().unwrap(), client).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn a_name_that_stands_for_another_leads_to_its_address() {
    let external = |name: &str, target: &str| {
        json!({"metadata": {"namespace": "n", "name": name},
            "spec": {"type": "ExternalName", "externalName": target}})
    };
    let services = json!([
        {"metadata": {"namespace": "n", "name": "web"}, "spec": {"clusterIP": "10.96.0.9"}},
        external("near", "web.n.svc.cluster.local"),
        external("through", "near.n.svc.cluster.local."),
        external("far", "example.org"),
        external("nowhere", "nowhere.example"),
        external("gone", "gone.n.svc.cluster.local"),
        external("round", "again.n.svc.cluster.local"),
        external("again", "round.n.svc.cluster.local"),
    ]);
    let (_sender, receiver) = watch::channel(directory(services, json!([])));
    let found = async |forward: Option<SocketAddr>, name: &str| {
        let any = "127.0.0.1:0".parse().unwrap();
        let server = NameServer::bind(any, receiver.clone(), forward).await.unwrap();
        let address = server.address();
        let task = tokio::spawn(server.serve());
        let answer = exchange(address, &format!("{name}.n.svc.cluster.local.")).await;
        task.abort();
        assert_eq!(answer.metadata.id, 7);
        let records = answer.answers.iter().map(|record| format!("{} {}", record.name, record.data));
        (answer.metadata.response_code, records.collect::<Vec<_>>())
    };
    let world = Some(stand_in("example.org.").await);
    let (near, web) = ("near.n.svc.cluster.local.", "web.n.svc.cluster.local.");
    let table = [
        ("near", vec![format!("{near} {web}"), format!("{web} 10.96.0.9")]),
        (
            "through",
            vec![format!("through.n.svc.cluster.local. {near}"), format!("{near} {web}"), format!("{web} 10.96.0.9")],
        ),
        ("far", vec!["far.n.svc.cluster.local. example.org.".to_owned(), "example.org. 192.0.2.7".to_owned()]),
        ("nowhere", vec!["nowhere.n.svc.cluster.local. nowhere.example.".to_owned()]),
    ];
    for (name, expected) in table {
        assert_eq!(found(world, name).await, (ResponseCode::NoError, expected), "{name}");
    }
    for circle in ["gone", "round"] {
        let (code, records) = found(world, circle).await;
        assert!(code == ResponseCode::NoError && records.len() <= 1 + LONGEST_CHAIN, "{records:?}");
    }
    let offline = found(None, "far").await;
    assert_eq!(offline, (ResponseCode::NoError, vec!["far.n.svc.cluster.local. example.org.".to_owned()]));
    // Somebody who takes questions and says nothing.
    let mute = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (code, records) = found(Some(mute.local_addr().unwrap()), "far").await;
    assert_eq!((code, records.len()), (ResponseCode::ServFail, 0));
}

async fn exchange(server: SocketAddr, name: &str) -> Message {
    let mut question = Message::new(7, MessageType::Query, OpCode::Query);
    question.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(&question.to_vec().unwrap(), server).await.unwrap();
    let mut buffer = [0; 4096];
    let length = timeout(Duration::from_mins(1), socket.recv(&mut buffer)).await.unwrap().unwrap();
    Message::from_vec(&buffer[..length]).unwrap()
}

#[tokio::test]
async fn names_follow_changes() {
    let service =
        |address: &str| json!([{"metadata": {"namespace": "n", "name": "s"}, "spec": {"clusterIP": address}}]);
    let (sender, receiver) = watch::channel(directory(json!([]), json!([])));
    let server = NameServer::bind("127.0.0.1:0".parse().unwrap(), receiver, None).await.unwrap();
    let address = server.address();
    let task = tokio::spawn(server.serve());
    let name = "s.n.svc.cluster.local.";
    assert_eq!(exchange(address, name).await.metadata.response_code, ResponseCode::NXDomain);
    sender.send_replace(directory(service("10.96.0.9"), json!([])));
    let found = exchange(address, name).await;
    assert_eq!((found.metadata.id, found.answers[0].data.to_string()), (7, "10.96.0.9".to_owned()));
    // Nothing of the outside world is known, and that is said at once.
    assert_eq!(exchange(address, "example.org.").await.metadata.response_code, ResponseCode::NXDomain);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut question = Message::new(9, MessageType::Query, OpCode::Query);
    question.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
    let bytes = question.to_vec().unwrap();
    stream.write_u16(u16::try_from(bytes.len()).unwrap()).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    let mut answer = vec![0; usize::from(stream.read_u16().await.unwrap())];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(Message::from_vec(&answer).unwrap().answers.len(), 1);
    // What is not a question gets no answer, and does no harm.
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(b"\xff\xff garbage", address).await.unwrap();
    assert_eq!(exchange(address, name).await.answers.len(), 1);
    task.abort();
}
