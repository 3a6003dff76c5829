//! Words for a shell.

use std::borrow::Cow;
use std::path::Path;

/// A path as one word of a shell.
pub(crate) fn word(path: &Path) -> Cow<'_, str> {
    let text = path.to_string_lossy();
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "/._-+=:@,%".contains(one);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        for (path, expected) in [
            ("/tmp/a-b_c.d", "/tmp/a-b_c.d"),
            ("/tmp/my data", "'/tmp/my data'"),
            ("/tmp/it's $HOME", r"'/tmp/it'\''s $HOME'"),
            ("", "''"),
        ] {
            assert_eq!(word(Path::new(path)), expected);
        }
    }
}
