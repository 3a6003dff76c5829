//! The recorder of events.

use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent};
use k8s_openapi::api::events::v1::Event as NewEvent;
use kube::api::{ListParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client, Resource as _};

pub(crate) async fn recorded_events_become_series(client: Client, namespace: &str) {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("bee".to_owned());
    let map = Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &map).await.unwrap();
    let reporter = Reporter { controller: "tests.example.com/controller".into(), instance: Some("tests-1".into()) };
    let recorder = Recorder::new(client.clone(), reporter);
    let event = Event {
        type_: EventType::Warning,
        reason: "Stung".into(),
        note: Some("It hurts".into()),
        action: "Sting".into(),
        secondary: None,
    };
    for _ in 0..3 {
        recorder.publish(&event, &map.object_ref(&())).await.unwrap();
    }

    let about = ListParams::default().fields("reason=Stung");
    let new = Api::<NewEvent>::namespaced(client.clone(), namespace).list(&about).await.unwrap().items;
    let [told] = new.as_slice() else { panic!("{new:?}") };
    assert_eq!(told.series.as_ref().map(|series| series.count), Some(3));
    assert_eq!(told.regarding.as_ref().unwrap().uid, map.metadata.uid);
    assert_eq!(told.reporting_controller.as_deref(), Some("tests.example.com/controller"));

    let about = ListParams::default().fields("involvedObject.name=bee,type=Warning");
    let old = Api::<CoreEvent>::namespaced(client, namespace).list(&about).await.unwrap().items;
    let [same] = old.as_slice() else { panic!("{old:?}") };
    assert_eq!((same.metadata.uid.as_ref(), same.message.as_deref()), (told.metadata.uid.as_ref(), Some("It hurts")));
}
