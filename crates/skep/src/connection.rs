//! The way to the API server of a data folder.

use std::io::ErrorKind;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::data_folder::DataFolder;
use crate::hint::Hinted;

/// An API server of this machine answers at once or not at all.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Connects to the API server that serves the data in a folder.
pub(crate) async fn connect(folder: &DataFolder) -> anyhow::Result<Client> {
    let path = folder.kubeconfig();
    match std::fs::File::open(&path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(folder.closed(&error).into()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(silent(folder, "it is still starting"));
        }
        // What else is wrong with it is told when it is read.
        _ => {}
    }
    let unusable = |error: &dyn std::fmt::Display| {
        Hinted::new(format!("{} cannot be used: {error}", path.display()))
            .hint(format!("{} writes it anew at its next start", folder.command("up")))
    };
    let kubeconfig = Kubeconfig::read_from(&path).map_err(|error| unusable(&error))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(|error| unusable(&error))?;
    config.connect_timeout = Some(CONNECT_LIMIT);
    // Logs and watches may be silent for long.
    config.read_timeout = None;
    let client = Client::try_from(config).map_err(|error| unusable(&error))?;
    match tokio::time::timeout(ANSWER_LIMIT, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(client),
        Ok(Err(error @ kube::Error::Api(_))) => Err(refusal(error)),
        Ok(Err(error)) => Err(silent(folder, &error.to_string())),
        Err(_) => Err(silent(folder, "it does not answer")),
    }
}

/// Nobody has answered: either nobody is there, or somebody has a reason not to.
fn silent(folder: &DataFolder, reason: &str) -> anyhow::Error {
    match folder.occupant() {
        Ok(None) => folder.unoccupied().into(),
        Ok(Some(process)) => Hinted::new(format!("skep up (process {process}) cannot be reached: {reason}"))
            .hint("it may be starting or stopping: try again in a moment")
            .into(),
        Err(error) => folder.closed(&error).into(),
    }
}

/// What the API server has to say, without the words of the client around it.
pub(crate) fn refusal(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow::Error::msg(status.message),
        other => other.into(),
    }
}
