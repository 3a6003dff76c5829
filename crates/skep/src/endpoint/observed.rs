//! The objects that endpoints are read from, looked at once or followed.

use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::runtime::reflector::Store;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use skep_api::kind::{Definition, GROUP, Kind as _, V1BETA1};
use skep_api::kinds::{MCPRemoteProxy, MCPServer, VirtualMCPServer};

/// The kinds whose objects are endpoints themselves.
const KINDS: [Definition; 3] = [MCPServer::DEFINITION, MCPRemoteProxy::DEFINITION, VirtualMCPServer::DEFINITION];

/// The state of everything that endpoints are made of.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) services: Vec<Arc<Service>>,
    pub(crate) deployments: Vec<Arc<Deployment>>,
    pub(crate) stateful_sets: Vec<Arc<StatefulSet>>,
    pub(crate) pods: Vec<Arc<Pod>>,
    /// Objects of Skep's kinds, each with its kind.
    pub(crate) servers: Vec<(&'static str, Arc<DynamicObject>)>,
}

fn resource(definition: &Definition) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, V1BETA1, definition.kind), definition.plural)
}

impl Observed {
    /// Looks once.
    pub(crate) async fn now(client: &Client) -> Result<Self, kube::Error> {
        let mut observed = Self {
            services: all(Api::all(client.clone())).await?,
            deployments: all(Api::all(client.clone())).await?,
            stateful_sets: all(Api::all(client.clone())).await?,
            pods: all(Api::all(client.clone())).await?,
            servers: Vec::new(),
        };
        for definition in &KINDS {
            let found = all(Api::<DynamicObject>::all_with(client.clone(), &resource(definition))).await?;
            observed.servers.extend(found.into_iter().map(|object| (definition.kind, object)));
        }
        Ok(observed)
    }
}

/// All objects of a kind; none when the server does not know the kind.
async fn all<K: Clone + DeserializeOwned + std::fmt::Debug>(api: Api<K>) -> Result<Vec<Arc<K>>, kube::Error> {
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items.into_iter().map(Arc::new).collect()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The state, kept up to date.
pub(crate) struct Followed {
    services: Store<Service>,
    deployments: Store<Deployment>,
    stateful_sets: Store<StatefulSet>,
    pods: Store<Pod>,
    servers: Vec<(&'static str, Store<DynamicObject>)>,
    news: BoxStream<'static, ()>,
}

impl Followed {
    pub(crate) fn new(client: &Client) -> Self {
        let mut news = Vec::new();
        let services = follow(Api::all(client.clone()), (), &mut news);
        let deployments = follow(Api::all(client.clone()), (), &mut news);
        let stateful_sets = follow(Api::all(client.clone()), (), &mut news);
        let pods = follow(Api::all(client.clone()), (), &mut news);
        let mut servers = Vec::new();
        for definition in &KINDS {
            let resource = resource(definition);
            let api = Api::all_with(client.clone(), &resource);
            servers.push((definition.kind, follow(api, resource, &mut news)));
        }
        let news = futures::stream::select_all(news).boxed();
        Self { services, deployments, stateful_sets, pods, servers, news }
    }

    /// Ready when something has changed.
    pub(crate) async fn changed(&mut self) {
        if self.news.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn state(&self) -> Observed {
        let servers = self.servers.iter().flat_map(|(kind, store)| {
            let objects = store.state();
            objects.into_iter().map(|object| (*kind, object))
        });
        Observed {
            services: self.services.state(),
            deployments: self.deployments.state(),
            stateful_sets: self.stateful_sets.state(),
            pods: self.pods.state(),
            servers: servers.collect(),
        }
    }
}

fn follow<K>(api: Api<K>, kind: K::DynamicType, news: &mut Vec<BoxStream<'static, ()>>) -> Store<K>
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + std::hash::Hash + Send + Sync,
{
    let writer = reflector::store::Writer::new(kind);
    let store = writer.as_reader();
    // Errors are told by the watcher's own retries; what matters here is that there may be something new.
    news.push(reflector(writer, watcher(api, watcher::Config::default()).default_backoff()).map(drop).boxed());
    store
}
