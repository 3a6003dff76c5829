//! Requests by their ids, without a server.

use skep_mcp::fault::INTERNAL_ERROR;
use tokio::sync::mpsc;

use super::*;
use crate::limits;
use crate::stdio::outbox::Queued;

fn calls(room: usize) -> (Arc<Calls>, mpsc::Receiver<Queued>) {
    patient_calls(room, Duration::ZERO)
}

fn patient_calls(room: usize, patience: Duration) -> (Arc<Calls>, mpsc::Receiver<Queued>) {
    let (outbox, receiver) = Outbox::new(room);
    (Calls::new(outbox, patience, Audience::Everybody, Budget::new(0)), receiver)
}

fn message(text: &str) -> Message {
    Message::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

#[tokio::test]
async fn ids_and_tokens_are_ours_on_the_way_in_and_the_clients_on_the_way_out() {
    let (calls, mut sent) = calls(10);
    let stream = EventStream::new(0, false);
    let request = r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"_meta":{"progressToken":"t"}}}"#;
    let ticket = calls.begin(&message(request), Caller::default(), &stream, true).await.unwrap();
    let number = ticket.number().to_string();
    let expected = request.replace(r#""id":"1""#, &format!(r#""id":{number}"#)).replace(r#""t""#, &number);
    assert_eq!(sent.recv().await.unwrap().line, expected);

    let progress = message(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{number}}}}}"#
    ));
    let place = progress.param_span(skep_mcp::Param::ProgressToken).unwrap();
    assert!(calls.reported(&progress, place, &number));
    assert!(calls.answered(&message(&format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{"x":1.0}}}}"#))));
    assert!(!calls.reported(&progress, place, &number), "it is over");
    assert_eq!(stream.outcome().await.1, r#"{"jsonrpc":"2.0","id":"1","result":{"x":1.0}}"#);
    drop(ticket);
    assert!(sent.try_recv().is_err(), "what is answered is not called off");
}

#[tokio::test]
async fn two_proxies_at_one_server_do_not_take_each_others_answers() {
    let ((one, _sent), (other, _sent_too)) = (calls(1), calls(1));
    let request = message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let streams = [EventStream::new(0, false), EventStream::new(0, false)];
    let ticket = one.begin(&request, Caller::default(), &streams[0], true).await.unwrap();
    let _waiting = other.begin(&request, Caller::default(), &streams[1], true).await.unwrap();
    let answer = message(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, ticket.number()));
    assert!(!other.answered(&answer));
    assert!(one.answered(&answer));
}

