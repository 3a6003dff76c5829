//! Everything that a container needs before it can start.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::context::Context;
use super::environment::{self, EnvironmentError, Sources};
use super::expand::expand;
use super::files;
use super::plain;
use super::unhonoured::Powers;
use crate::container::{Capabilities, ContainerSpec, Mount};
use crate::image::Program;
use crate::isolation::Isolation;
use crate::volume::{MountError, mounts};

const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const HOSTS: &str = "/etc/hosts";
const RESOLVER: &str = "/etc/resolv.conf";
/// A user without any rights, for containers that must not be root and do not say who else.
const NOBODY_SPECIAL: u32 = 65_532;

/// What keeps a container from being created.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Plain(#[from] plain::PlainError),
    #[error("container has runAsNonRoot and runAsUser is 0 (pod: {pod:?}, container: {container})")]
    Root { pod: String, container: String },
    #[error("{0}")]
    Api(String),
    #[error("{}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
}

/// A container that can be started.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) spec: ContainerSpec,
    /// Where it may leave its last words.
    pub(super) last_words: PathBuf,
}

pub(super) async fn prepare(
    context: &Context,
    container: &Container,
    program: &Program,
) -> Result<Prepared, PrepareError> {
    let pod = context.pod();
    let sources = sources(&context.node.client, &pod, container).await?;
    let place = context.place();
    let links = pod.spec.as_ref().is_none_or(|spec| spec.enable_service_links != Some(false));
    let namespace = pod.namespace().unwrap_or_default();
    let services = context.node.services.state();
    let services = environment::service_variables(services.iter().map(AsRef::as_ref), &namespace, links);
    let wanted = environment::build(&pod, container, &sources, services, &place)?;
    let words = |words: Option<&Vec<String>>| -> Vec<String> {
        words.into_iter().flatten().map(|word| expand(word, |name| wanted.get(name).cloned())).collect()
    };
    let argv = program.command_line(&words(container.command.as_ref()), &words(container.args.as_ref()));
    let hostname = files::hostname(&pod);
    let mut env: BTreeMap<String, String> = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap_or_else(|_| USUAL_PATH.to_owned())),
        ("HOME".to_owned(), "/tmp".to_owned()),
        ("HOSTNAME".to_owned(), hostname.clone()),
    ]);
    env.extend(program.env.iter().cloned());
    env.extend(wanted.clone());
    let user = user(&pod, container, context.node.isolation)?;
    let last_words = last_words(context, container)?;
    let mut all = mounts(container, &context.volumes.borrow(), &wanted)?;
    if context.node.isolation == Isolation::None {
        plain::adapt(context, container, program, &mut env, &mut all)?;
    } else {
        all.splice(0..0, program.mounts.iter().cloned());
        all.extend(own_files(context, &pod)?);
        let target = container.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
        all.push(Mount { source: last_words.clone(), target: PathBuf::from(target), read_only: false });
    }
    let security = container.security_context.as_ref();
    let spec = ContainerSpec {
        argv,
        env: env.into_iter().collect(),
        working_dir: container
            .working_dir
            .clone()
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
            .or_else(|| program.working_dir.clone()),
        user: user.id,
        group: user.group,
        groups: user.groups,
        capabilities: capabilities(container).0,
        hostname: Some(hostname),
        mounts: all,
        hidden: context.node.hidden.clone(),
        read_only_root: security.and_then(|security| security.read_only_root_filesystem) == Some(true),
        stdin: container.stdin == Some(true),
        tty: container.tty == Some(true),
    };
    Ok(Prepared { spec, last_words })
}

async fn sources(client: &Client, pod: &Pod, container: &Container) -> Result<Sources, PrepareError> {
    let namespace = pod.namespace().unwrap_or_default();
    let (config_maps, secrets) = environment::references(container);
    Ok(Sources {
        config_maps: found::<ConfigMap>(client, &namespace, config_maps).await?,
        secrets: found::<Secret>(client, &namespace, secrets).await?,
    })
}

