//! `lodestar report`, and the reports of the demonstration that lie in `examples/`.
//!
//! Every run has other ids, keys, hashes, times and durations, and may number its events otherwise. So what
//! is compared went through [`steady`] on both sides, which puts words in their places and leaves all else.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::world::{World, assert_inert};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/poisoned-repo/reports")
}

/// A text with words in the place of whatever is another in every run.
fn steady(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        if let Some((word, length)) = changing(rest, &out) {
            // One event more or fewer in a list of them is no other statement.
            match word == "#<n>" && ends_with_event(&out) {
                true => out.truncate(out.trim_end_matches([',', ' ']).len()),
                false => out.push_str(word),
            }
            rest = &rest[length..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

fn ends_with_event(out: &str) -> bool {
    let trimmed = out.trim_end_matches([',', ' ']);
    trimmed.len() < out.len() && trimmed.ends_with("#<n>")
}

/// What begins here and is another in every run: the word for it, and how long it is.
fn changing(rest: &str, out: &str) -> Option<(&'static str, usize)> {
    let before = out.chars().next_back();
    let starts_word = before.is_none_or(|c| !c.is_ascii_alphanumeric());
    let run =
        |of: fn(&char) -> bool| -> usize { rest.chars().take_while(of).map(char::len_utf8).sum() };
    let digits = run(|c| c.is_ascii_digit());
    let after = &rest[digits..];
    if let Some(id) = id(rest).filter(|_| starts_word) {
        return Some(("<id>", id));
    }
    let hex = run(|c| c.is_ascii_digit() || ('a'..='f').contains(c));
    // Shortened by us, or cut where a statement is bounded.
    let is_short = rest[hex..].starts_with('…') && (hex == 12 || out.ends_with("sha256 "));
    if starts_word && hex > 0 && (hex >= 32 || is_short) {
        return Some(("<hash>", hex));
    }
    if let Some(time) = time(rest).filter(|_| starts_word) {
        return Some(("<time>", time));
    }
    let base64 = run(|c| c.is_ascii_alphanumeric() || "+/=".contains(*c));
    if starts_word && base64 >= 40 && rest[..base64].chars().any(|c| c.is_ascii_uppercase()) {
        return Some(("<base64>", base64));
    }
    let event = rest
        .strip_prefix('#')
        .or_else(|| rest.strip_prefix("<a href=\"#e"));
    if let Some(event) = event {
        return cited(rest, event);
    }
    for place in [" x=\"", " y=\"", " d=\"M", " id=\"e"] {
        if let Some(number) = rest.strip_prefix(place) {
            let length = number.find('"').unwrap_or(0);
            return Some((" <place>", place.len() + length + 1));
        }
    }
    for path in ["leads to `", "leads to \\`"] {
        if let Some(shown) = rest.strip_prefix(path) {
            let length = shown.find('`')? + 1;
            return Some(("leads to <path>", path.len() + length));
        }
    }
    if digits == 0 || !starts_word {
        return None;
    }
    counted(rest, digits, after)
}

/// Numbers that are followed by what is counted, and durations.
fn counted(rest: &str, digits: usize, after: &str) -> Option<(&'static str, usize)> {
    for unit in [
        " event",
        " record",
        " belief event",
        " of them under",
        " under a signed",
        " from #",
    ] {
        if after.starts_with(unit) {
            return Some(("<n>", digits));
        }
    }
    let fraction = after.strip_prefix('.').map_or(0, |fraction| {
        1 + fraction.chars().take_while(char::is_ascii_digit).count()
    });
    let unit = &rest[digits + fraction..];
    let took = [" µs", " ms", " s ", " s<"]
        .into_iter()
        .find(|one| unit.starts_with(one))?;
    Some((
        "<took>",
        digits + fraction + took.trim_end_matches([' ', '<']).len(),
    ))
}

/// `act_01a1ea94-e163-7305-a48a-0217980e145b`, also with its underscore escaped.
fn id(rest: &str) -> Option<usize> {
    let prefix = rest.chars().take_while(char::is_ascii_lowercase).count();
    let uuid = rest[prefix..].strip_prefix('\\').unwrap_or(&rest[prefix..]);
    let uuid = uuid.strip_prefix('_')?.get(..36)?;
    let is_uuid = uuid.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let escaped = usize::from(rest[prefix..].starts_with('\\'));
    (is_uuid && (2..=4).contains(&prefix)).then_some(prefix + escaped + 1 + 36)
}

/// `2026-11-17 17:36:27`, also with a `T`, a fraction and a `Z`.
fn time(rest: &str) -> Option<usize> {
    let shape = rest
        .get(..19)?
        .bytes()
        .enumerate()
        .all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            10 => byte == b' ' || byte == b'T',
            13 | 16 => byte == b':',
            _ => byte.is_ascii_digit(),
        });
    let more = rest[19..]
        .chars()
        .take_while(|c| c.is_ascii_digit() || ".Z".contains(*c));
    shape.then(|| 19 + more.count())
}

/// A number of an event, with its link.
fn cited(rest: &str, event: &str) -> Option<(&'static str, usize)> {
    let digits = event.chars().take_while(char::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    if rest.starts_with('#') {
        return Some(("#<n>", 1 + digits));
    }
    let end = rest
        .find("</a>")
        .filter(|_| event[digits..].starts_with("\">#"))?;
    Some(("#<n>", end + "</a>".len()))
}

/// The same of JSON: members that number events or count them are none of its statements.
fn steady_json(value: &mut Value) {
    const NUMBERS: [&str; 13] = [
        "seq",
        "events",
        "read_in",
        "returned",
        "sources",
        "proposed",
        "adopted",
        "actions",
        "refused",
        "micros",
        "proven",
        "beliefs_again",
        "ledger_records",
    ];
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let numbers = match &*member {
                    Value::Number(_) => true,
                    Value::Array(list) => list.iter().all(Value::is_number),
                    _ => false,
                };
                match numbers && NUMBERS.contains(&name.as_str()) {
                    true => *member = Value::from("<n>"),
                    false => steady_json(member),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(steady_json),
        Value::String(text) => {
            *text = steady(text);
            // The checkpoint's second line is how many events it covers.
            if text.starts_with("lodestar.log/") {
                let lines = text.split('\n').map(|line| match line.parse::<u64>() {
                    Ok(_) => "<n>",
                    Err(_) => line,
                });
                *text = lines.collect::<Vec<_>>().join("\n");
            }
        }
        _ => {}
    }
}

/// How far this machine contains servers is no statement of the demonstration's.
fn without_containment(report: &mut Value) {
    for server in report["servers"].as_array_mut().expect("servers") {
        let server = server.as_object_mut().expect("an object");
        if server.remove("containment").is_some() {
            server["note"] = Value::from("started");
        }
    }
    let limits = report["limits"].as_array_mut().expect("limits");
    limits.retain(|one| !is_of_containment(one["limit"].as_str().expect("words")));
}

fn is_of_containment(limit: &str) -> bool {
    ["Servers ran not contained", "Servers were contained"]
        .iter()
        .any(|words| limit.starts_with(words))
}

/// The same of a line of the other forms; none where it is about nothing else.
fn line_without_containment(line: &str) -> Option<String> {
    const LISTS: [&str; 7] = [
        "profiles: ",
        "enforced by: ",
        "network: ",
        "tried inside and refused: ",
        "tried inside and not refused: ",
        "gap: ",
        "note: ",
    ];
    let item = line.strip_prefix("  - ").or(line.strip_prefix("- "));
    let item = item.or(line.strip_prefix("<li>")).unwrap_or(line);
    if LISTS.iter().any(|list| item.starts_with(list)) || is_of_containment(item) {
        return None;
    }
    let states = ["not contained", "contained in part", "contained, proved"];
    let line = states.iter().fold(line.to_owned(), |line, state| {
        line.replace(&format!("started, {state}"), "started")
    });
    Some(line)
}

fn steady_form(name: &str, text: &str) -> String {
    let kept: Vec<String> = text.lines().filter_map(line_without_containment).collect();
    let kept = kept.join("\n");
    match name {
        "report.json" => {
            let mut value: Value = serde_json::from_str(text).expect("JSON");
            without_containment(&mut value);
            steady_json(&mut value);
            format!("{value:#}")
        }
        "report.md" => {
            let lines = kept.lines().map(|line| match line.strip_prefix("  - `") {
                Some(number) if number.trim_end_matches('`').parse::<u64>().is_ok() => {
                    "  - <n>".to_owned()
                }
                _ => steady(line),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        _ => {
            let lines = kept.lines().map(|line| match line.parse::<u64>() {
                Ok(_) => "<n>".to_owned(),
                Err(_) => steady(line),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn the_reports_of_the_demonstration_are_those_in_the_examples() {
    let world = World::bare();
    let keep = world.path("kept");
    world
        .run(&["demo", "--keep", &keep.to_string_lossy()])
        .expect(0);
    for name in ["report.md", "report.html", "report.json"] {
        let fresh = fs::read_to_string(keep.join(name)).expect("written");
        if std::env::var_os("LODESTAR_BLESS").is_some() {
            // Where it was made is nobody's business.
            let place = keep.to_string_lossy().into_owned();
            assert!(
                !fresh.contains(&place)
                    || place.starts_with(&*std::env::temp_dir().to_string_lossy())
            );
            fs::create_dir_all(examples()).expect("created");
            fs::write(examples().join(name), &fresh).expect("written");
        }
        let kept = fs::read_to_string(examples().join(name)).expect("the example is there");
        let (fresh, kept) = (steady_form(name, &fresh), steady_form(name, &kept));
        for (now, then) in fresh.lines().zip(kept.lines()) {
            assert_eq!(
                now, then,
                "{name}: run the tests with LODESTAR_BLESS=1, then look at the difference"
            );
        }
        assert_eq!(fresh.lines().count(), kept.lines().count(), "{name}");
    }
}

#[test]
fn only_what_is_another_in_every_run_is_replaced() {
    let same = [
        "held, refused, 16 claims out of what was read, none of them supported",
        "`hotfix-4711` `tok-demo-5d41402abc4b` (MARKER-7F3A91) OPS-4711 472 B",
        "hold by policy:none: no policy mentions it; L4 always waits for a person",
        "confidence 0.95 · truth=unverified · retrieval=restricted",
        "(L4, external, irreversible, final phase rejected)",
        "Allowed 8, held 2, denied 1; cleared 8",
        "one approver, 3 actions, 6 tools, 2026 and 12:30",
        "<td><code>/branch</code></td><td><code>hotfix-4711</code></td>",
    ];
    for text in same {
        assert_eq!(steady(text), text);
    }
    let other = [
        ("#1, #23, #4: x", "#<n>: x"),
        ("(#12) and #13", "(#<n>) and #<n>"),
        ("req_01a1ea94-e163-7305-a48a-0217980e145b.", "<id>."),
        ("req\\_01a1ea94-e163-7305-a48a-0217980e145b", "<id>"),
        ("2026-11-17 17:36:27, 72 events", "<time>, <n> events"),
        ("2026-11-17T17:36:27.123456Z", "<time>"),
        ("success after 1.5 ms (#4)", "success after <took> (#<n>)"),
        ("`d6fc7e14f5ef…`", "`<hash>…`"),
        (
            "definition sha256 7c4… (+9 bytes)",
            "definition sha256 <hash>… (+9 bytes)",
        ),
        ("add… (+9 bytes)", "add… (+9 bytes)"),
        ("<a href=\"#e53\">#54</a>", "#<n>"),
        ("<details id=\"e12\" open>", "<details <place> open>"),
        (
            "leads to `/a/b (12 bytes)`, which",
            "leads to <path>, which",
        ),
    ];
    for (text, steadied) in other {
        assert_eq!(steady(text), steadied, "{text}");
    }
}

#[test]
fn a_changed_word_of_a_report_is_seen() {
    for name in ["report.md", "report.html", "report.json"] {
        let kept = fs::read_to_string(examples().join(name)).expect("the example is there");
        for (word, lie) in [
            ("rejected", "completed"),
            ("hotfix-4711", "main"),
            ("unverified", "supported"),
            ("irreversible", "reversible"),
            ("none of them supported", "all of them supported"),
        ] {
            let forged = kept.replacen(word, lie, 1);
            assert_ne!(forged, kept, "{name} has no `{word}`");
            assert_ne!(
                steady_form(name, &forged),
                steady_form(name, &kept),
                "{name}: {word}"
            );
        }
    }
}

#[test]
fn a_report_is_told_in_every_form_and_a_forged_log_in_none() {
    let world = World::bare();
    let keep = world.path("kept");
    let shown = keep.to_string_lossy().into_owned();
    world.run(&["demo", "--keep", &shown]).expect(0);
    let (root, config) = (format!("{shown}/workspace"), format!("{shown}/config"));
    let run = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("LODESTAR_CONFIG_DIR", &config);
        crate::world::Run::of(command.output().expect("started"))
    };
    let told = run(&["--root", &root, "report", "latest"]).expect(0);
    assert_inert(&told.out);
    assert!(told.out.starts_with("# Trust report: session `tour`\n"));
    let json = run(&["--root", &root, "--json", "report", "latest"]).expect(0);
    let report: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(report["answers"]["log_intact"]["answer"], "yes");
    let page = format!("{shown}/page.html");
    let proofs = format!("{shown}/proofs");
    let out = run(&[
        "--root", &root, "report", "tour", "--format", "html", "--out", &page, "--proofs", &proofs,
    ])
    .expect(0);
    assert!(out.out.contains("Is the log intact? yes"), "{}", out.out);
    assert!(
        fs::read_to_string(&page)
            .expect("written")
            .starts_with("<!doctype html>")
    );

    for file in [&page, &proofs] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(file).expect("written").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
        let link = format!("{file}.link");
        std::os::unix::fs::symlink(file, &link).expect("linked");
        for flag in ["--out", "--proofs"] {
            let args = ["--root", &root, "report", "tour", flag, &link];
            let refused = run(&args).expect(2);
            assert!(refused.err.contains("is a link"), "{}", refused.err);
        }
    }

    let key = format!("{config}/keys/log.pub");
    let elsewhere = World::bare();
    let bundle = ["log", "verify", "--bundle", &proofs, "--key", &key];
    let held = elsewhere.run(&bundle).expect(0);
    assert!(
        held.out.contains("proven under the signed checkpoint"),
        "{}",
        held.out
    );
    assert!(held.out.contains("--report FILE compares"), "{}", held.out);
    let with = |report: &str| {
        let mut args = bundle.to_vec();
        args.extend(["--report", report]);
        elsewhere.run(&args)
    };
    let held = with(&page).expect(0);
    assert!(held.out.contains("is the report that"), "{}", held.out);
    let mut forged = fs::read(&page).expect("written");
    forged.push(b' ');
    let forged = elsewhere.write("forged.html", &String::from_utf8(forged).expect("UTF-8"));
    let broken = with(forged.to_str().expect("UTF-8")).expect(1);
    assert!(broken.out.contains("is not the report"), "{}", broken.out);
    // Somebody else's installation vouches for nothing.
    let mut command = world.command(&[
        "--root", &root, "report", "tour", "--key", &key, "--proofs", &proofs,
    ]);
    command.env("LODESTAR_CONFIG_DIR", elsewhere.path("config"));
    let refused = crate::world::Run::of(command.output().expect("started"));
    assert_ne!(refused.code, 0, "{}", refused.out);
    let mut bytes = fs::read(&proofs).expect("written");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&proofs, bytes).expect("written");
    let broken = elsewhere
        .run(&["log", "verify", "--bundle", &proofs, "--key", &key])
        .expect(1);
    assert!(broken.out.contains("✗ line "), "{}", broken.out);

    for copy in ["one-bit-flipped", "session-deleted"] {
        let forged = format!("{shown}/{copy}");
        for format in ["md", "html", "json"] {
            let exit = if copy == "one-bit-flipped" { 1 } else { 3 };
            let told = run(&["--root", &forged, "report", "tour", "--format", format]).expect(exit);
            assert!(!told.out.contains("git_push"), "{}", told.out);
        }
    }
    // The proofs of an earlier report lie there still, and are named.
    let forged = format!("{shown}/one-bit-flipped");
    let told = run(&["--root", &forged, "report", "tour", "--proofs", &proofs]).expect(1);
    assert!(told.err.contains("proves nothing"), "{}", told.err);
    assert!(fs::exists(&proofs).expect("readable"));
}

#[test]
fn a_session_of_a_world_without_a_defence_has_no_report() {
    let world = World::bare();
    let keep = world.path("kept");
    let shown = keep.to_string_lossy().into_owned();
    world
        .run(&["demo", "--without", "ladder-floor", "--keep", &shown])
        .expect(1);
    let told = fs::read_to_string(keep.join("report.md")).expect("written");
    assert!(told.starts_with("# NO REPORT"), "{told}");
    assert!(!told.contains("git_push"));
    let mut command = world.command(&["--root", &format!("{shown}/workspace"), "report", "latest"]);
    command.env("LODESTAR_CONFIG_DIR", format!("{shown}/config"));
    let told = crate::world::Run::of(command.output().expect("started")).expect(1);
    assert!(told.out.contains("defences taken out"), "{}", told.out);
}

/// The session of the operator who promoted something, and its events.
fn promotion(world: &World) -> std::path::PathBuf {
    let log = world.log("web");
    let sessions = log.sessions_on_disk().expect("read");
    let mut operators = sessions.iter().filter(|id| id.as_str().starts_with("op-"));
    let dirs = operators.by_ref().map(|id| log.session(id));
    dirs.map(|dir| dir.events_path())
        .find(|path| {
            fs::read_to_string(path)
                .expect("readable")
                .contains("belief.promoted")
        })
        .expect("somebody promoted something")
}

/// Beliefs outlive sessions, so a promotion lies in a session of its own. Whoever edits that one edits what
/// the report of this one says.
#[test]
fn a_promotion_in_another_session_cannot_be_edited_away() {
    let world = World::new();
    world.will_be_edited();
    world.add_operator();
    let told = crate::governed::told(&world);
    let belief = told.content.to_string();
    world
        .run(&["belief", "promote", &belief, "--yes"])
        .expect(0);
    let path = promotion(&world);
    let operator = path
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str())
        .expect("a name")
        .to_owned();
    let report = world.run(&["report", "s-1", "--json"]).expect(0).json();
    let answer = &report["answers"]["untrusted_became_trusted"];
    assert_eq!(answer["answer"], "yes");
    let because = answer["because"].as_str().expect("text");
    assert!(because.contains(&operator), "{because}");

    let refused = |what: &str| {
        let run = world.run(&["report", "s-1", "--json"]).expect(1);
        let page = run.json();
        assert_eq!(page["refused"]["because"], "not_intact", "{what}");
        assert!(page["refused"].to_string().contains(&operator), "{page}");
        assert!(page.get("answers").is_none(), "{what}: {page}");
        let page = world.run(&["report", "s-1"]).expect(1);
        assert!(page.out.starts_with("# NO REPORT"), "{what}: {}", page.out);
    };
    let whole = fs::read(&path).expect("readable");
    for at in (0..whole.len()).step_by(whole.len() / 13) {
        let mut edited = whole.clone();
        edited[at] ^= 1;
        fs::write(&path, edited).expect("written");
        refused("a byte");
    }
    // The line with the promotion, cut off and left out.
    let text = String::from_utf8(whole.clone()).expect("UTF-8");
    let kept = text
        .lines()
        .filter(|line| !line.contains("belief.promoted"));
    fs::write(
        &path,
        kept.map(|line| format!("{line}\n")).collect::<String>(),
    )
    .expect("written");
    refused("a line");
    fs::remove_file(&path).expect("removed");
    refused("no file");
    let aside = world.path("aside");
    fs::write(&aside, &whole).expect("written");
    std::os::unix::fs::symlink(&aside, &path).expect("linked");
    refused("a link");
    fs::remove_file(&path).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo").success());
    refused("a pipe");
    fs::remove_file(&path).expect("removed");
    fs::write(&path, &whole).expect("written");
    world.run(&["report", "s-1"]).expect(0);
}
