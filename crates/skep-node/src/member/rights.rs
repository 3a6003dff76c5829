//! What the user of a node must be allowed to do. Asked beforehand: a watch that is refused would only look like silence.

use std::fmt;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// Where the leases of nodes are.
const LEASES: &str = "kube-node-lease";

/// Something that a node does at the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    of: Of,
}

/// Of which objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    All,
    /// The one with the name of the node.
    Node,
    /// The lease of the node.
    Lease,
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, subresource, of: _ } = self;
        write!(formatter, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(formatter, ".{group}")?;
        }
        if subresource.is_empty() { Ok(()) } else { write!(formatter, "/{subresource}") }
    }
}

const fn right(
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    of: Of,
) -> Right {
    Right { verb, group, resource, subresource, of }
}

/// Rights to single objects of pods come with being a node: there is nothing to ask about before there are pods.
const NEEDED: [Right; 10] = [
    right("create", "", "nodes", "", Of::All),
    right("patch", "", "nodes", "status", Of::Node),
    right("patch", "coordination.k8s.io", "leases", "", Of::Lease),
    right("patch", "", "pods", "status", Of::All),
    right("create", "", "events", "", Of::All),
    right("create", "authorization.k8s.io", "subjectaccessreviews", "", Of::All),
    right("watch", "", "services", "", Of::All),
    right("watch", "discovery.k8s.io", "endpointslices", "", Of::All),
    right("patch", "", "services", "", Of::All),
    right("patch", "", "services", "status", Of::All),
];

/// The rights that the user of a client lacks to be the node of this name.
pub async fn missing(client: &Client, node: &str) -> Result<Vec<Right>, kube::Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut missing = Vec::new();
    for right in NEEDED {
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes(&right, node)),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        if !answer.status.is_some_and(|SubjectAccessReviewStatus { allowed, .. }| allowed) {
            missing.push(right);
        }
    }
    Ok(missing)
}

fn attributes(right: &Right, node: &str) -> ResourceAttributes {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ResourceAttributes {
        verb: text(right.verb),
        group: text(right.group),
        resource: text(right.resource),
        subresource: text(right.subresource),
        name: (right.of != Of::All).then(|| node.to_owned()),
        namespace: (right.of == Of::Lease).then(|| LEASES.to_owned()),
        ..ResourceAttributes::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_told_as_kubectl_writes_them() {
        let told: Vec<String> = NEEDED.iter().map(ToString::to_string).collect();
        assert!(told.contains(&"patch services/status".to_owned()), "{told:?}");
        assert!(told.contains(&"watch endpointslices.discovery.k8s.io".to_owned()), "{told:?}");
    }
}
