//! A session, and whose it is.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use skep_mcp::Revision;

use crate::eras::legacy_client;
use crate::listener::Peer;
use crate::middleware::{Notes, identity};

/// What is known about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    /// What its client knows it by.
    pub(crate) id: Arc<str>,
    pub(crate) kind: Kind,
    /// What belongs to it.
    pub(crate) metadata: Metadata,
    /// Where its client is, as far as this process knows.
    pub(super) address: Option<IpAddr>,
}

/// Whose a session is, and whatever else is counted for each client: somebody's who proved it, or else whoever's is at this
/// address. The addresses that one client may have in the newer protocol are one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Whose {
    Known(Box<str>),
    At(Option<IpAddr>),
}

impl Whose {
    /// Whose it is what a request begins that comes from there.
    pub(crate) fn of(parts: &Parts, peer: Peer) -> Self {
        Self::new(identity::proven(&parts.extensions).map(AsRef::as_ref), Some(peer.address.ip()))
    }

    fn new(caller: Option<&str>, address: Option<IpAddr>) -> Self {
        let network = |address: IpAddr| match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::from((address.to_bits() >> 64 << 64).to_be_bytes()),
            address @ IpAddr::V4(_) => address,
        };
        match caller {
            Some(caller) => Self::Known(caller.into()),
            None => Self::At(address.map(network)),
        }
    }
}

/// Who begins a session, or names one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Owner<'a> {
    /// Who that has proved to be.
    pub(crate) caller: Option<&'a Arc<str>>,
    pub(crate) address: Option<IpAddr>,
    /// What is found out about the request.
    notes: Option<&'a Notes>,
}

impl<'a> Owner<'a> {
    /// Whoever sends a request.
    pub(crate) fn of(parts: &'a Parts) -> Self {
        let address = parts.extensions.get::<Peer>().map(|peer| peer.address.ip());
        let notes = parts.extensions.get::<Arc<Notes>>().map(AsRef::as_ref);
        Self { caller: identity::proven(&parts.extensions), address, notes }
    }

    /// Notes that a session was named which is somebody else's.
    pub(crate) fn names_session_of_another(self) {
        if let Some(notes) = self.notes {
            notes.name_session_of_another();
        }
    }
}

/// What belongs to a session.
pub(crate) type Metadata = BTreeMap<String, String>;

/// Of which proxy a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One that passes everything through.
    Transparent,
    /// The bridge as streamable HTTP.
    Streamable,
    /// The bridge as HTTP+SSE.
    Sse,
}

/// What belongs to a session: the revision that its client asked for.
const REVISION: &str = "protocol_version";
/// What belongs to a session: who began it, if that had to be proved.
pub(super) const OWNER: &str = "owner";
/// What is written down with a session that nobody has proved to own: where its client is.
pub(super) const ADDRESS: &str = "client_address";

impl Session {
    /// A session that begins now, for somebody who has proved to be this.
    pub(crate) fn new(id: &str, kind: Kind, revision: Revision, owner: Option<&Arc<str>>) -> Self {
        let mut metadata = Metadata::from([(REVISION.to_owned(), revision.text().to_owned())]);
        if let Some(owner) = owner {
            metadata.insert(OWNER.to_owned(), owner.as_ref().to_owned());
        }
        Self { id: id.into(), kind, metadata, address: None }
    }

    /// The same, for somebody who is there.
    #[must_use]
    pub(crate) fn at(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// Whether it was named by us, and not by a server.
    pub(super) fn is_ours(&self) -> bool {
        self.kind != Kind::Transparent || legacy_client::is_marked(self)
    }

    pub(super) fn whose(&self) -> Whose {
        Whose::new(self.metadata.get(OWNER).map(String::as_str), self.address)
    }

    /// Whether it was begun by this caller. Where nobody has to prove anything, everybody is the same.
    pub(super) fn is_of(&self, caller: Option<&Arc<str>>) -> bool {
        self.metadata.get(OWNER).map(String::as_str) == caller.map(AsRef::as_ref)
    }

    /// The revision of its messages.
    pub(crate) fn revision(&self) -> Revision {
        self.metadata.get(REVISION).and_then(|text| Revision::parse(text)).unwrap_or(Revision::ASSUMED)
    }
}
