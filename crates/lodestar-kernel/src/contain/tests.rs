use std::process::{Command, Stdio};

use super::*;

#[test]
fn look() {
    let project = tempfile::tempdir().unwrap();
    let keys = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.path().join(".lodestar")).unwrap();
    std::fs::write(project.path().join(".mcp.json"), "{}").unwrap();
    let out = OutOfReach {
        keys: Some(keys.path().to_owned()),
        lodestar: Some(project.path().join(".lodestar")),
        hidden: vec![project.path().join(".mcp.json")],
        fixed: vec![],
    };
    for host in [Host::here(), Host::here().without_namespaces()] {
        let plan = Plan::new(
            [lodestar_core::contract::Sandbox::WriteLocal],
            "/usr/bin/python3",
            project.path(),
            out.clone(),
        );
        let begun = std::time::Instant::now();
        let cell = Cell::of(&plan, host).unwrap();
        println!("{host:?} ready {:?}", begun.elapsed());
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg("id; ls -la . .lodestar; cat .mcp.json; echo hi > new.txt; ls; cat /etc/shadow; ls /root; cat /proc/1/environ; ls /proc/self/fd; python3 -c 'import socket,os; print(os.getcwd());s=socket.socket(socket.AF_INET,socket.SOCK_STREAM); s.bind((\"127.0.0.1\",0)); print(s.getsockname())'");
        command
            .current_dir(project.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut confined = cell.confine(&mut command);
        let child = command.spawn().map_err(|p| confined.explain(p)).unwrap();
        println!("spawned {:?}", begun.elapsed());
        drop(command);
        let c = confined.started();
        println!("{}", serde_json::to_string(&c).unwrap());
        let out = child.wait_with_output().unwrap();
        println!(
            "{}\n{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
    }
}
