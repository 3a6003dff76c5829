//! Looks before anything is started whether the packages that manifests name could be installed here at all.

use serde_json::Value;
use skep_node::image::{self, ImageMap};

use crate::data_folder::DataFolder;
use crate::hint::Hinted;
use crate::local::Manifest;

/// Refuses manifests with a package that cannot be had on this machine.
pub(super) fn check(manifests: &[Manifest], map: &ImageMap, data: &DataFolder) -> Result<(), Hinted> {
    let cache = data.packages();
    for Manifest { origin, object } in manifests {
        for image in images(object) {
            if let Some(obstacle) = image::obstacle(image, map, &cache) {
                return Err(Hinted::new(format!("{origin}: the image {image} cannot be had: {obstacle}"))
                    .hint("skep doctor shows what this machine has")
                    .hint("or say which command stands for the image: --image-map FILE"));
            }
        }
    }
    Ok(())
}

/// Everything that is called an image, wherever the kind has it.
fn images(object: &Value) -> Vec<&str> {
    match object {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(image) if name == "image" => vec![image.as_str()],
                other => images(other),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(images).collect(),
        _ => Vec::new(),
    }
}
