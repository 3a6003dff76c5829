//! What this machine is to the pods that run on it, whoever their API server is.

use anyhow::Context as _;
use skep_node::image::{ImageConfig, ImageMap};
use skep_node::member::Member;

use crate::data_folder::DataFolder;
use crate::screen;

/// The range of the pods' addresses when nothing else is said.
pub(crate) const POD_RANGE: &str = "10.244.0.0/16";
/// The range of the services' addresses when nothing else is said.
pub(crate) const SERVICE_RANGE: &str = "10.96.0.0/16";

/// Images of Skep itself, wherever they come from.
const OWN_IMAGES: [&str; 2] = ["skep", "*/skep"];

/// The images that pods may name. Those that fit one of the patterns `own` are Skep itself, besides those that are anyway.
pub(crate) fn images(data: &DataFolder, map: ImageMap, own: &[String]) -> anyhow::Result<ImageConfig> {
    Ok(ImageConfig {
        own_program: std::env::current_exe().context("the program cannot find itself")?,
        own_images: OWN_IMAGES.map(str::to_owned).iter().chain(own).cloned().collect(),
        own_commands: vec![("skep-demo/echo".to_owned(), vec!["demo".to_owned(), "echo".to_owned()])],
        map,
        cache: data.packages(),
    })
}

/// Tells that pods cannot reach the rest of the world, if they cannot.
pub(crate) fn tell_offline(member: &Member) {
    if let Some(offline) = member.offline() {
        screen::say(&format!("pods have no access to the Internet: {offline}"));
        screen::say(&format!("hint: {}", offline.hint()));
    }
}
