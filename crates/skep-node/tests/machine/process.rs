//! Programs in containers: how they start, what they read and print, and how they end.

use std::path::Path;
use std::time::{Duration, Instant};

use skep_node::container::{ContainerSpec, ExecSpec, Exit, StartError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::{bind, environment, eventually, further, output, printed, script, start, strings};

crate::trials![
    exit_codes_and_signals_are_told,
    everyone_who_waits_is_told,
    the_environment_is_the_one_given,
    the_program_stands_where_it_is_told_to,
    standard_input_is_read_to_its_end,
    without_standard_input_there_is_nothing_to_read,
    a_terminal_is_one,
    further_processes_join_the_container,
    a_further_process_on_a_terminal,
    termination_reaches_the_program,
    process_1_passes_signals_on,
    a_tree_with_daemons_is_killed_whole,
    daemons_end_with_the_program,
    dropping_kills,
    a_further_process_is_killed_alone,
    a_further_process_that_nobody_waits_for_is_killed,
    large_environments_fit,
    programs_that_cannot_start_say_why,
    mounts_that_cannot_be_made_say_why,
];

async fn exit_codes_and_signals_are_told() {
    for (text, code, signal) in [
        ("exit 0", 0, None),
        ("exit 3", 3, None),
        ("exit 255", 255, None),
        ("kill -KILL $$", 137, Some(9)),
        ("kill -SEGV $$", 139, Some(11)),
    ] {
        let container = start(&script(text)).await.unwrap();
        assert_eq!(container.wait().await, Exit { code, signal }, "{text}");
    }
}

async fn everyone_who_waits_is_told() {
    let container = start(&script("sleep 0.2; exit 7")).await.unwrap();
    let (one, other) = tokio::join!(container.wait(), container.wait());
    assert_eq!((one.code, other.code, container.wait().await.code), (7, 7, 7));
}

async fn the_environment_is_the_one_given() {
    let spec = ContainerSpec {
        argv: strings(&["env"]),
        env: vec![("A".into(), "1".into()), ("B".into(), "two words".into()), ("A".into(), "last".into())],
        ..ContainerSpec::default()
    };
    assert_eq!(printed(&spec).await, "A=last\nB=two words\n");
}

async fn the_program_stands_where_it_is_told_to() {
    let spec = ContainerSpec {
        working_dir: Some("/usr/bin".into()),
        hostname: Some("pod-name".into()),
        ..script("pwd; cat /proc/sys/kernel/hostname; ls -l /proc/self/fd | grep -c ' -> '")
    };
    // Input, output, errors, and the folder that is listed.
    assert_eq!(printed(&spec).await, "/usr/bin\npod-name\n4\n");
    assert_eq!(printed(&script("pwd")).await, "/\n");
}

async fn standard_input_is_read_to_its_end() {
    let spec = ContainerSpec { stdin: true, ..script("cat; echo end") };
    let mut container = start(&spec).await.unwrap();
    let mut stdin = container.take_stdin().unwrap();
    assert!(container.take_stdin().is_none());
    stdin.write_all(b"one\n").await.unwrap();
    let mut lines = BufReader::new(container.take_stdout().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "one");
    stdin.write_all(b"two").await.unwrap();
    drop(stdin);
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "twoend");
    assert_eq!(container.wait().await.code, 0);
}

async fn without_standard_input_there_is_nothing_to_read() {
    let mut container = start(&script("cat; echo end >&2")).await.unwrap();
    assert!(container.take_stdin().is_none());
    assert_eq!(output(&mut container).await.0, "end\n");
}

async fn a_terminal_is_one() {
    let spec = ContainerSpec {
        tty: true,
        ..script("test -t 0 && test -t 1 && tty && read line && stty size && echo got $line")
    };
    let container = start(&spec).await.unwrap();
    let mut terminal = container.terminal().unwrap();
    terminal.resize(101, 33).unwrap();
    terminal.write_all(b"typed\n").await.unwrap();
    let mut text = String::new();
    terminal.read_to_string(&mut text).await.unwrap();
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty() && *line != "typed").collect();
    assert_eq!(lines, ["/dev/pts/0", "33 101", "got typed"], "{text}");
    assert_eq!(container.wait().await.code, 0);
}

