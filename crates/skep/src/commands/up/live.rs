//! What `skep up` shows while it runs: a table on a terminal, a line for every change elsewhere.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::endpoint::{Endpoint, Followed, MOST_ASKED, Side, client_lines, endpoints};
use crate::output::Table;
use crate::screen::{self, Colour, Line};

/// Changes that come together are shown together.
const GATHER: Duration = Duration::from_millis(50);
/// How long to wait before a server that has not told its tools is asked again. That is twice as long each time, since it
/// may be none that speaks MCP.
const ASK_AGAIN: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// Shows endpoints as they come and go. Their tools are asked for from a side where they can be reached.
pub(super) async fn show(client: &Client, side: Side) -> anyhow::Result<Infallible> {
    let mut view = View { drawn: screen::is_drawable(), ..View::default() };
    let mut followed = Followed::new(client);
    let mut resized = signal(SignalKind::window_change())?;
    let mut asking = JoinSet::new();
    let mut next_look = Instant::now();
    loop {
        tokio::select! {
            () = followed.changed() => {}
            _ = resized.recv() => {}
            Some(Ok(answer)) = asking.join_next() => view.remember(answer),
            () = sleep_until(next_look) => {}
        }
        sleep(GATHER).await;
        let observed = endpoints(&followed.state());
        let room = MOST_ASKED.saturating_sub(asking.len());
        for endpoint in view.update(observed, Instant::now(), room) {
            asking.spawn(endpoint.ask(side));
        }
        next_look = view.next_look(Instant::now());
        view.show();
    }
}

/// Which endpoint, wherever it is: one that has moved is another.
type Key = (String, String, String, Option<String>);

/// What an endpoint has answered.
enum Answer {
    /// Nothing, so far.
    Asked(Asked),
    Told(Box<Endpoint>),
}

/// When somebody was asked, and how long the answer is waited for.
#[derive(Clone, Copy)]
struct Asked {
    at: Instant,
    wait: Duration,
}

impl Asked {
    fn again(self) -> Instant {
        self.at + self.wait
    }
}

#[derive(Default)]
struct View {
    /// Whether there is a table, rather than lines.
    drawn: bool,
    endpoints: Vec<Endpoint>,
    answers: HashMap<Key, Answer>,
    /// What was said last about each endpoint, where there is no table.
    said: HashMap<Key, String>,
    /// What was said last to paste into the settings of a client, where there is no table.
    pasted: Vec<String>,
}

