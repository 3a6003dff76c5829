//! Streams without a connection.

use http_body_util::BodyExt as _;

use super::*;

async fn collect(body: Body) -> String {
    String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

fn message(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[tokio::test]
async fn a_reader_that_comes_back_gets_what_it_missed() {
    let stream = EventStream::new(3, true);
    stream.prime();
    stream.push(message("1"));
    stream.end(Some(message("2")), End::Answered);
    let all = "id: 3-0\ndata: \n\nid: 3-1\nevent: message\ndata: 1\n\nid: 3-2\nevent: message\ndata: 2\n\n";
    assert_eq!(collect(stream.read(())).await, all);
    let missed = collect(stream.read_after(1, ()).unwrap()).await;
    assert_eq!(missed, "id: 3-2\nevent: message\ndata: 2\n\n");
    assert!(stream.read_after(17, ()).is_none() && stream.read_after(u64::MAX, ()).is_none());
}

#[tokio::test]
async fn a_new_reader_takes_over() {
    let stream = EventStream::new(0, false);
    let (first, second) = (stream.read(()), stream.read(()));
    stream.push(message("1"));
    stream.end(None, End::Closed);
    assert_eq!(collect(first).await, "");
    assert_eq!(collect(second).await, "event: message\ndata: 1\n\n");
}

#[tokio::test]
async fn a_stream_that_is_over_at_once_is_given_as_a_whole() {
    let stream = EventStream::new(0, true);
    stream.end(Some(message("1")), End::Answered);
    assert_eq!(stream.whole_or_begun().await.unwrap(), "event: message\ndata: 1\n\n");
    assert_eq!(stream.outcome().await, (End::Answered, message("1")));
    let stream = EventStream::new(0, true);
    stream.offer(message("progress"));
    assert_eq!(stream.whole_or_begun().await, None);
}

#[test]
fn what_is_not_read_is_bounded_and_the_answer_is_not_lost() {
    let stream = EventStream::new(0, true);
    for _ in 0..10 * limits::EVENTS_PER_STREAM {
        stream.offer(message("progress"));
    }
    stream.end(Some(message("answer")), End::Answered);
    let log = stream.log.lock();
    assert_eq!(log.events.len(), limits::EVENTS_PER_STREAM + 1);
    assert_eq!(log.events.back().unwrap().data, "answer");
}

#[tokio::test]
async fn what_was_read_is_kept_only_where_somebody_may_come_back_for_it() {
    for (is_resumable, kept) in [(true, 3), (false, 1)] {
        let stream = EventStream::new(0, is_resumable);
        let mut body = stream.read(());
        for text in ["1", "2"] {
            stream.push(message(text));
            body.frame().await.unwrap().unwrap();
        }
        stream.push(message("3"));
        let events = stream.log.lock().events.len();
        assert_eq!((events, stream.bytes()), (kept, kept));
        stream.close();
        let rest = collect(body).await;
        assert!(rest.ends_with("data: 3\n\n") && !rest.contains("data: 2"), "{rest}");
    }
}
