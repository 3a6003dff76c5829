//! Conditions that stay while what they are about does, and what is told in the end.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use skep_api::conditions::{self, Condition, ConditionStatus, reasons, types};
use skep_api::kinds::mcp_remote_proxy::MCPRemoteProxyPhase;
use skep_api::kinds::mcp_server::MCPServerPhase;
use skep_api::kinds::{
    MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
};
use skep_operator::settings::Settings;

use crate::cluster::{Fixture, failures, passes, waiting};
use crate::configs::Example as _;
use crate::remote_proxies;
use crate::servers::{is_settled, settled};
use crate::trials;
use crate::wire::Faults;

trials![
    what_is_known_of_references_outlasts_another_mistake,
    a_mended_reference_is_not_blamed_for_another,
    what_stays_wrong_is_told,
    a_group_that_is_to_go_counts_as_gone,
    what_no_watch_has_told_of_is_not_missing,
    a_namespace_that_goes_is_waited_for_in_silence,
    auth_trap_75_no_pod_without_authorities_that_are_named,
    auth_trap_83_credentials_that_no_server_is_shown_are_told,
];

const KEPT: [&str; 3] =
    [types::OIDC_CONFIG_REF_VALIDATED, types::TELEMETRY_CONFIG_REF_VALIDATED, types::GROUP_REF_VALIDATED];

fn of(found: &[Condition], type_: &str) -> Option<Condition> {
    conditions::find(found, type_).cloned()
}

fn all(server: &MCPServer) -> Vec<Condition> {
    server.status.clone().unwrap_or_default().conditions
}

fn is_failed(server: &MCPServer) -> bool {
    server.status.as_ref().is_some_and(|status| {
        status.observed_generation == server.metadata.generation && status.phase == Some(MCPServerPhase::Failed)
    })
}

async fn what_is_known_of_references_outlasts_another_mistake(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    fixture.create::<MCPOIDCConfig>("o", MCPOIDCConfig::good(1)).await;
    fixture.create::<MCPTelemetryConfig>("t", MCPTelemetryConfig::good(1)).await;
    fixture.create::<MCPToolConfig>("f", MCPToolConfig::good(1)).await;
    fixture.create::<MCPGroup>("g", json!({})).await;
    let references = json!({"oidcConfigRef": MCPOIDCConfig::reference("o"), "telemetryConfigRef": {"name": "t"},
        "toolConfigRef": {"name": "f"}, "groupRef": {"name": "g"}});
    let with = |more: serde_json::Value| {
        let mut spec = references.clone();
        spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        spec
    };
    let pods = json!({"spec": {"priorityClassName": "p"}});
    fixture.create::<MCPServer>("s", with(json!({"image": "i", "podTemplateSpec": pods}))).await;
    let proxy = with(json!({"remoteUrl": "https://mcp.example.com", "podTemplateSpec": pods}));
    fixture.create::<MCPRemoteProxy>("p", proxy).await;
    let server = all(&settled(&fixture, "s").await);
    let proxy = fixture.until::<MCPRemoteProxy>("p", "settled", remote_proxies::is_settled).await;
    let proxy = proxy.status.unwrap().conditions;

    // A mistake that is found before any reference is looked at.
    fixture.merge::<MCPServer>("s", json!({"spec": {"podTemplateSpec": {"spec": {"containers": "none"}}}})).await;
    let failed = all(&fixture.until::<MCPServer>("s", "failed", is_failed).await);
    fixture.merge::<MCPRemoteProxy>("p", json!({"spec": {"remoteUrl": "http://127.0.0.1"}})).await;
    let is_refused = |proxy: &MCPRemoteProxy| {
        proxy.status.as_ref().is_some_and(|status| status.phase == Some(MCPRemoteProxyPhase::Failed))
    };
    let refused = fixture.until::<MCPRemoteProxy>("p", "refused", is_refused).await.status.unwrap().conditions;
    let whole = [types::TOOL_CONFIG_VALIDATED, types::POD_TEMPLATE_VALID].into_iter().chain(KEPT);
    for (before, after, types_) in [(&server, &failed, KEPT.to_vec()), (&proxy, &refused, whole.collect())] {
        for type_ in types_ {
            let (was, is) = (of(before, type_).unwrap(), of(after, type_));
            let Some(is) = is else { panic!("{type_} is gone: {after:#?}") };
            assert_eq!((was.last_transition_time, was.reason), (is.last_transition_time, is.reason), "{type_}");
        }
    }
    // What is no longer named is no longer told of.
    fixture.merge::<MCPServer>("s", json!({"spec": {"telemetryConfigRef": null, "oidcConfigRef": null}})).await;
    let without = |server: &MCPServer| {
        let found = all(server);
        is_failed(server)
            && of(&found, types::TELEMETRY_CONFIG_REF_VALIDATED).is_none()
            && of(&found, types::OIDC_CONFIG_REF_VALIDATED).is_none()
            && of(&found, types::GROUP_REF_VALIDATED).is_some()
    };
    fixture.until::<MCPServer>("s", "without both", without).await;
}

