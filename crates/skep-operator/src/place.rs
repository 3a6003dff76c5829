//! Reading JSON, with the place of what cannot be read.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a value. What is wrong is told as `spec.image: invalid type: …`.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    // To remember the place takes time, and most values can be read.
    T::deserialize(value).or_else(|_| serde_path_to_error::deserialize(value)).map_err(|error| {
        match error.path().to_string().as_str() {
            "." => error.inner().to_string(),
            place => format!("{place}: {}", error.inner()),
        }
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;
    use skep_api::kinds::MCPServer;

    use super::*;

    #[test]
    fn the_place_is_told() {
        let told = |object: Value| read::<MCPServer>(&object).unwrap_err();
        assert_eq!(told(json!({"spec": {"image": 3}})), "spec.image: invalid type: integer `3`, expected a string");
        assert_eq!(told(json!({"spec": {}})), "spec: missing field `image`");
        assert!(told(json!([3])).starts_with("[0]: "));
        let pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b", "ports": [{"containerPort": "80"}]}]}});
        let told = read::<Pod>(&pod).unwrap_err();
        assert!(told.starts_with("spec.containers[1].ports[0].containerPort: invalid type"), "{told}");
    }
}
