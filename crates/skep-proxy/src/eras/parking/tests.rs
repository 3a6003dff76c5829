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

#[test]
fn so_many_calls_wait_of_one_client_and_so_many_of_all() {
    let (parking, line) = (Parking::new(true), Noting::default());
    let park = |principal: Holder| parking.park(principal, asking(&line, &[]));
    for client in 0..ALL / PER_CLIENT {
        let principal = Holder::Known(client.to_string().into());
        for _ in 0..PER_CLIENT {
            assert!(park(principal.clone()).is_some());
        }
        if client == 0 {
            assert_eq!(park(principal), None, "one client does not take the places of others");
        }
    }
    assert_eq!(park(Holder::Known("another".into())), None);
    assert_eq!(park(Holder::Anybody), None);
}

#[test]
fn a_call_is_taken_once_and_by_its_client() {
    let (parking, line) = (Parking::new(true), Noting::default());
    let name = parking.park(Holder::Known("ann".into()), asking(&line, &[])).unwrap();
    assert!(parking.take(&Holder::Known("bob".into()), &name).is_none());
    assert!(parking.take(&Holder::Known("ann".into()), "another").is_none());
    assert!(parking.take(&Holder::Known("ann".into()), &name).is_some());
    assert!(parking.take(&Holder::Known("ann".into()), &name).is_none());
}

#[tokio::test]
async fn a_call_whose_client_does_not_come_back_is_given_up() {
    let (parking, line) = (Parking::new(true), Noting::default());
    let methods = ["elicitation/create", "sampling/createMessage"];
    let name = parking.park(Holder::Anybody, asking(&line, &methods)).unwrap();
    parking.park(Holder::Anybody, asking(&line, &methods)).unwrap();
    parking.sweep().await;
    assert_eq!(parking.waiting.lock().len(), 2, "there is time");
    parking.waiting.lock().get_mut(&name).unwrap().since -= PATIENCE;
    assert!(parking.take(&Holder::Anybody, &name).is_none(), "it is too late");
    parking.sweep().await;
    assert_eq!(parking.waiting.lock().len(), 1);
    let told = std::mem::take(&mut *line.0.lock());
    assert_eq!(told[0], r#"{"jsonrpc":"2.0","id":0,"result":{"action":"cancel"}}"#);
    assert!(told[1].contains(r#""id":1,"error":{"code":-32603"#), "{}", told[1]);
    parking.close().await;
    assert_eq!((parking.waiting.lock().len(), line.0.lock().len()), (0, 2));
}
