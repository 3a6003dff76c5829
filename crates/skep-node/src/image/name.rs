//! The form of an image's name: `HOST/NAME:TAG@DIGEST`, of which only the name must be there.

/// `registry:5000/name:tag@sha256:…` → `registry:5000/name`.
pub(super) fn without_tag(image: &str) -> &str {
    parts(image).0
}

/// The name, its tag and its digest.
fn parts(image: &str) -> (&str, Option<&str>, Option<&str>) {
    let (rest, digest) = image.split_once('@').map_or((image, None), |(rest, digest)| (rest, Some(digest)));
    match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag), digest),
        _ => (rest, None, digest),
    }
}

/// Whether a registry could have an image of this name.
pub(super) fn is_reference(image: &str) -> bool {
    let (name, tag, digest) = parts(image);
    let (host, path) = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (Some(first), rest),
        _ => (None, name),
    };
    host.is_none_or(is_host)
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

fn is_host(host: &str) -> bool {
    let (name, port) = host.rsplit_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_label = |label: &str| {
        let is_edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        let is_plain = label.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
        is_plain && is_edge(label.chars().next()) && is_edge(label.chars().last())
    };
    let is_port = |port: &str| !port.is_empty() && port.chars().all(|letter| letter.is_ascii_digit());
    name.split('.').all(is_label) && port.is_none_or(is_port)
}

/// Small letters and digits, in groups that are joined by a dot, one or two underscores, or dashes.
fn is_component(component: &str) -> bool {
    let is_small = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let joints = component.split(is_small).filter(|joint| !joint.is_empty());
    let is_joint = |joint: &str| matches!(joint, "." | "_" | "__") || joint.chars().all(|letter| letter == '-');
    component.starts_with(is_small) && component.ends_with(is_small) && joints.into_iter().all(is_joint)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    tag.len() <= 128 && tag.starts_with(is_word) && tag.chars().all(|letter| is_word(letter) || ".-".contains(letter))
}

fn is_digest(digest: &str) -> bool {
    let is_hex = |text: &str| text.len() >= 32 && text.chars().all(|letter| letter.is_ascii_hexdigit());
    let is_algorithm = |text: &str| text.starts_with(|letter: char| letter.is_ascii_alphabetic());
    digest.split_once(':').is_some_and(|(algorithm, sum)| is_algorithm(algorithm) && is_hex(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_ignored() {
        let table = [
            ("a", "a"),
            ("a:1", "a"),
            ("r:5000/a", "r:5000/a"),
            ("r:5000/a:1@sha256:0", "r:5000/a"),
            ("ghcr.io/x/y:v1", "ghcr.io/x/y"),
        ];
        for (image, name) in table {
            assert_eq!(without_tag(image), name);
        }
    }

    #[test]
    fn names_that_no_registry_could_have() {
        let digest = format!("a@sha256:{}", "0f".repeat(32));
        for good in ["a", "a:1", "r:5000/a", "localhost/a", "Ghcr.io/x/y-z_1.b:v1.0-X", "a__b--c", digest.as_str()] {
            assert!(is_reference(good), "{good}");
        }
        for bad in
            ["", "A", "a/", "/a", "a//b", "a b", "a:", "a:-1", "a___b", "a..b", "-a", "a@sha256:12", "a@", "r:x/a"]
        {
            assert!(!is_reference(bad), "{bad}");
        }
    }
}
