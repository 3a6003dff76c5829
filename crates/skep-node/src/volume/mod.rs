//! The volumes of a pod, as folders outside of it.

mod atomic;
mod content;
mod lasting;
mod mounts;
mod part;
mod scratch;
mod share;
mod token;
mod watched;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use futures::future::{BoxFuture, FutureExt as _, join_all, select_all};
use k8s_openapi::api::core::v1::{
    ConfigMapProjection, ConfigMapVolumeSource, DownwardAPIProjection, HostPathVolumeSource, Pod, SecretProjection,
    SecretVolumeSource, Volume,
};
use kube::{Client, ResourceExt as _};

use crate::pod::field::Place;
use atomic::Files;
use content::{ContentError, mode_of};
pub(crate) use mounts::{MountError, mounts};
use part::Part;
pub(crate) use scratch::Bounded;
use scratch::Scratch;
use share::Share;
use token::Token;

const USUAL_MODE: u32 = 0o644;

/// Where volumes are kept.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    /// In memory: content of ConfigMaps, Secrets and tokens, which must not get onto a disk.
    pub(crate) memory: PathBuf,
    /// On disk: scratch space.
    pub(crate) disk: PathBuf,
    /// Whether file systems can be mounted there.
    pub(crate) can_mount: bool,
}

/// Why a volume cannot be had yet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VolumeError {
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("failed to fetch token: {}", told(.0))]
    Token(#[source] Box<kube::Error>),
    #[error("{}", told(.0))]
    Api(#[source] Box<kube::Error>),
    #[error("persistentvolumeclaim {0:?} is not bound")]
    Unbound(String),
    #[error("cannot make {path}, which is not there: {cause}")]
    NotMade { path: String, cause: std::io::Error },
    #[error("hostPath type check failed: {path} is not a {wanted}")]
    HostPath { path: String, wanted: String },
    #[error(
        "volumes of this kind are not supported by this node: use configMap, secret, projected, downwardAPI, emptyDir, \
         hostPath or persistentVolumeClaim"
    )]
    Unsupported,
}

/// The server's own words.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// All volumes of one pod.
pub(crate) struct Volumes {
    client: Client,
    folders: Folders,
    contents: BTreeMap<String, Content>,
}

#[derive(Debug)]
enum Content {
    Scratch(Scratch),
    Host(HostPathVolumeSource),
    Claim { name: String, read_only: bool },
    Parts { mode: u32, parts: Vec<Part> },
    Unsupported,
}

/// A volume that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) path: PathBuf,
    /// Files that must not be written through any mount.
    pub(crate) read_only: bool,
    /// Whether parts of it may be made on demand.
    pub(crate) grows: bool,
}

/// What became of the volumes of a pod.
#[derive(Debug, Default)]
pub(crate) struct Refreshed {
    /// Those that are up to date.
    pub(crate) ready: BTreeMap<String, Ready>,
    /// Those that could not be had; they are as they were before, if they were there.
    pub(crate) failed: Vec<(String, VolumeError)>,
}

impl Volumes {
    pub(crate) fn new(client: Client, folders: Folders, pod: &Pod) -> Self {
        let namespace = pod.namespace().unwrap_or_default();
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let volumes = volumes.map(|volume| (volume.name.clone(), content_of(&client, &namespace, volume))).collect();
        Self { client, folders, contents: volumes }
    }

    /// Brings every volume up to date. None waits for another, or stays behind because another cannot be had.
    pub(crate) async fn refresh(&mut self, pod: &Pod, place: &Place) -> Refreshed {
        let Self { client, folders, contents } = self;
        let (client, folders) = (&*client, &*folders);
        let all = contents.iter_mut().map(|(name, content)| async move {
            (name.clone(), make(client, folders, name, content, pod, place).await)
        });
        let mut refreshed = Refreshed::default();
        for (name, made) in join_all(all).await {
            match made {
                Ok(ready) => drop(refreshed.ready.insert(name, ready)),
                Err(error) => refreshed.failed.push((name, error)),
            }
        }
        refreshed
    }

    /// Waits until a volume is out of date.
    pub(crate) async fn changed(&mut self) {
        let mut changes: Vec<BoxFuture<'_, ()>> = Vec::new();
        for content in self.contents.values_mut() {
            let Content::Parts { parts, .. } = content else { continue };
            changes.extend(parts.iter_mut().map(|part| part.outdated().boxed()));
        }
        if changes.is_empty() {
            std::future::pending::<()>().await;
        }
        select_all(changes).await;
    }

