//! Paths, by their text alone.

/// Longest file ending: `.properties` and `.dockerfile` are whole names of formats, a longer last
/// part is more likely a sentence without a space.
const MAX_ENDING: usize = 10;

/// A path without `.`, empty components and final slash; `None` where the text is no path.
///
/// `..` is not resolved, unlike in [`lodestar_core::fingerprint::NormalPath`]: if `a/x` is a link,
/// `a/x/../b` is not `a/b`, and taking one for the other would be trust without grounds.
pub(super) fn normal(text: &str) -> Option<String> {
    if text.contains("://") || text.contains('\\') {
        return None;
    }
    if !text.contains('/') {
        return is_file_name(text).then(|| text.to_owned());
    }
    // `//a/b` is a path to some and the host `a` to others.
    let doubtful = text.starts_with("//") || text.split('/').any(|component| component == "..");
    if doubtful {
        return Some(text.to_owned());
    }
    let components: Vec<&str> = text
        .split('/')
        .filter(|component| !matches!(*component, "" | "."))
        .collect();
    let root = if text.starts_with('/') { "/" } else { "" };
    Some(format!("{root}{}", components.join("/")))
}

/// A name with an ending that has a letter in it: `report.txt`, `a.7z`, not `98.70`.
fn is_file_name(text: &str) -> bool {
    text.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=MAX_ENDING).contains(&ending.len())
            && ending.bytes().all(|b| b.is_ascii_alphanumeric())
            && ending.bytes().any(|b| b.is_ascii_alphabetic())
            && !text.contains(['@', ':', '=', '<', '>', '|', '*', '?'])
    })
}
