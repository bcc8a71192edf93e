use super::*;

fn pin(url: &str) -> Result<Remote, RemoteError> {
    Remote::pin(url, &[Protocol::Https], None)
}

#[test]
fn addresses_that_git_could_take_for_something_else_are_refused() {
    for url in [
        "",
        "--upload-pack=touch x",
        "git@host:path",
        "ext::sh -c touch",
        "http://host/path",
        "git://host/path",
        "ftp://host/path",
        "https://user:secret@host/path",
        "https://user@host/path",
        "https://host/path?x=1",
        "https://host/path#x",
        "https://host",
        "file:///srv/repo",
        "file://host/path",
        "ssh://git@host/path",
        "ssh://-oProxyCommand=x/path",
        "/srv/repo",
    ] {
        let error = pin(url).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
    pin("https://host/path.git").unwrap();
}

#[test]
fn paths_that_ssh_would_expand_are_refused() {
    let (ssh, plain) = (Path::new("/usr/bin/ssh"), Path::new("/k"));
    ssh_command(ssh, plain, plain).unwrap();
    for path in ["/%h", "/${HOME}", "/a\"b", "/a\\b", "/a\nb"] {
        ssh_command(ssh, Path::new(path), plain).unwrap_err();
        ssh_command(ssh, plain, Path::new(path)).unwrap_err();
    }
}

#[test]
fn a_secret_is_cut_out_wherever_it_stands() {
    let secrets = Secrets(vec![Zeroizing::new("tok".to_owned())]);
    assert_eq!(
        secrets.redact(b"a tok btoktok"),
        b"a [redacted] b[redacted][redacted]"
    );
}

#[test]
fn credentials_fit_their_protocol_or_are_refused() {
    let askpass = Credentials::Askpass {
        program: "/bin/true".into(),
    };
    let token = Credentials::Token {
        env: "TOKEN".into(),
        username: "me".into(),
    };
    let all = [Protocol::Https, Protocol::Ssh, Protocol::File];
    for (url, credentials) in [
        ("ssh://git@host/path", None),
        ("ssh://git@host/path", Some(&token)),
        ("file:///srv/repo", Some(&token)),
        ("file:///srv/repo", Some(&askpass)),
    ] {
        assert!(matches!(
            Remote::pin(url, &all, credentials),
            Err(RemoteError::Credentials { .. })
        ));
    }
    let remote = Remote::pin("https://host:8443/a/b", &all, Some(&token)).unwrap();
    assert_eq!(remote.origin(), "https://host:8443/");
    assert!(matches!(
        remote.environment(),
        Err(RemoteError::NoToken { .. })
    ));
}

#[test]
fn a_token_is_for_its_host_only_and_is_never_shown() {
    // Any variable that is surely set will do.
    let token = Credentials::Token {
        env: "PATH".into(),
        username: "me".into(),
    };
    let remote = Remote::pin("https://host:8443/a/b", &[Protocol::Https], Some(&token)).unwrap();
    let (environment, secrets) = remote.environment().unwrap();
    let value = |name: &str| {
        let found = environment.iter().find(|(key, _)| key == name);
        found.unwrap().1.to_str().unwrap().to_owned()
    };
    assert_eq!(
        value("GIT_CONFIG_KEY_0"),
        "http.https://host:8443/.extraHeader"
    );
    assert_eq!(value("GIT_ALLOW_PROTOCOL"), "https");
    let path = std::env::var("PATH").unwrap();
    let header = value("GIT_CONFIG_VALUE_0");
    let said = format!("remote said {path} and {header}");
    let shown = String::from_utf8(secrets.redact(said.as_bytes())).unwrap();
    assert_eq!(
        shown,
        "remote said [redacted] and Authorization: Basic [redacted]"
    );
    assert!(!format!("{remote:?}").contains(&path));
}

#[test]
fn ssh_takes_the_command_and_uses_nothing_but_the_key() {
    let ssh = Path::new("/usr/bin/ssh");
    if !ssh.exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // It does not even exist: still, no other key is taken.
    let key = directory.path().join("my key's; touch x `touch y`");
    let hosts = Path::new("/etc/hosts known");
    let command = ssh_command(ssh, &key, hosts).unwrap();
    let ran = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("{command} -G git@example.org")])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    for line in [
        "batchmode yes",
        "identitiesonly yes",
        "identityagent none",
        "stricthostkeychecking true",
        "forwardagent no",
        "passwordauthentication no",
        "userknownhostsfile /etc/hosts known",
        &format!("identityfile {}", key.display()),
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
    assert_eq!(said.matches("identityfile ").count(), 1);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
