//! Whoever is killed, nothing is left behind.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, ExitCode, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use skep_node::broker::{Broker, HostCommand};
use skep_node::container::Runtime;
use skep_node::isolation::{self, Isolation};
use skep_node::network::{Network, NetworkConfig};

use crate::role::Role;
use crate::support::{eventually, script, strings};

crate::trials![
    killing_the_broker_leaves_nothing,
    killing_init_leaves_nothing,
    killing_the_inner_process_leaves_nothing,
    killing_the_helper_of_a_container_ends_only_that,
    killing_while_everything_starts_leaves_nothing,
    the_inner_process_is_asked_to_stop_and_gives_the_exit_code,
    fifty_containers_leave_nothing,
];

/// The role of those who are killed.
pub async fn victim() -> ExitCode {
    if isolation::is_inside() {
        return inner().await;
    }
    let exit = isolation::run_inside(Vec::new()).await.unwrap();
    ExitCode::from(u8::try_from(exit.code).unwrap())
}

/// Inside: two containers with daemons, on a network, and a command outside.
async fn inner() -> ExitCode {
    let config =
        NetworkConfig { pod_range: "10.1.0.0/16".parse().unwrap(), service_range: "10.2.0.0/16".parse().unwrap() };
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    let network = Network::start(Isolation::Namespaces, config).await.unwrap();
    let daemons = "(setsid setsid sleep 22201 &); setsid sleep 22201 & sleep 22201";
    let mut containers = Vec::new();
    for _ in 0..2 {
        let pod = network.add_pod().await.unwrap();
        let container = Runtime::new(Isolation::Namespaces).start(&script(daemons), Some(&pod)).await.unwrap();
        containers.push((container, pod));
    }
    let command = HostCommand { argv: strings(&["sh", "-c", daemons]), ..HostCommand::default() };
    let _outside = Broker::connect().unwrap().run(&command).await.unwrap();
    println!("ready");
    tokio::select! {
        exit = containers[0].0.wait() => println!("first ended with {}", exit.code),
        exit = containers[1].0.wait() => println!("second ended with {}", exit.code),
        _ = terminated.recv() => println!("asked to stop"),
    }
    ExitCode::from(42)
}

/// A process, with the moment it started: numbers come again.
type Process = (i32, u64);

struct Victims {
    outer: Child,
    lines: Lines<BufReader<ChildStdout>>,
    mounts: usize,
}

impl Victims {
    fn start() -> Self {
        let mounts = mounts();
        let mut outer =
            Role::Victim.command().env_remove("SKEP_BROKER_CHANNEL").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(outer.stdout.take().unwrap()).lines();
        Self { outer, lines, mounts }
    }

    async fn started() -> Self {
        let mut victims = Self::start();
        assert_eq!(victims.line(), "ready");
        let count = || tree(victims.pid()).iter().filter(|process| command_line(process.0).contains("22201")).count();
        eventually("the start of nine sleepers", || count() >= 9).await;
        victims
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.outer.id()).unwrap()
    }

    /// The helper around the inner process, and that process.
    fn init_and_inner(&self) -> (i32, i32) {
        let inner_of = |init| children(init).into_iter().find(|pid| command_line(*pid).starts_with("/proc/self/exe"));
        children(self.pid()).into_iter().find_map(|init| Some((init, inner_of(init)?))).unwrap()
    }

    async fn killed(mut self, pid: i32) -> i32 {
        let all = tree(self.pid());
        kill(pid);
        let code = self.end().await;
        eventually("the end of all processes", || all.iter().all(|process| !lives(*process))).await;
        code
    }

    /// Waits for the outer process, and checks that nothing is left of what it made.
    async fn end(&mut self) -> i32 {
        let mut status = None;
        eventually("the end of the outer process", || {
            status = self.outer.try_wait().unwrap();
            status.is_some()
        })
        .await;
        assert_eq!(mounts(), self.mounts);
        assert!(links().iter().all(|link| !link.starts_with("pod0a01")), "a cable of the victims is left");
        status.unwrap().code().unwrap_or(137)
    }
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

