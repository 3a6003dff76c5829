//! What the test program does when a test starts it again.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, ExitCode};

use crate::{death, plain, support};

/// Names the role.
pub const VARIABLE: &str = "SKEP_NODE_TEST_ROLE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Answers every connection to its port with a word.
    Serve,
    /// Connects to an address and prints the answer.
    Connect,
    /// Outside of namespaces, runs itself inside; there, starts containers and a command outside.
    Victim,
    /// Starts fifty containers at once and looks for what they leave behind.
    Fifty,
    /// Makes a folder in the shared memory and stays until its input ends.
    Memory,
}

const NAMES: [(&str, Role); 5] = [
    ("serve", Role::Serve),
    ("connect", Role::Connect),
    ("victim", Role::Victim),
    ("fifty", Role::Fifty),
    ("memory", Role::Memory),
];

pub fn of_this_process() -> Option<Role> {
    let name = std::env::var(VARIABLE).ok()?;
    NAMES.iter().find_map(|(known, role)| (*known == name).then_some(*role))
}

impl Role {
    pub fn name(self) -> &'static str {
        NAMES.iter().find_map(|(name, role)| (*role == self).then_some(*name)).unwrap()
    }

    /// The variable that gives the role to a process.
    pub fn env(self) -> (String, String) {
        (VARIABLE.to_owned(), self.name().to_owned())
    }

    /// This program again, in the role.
    pub fn command(self) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(VARIABLE, self.name());
        command
    }

    pub fn play(self) -> ExitCode {
        match self {
            Self::Serve => serve(),
            Self::Connect => connect(),
            Self::Victim => support::runtime().block_on(death::victim()),
            Self::Fifty => support::runtime().block_on(death::fifty()),
            Self::Memory => plain::memory(),
        }
    }
}

fn serve() -> ExitCode {
    let [port, word] = arguments();
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port.parse().unwrap())).unwrap();
    println!("listening");
    for connection in listener.incoming() {
        connection.unwrap().write_all(word.as_bytes()).unwrap();
    }
    ExitCode::SUCCESS
}

fn connect() -> ExitCode {
    let [address] = arguments();
    let mut answer = String::new();
    TcpStream::connect(address).unwrap().read_to_string(&mut answer).unwrap();
    print!("{answer}");
    ExitCode::SUCCESS
}

fn arguments<const COUNT: usize>() -> [String; COUNT] {
    std::env::args().skip(1).collect::<Vec<_>>().try_into().unwrap()
}
