//! A session as it is written down: the JSON that all proxies of one server read, ours and the reference's.

use std::time::Duration;

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::{ADDRESS, Kind, Lifetimes, Metadata, OWNER, Session};

/// The namespace of keys that are made from ids which are none themselves. Stores are shared, so that it cannot be
/// another one.
const NAMESPACE: Uuid = Uuid::from_u128(0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8);

/// What a session is filed under.
pub(super) fn key(id: &str) -> Uuid {
    Uuid::parse_str(id).unwrap_or_else(|_| Uuid::new_v5(&NAMESPACE, id.as_bytes()))
}

/// Whether this is how we write the name of a session.
fn is_our_spelling(id: &str) -> bool {
    *key(id).hyphenated().encode_lower(&mut Uuid::encode_buffer()) == *id
}

/// A session as it is written down, with members that we do not know.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record(Map<String, Value>);

impl Record {
    /// A session that begins now.
    pub(super) fn new(session: &Session) -> Self {
        let now = now();
        let mut metadata = session.metadata.clone();
        if let Some(address) = session.address.filter(|_| !metadata.contains_key(OWNER)) {
            // Whoever has not proved to be somebody is known by that.
            metadata.insert(ADDRESS.to_owned(), address.to_string());
        }
        let members = [
            ("id", json!(key(&session.id).to_string())),
            ("type", json!(name(session.kind))),
            ("created_at", json!(now)),
            ("updated_at", json!(now)),
            ("metadata", json!(metadata)),
        ];
        Self(members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
    }

    /// What was written down. Nothing when it is no session.
    pub(super) fn read(text: &str) -> Option<Self> {
        match serde_json::from_str(text).ok()? {
            Value::Object(members) => Some(Self(members)),
            _ => None,
        }
    }

    /// The session, as the client knows it. Nothing when that spells the name of one of ours in another way: what else is
    /// known by that name is known by its letters.
    pub(super) fn session(&self, id: &str) -> Option<Session> {
        let mut metadata = self.metadata();
        let address = metadata.remove(ADDRESS).and_then(|address| address.parse().ok());
        let session = Session { id: id.into(), kind: kind(self.0.get("type")), metadata, address };
        (!session.is_ours() || is_our_spelling(id)).then_some(session)
    }

    /// How long a session that is used now may live from now on. Nothing when its time is over. One that does not say when it
    /// began lives for as long as it is used.
    pub(super) fn left(&self, lifetimes: Lifetimes) -> Option<Duration> {
        let Some(began) = self.began() else { return Some(lifetimes.idle) };
        // Clocks differ: one that began in the future begins now.
        let age = Duration::try_from(OffsetDateTime::now_utc() - began).unwrap_or_default();
        let left = lifetimes.in_all.checked_sub(age).filter(|left| !left.is_zero())?;
        Some(left.min(lifetimes.idle))
    }

    /// When it began. Some write a time that was never set as one long ago.
    fn began(&self) -> Option<OffsetDateTime> {
        let began = OffsetDateTime::parse(self.0.get("created_at")?.as_str()?, &Rfc3339).ok()?;
        Some(began).filter(|began| *began > OffsetDateTime::UNIX_EPOCH)
    }

    /// The same session after a change.
    pub(super) fn changed(mut self, change: impl FnOnce(&mut Metadata)) -> Self {
        let mut metadata = self.metadata();
        change(&mut metadata);
        self.0.insert("metadata".to_owned(), json!(metadata));
        self.0.insert("updated_at".to_owned(), json!(now()));
        self
    }

    pub(super) fn text(&self) -> String {
        json!(self.0).to_string()
    }

    fn metadata(&self) -> Metadata {
        let members = self.0.get("metadata").and_then(Value::as_object).into_iter().flatten();
        members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Transparent => "mcp",
        Kind::Streamable => "streamable",
        Kind::Sse => "sse",
    }
}

/// What we do not know is handled like a session that others hold.
fn kind(name: Option<&Value>) -> Kind {
    match name.and_then(Value::as_str) {
        Some("streamable") => Kind::Streamable,
        Some("sse") => Kind::Sse,
        _ => Kind::Transparent,
    }
}

fn now() -> String {
    // A time can always be written in this form.
    OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use skep_mcp::Revision;

    use super::*;

    const OWN: &str = "7d444840-9dc0-11d1-b245-5ffdce74fad2";

    #[test]
    fn ids_that_are_none_get_one_that_everybody_finds() {
        assert_eq!(key(OWN).to_string(), OWN);
        assert_eq!(key(&OWN.to_uppercase()).to_string(), OWN);
        // The example of RFC 4122 for names, which was made with the same namespace.
        assert_eq!(key("www.example.com").to_string(), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
    }

    #[test]
    fn a_session_comes_back_as_it_was_written_down() {
        let mut session = Session::new("s-1", Kind::Transparent, Revision::June2025, Some(&"ann".into()));
        session.metadata.insert("backend_url".to_owned(), "http://10.0.0.1:8080".to_owned());
        let record = Record::new(&session);
        assert_eq!(Record::read(&record.text()).unwrap().session("s-1").unwrap(), session);
        let written: Value = serde_json::from_str(&record.text()).unwrap();
        assert_eq!((&written["type"], written["id"].as_str().unwrap().len()), (&json!("mcp"), 36));
        assert!(written["created_at"].as_str().unwrap().ends_with('Z'));
        assert!(!record.text().contains(ADDRESS));
        let session = Session::new(OWN, Kind::Sse, Revision::June2025, None).at(Some([10, 0, 0, 1].into()));
        assert_eq!(Record::new(&session).session(OWN).unwrap(), session);
    }

    #[test]
    fn a_session_of_ours_has_one_name_and_servers_call_theirs_what_they_like() {
        let session = |kind| Record::new(&Session::new(OWN, kind, Revision::June2025, None));
        for other in [OWN.to_uppercase(), format!("{{{OWN}}}"), format!("urn:uuid:{OWN}"), OWN.replace('-', "")] {
            assert_eq!(key(&other), key(OWN));
            for ours in [Kind::Streamable, Kind::Sse] {
                assert_eq!(session(ours).session(&other), None, "{other}");
            }
            assert!(session(Kind::Transparent).session(&other).is_some());
            let bridged =
                |metadata: &mut Metadata| drop(metadata.insert("bridged".to_owned(), "2026-07-28".to_owned()));
            assert_eq!(session(Kind::Transparent).changed(bridged).session(&other), None, "{other}");
        }
    }

    #[test]
    fn a_session_lives_for_a_day_at_most_if_it_says_when_it_began() {
        let lifetimes = Lifetimes { idle: Duration::from_hours(2), in_all: Duration::from_hours(24) };
        let left = |began: &str| Record::read(&json!({"created_at": began}).to_string()).unwrap().left(lifetimes);
        let before = |age: Duration| (OffsetDateTime::now_utc() - age).format(&Rfc3339).unwrap();
        assert_eq!(left(&before(Duration::from_hours(21))), Some(lifetimes.idle));
        let late = left(&before(Duration::from_hours(23))).unwrap();
        assert!((Duration::from_mins(59)..=Duration::from_hours(1)).contains(&late), "{late:?}");
        assert_eq!(left(&before(Duration::from_hours(24))), None);
        let soon = (OffsetDateTime::now_utc() + Duration::from_hours(1)).format(&Rfc3339).unwrap();
        for unclear in [soon.as_str(), "0001-01-01T00:00:00Z", "yesterday", ""] {
            assert_eq!(left(unclear), Some(lifetimes.idle), "{unclear}");
        }
        assert_eq!(Record::read("{}").unwrap().left(lifetimes), Some(lifetimes.idle));
    }

    #[test]
    fn what_others_wrote_survives_a_change() {
        let others = r#"{"id":"x","type":"newer","created_at":"2026-01-02T03:04:05.6Z","data":{"a":[1]},"future":7,"metadata":{"k":"v"}}"#;
        let changed = Record::read(others).unwrap().changed(|metadata| drop(metadata.insert("l".into(), "w".into())));
        let written: Value = serde_json::from_str(&changed.text()).unwrap();
        assert_eq!(
            (&written["data"], &written["future"], &written["type"]),
            (&json!({"a": [1]}), &json!(7), &json!("newer"))
        );
        assert_eq!(written["metadata"], json!({"k": "v", "l": "w"}));
        assert_eq!(written["created_at"], "2026-01-02T03:04:05.6Z");
        assert_eq!(changed.session("x").unwrap().revision(), Revision::ASSUMED);
        for other in ["", "7", "[]", "{"] {
            assert_eq!(Record::read(other), None, "{other}");
        }
    }
}
