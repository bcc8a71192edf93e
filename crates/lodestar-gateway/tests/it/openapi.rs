//! `schemathesis`, which others make, against the API's own document: whatever it thinks of, no answer is a server's
//! error, and every answer is one that the document has.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lodestar_harness::world::fleet::Fleet;

/// The program: of the peers that `cargo xtask` installs, or of this machine.
fn program() -> Option<PathBuf> {
    let peers = std::env::var_os("LODESTAR_PEERS").map(PathBuf::from);
    let peers = peers.map(|folder| folder.join("venv/bin/schemathesis"));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let here = std::env::split_paths(&paths).map(|folder| folder.join("schemathesis"));
    let found = peers.into_iter().chain(here).find(|path| path.is_file());
    if found.is_none() {
        let what =
            "there is no `schemathesis` here, so that the API is not held against its document";
        assert!(std::env::var_os("LODESTAR_REQUIRE_ALL").is_none(), "{what}");
        eprintln!("SKIPPED: {what}");
    }
    found
}

fn explore(program: &Path, folder: &Path, url: &str, token: Option<&str>) -> Output {
    let mut command = Command::new(program);
    command
        .args(["run", url, "--no-color", "--seed", "8", "--workers", "1"])
        .args(["--max-examples", "20", "--suppress-health-check", "all"])
        .args(["--checks", CHECKS])
        .env("HYPOTHESIS_STORAGE_DIRECTORY", folder.join("hypothesis"))
        .current_dir(folder);
    if let Some(token) = token {
        command.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    command.output().unwrap()
}

/// What has to be so of every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_no_server_error_and_nothing_that_the_document_does_not_have() {
    let Some(program) = program() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let fleet = Fleet::open(folder.path(), &[]).await.unwrap();
    let account = fleet.account("owner").await.unwrap();
    let machine = account.approved("machine").await.unwrap();
    let url = format!("http://{}/v1/openapi.json", fleet.address());
    for (who, token) in [
        ("nobody", None),
        ("the owner", Some(account.token.clone())),
        ("a machine", Some(machine.token.clone())),
    ] {
        let (program, url) = (program.clone(), url.clone());
        let place = folder.path().to_owned();
        let ran =
            tokio::task::spawn_blocking(move || explore(&program, &place, &url, token.as_deref()));
        let output = ran.await.unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        println!("as {who}:\n{told}");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    account.client.health().await.unwrap();
    machine.beat(&[]).await.unwrap();
    let events = fleet.close().await.unwrap();
    let codes = events
        .iter()
        .filter_map(|(_, payload)| payload.get("code")?.as_str());
    assert_eq!(codes.filter(|code| *code == "internal").count(), 0);
}
