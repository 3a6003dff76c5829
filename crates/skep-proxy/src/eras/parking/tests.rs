//! How many calls wait, and for how long.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use skep_mcp::Message;

use super::super::line::{Line, Lost};
use super::*;

/// A server that notes what it is told.
#[derive(Debug, Default, Clone)]
struct Noting(Arc<Mutex<Vec<String>>>);

impl Line for Noting {
    fn ask<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, Result<Replies, Lost>> {
        Box::pin(std::future::ready(Err(Lost::Unreached)))
    }

    fn hear<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, Result<Message, Lost>> {
        Box::pin(std::future::ready(Err(Lost::Unreached)))
    }

    fn tell(&self, message: Bytes) -> BoxFuture<'_, bool> {
        self.0.lock().push(String::from_utf8(message.to_vec()).unwrap());
        Box::pin(std::future::ready(true))
    }

    fn overhear(&self) -> BoxFuture<'_, Option<Replies>> {
        Box::pin(std::future::ready(None))
    }

    fn doubt(&self) {}
}

/// A call in which the server has asked this.
fn asking(line: &Noting, methods: &[&str]) -> Parked {
    let question =
        |method: &&str| Question { key: String::new(), method: (*method).to_owned(), params: "{}".to_owned() };
    let pending = methods.iter().enumerate().map(|(number, method)| (Id::from(number as u64), question(method)));
    Parked {
        seat: Seat { line: Arc::new(line.clone()), agreed: "{}".into(), held: None },
        replies: futures::stream::pending().boxed(),
        pending: pending.collect(),
        level: None,
        capabilities: "{}".to_owned(),
    }
}

/// Somebody who has proved who it is.
fn known(name: &str) -> Client {
    Client { holder: Holder::Known(name.into()), whose: Whose::Known(name.into()) }
}

/// Somebody who has not, at an address.
fn unknown(last: u8) -> Client {
    Client { holder: Holder::Anybody, whose: Whose::At(Some([10, 0, 0, last].into())) }
}

#[test]
fn so_many_calls_wait_of_one_client_and_so_many_of_all() {
    let (parking, line) = (Parking::new(true), Noting::default());
    let park = |client: &Client| parking.park(client, asking(&line, &[]));
    for number in 0..ALL / PER_CLIENT {
        let client = known(&number.to_string());
        for _ in 0..PER_CLIENT {
            assert!(parking.has_room(&client) && park(&client).is_some());
        }
        if number == 0 {
            assert_eq!(park(&client), None, "one client does not take the places of others");
            assert!(!parking.has_room(&client));
        }
    }
    assert_eq!(park(&known("another")), None);
    assert_eq!(park(&unknown(1)), None);
}

#[test]
fn clients_that_prove_nothing_do_not_take_the_places_of_those_elsewhere_whatever_they_say_they_are() {
    let (parking, line) = (Parking::new(true), Noting::default());
    let park = |client: &Client| parking.park(client, asking(&line, &[]));
    for number in 0..PER_ADDRESS {
        let made_up = Client { holder: Holder::Bearer(number.to_be_bytes().into()), ..unknown(1) };
        assert!(park(&if number % 2 == 0 { made_up } else { unknown(1) }).is_some());
    }
    let another = Client { holder: Holder::Bearer([1].into()), ..unknown(1) };
    assert!(park(&unknown(1)).is_none() && park(&another).is_none());
    let name = park(&unknown(2)).unwrap();
    assert!(park(&known("ann")).is_some());
    assert!(parking.take(&another.holder, &name).is_none(), "it has credentials, and the other one has not");
    assert!(parking.take(&Holder::Anybody, &uuid::Uuid::new_v4().to_string()).is_none());
    assert!(parking.take(&Holder::Anybody, &name).is_some(), "whoever was given the name comes back with it");
}

#[test]
fn a_call_is_taken_once_and_by_its_client() {
    let (parking, line) = (Parking::new(true), Noting::default());
    let name = parking.park(&known("ann"), asking(&line, &[])).unwrap();
    assert!(parking.take(&Holder::Known("bob".into()), &name).is_none());
    assert!(parking.take(&Holder::Known("ann".into()), "another").is_none());
    assert!(parking.take(&Holder::Known("ann".into()), &name).is_some());
    assert!(parking.take(&Holder::Known("ann".into()), &name).is_none());
    let waiting = parking.waiting.lock();
    assert!(waiting.of_clients.is_empty() && waiting.of_addresses.is_empty());
}

#[tokio::test]
async fn a_call_whose_client_does_not_come_back_is_given_up() {
    let (parking, line) = (Parking::new(true), Noting::default());
    let methods = ["elicitation/create", "sampling/createMessage"];
    let name = parking.park(&unknown(1), asking(&line, &methods)).unwrap();
    parking.park(&unknown(1), asking(&line, &methods)).unwrap();
    parking.sweep().await;
    assert_eq!(parking.waiting.lock().calls.len(), 2, "there is time");
    parking.waiting.lock().calls.get_mut(&name).unwrap().since -= PATIENCE;
    assert!(parking.take(&Holder::Anybody, &name).is_none(), "it is too late");
    parking.sweep().await;
    assert_eq!(parking.waiting.lock().calls.len(), 1);
    let told = std::mem::take(&mut *line.0.lock());
    assert_eq!(told[0], r#"{"jsonrpc":"2.0","id":0,"result":{"action":"cancel"}}"#);
    assert!(told[1].contains(r#""id":1,"error":{"code":-32603"#), "{}", told[1]);
    parking.close().await;
    assert_eq!((parking.waiting.lock().calls.len(), line.0.lock().len()), (0, 2));
}