async fn a_mended_reference_is_not_blamed_for_another(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    let references = json!({"image": "i", "webhookConfigRef": {"name": "w"},
        "oidcConfigRef": MCPOIDCConfig::reference("nowhere")});
    fixture.create::<MCPServer>("s", references).await;
    let blamed = |server: &MCPServer| of(&all(server), types::WEBHOOK_CONFIG_VALIDATED).is_some();
    fixture.until::<MCPServer>("s", "told of the webhooks", blamed).await;
    let hooks = skep_api::kinds::MCPWebhookConfig::good(1);
    fixture.create::<skep_api::kinds::MCPWebhookConfig>("w", hooks).await;
    let next = |server: &MCPServer| {
        let found = all(server);
        of(&found, types::WEBHOOK_CONFIG_VALIDATED).is_none() && of(&found, types::OIDC_CONFIG_REF_VALIDATED).is_some()
    };
    fixture.until::<MCPServer>("s", "told of the next", next).await;
}

async fn what_stays_wrong_is_told(fixture: Fixture) {
    let faults = Faults::none();
    let (_operator, _record) = fixture.operator_with(Settings::default(), faults.clone()).await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    faults.cut_off("/deployments/");
    fixture.merge::<MCPServer>("s", json!({"spec": {"image": "j"}})).await;
    let server = fixture.until::<MCPServer>("s", "failed", is_failed).await;
    let verdict = of(&all(&server), types::READY).unwrap();
    assert_eq!(verdict.status, ConditionStatus::False);
    assert!(verdict.message.starts_with("Failed to create Deployment: "), "{}", verdict.message);
    faults.reconnect();
    fixture.until::<MCPServer>("s", "settled", is_settled).await;
    let image = fixture.child::<Deployment>("s").await;
    assert_eq!(
        image["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().last(),
        Some(&json!("j"))
    );
}

async fn a_group_that_is_to_go_counts_as_gone(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    fixture.create::<MCPGroup>("g", json!({})).await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    fixture.merge::<MCPGroup>("g", held).await;
    fixture.merge_status::<MCPGroup>("g", json!({"status": {"phase": "Ready"}})).await;
    fixture.create::<MCPServer>("s", json!({"image": "i", "groupRef": {"name": "g"}})).await;
    let says = |reason: &'static str, message: &'static str| {
        move |server: &MCPServer| {
            of(&all(server), types::GROUP_REF_VALIDATED)
                .is_some_and(|found| found.reason == reason && found.message.contains(message))
        }
    };
    fixture.until::<MCPServer>("s", "in the group", says("GroupRefIsValid", "is valid and ready")).await;
    fixture.delete::<MCPGroup>("g").await;
    let gone = says("GroupRefNotFound", "Referenced MCPGroup is being deleted");
    fixture.until::<MCPServer>("s", "without a group", gone).await;
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    fixture.api::<MCPGroup>().patch("g", &PatchParams::default(), &free).await.unwrap();
    fixture.until::<MCPServer>("s", "without it", says("GroupRefNotFound", "not found in namespace")).await;
}

async fn a_namespace_that_goes_is_waited_for_in_silence(fixture: Fixture) {
    let faults = Faults::none();
    let (operator, record) = fixture.operator_with(Settings::default(), faults.clone()).await;
    faults.terminate("/deployments/");
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    fixture.create::<MCPRemoteProxy>("p", json!({"remoteUrl": "https://mcp.example.com"})).await;
    for (kind, name) in [("MCPServer", "s"), ("MCPRemoteProxy", "p")] {
        let refused = async || Some(record.writes_to(&format!("/deployments/{name}"))).filter(|sent| !sent.is_empty());
        fixture.eventually("a refused write", refused).await;
        let later = async || (waiting(&operator, kind) == 1).then_some(());
        fixture.eventually("another look later", later).await;
    }
    fixture.quiet(&record).await;
    let conflicts = record.answered_writes().await.iter().filter(|sent| sent.code == Some(409)).count();
    let failures = failures(&operator, "MCPServer") + failures(&operator, "MCPRemoteProxy");
    assert!(failures <= u64::try_from(conflicts).unwrap(), "{failures} failures are nothing that anybody has to know");
    for (kind, name) in [("MCPServer", "s"), ("MCPRemoteProxy", "p")] {
        let refused = record.writes_to(&format!("/deployments/{name}")).len();
        assert!(refused <= 3, "{refused} attempts of {kind}");
    }
    faults.reconnect();
    operator.resync();
    settled(&fixture, "s").await;
    fixture.until::<MCPRemoteProxy>("p", "settled", remote_proxies::is_settled).await;
}

async fn what_no_watch_has_told_of_is_not_missing(fixture: Fixture) {
    let faults = Faults::unwatched("/mcptoolconfigs");
    let (operator, _record) = fixture.operator_with(Settings::default(), faults).await;
    fixture.create::<MCPToolConfig>("t", MCPToolConfig::good(1)).await;
    let before = passes(&operator, "MCPServer");
    fixture.create::<MCPServer>("s", json!({"image": "i", "toolConfigRef": {"name": "t"}})).await;
    // One pass for the finalizer, and one that finds out.
    fixture.until_passed(&operator, "MCPServer", before + 1).await;
    let server = fixture.api::<MCPServer>().get("s").await.unwrap();
    assert_eq!(server.status, None, "nothing is wrong with it");
    drop(operator);
    let (_operator, _record) = fixture.operator().await;
    settled(&fixture, "s").await;
}

async fn auth_trap_83_credentials_that_no_server_is_shown_are_told(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    let secret = json!({"name": "s", "key": "k"});
    let secrets: Api<Secret> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let kept = Secret {
        metadata: ObjectMeta { name: Some("s".to_owned()), ..ObjectMeta::default() },
        string_data: Some([("k".to_owned(), "v".to_owned())].into()),
        ..Secret::default()
    };
    secrets.create(&PostParams::default(), &kept).await.unwrap();
    let access = json!({"idpTokenUrl": "https://i", "targetTokenUrl": "https://t", "targetAudience": "a"});
    let exchange = json!({"tokenUrl": "https://t", "audience": "a"});
    // What the config is, and what is said about it where a server of ours and where one of others is to get it.
    let rows = [
        (
            "headerInjection",
            json!({"headerName": "X", "valueSecretRef": secret}),
            [Some("spec.secrets"), Some("headerForward")],
        ),
        ("upstreamInject", json!({"providerName": "p"}), [Some("VirtualMCPServer"), Some("VirtualMCPServer")]),
        ("xaa", access, [Some("VirtualMCPServer"), Some("VirtualMCPServer")]),
        ("unauthenticated", json!(null), [Some("nothing is added"), Some("nothing is added")]),
        ("bearerToken", json!({"tokenSecretRef": secret}), [Some("spec.secrets"), None]),
        ("tokenExchange", exchange, [None, None]),
    ];
    for (type_, settings, _) in &rows {
        let name = type_.to_lowercase();
        let mut spec = json!({"type": type_});
        if settings.is_object() {
            spec[*type_] = settings.clone();
        }
        fixture.create::<MCPExternalAuthConfig>(&name, spec).await;
        let reference = json!({"name": name});
        fixture
            .create::<MCPServer>(&format!("s-{name}"), json!({"image": "i", "externalAuthConfigRef": reference}))
            .await;
        let proxy = json!({"remoteUrl": "https://mcp.example.com", "externalAuthConfigRef": reference});
        fixture.create::<MCPRemoteProxy>(&format!("p-{name}"), proxy).await;
    }
    for (type_, _, told) in rows {
        let name = type_.to_lowercase();
        let server = all(&settled(&fixture, &format!("s-{name}")).await);
        let proxy = fixture.until::<MCPRemoteProxy>(&format!("p-{name}"), "settled", remote_proxies::is_settled).await;
        for (found, told) in [server, proxy.status.unwrap().conditions].into_iter().zip(told) {
            let verdict = of(&found, types::EXTERNAL_AUTH_CONFIG_VALIDATED);
            let no_effect = verdict.filter(|verdict| verdict.reason == reasons::EXTERNAL_AUTH_CONFIG_HAS_NO_EFFECT);
            assert_eq!(no_effect.is_some(), told.is_some(), "{type_}: {found:#?}");
            if let (Some(verdict), Some(told)) = (no_effect, told) {
                assert_eq!(verdict.status, ConditionStatus::True, "{type_}");
                let names_it = verdict.message.contains(&format!("is of type {type_}, which has no effect on MCP"));
                assert!(names_it && verdict.message.contains(told), "{type_}: {}", verdict.message);
            }
        }
    }
    // Whoever mends it is no longer told.
    fixture.merge::<MCPServer>("s-xaa", json!({"spec": {"externalAuthConfigRef": {"name": "tokenexchange"}}})).await;
    let is_mended = |server: &MCPServer| of(&all(server), types::EXTERNAL_AUTH_CONFIG_VALIDATED).is_none();
    fixture.until::<MCPServer>("s-xaa", "mended", is_mended).await;
}

async fn auth_trap_75_no_pod_without_authorities_that_are_named(fixture: Fixture) {
    let faults = Faults::none();
    let (operator, _record) = fixture.operator_with(Settings::default(), faults.clone()).await;
    let bundle = json!({"configMapRef": {"name": "authorities", "key": "ca.crt"}});
    let issuer = json!({"issuer": "https://issuer.example", "caBundleRef": bundle});
    fixture.create::<MCPOIDCConfig>("o", json!({"type": "inline", "inline": issuer})).await;
    let authorities = ConfigMap {
        metadata: ObjectMeta { name: Some("authorities".to_owned()), ..ObjectMeta::default() },
        data: Some([("ca.crt".to_owned(), "c".to_owned())].into()),
        ..ConfigMap::default()
    };
    let maps: Api<ConfigMap> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    maps.create(&PostParams::default(), &authorities).await.unwrap();
    faults.cut_off("/configmaps/authorities");
    let before = passes(&operator, "MCPServer");
    let spec = json!({"image": "i", "oidcConfigRef": MCPOIDCConfig::reference("o")});
    fixture.create::<MCPServer>("s", spec).await;
    fixture.until_passed(&operator, "MCPServer", before + 2).await;
    let deployments: Api<Deployment> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    assert_eq!(deployments.get_opt("s").await.unwrap(), None);
    faults.reconnect();
    settled(&fixture, "s").await;
    let volumes = fixture.child::<Deployment>("s").await["spec"]["template"]["spec"]["volumes"].clone();
    let is_mounted = volumes.as_array().unwrap().iter().any(|volume| volume["configMap"]["name"] == "authorities");
    assert!(is_mounted, "{volumes}");
}