async fn further_processes_join_the_container() {
    let volume = tempfile::tempdir().unwrap();
    let spec = ContainerSpec {
        mounts: vec![bind(volume.path(), "/data")],
        hostname: Some("joined".into()),
        working_dir: Some("/data".into()),
        ..script("echo main > /data/word; sleep 1000")
    };
    let container = start(&spec).await.unwrap();
    eventually("the first process writing", || volume.path().join("word").exists()).await;
    let text = "cat word; cat /proc/sys/kernel/hostname; cat /proc/*/cmdline | tr '\\0' ' ' | grep -c 'sleep 1000'; echo error >&2; exit 4";
    let mut process = container.exec(&further(text)).await.unwrap();
    let (text, exit) = output(&mut process).await;
    assert_eq!(text, "main\njoined\n1\nerror\n");
    assert_eq!(exit, Exit { code: 4, signal: None });

    let mut cat = container.exec(&ExecSpec { stdin: true, ..further("cat") }).await.unwrap();
    cat.take_stdin().unwrap().write_all(b"through").await.unwrap();
    assert_eq!(output(&mut cat).await.0, "through");

    let missing = ExecSpec { argv: strings(&["no-such-program"]), ..ExecSpec::default() };
    assert!(matches!(container.exec(&missing).await, Err(StartError::ProgramNotFound { .. })));
    container.kill();
    assert_eq!(container.wait().await.signal, Some(9));
    assert_eq!(container.exec(&further("true")).await.unwrap_err(), StartError::Gone);
}

async fn a_further_process_on_a_terminal() {
    let container = start(&script("sleep 1000")).await.unwrap();
    let process = container.exec(&ExecSpec { tty: true, ..further("tty; exit 5") }).await.unwrap();
    let mut text = String::new();
    process.terminal().unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "/dev/pts/0\r\n");
    assert_eq!(process.wait().await.code, 5);
}

async fn termination_reaches_the_program() {
    let mut container =
        start(&script("trap 'echo asked; exit 9' TERM; echo ready; while :; do sleep 0.05; done")).await.unwrap();
    let mut lines = BufReader::new(container.take_stdout().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "ready");
    container.terminate();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "asked");
    assert_eq!(container.wait().await, Exit { code: 9, signal: None });

    let container = start(&script("sleep 1000")).await.unwrap();
    container.terminate();
    assert_eq!(container.wait().await, Exit { code: 143, signal: Some(15) });
}

async fn process_1_passes_signals_on() {
    let container = start(&script("sleep 1000")).await.unwrap();
    container.exec(&further("kill -TERM 1")).await.unwrap().wait().await;
    assert_eq!(container.wait().await, Exit { code: 143, signal: Some(15) });
}

