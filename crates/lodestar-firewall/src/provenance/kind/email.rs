//! E-mail addresses: an unquoted local part, `@`, a domain.

use super::host;

/// The local part as it stands, the domain in lower case.
///
/// Quoted local parts and domain literals are left to exact comparison: they are rare, and a second
/// spelling of an address is what an attacker would look for.
pub(super) fn normal(text: &str) -> Option<String> {
    let (local, domain) = text.split_once('@')?;
    (is_local(local) && host::is_domain(domain))
        .then(|| format!("{local}@{}", domain.to_ascii_lowercase()))
}

fn is_local(local: &str) -> bool {
    !local.is_empty()
        && local.len() <= 64
        && local.split('.').all(|atom| {
            !atom.is_empty()
                && atom
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&b))
        })
}
