//! `/healthz`, `/livez` and `/readyz`: whether the server can do its work, check by check.

use axum::body::Body;
use http::{Response, StatusCode};

use super::State;
use super::documents::respond;
use super::options::pairs;

/// The checks, by the names that the real server gives to those like them. The third says whether only readiness asks.
const CHECKS: [(&str, Check, bool); 3] =
    [("ping", |_| Ok(()), false), ("etcd", can_write, false), ("etcd-readiness", can_write, true)];

type Check = fn(&State) -> Result<(), String>;

fn can_write(state: &State) -> Result<(), String> {
    state.store.health().map_err(|error| error.to_string())
}

/// The answer to one of the three questions, or to one check of it. None: there is no such check.
pub fn answer(state: &State, question: &str, check: Option<&str>, query: &str) -> Option<Response<Body>> {
    let asked = CHECKS.iter().filter(|(_, _, readiness)| !readiness || question == "readyz");
    if let Some(name) = check {
        let (_, check, _) = asked.into_iter().find(|(known, ..)| *known == name)?;
        return Some(match check(state) {
            Ok(()) => text(StatusCode::OK, "ok"),
            Err(cause) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {cause}\n")),
        });
    }
    let is_left_out = |name: &str| pairs(query).any(|(option, value)| option == "exclude" && value == name);
    let (mut lines, mut is_well) = (String::new(), true);
    for (name, check, _) in asked {
        // What exactly is wrong is for those who may ask for the check itself.
        let line = match check(state) {
            _ if is_left_out(name) => format!("[+]{name} excluded: ok\n"),
            Ok(()) => format!("[+]{name} ok\n"),
            Err(_) => {
                is_well = false;
                format!("[-]{name} failed: reason withheld\n")
            }
        };
        lines.push_str(&line);
    }
    let is_verbose = pairs(query).any(|(option, _)| option == "verbose");
    Some(match (is_well, is_verbose) {
        (true, false) => text(StatusCode::OK, "ok"),
        (true, true) => text(StatusCode::OK, format!("{lines}{question} check passed\n")),
        (false, _) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{question} check failed\n")),
    })
}

/// The questions that can be asked, and each check of them.
pub fn paths() -> impl Iterator<Item = String> {
    ["healthz", "livez", "readyz"].into_iter().flat_map(|question| {
        let asked = CHECKS.iter().filter(move |(_, _, readiness)| !readiness || question == "readyz");
        let checks = asked.map(move |(name, ..)| format!("/{question}/{name}"));
        checks.chain([format!("/{question}")])
    })
}

fn text(status: StatusCode, body: impl Into<Body>) -> Response<Body> {
    respond(status, "text/plain; charset=utf-8", body)
}
