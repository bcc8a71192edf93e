//! Laws of configurations.

use std::path::Path;

use lodestar_core::digest::sha256;
use lodestar_guard::Config;

/// Relative paths start from here; nothing is there.
const ROOT: &str = "/nonexistent/project";

/// A configuration that is accepted says one thing about what runs, at most up to L3; it is bound to
/// its bytes, and every file that it names is protected where it really is. No sentinel is milder than by itself.
pub fn guard_config(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let Ok(config) = Config::parse(text, ROOT) else {
        return;
    };
    assert_eq!(config.digest(), sha256(data));
    assert_eq!(config.root(), Path::new(ROOT));
    assert!(config.scope().is_ok());
    assert!(config.auto_approve_ceiling.is_none() || config.policy.is_none());
    assert!(config.auto_approve_ceiling.is_none_or(|one| one.get() <= 3));
    let requirement = config.approvals.default.requirement();
    assert!(requirement.quorum >= 1);
    for (arbiter, setting) in config.sentinels.iter() {
        assert!(setting.severity >= arbiter.severity(), "{arbiter:?}");
    }
    let written = serde_json::to_string(&config.sentinels).expect("names and words");
    let read = serde_json::from_str(&written).expect("as the log keeps them");
    assert_eq!(config.sentinels, read);
    let files = config.files();
    assert!(files.iter().all(|file| file.is_absolute()), "{files:?}");
    assert!(files.contains(&config.path(&config.log_root)));
    if let Some(policy) = &config.policy {
        assert!(files.contains(&config.path(&policy.file)));
    }
}
