//! What stands between the clients and the server: nothing, a proxy that does nothing, and ours with one layer more than
//! the default chain, or with all of them.

use http::HeaderValue;

use crate::mcp::part::chain::{Around, Layer};
use crate::mcp::{Part, Process};

/// A way to the server.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) name: &'static str,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Direct,
    Bare,
    /// The default chain with these besides.
    Skep(&'static [Layer]),
}

/// The places in [`PATHS`] that others are compared with.
pub(super) const DIRECT: usize = 0;
pub(super) const BARE: usize = 1;
pub(super) const DEFAULT: usize = 2;
/// The chain that the budgets are for. It asks nobody.
pub(super) const FULL: usize = 21;

pub(super) const PATHS: [Path; 23] = [
    Path { name: "direct", way: Way::Direct },
    Path { name: "bare hyper proxy", way: Way::Bare },
    Path { name: "default chain", way: Way::Skep(&[]) },
    Path { name: "JWT, RS256", way: Way::Skep(&[Layer::Jwt]) },
    Path { name: "introspection", way: Way::Skep(&[Layer::Introspection]) },
    Path { name: "strip credentials", way: Way::Skep(&[Layer::StripCredentials]) },
    Path { name: "token exchange, warm", way: Way::Skep(&[Layer::TokenExchange]) },
    Path { name: "tool filter", way: Way::Skep(&[Layer::Tools]) },
    Path { name: "telemetry", way: Way::Skep(&[Layer::Telemetry]) },
    Path { name: "rate limit in Redis", way: Way::Skep(&[Layer::RateLimit]) },
    Path { name: "rate limit in memory", way: Way::Skep(&[Layer::LocalRateLimit]) },
    Path { name: "mutating webhook", way: Way::Skep(&[Layer::MutatingWebhook]) },
    Path { name: "validating webhook", way: Way::Skep(&[Layer::ValidatingWebhook]) },
    Path { name: "Cedar, 1 policy", way: Way::Skep(&[Layer::Cedar(1)]) },
    Path { name: "Cedar, 100 policies", way: Way::Skep(&[Layer::Cedar(100)]) },
    Path { name: "policy decision point, HTTP", way: Way::Skep(&[Layer::Pdp]) },
    Path { name: "AWS STS and SigV4, warm", way: Way::Skep(&[Layer::AwsSts]) },
    Path { name: "header forward", way: Way::Skep(&[Layer::Headers]) },
    Path { name: "on behalf of, warm", way: Way::Skep(&[Layer::OnBehalfOf]) },
    Path { name: "bearer token", way: Way::Skep(&[Layer::BearerToken]) },
    Path { name: "audit to a file", way: Way::Skep(&[Layer::Audit]) },
    Path {
        name: "full chain",
        way: Way::Skep(&[Layer::Audit, Layer::Jwt, Layer::Tools, Layer::Telemetry, Layer::Cedar(100), Layer::Headers]),
    },
    Path {
        name: "full chain, others asked, too",
        way: Way::Skep(&[
            Layer::Audit,
            Layer::Jwt,
            Layer::TokenExchange,
            Layer::Tools,
            Layer::Telemetry,
            Layer::RateLimit,
            Layer::MutatingWebhook,
            Layer::ValidatingWebhook,
            Layer::Cedar(100),
            Layer::Headers,
        ]),
    },
];

/// What clients show.
#[derive(Debug)]
pub(super) struct Credentials {
    pub(super) signed: HeaderValue,
    pub(super) opaque: HeaderValue,
}

impl Path {
    /// Whether it can be taken with what there is.
    pub(super) fn is_open(&self, around: &Around) -> bool {
        around.redis.is_some() || !matches!(self.way, Way::Skep(layers) if layers.contains(&Layer::RateLimit))
    }

    /// Starts what stands before a server, if anything does. Everybody shows a signed token, whoever looks at it, so that
    /// all requests are alike.
    pub(super) async fn start(
        &self,
        server: &Process,
        around: &Around,
        credentials: &Credentials,
    ) -> anyhow::Result<Option<Process>> {
        let server = server.door.address;
        let (part, credential) = match self.way {
            Way::Direct => return Ok(None),
            Way::Bare => (Part::Bare { server }, &credentials.signed),
            Way::Skep(layers) => {
                let part = Part::Skep { server, chain: Layer::chain(layers), around: Some(around.clone()) };
                let is_opaque = layers.contains(&Layer::Introspection);
                (part, if is_opaque { &credentials.opaque } else { &credentials.signed })
            }
        };
        Process::start(&part, Some(credential.clone())).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_are_compared_with_is_where_it_should_be() {
        let names = [DIRECT, BARE, DEFAULT, FULL].map(|place| PATHS[place].name);
        assert_eq!(names, ["direct", "bare hyper proxy", "default chain", "full chain"]);
    }
}
