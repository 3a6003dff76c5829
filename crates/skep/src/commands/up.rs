//! `skep up`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use skep_node::image::ImageMap;
use skep_node::isolation::{self, Isolation, Refusal};

use crate::cli::{IsolationChoice, UpArgs};
use crate::hint::Hinted;
use crate::local::{self, Local, Manifest};
use crate::stop;

/// What to start, resolved.
#[derive(Debug)]
pub struct Settings {
    data: PathBuf,
    listen: SocketAddr,
    isolation: IsolationChoice,
    manifests: Vec<Manifest>,
    demo: bool,
    image_map: ImageMap,
}

impl TryFrom<UpArgs> for Settings {
    type Error = anyhow::Error;

    fn try_from(args: UpArgs) -> anyhow::Result<Self> {
        if !args.listen.ip().is_loopback() {
            return Err(Hinted::new(format!("{} is not a loopback address", args.listen.ip()))
                .hint("skep up serves this machine alone; use 127.0.0.1, or run the operator in a cluster")
                .into());
        }
        let image_map = args.image_map.as_deref().map(ImageMap::read).transpose()?.unwrap_or_default();
        Ok(Self {
            data: args.data_dir.map_or_else(default_folder, Ok)?,
            listen: args.listen,
            isolation: args.isolation,
            demo: args.filename.is_empty() && !args.no_demo,
            manifests: local::read(&args.filename)?,
            image_map,
        })
    }
}

/// The folder for data that belongs to the user.
fn default_folder() -> anyhow::Result<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || of("HOME").map(|home| home.join(".local/share"));
    let base = of("XDG_DATA_HOME").or_else(home);
    base.map(|base| base.join("skep")).ok_or_else(|| {
        let hinted = Hinted::new("there is no home folder to keep data in");
        hinted.hint("name a folder with --data-dir").into()
    })
}

pub(super) fn run(settings: Settings) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if isolation::is_inside() {
        return runtime.block_on(serve(settings, Isolation::Namespaces));
    }
    match settings.isolation {
        IsolationChoice::None => runtime.block_on(serve(settings, Isolation::None)),
        choice => match (isolation::probe(), choice) {
            (Ok(()), _) => runtime.block_on(outside()),
            (Err(refusal), IsolationChoice::Namespaces) => Err(refused(&refusal).into()),
            (Err(refusal), _) => {
                eprintln!("warning: {refusal}");
                for line in refusal.remedy.lines() {
                    eprintln!("hint: {line}");
                }
                eprintln!("going on with --isolation=none: pods share this machine's network and files");
                runtime.block_on(serve(settings, Isolation::None))
            }
        },
    }
}

fn refused(refusal: &Refusal) -> Hinted {
    let hinted = Hinted::new(refusal.to_string());
    refusal.remedy.lines().fold(hinted, Hinted::hint)
}

/// Waits outside of the namespaces for this very command, which runs inside.
async fn outside() -> anyhow::Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let exit = isolation::run_inside(arguments).await.context("cannot run in namespaces")?;
    // The command inside has told what was wrong.
    if exit.code == 0 { Ok(()) } else { std::process::exit(exit.code) }
}

async fn serve(settings: Settings, isolation: Isolation) -> anyhow::Result<()> {
    let stopped = stop::asked()?;
    let Settings { data, listen, manifests, demo, image_map, isolation: _ } = settings;
    let local = Local::start(local::Settings { data, listen, isolation, manifests, demo, image_map });
    tokio::pin!(stopped);
    let local = tokio::select! {
        local = local => local?,
        () = &mut stopped => return Ok(()),
    };
    eprintln!("serving https://{}; export KUBECONFIG={}", local.address, local.kubeconfig.display());
    let told = local.endpoints().follow(|endpoint, ready| {
        eprintln!("{}  {endpoint}", if ready { "ready  " } else { "waiting" });
    });
    tokio::select! {
        () = told => {}
        () = stopped => {}
    }
    eprintln!("stopping: pods get up to 10 s to end");
    local.stop().await;
    Ok(())
}
