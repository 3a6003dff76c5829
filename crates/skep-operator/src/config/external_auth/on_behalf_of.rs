//! Acting on behalf of users: what is needed to ask for a token at all. Admission accepts less, for the sake of
//! placeholders that older releases wrote.

use skep_api::kinds::outgoing_auth::on_behalf_of::OnBehalfOf;

pub(super) fn check(obo: &OnBehalfOf) -> Result<(), String> {
    let given = |value: &Option<String>| value.as_ref().is_some_and(|value| !value.is_empty());
    if !given(&obo.authority) && !given(&obo.tenant_id) {
        return Err("obo.authority or obo.tenantId must be set: there is nobody to ask for tokens".to_owned());
    }
    if given(&obo.client_id) != obo.client_secret_ref.is_some() {
        return Err("obo.clientId and obo.clientSecretRef must be set together".to_owned());
    }
    if let Some(skew) = &obo.cache_skew {
        skew.parse().map_err(|error| format!("obo.cacheSkew: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::conditions::reasons;
    use skep_api::kinds::MCPExternalAuthConfig;

    use crate::config::{ConfigKind as _, judge};

    fn with(obo: &Value) -> Value {
        json!({"type": "obo", "obo": obo})
    }

    #[test]
    fn auth_trap_79_specs_are_read_and_judged_empty_ones_included() {
        let secret = json!({"name": "s", "key": "k"});
        let nobody = "obo.authority or obo.tenantId must be set: there is nobody to ask for tokens";
        let pair = "obo.clientId and obo.clientSecretRef must be set together";
        judge::<MCPExternalAuthConfig>([
            (with(&json!({"tenantId": "contoso.example", "clientId": "c", "clientSecretRef": secret})), ""),
            (with(&json!({"authority": "https://login.example", "cacheSkew": "1m"})), ""),
            (with(&json!({})), nobody),
            (with(&json!({"authority": ""})), nobody),
            (with(&json!({"tenantId": "contoso.example", "clientId": "c"})), pair),
            (with(&json!({"tenantId": "contoso.example", "clientSecretRef": secret})), pair),
            (
                with(&json!({"tenantId": "contoso.example", "cacheSkew": "-1s"})),
                "obo.cacheSkew: duration \"-1s\" is negative",
            ),
        ]);
    }

    #[test]
    fn the_reason_differs_from_that_of_other_types() {
        let object = json!({"metadata": {"name": "c"}, "spec": with(&json!({}))});
        let object: MCPExternalAuthConfig = serde_json::from_value(object).unwrap();
        assert_eq!(object.validate().unwrap_err().reason, Some(reasons::INVALID_CONFIG));
    }
}
