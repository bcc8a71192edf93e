//! The Python verifiers: the full one accepts the sample log, and no damaged copy of it, and never
//! skips signatures silently. That the short one agrees with ours on many sessions is tested beside
//! the log.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LOG_KEY: &str = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";
const OPERATOR_KEY: &str = "1398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93ca";

fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference")
}

fn python_is_missing() -> bool {
    let version = Command::new("python3").arg("--version").output();
    let missing = !version.is_ok_and(|output| output.status.success());
    assert!(
        !missing || std::env::var_os("LODESTAR_REQUIRE_ALL").is_none(),
        "python3 is missing, and nothing may be skipped"
    );
    missing
}

fn verify(project: &Path, keys: &[&str]) -> Output {
    Command::new("python3")
        .arg(reference().join("verify_full.py"))
        .arg(project.join("s1"))
        .args(keys)
        .output()
        .expect("python3 runs")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder that can be read") {
        let path = entry.expect("a folder that can be read").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(fs::copy(&path, &target).expect("a file that can be copied")),
        }
    }
}

#[test]
fn the_sample_is_accepted_and_no_copy_with_a_flipped_bit_is() {
    if python_is_missing() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let project = scratch.path().join("sample");
    copy(&reference().join("sample"), &project);
    let keys = [LOG_KEY, OPERATOR_KEY];
    let output = verify(&project, &keys);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("signatures checked: checkpoints and redactions"));

    let blob = fs::read_dir(project.join("s1/blobs")).unwrap().next();
    let blob = blob.unwrap().unwrap().path();
    let files = [
        project.join("ledger.ndjson"),
        project.join("ledger.checkpoint"),
        project.join("s1/events.ndjson"),
        project.join("s1/checkpoint"),
        blob,
    ];
    for file in files {
        let original = fs::read(&file).unwrap();
        for round in 0..8 {
            let mut damaged = original.clone();
            // Spread over the file, its last bytes included: that is where a signature ends.
            let at = (original.len() - 1) * round / 7;
            damaged[at] ^= 1 << round;
            fs::write(&file, &damaged).unwrap();
            let output = verify(&project, &keys);
            let place = format!("{} byte {at} bit {round}", file.display());
            assert_eq!(output.status.code(), Some(1), "{place}");
            assert!(!output.stdout.is_empty(), "{place}: it says what is wrong");
        }
        fs::write(&file, &original).unwrap();
    }
    assert!(verify(&project, &keys).status.success());
}

#[test]
fn other_keys_than_the_signers_are_refused() {
    if python_is_missing() {
        return;
    }
    let sample = reference().join("sample");
    for keys in [[OPERATOR_KEY, OPERATOR_KEY], [LOG_KEY, LOG_KEY]] {
        let output = verify(&sample, &keys);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stdout).contains("not signed by"));
    }
}

#[test]
fn what_was_not_checked_is_said_and_is_no_success() {
    if python_is_missing() {
        return;
    }
    let sample = reference().join("sample");
    for (arguments, exit) in [
        (&[][..], 2),
        (&[LOG_KEY][..], 2),
        (&["--no-signatures"][..], 0),
    ] {
        let output = verify(&sample, arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {text}");
        assert!(text.contains("NOT checked"), "{arguments:?}: {text}");
    }
    let scratch = tempfile::tempdir().unwrap();
    let alone = scratch.path().join("verify_full.py");
    fs::copy(reference().join("verify_full.py"), &alone).unwrap();
    let output = Command::new("python3")
        .arg(&alone)
        .arg(sample.join("s1"))
        .args([LOG_KEY, OPERATOR_KEY])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "its helper is missing");
}

#[test]
fn the_short_verifier_stands_alone_and_never_ends_in_a_traceback() {
    if python_is_missing() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let alone = scratch.path().join("verify.py");
    fs::copy(reference().join("verify.py"), &alone).unwrap();
    let project = scratch.path().join("sample");
    copy(&reference().join("sample"), &project);
    let run = |arguments: &[&Path]| {
        let mut python = Command::new("python3");
        let output = python.arg(&alone).args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(text.lines().count(), 1, "{text}");
        (output.status.code().unwrap(), text)
    };
    let session = project.join("s1");
    assert_eq!(run(&[]).0, 2);
    assert_eq!(run(&[&session]), (0, "OK: 8 events\n".to_owned()));
    for file in [
        "ledger.ndjson",
        "ledger.checkpoint",
        "s1/events.ndjson",
        "s1/checkpoint",
    ] {
        let file = project.join(file);
        let original = fs::read(&file).unwrap();
        let cut = &original[..original.len() / 3];
        for wrong in [&b""[..], b"\xff\xfe\n", b"{\n", b"\n\n", cut] {
            fs::write(&file, wrong).unwrap();
            let (exit, text) = run(&[&session]);
            assert_eq!(exit, 1, "{}: {text}", file.display());
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(run(&[&session]).0, 1, "{} is missing", file.display());
        fs::write(&file, original).unwrap();
    }
    assert_eq!(run(&[&session]).0, 0);
}

/// The first three vectors of RFC 8032, section 7.1.
#[test]
fn ed25519_passes_the_vectors_of_its_rfc() {
    if python_is_missing() {
        return;
    }
    let script = r#"
import verify_ed25519
vectors = [
    ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
    ("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
    ("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"),
]
for key, message, signature in vectors:
    key, message, signature = (bytes.fromhex(part) for part in (key, message, signature))
    assert verify_ed25519.verify(key, message, signature)
    assert not verify_ed25519.verify(key, message + b"x", signature)
    # The same signature with S + L: valid to a verifier that does not look.
    s = int.from_bytes(signature[32:], "little") + verify_ed25519.ORDER
    assert not verify_ed25519.verify(key, message, signature[:32] + s.to_bytes(32, "little"))
low = (1).to_bytes(32, "little")
assert verify_ed25519.decode(low) is None and verify_ed25519.decode(b"\xff" * 32) is None
"#;
    let output = Command::new("python3")
        .args(["-B", "-c", script])
        .current_dir(reference())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