#[tokio::test]
async fn what_nobody_waits_for_is_called_off_and_its_answer_dropped() {
    let (calls, mut sent) = calls(10);
    let stream = EventStream::new(0, false);
    let ticket = calls
        .begin(&message(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#), Caller::default(), &stream, true)
        .await
        .unwrap();
    let number = ticket.number();
    sent.recv().await.unwrap();
    drop(ticket);
    let told = String::from_utf8(sent.recv().await.unwrap().line.to_vec()).unwrap();
    assert!(told.contains("notifications/cancelled") && told.contains(&format!("\"requestId\":{number}")));
    let late = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#);
    assert!(!calls.answered(&message(&late)));
    assert!(!calls.answered(&message(r#"{"jsonrpc":"2.0","id":"x","result":{}}"#)));
    assert_eq!(calls.len(), 0);
}

#[tokio::test]
async fn late_and_lost_requests_are_answered_with_their_own_ids() {
    let (calls, _sent) = calls(10);
    let stream = EventStream::new(0, false);
    let ticket = calls
        .begin(&message(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#), Caller::default(), &stream, true)
        .await
        .unwrap();
    assert_eq!(calls.expire(Instant::now()).numbers, [ticket.number()]);
    let (end, answer) = stream.outcome().await;
    assert_eq!(end, End::TimedOut);
    assert!(answer.starts_with(br#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000"#));
    drop(ticket);
    let stream = EventStream::new(0, false);
    let _ticket = calls
        .begin(&message(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#), Caller::default(), &stream, true)
        .await
        .unwrap();
    calls.lose(&Fault::new(INTERNAL_ERROR, "gone"));
    assert_eq!(stream.outcome().await.0, End::Lost);
}

#[tokio::test]
async fn a_handshake_is_given_up_and_never_called_off() {
    let (calls, mut sent) = calls(10);
    let (stream, handshake) =
        (EventStream::new(0, false), message(r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#));
    let ticket = calls.begin(&handshake, Caller::default(), &stream, true).await.unwrap();
    sent.recv().await.unwrap();
    assert_eq!(calls.expire(Instant::now()), Expired { numbers: Vec::new(), handshakes: 1 });
    assert_eq!(stream.outcome().await.0, End::TimedOut);
    drop(ticket);
    drop(calls.begin(&handshake, Caller::default(), &EventStream::new(0, false), true).await.unwrap());
    sent.recv().await.unwrap();
    assert_eq!(calls.len(), 0);
    assert!(sent.try_recv().is_err(), "MCP forbids that");
}

#[tokio::test]
async fn a_server_that_does_not_read_is_full_and_lines_stay_lines() {
    let (calls, mut sent) = calls(1);
    calls.send(Bytes::from_static(b"{\n\r\"a\":1}")).await.unwrap();
    assert!(calls.send(Bytes::from_static(b"{}")).await.is_err());
    assert_eq!(sent.try_recv().unwrap().line, "{  \"a\":1}");
    let stream = EventStream::new(0, false);
    let first = calls
        .begin(&message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Caller::default(), &stream, true)
        .await
        .unwrap();
    assert!(
        calls
            .begin(&message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Caller::default(), &stream, true)
            .await
            .is_err()
    );
    assert_eq!(calls.len(), 1);
    first.keep();
}

#[tokio::test]
async fn all_that_is_late_is_called_off_however_much_that_is() {
    let (calls, mut sent) = calls(1);
    let (many, stream) = (2 * limits::QUEUED_FAREWELLS, EventStream::new(0, false));
    let request = message(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#);
    for _ in 0..many {
        calls.begin(&request, Caller::default(), &stream, true).await.unwrap().keep();
        sent.recv().await.unwrap();
    }
    let late = calls.expire(Instant::now()).numbers;
    assert_eq!((late.len(), calls.len()), (many, 0));
    let ((), ()) = tokio::join!(calls.call_off(late), async {
        for _ in 0..many {
            let told = sent.recv().await.unwrap().line;
            assert!(message(std::str::from_utf8(&told).unwrap()).method() == method::CANCELLED);
        }
    });
}

#[tokio::test]
async fn what_waits_for_a_server_that_goes_is_not_for_its_successor() {
    let (calls, mut sent) = patient_calls(1, Duration::from_mins(1));
    calls.send(Bytes::from_static(b"{}")).await.unwrap();
    let waiting = tokio::spawn({
        let calls = Arc::clone(&calls);
        async move { calls.send(Bytes::from_static(b"{\"late\":true}")).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    calls.lose(&Fault::new(INTERNAL_ERROR, "gone"));
    sent.recv().await.unwrap();
    assert_eq!(waiting.await.unwrap(), Err(Full));
    assert!(sent.try_recv().is_err());
    calls.send(Bytes::from_static(b"{}")).await.unwrap();
}

#[tokio::test]
async fn whoever_asks_when_all_is_over_is_told_so_at_once() {
    let (calls, _sent) = patient_calls(10, Duration::from_mins(1));
    calls.close();
    let stream = EventStream::new(0, false);
    let request = message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let _ticket = calls.begin(&request, Caller::default(), &stream, true).await.unwrap();
    assert_eq!((stream.outcome().await.0, calls.len()), (End::Stopped, 0));
}

#[tokio::test]
async fn what_waits_to_be_sent_is_sent_in_its_turn_and_not_at_all_when_it_is_called_off() {
    let (calls, mut sent) = patient_calls(1, Duration::from_mins(1));
    let begin = async |id: u64| {
        let (calls, stream) = (Arc::clone(&calls), EventStream::new(0, false));
        let request = message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        let (waiting, number) = (Arc::clone(&stream), calls.next.load(Ordering::Relaxed));
        let begun =
            tokio::spawn(
                async move { calls.begin(&request, Caller::default(), &waiting, true).await.map(Ticket::keep) },
            );
        tokio::task::yield_now().await;
        (begun, number, stream)
    };
    let (first, ..) = begin(1).await;
    let (gone, ..) = begin(2).await;
    let (off, number, stream) = begin(3).await;
    let (last, last_number, _) = begin(4).await;
    assert_eq!(calls.len(), 4);
    assert!(first.is_finished() && !gone.is_finished() && !off.is_finished() && !last.is_finished());
    assert!(calls.expire(Instant::now() + Duration::from_mins(2)).numbers.len() == 1, "nobody else has been asked");
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    calls.cancel(number);
    off.await.unwrap().unwrap();
    assert_eq!((calls.len(), stream.outcome().await.0), (1, End::Closed));
    sent.recv().await.unwrap();
    last.await.unwrap().unwrap();
    let line = sent.recv().await.unwrap().line;
    assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":{last_number},"method":"ping"}}"#));
    assert!(sent.try_recv().is_err(), "what was not sent is not called off");
}
