//! `skep up`.

mod detach;
mod live;
mod packages;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use ipnet::Ipv4Net;
use skep_node::image::ImageMap;
use skep_node::isolation::{self, Isolation};

use super::wait_for;
use crate::cli::{IsolationChoice, UpArgs};
use crate::data_folder::DataFolder;
use crate::enclosed;
use crate::endpoint::Side;
use crate::hint::Hinted;
use crate::local::{self, Local};
use crate::service_range::Chosen;
use crate::stop::Stop;
use crate::{screen, shell};

/// What to start, resolved.
#[derive(Debug)]
pub struct Settings {
    data: DataFolder,
    listen: SocketAddr,
    isolation: IsolationChoice,
    pod_range: Ipv4Net,
    service_range: Option<Ipv4Net>,
    manifests: Vec<PathBuf>,
    demo: bool,
    image_map: ImageMap,
    own_images: Vec<String>,
    /// The file of the image map, if one was named.
    named_map: Option<PathBuf>,
    place: Place,
}

/// Which of the processes of a start this is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// The one that a person waits for.
    Foreground,
    /// The one that starts another in the background.
    BeforeBackground,
    /// The one in the background, with its log.
    Background(PathBuf),
}

impl TryFrom<UpArgs> for Settings {
    type Error = anyhow::Error;

    fn try_from(args: UpArgs) -> anyhow::Result<Self> {
        if !args.listen.ip().is_loopback() {
            return Err(Hinted::new(format!("{} is not a loopback address", args.listen.ip()))
                .hint("skep up serves this machine alone; use 127.0.0.1, or run the operator in a cluster")
                .into());
        }
        let data = DataFolder::try_from(args.data)?;
        let map = args.image_map.clone().or_else(|| data.image_map());
        let image_map = map.as_deref().map(ImageMap::read).transpose()?.unwrap_or_default();
        Ok(Self {
            data,
            listen: args.listen,
            isolation: args.isolation,
            pod_range: args.pod_range,
            service_range: args.service_range,
            demo: args.filename.is_empty() && !args.no_demo,
            manifests: args.filename,
            image_map,
            own_images: args.own_image,
            named_map: args.image_map,
            place: match std::env::var_os(detach::LOG_VARIABLE) {
                Some(log) => Place::Background(log.into()),
                None if args.detach => Place::BeforeBackground,
                None => Place::Foreground,
            },
        })
    }
}

pub(super) fn run(settings: Settings) -> anyhow::Result<()> {
    match &settings.place {
        // The process outside has done that.
        _ if isolation::is_inside() => {}
        Place::Foreground => {}
        Place::BeforeBackground => return wait_for(detach::start(&settings.data, &settings.manifests)),
        // Whoever closes the terminal does not mean this process.
        Place::Background(_) => drop(rustix::process::setsid().context("cannot leave the terminal")?),
    }
    let data = settings.data.clone();
    enclosed::run(settings.isolation, &data, |isolation| serve(settings, isolation))
}

async fn serve(settings: Settings, isolation: Isolation) -> anyhow::Result<()> {
    let mut stop = Stop::new()?;
    let Settings {
        data,
        listen,
        pod_range,
        service_range,
        manifests,
        demo,
        image_map,
        own_images,
        named_map,
        isolation: _,
        place,
    } = settings;
    if let Place::Background(log) = place {
        data.adopt_log(&log)?;
    }
    let manifests = local::read(&manifests)?;
    packages::check(&manifests, &image_map, &data)?;
    let services = Chosen::new(data.path(), service_range)?;
    services.keep_apart_from(pod_range)?;
    let start = local::Settings {
        data: data.clone(),
        listen,
        isolation,
        pod_range,
        services,
        manifests,
        demo,
        image_map,
        own_images,
    };
    let local = tokio::select! {
        local = Local::start(start) => local?,
        () = stop.asked() => return Ok(()),
    };
    if let Some(map) = named_map {
        data.remember_image_map(&map)?;
    }
    let side = if isolation == Isolation::Namespaces { Side::Pods } else { Side::Machine };
    let url = format!("https://{}", local.address);
    data.tell_serving(&url)?;
    eprintln!("serving {url}; export KUBECONFIG={}", shell::word(&local.kubeconfig));
    tokio::select! {
        never = live::show(&local.client, side) => match never? {},
        () = local::pulls::follow(local.client.clone(), screen::say) => {}
        () = stop.asked() => {}
    }
    screen::leave();
    stop.orderly(local.stop()).await;
    Ok(())
}
