//! Which generation of its MCPServer a proxy is for, and whether a newer one was there already.
//!
//! The file with the configuration is mounted live: the container of an old pod that starts again reads the new file.
//! So the generation comes from the pod itself, where it never changes, and only then from the file.

/// The generation of a proxy: what the variable says, or else the file. What cannot be a generation is told and counts
/// for nothing.
pub fn effective(file: i64, variable: Option<&str>) -> i64 {
    let Some(text) = variable.filter(|text| !text.is_empty()) else { return file };
    match text.parse::<i64>() {
        Ok(own) if own >= 0 => {
            tracing::debug!(own, file, "the generation is that of the pod");
            own
        }
        _ => {
            tracing::warn!(text, file, "THV_MCPSERVER_GENERATION is no generation; going by the RunConfig");
            file
        }
    }
}

/// Whether what is there was written for a strictly newer generation, so that it has to stay as it is.
///
/// Equal generations cannot be told apart and the later one wins: they are of one spec, so that both say the same. A
/// proxy without a generation (0) is bound by nothing.
pub fn is_overtaken(ours: i64, written: Option<&str>) -> bool {
    let Some(text) = written.filter(|_| ours > 0) else { return false };
    let Ok(theirs) = text.parse::<i64>() else {
        tracing::warn!(text, "the generation that was written last cannot be read; writing anew");
        return false;
    };
    theirs > ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_66_the_pod_knows_better_than_the_file_unless_it_says_nonsense() {
        for (variable, expected) in [
            (None, 5),
            (Some(""), 5),
            (Some("3"), 3),
            (Some("7"), 7),
            (Some("0"), 0),
            (Some("not-a-number"), 5),
            (Some("-1"), 5),
            (Some("3 "), 5),
            (Some("99999999999999999999"), 5),
        ] {
            assert_eq!(effective(5, variable), expected, "{variable:?}");
        }
    }

    #[test]
    fn trap_66_only_a_strictly_newer_generation_stops_us() {
        for (ours, written, expected) in [
            (100, None, false),
            (100, Some("99"), false),
            (100, Some("100"), false),
            (100, Some("101"), true),
            (100, Some("200"), true),
            (100, Some(""), false),
            (100, Some("new"), false),
            (100, Some("-1"), false),
            (0, Some("200"), false),
            (0, None, false),
            (9, Some("10"), true),
        ] {
            assert_eq!(is_overtaken(ours, written), expected, "{ours} {written:?}");
        }
    }
}
