//! The sources of the files in a volume that is made of API objects.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapProjection, DownwardAPIProjection, Pod, Secret, SecretProjection,
};
use kube::Client;

use super::VolumeError;
use super::atomic::{FileContent, Files};
use super::content::{self, ContentError};
use super::token::Token;
use super::watched::Watched;
use crate::pod::field::Place;

/// One source of files.
#[derive(Debug)]
pub(super) enum Part {
    ConfigMap(Watched<ConfigMap>, ConfigMapProjection),
    Secret(Watched<Secret>, SecretProjection),
    Downward(DownwardAPIProjection),
    Token(Token),
    Unsupported,
}

impl Part {
    pub(super) fn config_map(client: &Client, namespace: &str, projection: ConfigMapProjection) -> Self {
        Self::ConfigMap(Watched::new(client.clone(), namespace, &projection.name), projection)
    }

    pub(super) fn secret(client: &Client, namespace: &str, projection: SecretProjection) -> Self {
        Self::Secret(Watched::new(client.clone(), namespace, &projection.name), projection)
    }

    /// Where it puts a token, if that is what it has.
    pub(super) fn token(&self) -> Option<PathBuf> {
        match self {
            Self::Token(token) => Some(PathBuf::from(&token.wanted.path)),
            _ => None,
        }
    }

    /// Waits until it is out of date by itself.
    pub(super) async fn outdated(&mut self) {
        match self {
            Self::ConfigMap(watched, _) => watched.changed().await,
            Self::Secret(watched, _) => watched.changed().await,
            Self::Token(token) => token.outdated().await,
            Self::Downward(_) | Self::Unsupported => std::future::pending().await,
        }
    }

    /// Its files as they are to be now.
    pub(super) async fn files(
        &mut self,
        client: &Client,
        mode: u32,
        pod: &Pod,
        place: &Place,
    ) -> Result<Files, VolumeError> {
        match self {
            Self::ConfigMap(watched, projection) => {
                let optional = projection.optional == Some(true);
                match watched.get().await {
                    Some(map) => {
                        let values = content::of_config_map(&map);
                        Ok(content::pick("config", values, projection.items.as_deref(), mode, optional)?)
                    }
                    None if optional => Ok(Files::new()),
                    None => Err(ContentError::ConfigMap(projection.name.clone()).into()),
                }
            }
            Self::Secret(watched, projection) => {
                let optional = projection.optional == Some(true);
                match watched.get().await {
                    Some(secret) => {
                        let values = content::of_secret(&secret);
                        Ok(content::pick("secret", values, projection.items.as_deref(), mode, optional)?)
                    }
                    None if optional => Ok(Files::new()),
                    None => Err(ContentError::Secret(projection.name.clone()).into()),
                }
            }
            Self::Downward(projection) => {
                Ok(content::of_downward(pod, place, projection.items.as_deref().unwrap_or_default(), mode)?)
            }
            Self::Token(token) => {
                let text = token.get(client, pod).await.map_err(|error| VolumeError::Token(Box::new(error)))?;
                let content = FileContent { bytes: text.into_bytes(), mode };
                Ok(Files::from([(PathBuf::from(&token.wanted.path), content)]))
            }
            Self::Unsupported => Err(VolumeError::Unsupported),
        }
    }
}