/// A script that starts daemons which leave their session and ignore signals, and tells when they run.
fn with_daemons(mark: &str, then: &str) -> String {
    format!(
        "trap '' TERM HUP
         setsid sh -c \"trap '' TERM; sleep {mark}\" &
         (setsid setsid sleep {mark} &)
         while test $(cat /proc/*/cmdline | tr '\\0' ' ' | grep -o 'sleep {mark}' | wc -l) -lt 3; do sleep 0.01; done
         echo ready; {then}"
    )
}

fn running(mark: &str) -> usize {
    let lines = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = std::fs::read(entry.unwrap().path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.starts_with("sleep ") && line.contains(mark)).count()
}

async fn a_tree_with_daemons_is_killed_whole() {
    let mark = "11101.5";
    let mut container = start(&script(&with_daemons(mark, "sleep 11101.5"))).await.unwrap();
    let mut lines = BufReader::new(container.take_stdout().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "ready");
    container.terminate();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(running(mark) >= 2, "they ignore being asked");
    container.kill();
    assert_eq!(container.wait().await, Exit { code: 137, signal: Some(9) });
    assert_eq!(running(mark), 0);
}

async fn daemons_end_with_the_program() {
    let mark = "11102.5";
    let container = start(&script(&with_daemons(mark, "exit 6"))).await.unwrap();
    assert_eq!(container.wait().await.code, 6);
    assert_eq!(running(mark), 0);
}

async fn dropping_kills() {
    let mark = "11103.5";
    let mut container = start(&script(&with_daemons(mark, "sleep 11103.5"))).await.unwrap();
    let mut stdout = container.take_stdout().unwrap();
    assert_eq!(stdout.read_u8().await.unwrap(), b'r');
    drop(container);
    eventually("the end of a container that was dropped", || running(mark) == 0).await;
}

async fn a_further_process_is_killed_alone() {
    let container = start(&script("sleep 11104.5")).await.unwrap();
    let process = container.exec(&further("sleep 11105.5 & sleep 11105.5")).await.unwrap();
    eventually("the start of the further process", || running("11105.5") == 2).await;
    process.kill();
    assert_eq!(process.wait().await.signal, Some(9));
    assert_eq!(running("11104.5"), 1);
    let other = container.exec(&further("sleep 11106.5")).await.unwrap();
    drop(other);
    eventually("the end of a further process that was dropped", || running("11106.5") == 0).await;
    assert_eq!(running("11104.5"), 1);
}

async fn a_further_process_that_nobody_waits_for_is_killed() {
    let container = start(&script("sleep 1000")).await.unwrap();
    for microseconds in (0..1000).step_by(50) {
        let spec = further("sleep 11107.5");
        let cancelled = tokio::time::timeout(Duration::from_micros(microseconds), container.exec(&spec));
        drop(cancelled.await);
    }
    // Orders are obeyed one after the other, so all of those above have been.
    container.exec(&further("true")).await.unwrap().wait().await;
    eventually("the end of processes that nobody waits for", || running("11107.5") == 0).await;
}

async fn large_environments_fit() {
    let mut spec = script("echo ${#A} ${#J}");
    spec.env.extend(('A'..='J').map(|name| (name.to_string(), "x".repeat(100_000))));
    assert_eq!(printed(&spec).await, "100000 100000\n");
}

async fn programs_that_cannot_start_say_why() {
    let started = Instant::now();
    let try_to_run = |program: &str| {
        let spec = ContainerSpec { argv: strings(&[program]), env: environment(), ..ContainerSpec::default() };
        async move { start(&spec).await.unwrap_err() }
    };
    let error = try_to_run("no-such-program").await;
    assert_eq!(error.to_string(), "exec: \"no-such-program\": executable file not found in $PATH");
    let error = try_to_run("/no/such/program").await;
    assert_eq!(error.to_string(), "exec: \"/no/such/program\": stat /no/such/program: no such file or directory");
    let error = try_to_run("/etc/passwd").await;
    assert!(matches!(&error, StartError::NotExecutable { program, .. } if program == "/etc/passwd"), "{error}");
    assert!(matches!(try_to_run("/usr").await, StartError::NotExecutable { .. }));
    assert_eq!(try_to_run("").await, StartError::NoProgram);
    assert_eq!(start(&ContainerSpec::default()).await.unwrap_err(), StartError::NoProgram);

    for lost in ["/etc/passwd", "/etc/passwd/below", "/proc/no-such-folder", "no/such/folder"] {
        let spec = ContainerSpec { working_dir: Some(lost.into()), ..script("true") };
        let error = start(&spec).await.unwrap_err();
        assert!(matches!(&error, StartError::WorkingDir { path, .. } if path == Path::new(lost)), "{error}");
    }

    let long = ContainerSpec { hostname: Some("x".repeat(100)), ..script("true") };
    let error = start(&long).await.unwrap_err();
    assert!(matches!(&error, StartError::Kernel { step, .. } if step == "set the host name"), "{error}");
    assert!(started.elapsed() < crate::support::PATIENCE);
}

async fn mounts_that_cannot_be_made_say_why() {
    let volume = tempfile::tempdir().unwrap();
    for (source, target) in [
        (Path::new("/no/such/source"), "/data"),
        (volume.path(), "/etc/passwd"),
        (Path::new("/etc/passwd"), "/usr"),
        (volume.path(), "/etc/passwd/below"),
    ] {
        let spec = ContainerSpec { mounts: vec![bind(source, target)], ..script("true") };
        let error = start(&spec).await.unwrap_err();
        let StartError::Mount { source_path, target: told, .. } = &error else { panic!("{error}") };
        assert_eq!((source_path.as_path(), told.as_path()), (source, Path::new(target)));
    }
}