fn key(endpoint: &Endpoint) -> Key {
    // Asking adds a path, so that the path is no part of who it is.
    let place = endpoint.local_url.as_deref().map(|url| url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/"));
    (endpoint.kind.clone(), endpoint.namespace.clone(), endpoint.name.clone(), place)
}

impl View {
    fn remember(&mut self, endpoint: Endpoint) {
        // One that wants to know who asks would only write down that nobody does.
        if endpoint.tools.is_some() || endpoint.is_guarded {
            self.answers.insert(key(&endpoint), Answer::Told(Box::new(endpoint)));
        }
    }

    /// Takes a new state, and returns whom to ask: at most `room` endpoints, the others have their turn later.
    fn update(&mut self, observed: Vec<Endpoint>, now: Instant, room: usize) -> Vec<Endpoint> {
        let mut ask = Vec::new();
        let mut answers = std::mem::take(&mut self.answers);
        self.endpoints.clear();
        for endpoint in observed {
            let key = key(&endpoint);
            let answer = answers.remove(&key).filter(|_| endpoint.ready);
            let shown = match answer {
                Some(Answer::Told(told)) => {
                    let shown = Endpoint { phase: endpoint.phase, message: endpoint.message, ..*told };
                    self.answers.insert(key, Answer::Told(Box::new(shown.clone())));
                    shown
                }
                Some(Answer::Asked(asked)) if now < asked.again() => {
                    self.answers.insert(key, Answer::Asked(asked));
                    endpoint
                }
                answer => {
                    if endpoint.ready && ask.len() < room {
                        let wait = match answer {
                            Some(Answer::Asked(asked)) => (asked.wait * 2).min(LONGEST_WAIT),
                            _ => ASK_AGAIN,
                        };
                        self.answers.insert(key, Answer::Asked(Asked { at: now, wait }));
                        ask.push(endpoint.clone());
                    }
                    endpoint
                }
            };
            self.endpoints.push(shown);
        }
        ask
    }

    /// When somebody has to be asked again.
    fn next_look(&self, now: Instant) -> Instant {
        let asked = self.answers.values().filter_map(|answer| match answer {
            Answer::Asked(asked) => Some(asked.again()),
            Answer::Told(_) => None,
        });
        asked.min().unwrap_or(now + Duration::from_hours(1))
    }

    fn show(&mut self) {
        if self.drawn {
            screen::draw(picture(&self.endpoints, screen::size()));
        } else {
            for line in self.news() {
                screen::say(&line);
            }
        }
    }

    /// A line for every endpoint about which there is something new to say.
    fn news(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let before = std::mem::take(&mut self.said);
        for endpoint in &self.endpoints {
            let key = key(endpoint);
            let place = endpoint.local_url.as_deref().unwrap_or("-");
            let name = endpoint.full_name();
            let line = match (endpoint.ready, &endpoint.message) {
                (true, _) => format!("ready    {name}  {place}"),
                (false, Some(message)) if endpoint.phase == "Failed" => format!("failed   {name}  {message}"),
                (false, _) => format!("waiting  {name}  {place}"),
            };
            let word = line.split(' ').next().map(str::to_owned).unwrap_or_default();
            let was = before.get(&key);
            // Nobody needs to hear that what has just been asked for is not there yet.
            if was.map_or(word != "waiting", |was| *was != word) {
                lines.push(line);
            }
            self.said.insert(key, word);
        }
        let paste = client_lines(&self.endpoints);
        if paste != self.pasted {
            lines.extend(paste.iter().cloned());
            self.pasted = paste;
        }
        lines
    }
}

/// Columns that give way, in this order, where the terminal is narrow.
const LESS: [&[&str]; 3] = [&[], &["TRANSPORT"], &["TRANSPORT", "TOOLS"]];
/// Those that give way when even names that are cut do not leave room for them.
const LEAST: &[&str] = &["TRANSPORT", "TOOLS", "PHASE"];

/// What a terminal of that many columns and rows shows.
fn picture(endpoints: &[Endpoint], (width, height): (usize, usize)) -> Vec<Line> {
    if endpoints.is_empty() {
        return vec![Line::new("no endpoints yet: skep apply -f FILE adds some").cut(width)];
    }
    let mut table = Table::new(["NAME", "TRANSPORT", "PHASE", "URL", "TOOLS"]);
    for endpoint in endpoints {
        let none = || "-".to_owned();
        table.row([
            if endpoint.namespace == "default" { endpoint.name.clone() } else { endpoint.full_name() },
            endpoint.transport.clone().unwrap_or_else(none),
            endpoint.phase.clone(),
            endpoint.local_url.clone().unwrap_or_else(none),
            endpoint.tools.as_ref().map_or_else(none, |tools| tools.len().to_string()),
        ]);
    }
    let fits = |table: &Table| table.lines().iter().all(|line| line.chars().count() <= width);
    let cut = |table: &Table| table.cut_first(width).filter(fits);
    let mut forms = LESS.iter().map(|less| table.without(less));
    let least = table.without(LEAST);
    let shown = forms.find(fits).or_else(|| cut(&table.without(LESS[LESS.len() - 1])));
    let rows = shown.or_else(|| cut(&least)).unwrap_or(least).lines();
    let paint = |(index, text): (usize, String)| {
        let line = Line::new(text).cut(width);
        match index.checked_sub(1).and_then(|index| endpoints.get(index)) {
            Some(endpoint) => line.colour(&format!(" {} ", endpoint.phase), colour(&endpoint.phase)),
            None => line,
        }
    };
    let mut lines: Vec<Line> = rows.into_iter().enumerate().map(paint).collect();
    for endpoint in endpoints {
        if let Some(message) = &endpoint.message {
            let message = message.lines().next().unwrap_or_default();
            lines.push(Line::new(format!("{}: {message}", endpoint.name)).cut(width));
        }
    }
    // The last row is where the cursor is.
    let room = height.saturating_sub(1);
    if lines.len() > room {
        lines.truncate(room.saturating_sub(1));
        lines.push(Line::new("… skep status shows all").cut(width));
    }
    let paste = client_lines(endpoints);
    if !paste.is_empty() && lines.len() + paste.len() <= room && paste.iter().all(|line| line.chars().count() <= width)
    {
        lines.extend(paste.into_iter().map(Line::new));
    } else if !paste.is_empty() && lines.len() < room {
        lines.push(Line::new("skep status -o client: for MCP clients").cut(width));
    }
    lines
}

fn colour(phase: &str) -> Colour {
    match phase {
        "Ready" => Colour::Green,
        "Failed" => Colour::Red,
        _ => Colour::Yellow,
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
