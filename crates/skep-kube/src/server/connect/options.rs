//! What a conversation is to be, in the names of the API and in those of a node.

use super::Part;
use crate::server::options::pairs;
use crate::status::ApiError;

/// The options of a conversation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) container: Option<String>,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
    command: Vec<String>,
    ports: Vec<String>,
}

impl Wanted {
    pub(super) fn read(part: Part, query: &str) -> Result<Self, ApiError> {
        let mut wanted = Self::default();
        for (name, value) in pairs(query) {
            match (name.as_str(), part) {
                ("ports", Part::PortForward) => {
                    value.parse::<i32>().map_err(|_| not_a_number(&value))?;
                    wanted.ports.push(value);
                }
                (_, Part::PortForward) => {}
                ("container", _) => wanted.container = Some(value),
                ("command", Part::Exec) => wanted.command.push(value),
                ("stdin", _) => wanted.stdin = is_true(&value),
                ("stdout", _) => wanted.stdout = is_true(&value),
                ("stderr", _) => wanted.stderr = is_true(&value),
                ("tty", _) => wanted.tty = is_true(&value),
                _ => {}
            }
        }
        Ok(wanted)
    }

    /// The same for a node.
    pub(super) fn parameters(self) -> Vec<(&'static str, String)> {
        let Self { container: _, stdin, stdout, stderr, tty, command, ports } = self;
        let mut parameters: Vec<_> = command.into_iter().map(|word| ("command", word)).collect();
        for (name, is_set) in [("error", stderr), ("input", stdin), ("output", stdout), ("tty", tty)] {
            parameters.extend(is_set.then(|| (name, "1".to_owned())));
        }
        if !ports.is_empty() {
            parameters.push(("port", ports.join(",")));
        }
        parameters
    }
}

/// A flag is set unless its value denies it.
pub(super) fn is_true(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "false" | "0")
}

pub(super) fn not_a_number(value: &str) -> ApiError {
    ApiError::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_knows_the_streams_by_other_names() {
        let wanted = Wanted::read(Part::Exec, "command=a&command=b+c&stdin=true&stdout=true&tty=false&container=x");
        let wanted = wanted.unwrap();
        assert_eq!(wanted.container.as_deref(), Some("x"));
        let parameters = wanted.parameters();
        let texts: Vec<(&str, &str)> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(texts, [("command", "a"), ("command", "b c"), ("input", "1"), ("output", "1")]);
    }

    #[test]
    fn ports_are_numbers() {
        let wanted = Wanted::read(Part::PortForward, "ports=1&ports=2&container=x").unwrap();
        assert_eq!(wanted.parameters(), [("port", "1,2".to_owned())]);
        assert!(Wanted::read(Part::PortForward, "ports=http").is_err());
    }
}