    /// The volumes that have to be watched lest they grow too large.
    pub(crate) fn bounded(&self) -> Vec<Bounded> {
        let scratch = self.contents.iter().filter_map(|(name, content)| match content {
            Content::Scratch(scratch) => scratch.bounded(&self.folders, name),
            _ => None,
        });
        scratch.collect()
    }

    /// Removes everything that belongs to the pod alone; of a pod that `goes_on` only what is in memory.
    pub(crate) fn remove(&mut self, goes_on: bool) {
        for (name, content) in &mut self.contents {
            if let Content::Scratch(scratch) = content {
                scratch.take_off(&self.folders, name);
            }
        }
        let Folders { memory, disk, .. } = &self.folders;
        for folder in std::iter::once(memory).chain((!goes_on).then_some(disk)) {
            if let Err(error) = fs::remove_dir_all(folder)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(folder = %folder.display(), %error, "volumes not removed");
            }
        }
    }
}

fn content_of(client: &Client, namespace: &str, volume: &Volume) -> Content {
    if let Some(source) = &volume.empty_dir {
        return Content::Scratch(Scratch::new(source));
    }
    if let Some(source) = &volume.host_path {
        return Content::Host(source.clone());
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        return Content::Claim { name: claim.claim_name.clone(), read_only: claim.read_only == Some(true) };
    }
    if let Some(source) = &volume.config_map {
        let ConfigMapVolumeSource { default_mode, items, name, optional } = source.clone();
        let projection = ConfigMapProjection { items, name, optional };
        return parts(default_mode, vec![Part::config_map(client, namespace, projection)]);
    }
    if let Some(source) = &volume.secret {
        let SecretVolumeSource { default_mode, items, secret_name, optional } = source.clone();
        let projection = SecretProjection { items, name: secret_name.unwrap_or_default(), optional };
        return parts(default_mode, vec![Part::secret(client, namespace, projection)]);
    }
    if let Some(source) = &volume.downward_api {
        let projection = DownwardAPIProjection { items: source.items.clone() };
        return parts(source.default_mode, vec![Part::Downward(projection)]);
    }
    if let Some(source) = &volume.projected {
        let all = source.sources.iter().flatten().map(|source| {
            if let Some(projection) = &source.config_map {
                Part::config_map(client, namespace, projection.clone())
            } else if let Some(projection) = &source.secret {
                Part::secret(client, namespace, projection.clone())
            } else if let Some(projection) = &source.downward_api {
                Part::Downward(projection.clone())
            } else if let Some(projection) = &source.service_account_token {
                Part::Token(Token::new(projection.clone()))
            } else {
                Part::Unsupported
            }
        });
        return parts(source.default_mode, all.collect());
    }
    // A volume without a source is an empty folder.
    let bare = Volume { name: volume.name.clone(), ..Volume::default() };
    if *volume == bare { Content::Scratch(Scratch::default()) } else { Content::Unsupported }
}

fn parts(mode: Option<i32>, parts: Vec<Part>) -> Content {
    Content::Parts { mode: mode_of(mode, USUAL_MODE), parts }
}

async fn make(
    client: &Client,
    folders: &Folders,
    name: &str,
    content: &mut Content,
    pod: &Pod,
    place: &Place,
) -> Result<Ready, VolumeError> {
    let share = Share::of(pod);
    match content {
        Content::Unsupported => Err(VolumeError::Unsupported),
        Content::Scratch(scratch) => {
            let path = scratch.make(folders, name, share)?;
            Ok(Ready { path, read_only: false, grows: true })
        }
        Content::Host(source) => lasting::host(source),
        Content::Claim { name, read_only } => {
            let (path, made_for_it) = lasting::claim(client, &pod.namespace().unwrap_or_default(), name).await?;
            fs::create_dir_all(&path)?;
            if made_for_it {
                share.give_folder(&path)?;
            }
            Ok(Ready { path, read_only: *read_only, grows: true })
        }
        Content::Parts { mode, parts } => {
            let (mut files, mut tokens) = (Files::new(), Vec::new());
            for part in parts {
                let token = part.token();
                let mode = if token.is_some() { share.token_mode(*mode) } else { *mode };
                tokens.extend(token);
                files.extend(part.files(client, mode, pod, place).await?);
            }
            for file in files.values_mut() {
                file.mode = share.mode(file.mode);
            }
            let path = folders.memory.join(name);
            atomic::write(&path, &files, |folder| {
                share.give_files(folder)?;
                tokens.iter().try_for_each(|token| share.give_token(&folder.join(token)))
            })?;
            Ok(Ready { path, read_only: true, grows: false })
        }
    }
}

#[cfg(test)]
mod tests;
