//! The same questions to the real server and to our authorisation, with the same answers.

#[path = "auth_on_control_plane/access.rs"]
mod access;
#[path = "auth_on_control_plane/identity.rs"]
mod identity;
#[path = "auth_on_control_plane/server.rs"]
mod server;
#[path = "auth_on_control_plane/tokens.rs"]
mod tokens;
#[path = "auth_on_control_plane/writes.rs"]
mod writes;

use server::Server;

/// One control plane for all comparisons: starting one takes longer than all of them.
#[tokio::test(flavor = "multi_thread")]
async fn authorisation_agrees_with_the_real_server() -> anyhow::Result<()> {
    let Some(server) = Server::start_or_skip("authorisation_agrees_with_the_real_server").await? else {
        return Ok(());
    };
    access::default_roles_are_equal(&server).await?;
    access::decisions_are_equal(&server).await?;
    access::odd_reviews_are_answered_equally(&server).await?;
    access::rules_are_listed_equally(&server).await?;
    access::refusals_are_worded_equally(&server).await?;
    writes::escalation_is_refused_equally(&server).await?;
    writes::impersonation_is_judged_equally(&server).await?;
    identity::certificates_are_read_equally(&server).await?;
    identity::credentials_are_judged_equally(&server).await?;
    tokens::keys_are_described_equally(&server).await?;
    tokens::requests_are_answered_equally(&server).await?;
    tokens::tokens_are_judged_equally(&server).await?;
    Ok(())
}
