//! `skep up` on a terminal.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::here::{Here, LIMIT, echo};
use skep_conformance::ports::free_port;

/// A terminal with a program on it.
struct Terminal {
    master: Arc<OwnedFd>,
    child: Child,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    fn start(columns: u16, mut command: Command) -> Self {
        let master = Arc::new(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
        grantpt(&*master).unwrap();
        unlockpt(&*master).unwrap();
        let name = ptsname(&*master, Vec::new()).unwrap();
        resize(&master, columns);
        let slave = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        command.stdin(slave()).stdout(slave()).stderr(slave());
        let child = command.spawn().unwrap();
        // The command keeps the terminal open as long as it exists.
        drop(command);
        let shown = Arc::new(Mutex::new(String::new()));
        let (reader, text) = (master.clone(), shown.clone());
        std::thread::spawn(move || {
            let mut file = File::from(reader.try_clone().unwrap());
            let mut bytes = [0; 4096];
            loop {
                match file.read(&mut bytes) {
                    Ok(0) => return,
                    Ok(count) => text.lock().push_str(&String::from_utf8_lossy(&bytes[..count])),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // The last program has let go of the terminal.
                    Err(_) => return,
                }
            }
        });
        Self { master, child, shown }
    }

    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let text = self.shown.lock().clone();
            if holds(&text) {
                return text;
            }
            assert!(begun.elapsed() < LIMIT, "not so: {what}\n{text:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: &OwnedFd, columns: u16) {
    tcsetwinsize(terminal, Winsize { ws_row: 30, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

/// What is drawn last: everything after the last time that the place was cleared.
fn drawing(text: &str) -> Vec<&str> {
    text.rsplit("\x1b[J").next().unwrap().lines().map(|line| line.trim_end_matches('\r')).collect()
}

#[test]
fn a_table_is_drawn_in_place() {
    let here = Here::new();
    let port = free_port().unwrap();
    let manifest = here.manifest("echo.json", &echo("echo", port));
    let mut command = here.command(&["up", "--listen", "127.0.0.1:0", "-f", &manifest]);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut terminal = Terminal::start(80, command);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let row = |text: &str| -> Vec<String> {
        let found = drawing(text).into_iter().find(|line| line.starts_with("echo ")).unwrap_or_default();
        found.split_whitespace().map(str::to_owned).collect()
    };
    let text = terminal.until("the table tells the tools", |text| {
        let row = row(text);
        row.len() == 5 && row[4].parse::<usize>().is_ok() && drawing(text).iter().any(|line| line.contains(&url))
    });
    assert_eq!(row(&text)[1..4], ["streamable-http", "Ready", url.as_str()]);
    assert!(text.contains("export KUBECONFIG=") && drawing(&text).contains(&"For MCP clients:"), "{text:?}");
    assert!(!text.contains("\x1b[0m"), "colours in spite of NO_COLOR: {text:?}");

    resize(&terminal.master, 40);
    terminal.signal("-WINCH");
    let text = terminal.until("the table is narrow", |text| row(text).len() == 2);
    assert!(drawing(&text).iter().all(|line| line.chars().count() <= 40), "{:?}", drawing(&text));

    terminal.signal("-INT");
    let text = terminal.until("it says that it stops", |text| text.contains("stopping: pods get up to 10 s to end"));
    let stopped = text.rfind("stopping").unwrap();
    assert!(!text[stopped..].contains("\x1b["), "the table is left where it is: {text:?}");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_terminal_that_cannot_draw_gets_lines() {
    let here = Here::new();
    let port = free_port().unwrap();
    let manifest = here.manifest("echo.json", &echo("echo", port));
    let mut command = here.command(&["up", "--listen", "127.0.0.1:0", "-f", &manifest]);
    command.env("TERM", "dumb");
    let terminal = Terminal::start(80, command);
    let line = format!("ready    default/echo  http://127.0.0.1:{port}");
    let text = terminal.until("a line says that it is ready", |text| text.contains(&line));
    assert!(!text.contains('\x1b'), "{text:?}");
}
