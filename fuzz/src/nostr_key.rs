//! Laws of Nostr keys.

use std::io::Write as _;

use lodestar_kernel::native::net::credential::Source;
use lodestar_kernel::native::nostr::Key;

/// Reads a key as the tool does: from a file that only its owner may read.
pub fn read_key(data: &[u8]) -> Option<Key> {
    let mut file = tempfile::NamedTempFile::new().expect("a scratch file");
    file.write_all(data).expect("the disk has room");
    let secret = Source::File(file.path().to_owned()).read().ok()?;
    Key::parse(&secret).ok()
}

/// A key that is accepted shows its public half alone; case and blanks around it change nothing.
pub fn nostr_key(data: &[u8]) {
    let Some(key) = read_key(data) else {
        return;
    };
    let public = key.public();
    assert!(public.len() == 64 && public.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let text = str::from_utf8(data).expect("a secret is text").trim();
    let shown = format!("{key:?}");
    assert!(!shown.to_lowercase().contains(&text.to_lowercase()));
    let spaced = read_key(format!(" {}\n", text.to_uppercase()).as_bytes());
    assert_eq!(spaced.map(|key| key.public()), Some(public));
}
