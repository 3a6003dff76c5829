//! Commands that run pods do so in namespaces of their own where the kernel has them.

use std::ffi::OsString;

use anyhow::Context as _;
use skep_node::isolation::{self, Isolation, Refusal};

use crate::cli::IsolationChoice;
use crate::data_folder::DataFolder;
use crate::hint::Hinted;

/// Does the work of this command on a data folder: inside, by running the whole command again there, or outside where that
/// is chosen or nothing else is possible. The process outside occupies the folder, as everybody sees that one.
pub(crate) fn run<F>(
    choice: IsolationChoice,
    data: &DataFolder,
    work: impl FnOnce(Isolation) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if isolation::is_inside() {
        return runtime.block_on(work(Isolation::Namespaces));
    }
    let _occupation = data.occupy()?;
    match choice {
        IsolationChoice::None => runtime.block_on(work(Isolation::None)),
        choice => match (isolation::probe(), choice) {
            (Ok(()), _) => runtime.block_on(outside()),
            (Err(refusal), IsolationChoice::Namespaces) => Err(refused(&refusal).into()),
            (Err(refusal), _) => {
                eprintln!("warning: {refusal}");
                for line in refusal.remedy.lines() {
                    eprintln!("hint: {line}");
                }
                eprintln!("going on with --isolation=none: pods share this machine's network and files");
                runtime.block_on(work(Isolation::None))
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
    match exit.signal {
        None if exit.code == 0 => Ok(()),
        // The command inside has told what was wrong.
        None => std::process::exit(exit.code),
        Some(signal) => Err(killed(signal, exit.code).into()),
    }
}

/// Nobody inside was left to tell it.
fn killed(signal: i32, code: i32) -> Hinted {
    Hinted::new(format!("the process inside of the namespaces was killed by signal {signal}, and all pods with it"))
        .hint("when nobody has done that on purpose, the machine may have run out of memory: dmesg tells")
        .hint("nothing that was applied is lost: start again")
        .exit_code(u8::try_from(code).unwrap_or(u8::MAX))
}
