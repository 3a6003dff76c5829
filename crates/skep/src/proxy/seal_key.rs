//! What `requestState` is sealed with, where somebody gives the same secret to all replicas of a proxy.

use std::fs;

use skep_api::names::env::runner;
use skep_proxy::SealKey;

use super::Variables;
use super::mounted::mounted;
use crate::hint::Hinted;

/// The key of the environment, if it has one. A secret that cannot be used is an error: replicas that go by keys of their
/// own would not understand each other.
pub(super) fn find(variables: Variables<'_>) -> Result<Option<SealKey>, Hinted> {
    let told = |name: &str| variables(name).filter(|text| !text.is_empty());
    let (name, secret) = match (told(runner::REQUEST_STATE_KEY), told(runner::REQUEST_STATE_KEY_FILE)) {
        (None, None) => return Ok(None),
        (Some(secret), None) => (runner::REQUEST_STATE_KEY, secret),
        (None, Some(file)) => {
            let name = runner::REQUEST_STATE_KEY_FILE;
            let read = fs::read_to_string(mounted(&file, variables));
            let read = read.map_err(|error| {
                Hinted::new(format!("{name}: cannot read {file}: {error}"))
                    .hint("name a file of text that this user may read")
            })?;
            (name, read)
        }
        (Some(_), Some(_)) => {
            let (value, file) = (runner::REQUEST_STATE_KEY, runner::REQUEST_STATE_KEY_FILE);
            return Err(Hinted::new(format!("both {value} and {file} are set")).hint("remove one of them"));
        }
    };
    let key = SealKey::of(&secret).map_err(|error| {
        Hinted::new(format!("{name}: the secret is too short: {error}")).hint("make one: openssl rand -hex 32")
    })?;
    Ok(Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<bool, String> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        super::find(&find).map(|key| key.is_some()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_secret_is_taken_from_the_environment_or_a_file_and_told_when_it_is_of_no_use() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let path = file.to_str().unwrap();
        let long = "a secret of more than thirty-two bytes";
        fs::write(&file, format!("{long}\n")).unwrap();
        let (value, file) = (runner::REQUEST_STATE_KEY, runner::REQUEST_STATE_KEY_FILE);
        assert_eq!(found(&[]), Ok(false));
        assert_eq!(found(&[(value, ""), (file, "")]), Ok(false));
        assert_eq!(found(&[(value, long)]), Ok(true));
        assert_eq!(found(&[(file, path)]), Ok(true));
        let refused = |variables: &[(&str, &str)]| found(variables).unwrap_err();
        assert!(refused(&[(value, long), (file, path)]).contains("are set"));
        assert!(refused(&[(file, "/no/such/file")]).contains("SKEP_REQUEST_STATE_KEY_FILE: cannot read /no/such/file"));
        let short = refused(&[(value, "hunter2")]);
        assert!(short.contains("it has 7 bytes") && !short.contains("hunter2"), "{short}");
    }
}