fn command_line(pid: i32) -> String {
    fs::read(format!("/proc/{pid}/cmdline"))
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .unwrap_or_default()
}

/// The parent and the start of a process that is not a zombie.
fn status(pid: i32) -> Option<(i32, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<_> = text.rsplit_once(") ")?.1.split(' ').collect();
    (fields[0] != "Z").then(|| (fields[1].parse().unwrap(), fields[19].parse().unwrap()))
}

fn lives((pid, start): Process) -> bool {
    status(pid).is_some_and(|(_, now)| now == start)
}

fn parents() -> HashMap<i32, (i32, u64)> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, status(pid)?))).collect()
}

fn children(of: i32) -> Vec<i32> {
    parents().into_iter().filter_map(|(pid, (parent, _))| (parent == of).then_some(pid)).collect()
}

/// A process and all that it started.
fn tree(root: i32) -> Vec<Process> {
    let parents = parents();
    let mut found: Vec<i32> = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter_map(|(pid, (of, _))| (*of == parent).then_some(*pid)));
        next += 1;
    }
    found.into_iter().filter_map(|pid| Some((pid, parents.get(&pid)?.1))).collect()
}

fn mounts() -> usize {
    fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count()
}

fn links() -> Vec<String> {
    let links = fs::read_dir("/proc/sys/net/ipv4/conf").unwrap();
    links.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

async fn killing_the_broker_leaves_nothing() {
    let victims = Victims::started().await;
    let pid = victims.pid();
    victims.killed(pid).await;
}

async fn killing_init_leaves_nothing() {
    let victims = Victims::started().await;
    let (init, _) = victims.init_and_inner();
    assert_eq!(victims.killed(init).await, 137);
}

async fn killing_the_inner_process_leaves_nothing() {
    let victims = Victims::started().await;
    let (_, inner) = victims.init_and_inner();
    assert_eq!(victims.killed(inner).await, 137);
}

async fn killing_the_helper_of_a_container_ends_only_that() {
    let mut victims = Victims::started().await;
    let (_, inner) = victims.init_and_inner();
    let helpers = children(inner);
    assert_eq!(helpers.len(), 2);
    let all = tree(victims.pid());
    let of_container = tree(helpers[0]);
    assert!(of_container.len() >= 4);
    kill(helpers[0]);
    assert!(victims.line().ends_with("ended with 137"));
    assert!(of_container.iter().all(|process| !lives(*process)));
    assert_eq!(victims.end().await, 42);
    eventually("the end of all processes", || all.iter().all(|process| !lives(*process))).await;
}

async fn killing_while_everything_starts_leaves_nothing() {
    for milliseconds in [1, 5, 10, 20, 40, 60, 80, 120, 160, 250] {
        let victims = Victims::start();
        tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
        let pid = victims.pid();
        victims.killed(pid).await;
    }
}

async fn the_inner_process_is_asked_to_stop_and_gives_the_exit_code() {
    let mut victims = Victims::started().await;
    let all = tree(victims.pid());
    kill_process(Pid::from_raw(victims.pid()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(victims.line(), "asked to stop");
    assert_eq!(victims.end().await, 42);
    eventually("the end of all processes", || all.iter().all(|process| !lives(*process))).await;
}

/// The role that starts fifty containers.
pub async fn fifty() -> ExitCode {
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let own = i32::try_from(std::process::id()).unwrap();
    let runtime = Runtime::new(Isolation::Namespaces);
    let round = || async {
        let spec = script("sleep 33301 & sleep 33301");
        let containers = futures::future::try_join_all((0..50).map(|_| runtime.start(&spec, None))).await.unwrap();
        assert_eq!(children(own).len(), 50);
        for (index, container) in containers.iter().enumerate() {
            if index % 2 == 0 { container.kill() } else { container.terminate() }
        }
        for container in &containers {
            container.wait().await;
        }
    };
    let before = descriptors();
    for _ in 0..3 {
        round().await;
        assert_eq!(tree(own).len(), 1);
        eventually("the end of all descriptors", || descriptors() == before).await;
    }
    ExitCode::SUCCESS
}

async fn fifty_containers_leave_nothing() {
    let output = Role::Fifty.command().output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
