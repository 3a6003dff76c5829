//! What the server tells the rules of nodes, and where it asks them.

use serde_json::Value;

use super::State;
use super::exchange::Exchange;
use super::metadata;
use super::path::ResourcePath;
use crate::auth::node::NodeObjects;
use crate::auth::node::restriction::{self, Write};
use crate::auth::{Action, ResourceAction, User};
use crate::status::{ApiError, ResourceName};
use crate::store::{Key, Record, Selection, Store};

/// What is asked about an audience that the pod itself does not want.
const ASK_FOR_AUDIENCE: &str = "request-serviceaccounts-token-audience";

impl NodeObjects for Store {
    fn any_pod(&self, node: &str, namespace: Option<&str>, fits: &mut dyn FnMut(&Value) -> bool) -> bool {
        let pods = self.list(&Selection { namespace, ..Selection::all("/pods") }).records;
        let mut pods = pods.iter().filter_map(|record| read(record));
        pods.any(|pod| pod["spec"]["nodeName"] == node && fits(&pod))
    }

    fn volume_of_claim(&self, namespace: &str, claim: &str) -> Option<String> {
        let claim = read(&*self.get(&Key::new("/persistentvolumeclaims", namespace, claim))?)?;
        Some(claim["spec"]["volumeName"].as_str()?.to_owned())
    }
}

fn read(record: &Record) -> Option<Value> {
    serde_json::from_slice(&record.object.bytes()).ok()
}

/// Whether the user of a request may say this, if it is a node.
pub fn restrict(exchange: &Exchange, old: Option<&Value>, new: &Value, subresource: &str) -> Result<(), ApiError> {
    let resource = &exchange.resource;
    let write = Write { group: &resource.group, resource: &resource.plural, subresource, old, new };
    match restriction::refusal(&exchange.user, &write) {
        Some(why) => Err(ApiError::forbidden(&resource.name(), metadata::name(new), &why)),
        None => Ok(()),
    }
}

impl State {
    /// Whether a user may have a token of a service account, if it is a node.
    pub(crate) fn restrict_token(&self, user: &User, account: &ResourcePath, request: &Value) -> Result<(), ApiError> {
        let namespace = account.namespace.as_deref().unwrap_or_default();
        let name = account.name.as_deref().unwrap_or_default();
        let pod = request["spec"]["boundObjectRef"]["name"].as_str().unwrap_or_default();
        let pod = self.store.get(&Key::new("/pods", namespace, pod)).and_then(|record| read(&record));
        let may_ask_for = |audience: &str| {
            let action = Action::Resource(ResourceAction {
                verb: ASK_FOR_AUDIENCE.to_owned(),
                resource: audience.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                ..ResourceAction::default()
            });
            self.access.with_authorizer(|authorizer| authorizer.decide(user, &action).is_allowed())
        };
        match restriction::token_refusal(user, request, pod.as_ref(), may_ask_for) {
            Some(why) => Err(ApiError::forbidden(&ResourceName::new("", "serviceaccounts"), name, &why)),
            None => Ok(()),
        }
    }
}