async fn found<K>(
    client: &Client,
    namespace: &str,
    names: BTreeSet<String>,
) -> Result<BTreeMap<String, K>, PrepareError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let mut objects = BTreeMap::new();
    for name in names {
        let object = api.get_opt(&name).await.map_err(|error| PrepareError::Api(error.to_string()))?;
        objects.extend(object.map(|object| (name, object)));
    }
    Ok(objects)
}

#[derive(Debug, Default)]
struct User {
    id: Option<u32>,
    group: Option<u32>,
    groups: Vec<u32>,
}

/// The privileges of a container, and those that it asks for in vain.
pub(super) fn capabilities(container: &Container) -> (Capabilities, Vec<&str>) {
    let wanted = container.security_context.as_ref().and_then(|security| security.capabilities.as_ref());
    let add = wanted.and_then(|wanted| wanted.add.as_deref()).unwrap_or_default();
    let drop = wanted.and_then(|wanted| wanted.drop.as_deref()).unwrap_or_default();
    Capabilities::of(add.iter().map(String::as_str), drop.iter().map(String::as_str))
}

/// Who the container runs as. Where there are no users it runs as whoever runs Skep, who is not root.
fn user(pod: &Pod, container: &Container, isolation: Isolation) -> Result<User, PrepareError> {
    if !Powers::of(isolation).users {
        return Ok(User::default());
    }
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let own = container.security_context.as_ref();
    let id = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok());
    let user = id(own.and_then(|own| own.run_as_user).or_else(|| of_pod.and_then(|pod| pod.run_as_user)));
    let group = id(own.and_then(|own| own.run_as_group).or_else(|| of_pod.and_then(|pod| pod.run_as_group)));
    let no_root = own.and_then(|own| own.run_as_non_root).or_else(|| of_pod.and_then(|pod| pod.run_as_non_root));
    let user = match (user, no_root) {
        (Some(0), Some(true)) => {
            return Err(PrepareError::Root { pod: pod.name_any(), container: container.name.clone() });
        }
        (None, Some(true)) => Some(NOBODY_SPECIAL),
        (user, _) => user,
    };
    let groups =
        of_pod.into_iter().flat_map(|pod| pod.supplemental_groups.iter().flatten().copied().chain(pod.fs_group));
    Ok(User { id: user, group, groups: groups.filter_map(|group| u32::try_from(group).ok()).collect() })
}

/// An empty file for the reason of an end.
fn last_words(context: &Context, container: &Container) -> Result<PathBuf, PrepareError> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = context.files.join(format!("last-words-{}", container.name));
    let made = fs::create_dir_all(&context.files).and_then(|()| fs::write(&path, b""));
    let opened = made.and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o666)));
    opened.map_err(|cause| PrepareError::Io { path: path.clone(), cause })?;
    Ok(path)
}

/// `/etc/hosts`, `/etc/hostname` and `/etc/resolv.conf`, as far as they are not those of the machine.
fn own_files(context: &Context, pod: &Pod) -> Result<Vec<Mount>, PrepareError> {
    let spec = pod.spec.clone().unwrap_or_default();
    let namespace = pod.namespace().unwrap_or_default();
    // A machine without such a file has nothing to add.
    let of_machine = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let own_network = context.address();
    let hosts = match own_network {
        Some(address) => Some(files::hosts(pod, address)),
        None => files::machine_hosts(pod, &of_machine(HOSTS)),
    };
    let name = own_network.map(|_| format!("{}\n", files::hostname(pod)));
    let resolver = files::resolver(&spec, &namespace, context.node.dns, &of_machine(RESOLVER));
    let texts = [(HOSTS, hosts), ("/etc/hostname", name), (RESOLVER, resolver)];
    let texts = texts.into_iter().filter_map(|(target, text)| Some((target, text?)));
    texts.map(|(target, text)| own_file(&context.files, target, &text)).collect()
}

fn own_file(folder: &Path, target: &str, text: &str) -> Result<Mount, PrepareError> {
    let target = PathBuf::from(target);
    let source = folder.join(target.file_name().unwrap_or_default());
    // Containers that run already see this very file: it is not replaced while it says the same.
    if fs::read_to_string(&source).ok().as_deref() != Some(text) {
        fs::write(&source, text).map_err(|cause| PrepareError::Io { path: source.clone(), cause })?;
    }
    Ok(Mount { source, target, read_only: false })
}
