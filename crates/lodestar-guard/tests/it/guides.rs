//! The configurations in the guides load as they stand, but for the keys that they leave out.

use std::path::Path;

use lodestar_core::key::SecretKey;
use lodestar_guard::Config;

/// What stands in a page's blocks of TOML.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in page.lines() {
        match (line.trim(), &mut open) {
            ("```toml", None) => open = Some(String::new()),
            ("```", Some(_)) => blocks.extend(open.take()),
            (_, Some(block)) => *block += &format!("{line}\n"),
            (_, None) => {}
        }
    }
    blocks
}

/// A key in the place of each that is left out.
fn with_keys(block: &str) -> String {
    let parts = block.split("\"…\"").enumerate();
    let filled = parts.map(|(n, part)| match n {
        0 => part.to_owned(),
        n => format!("\"{}\"{part}", SecretKey::from_seed([n as u8; 32]).public()),
    });
    filled.collect()
}

#[test]
fn every_configuration_in_the_pages_about_people_loads() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut seen = 0;
    for page in ["guides/approvals.md", "concepts/confirmations.md"] {
        let text = std::fs::read_to_string(docs.join(page)).unwrap();
        for block in blocks(&text) {
            let root = tempfile::tempdir().unwrap();
            let whole = format!(
                "project_id = \"web\"\nactor_id = \"agent\"\n{}",
                with_keys(&block)
            );
            let read = Config::parse(&whole, root.path());
            assert!(read.is_ok(), "{page}: {}\n{block}", read.unwrap_err());
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen}");
}

#[test]
fn a_time_may_be_written_with_whole_seconds_or_without_quotes_and_is_nothing_else() {
    let key = SecretKey::from_seed([1; 32]).public();
    let read = |time: &str| {
        let text = format!(
            "project_id = \"web\"\nactor_id = \"agent\"\n[[approvals.authorized_keys]]\nactor_id = \"a\"\n\
             public_key = \"{key}\"\nrevoked_at = {time}\n"
        );
        let config = Config::parse(&text, std::env::temp_dir());
        config.map(|config| {
            let at = config.approvals.authorized_keys.approvers()[0].revoked_at;
            at.unwrap().to_string()
        })
    };
    for (written, meant) in [
        ("\"2026-03-01T00:00:00Z\"", "2026-03-01T00:00:00.000000Z"),
        ("2026-03-01T00:00:00Z", "2026-03-01T00:00:00.000000Z"),
        ("\"2026-03-01T00:00:00.5Z\"", "2026-03-01T00:00:00.500000Z"),
        ("2026-03-01T00:00:00.123456Z", "2026-03-01T00:00:00.123456Z"),
        (
            "\"2026-03-01T00:00:00.123456Z\"",
            "2026-03-01T00:00:00.123456Z",
        ),
    ] {
        assert_eq!(read(written).unwrap(), meant, "{written}");
    }
    for bad in [
        "\"2026-03-01\"",
        "\"2026-03-01T00:00:00\"",
        "\"2026-03-01T00:00:00+01:00\"",
        "\"2026-02-30T00:00:00Z\"",
        "\"soon\"",
        "\"2026-03-01T00:00:00.Z5Z\"",
        "1",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
