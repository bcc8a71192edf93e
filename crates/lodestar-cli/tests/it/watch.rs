//! `approve watch` in a real terminal.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use lodestar_core::time::Timestamp;
use lodestar_guard::channel::{Channel as _, Closing, Notice};
use serde_json::json;

use crate::asked::{
    announce, answers, block_on, drop_directory, hostile, last_four, request, settled,
};
use crate::terminal::{at_terminal, python};
use crate::tmux::{Pane, tmux};
use crate::world::{HOSTILE, World, assert_inert};

const WATCH: [&str; 2] = ["approve", "watch"];
const WIDE: (u16, u16) = (100, 40);

/// Rows of the screen that are ours alone: the first, the rule and the last.
#[track_caller]
fn assert_frame(screen: &str, columns: usize, rows: usize) {
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines.len() <= rows, "{screen}");
    assert!(lines[0].starts_with("lodestar "), "{screen}");
    let rules = lines.iter().filter(|line| line.starts_with("──")).count();
    assert_eq!(rules, 1, "{screen}");
    assert!(
        lines.iter().all(|line| line.chars().count() <= columns),
        "{screen}"
    );
    assert_inert(screen);
}

#[test]
fn requests_arrive_live_and_go_live_and_what_ran_is_told() {
    if !tmux() {
        return;
    }
    let world = World::new();
    let drop = drop_directory(&world);
    let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], WIDE);
    pane.wait_for("nothing waits for a person");
    let first = request(1);
    announce(&drop, &first);
    let screen = pane.wait_for("1 request waiting");
    for text in [
        "+ given",
        "+ measured",
        "! read",
        "? unknown",
        "goes out",
        "2 approvers; roles: release-manager",
        "nobody yet; missing: 2",
        &last_four(&first),
    ] {
        assert!(screen.contains(text), "{text}:\n{screen}");
    }
    assert_frame(&screen, 100, 40);
    announce(&drop, &request(2));
    pane.wait_for("2 requests waiting");
    pane.press(&["Down"]);
    let second = request(2).request.id.to_string();
    pane.wait("the second one chosen", |screen| {
        screen
            .lines()
            .any(|l| l.starts_with("> ") && l.contains(&second[..20]))
    });
    let notice = Notice {
        session: first.request.session.clone(),
        at: Timestamp::from_unix_micros(1_767_323_045_000_000).expect("in range"),
        what: format!("fs.write {HOSTILE}"),
    };
    block_on(drop.notify(&notice)).expect("told");
    assert_frame(
        &pane.wait_for("ran 2026-01-02 03:04:05  fs.write IGNORE"),
        100,
        40,
    );
    block_on(drop.withdraw(first.request.id, Closing::Expired)).expect("withdrawn");
    pane.wait_for("1 request waiting");
    pane.press(&["q"]);
    let left = pane.wait_for("[left with 0]");
    assert!(
        !left.contains("waiting"),
        "the screen is given back:\n{left}"
    );
    pane.wait("an echoing terminal", |screen| screen.contains(" echo"));
}

#[test]
fn a_process_that_is_told_to_end_gives_the_terminal_back() {
    if !tmux() {
        return;
    }
    for signal in ["-TERM", "-HUP"] {
        let world = World::new();
        announce(&drop_directory(&world), &request(1));
        let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], WIDE);
        pane.wait_for("1 request waiting");
        let pid = process_of(&world).to_string();
        let killed = Command::new("kill").args([signal, &pid]).status();
        assert!(killed.expect("started").success());
        let left = pane.wait_for("[left with 0]");
        assert!(!left.contains("waiting"), "{signal}:\n{left}");
        pane.wait("an echoing terminal", |screen| screen.contains(" echo"));
    }
}

#[test]
fn a_process_whose_terminal_is_gone_ends() {
    if !tmux() {
        return;
    }
    let world = World::new();
    announce(&drop_directory(&world), &request(1));
    let pane = Pane::run(&world, &WATCH, &[], WIDE);
    pane.wait_for("1 request waiting");
    let process = PathBuf::from(format!("/proc/{}", process_of(&world)));
    drop(pane);
    let until = Instant::now() + Duration::from_secs(20);
    while process.exists() {
        assert!(Instant::now() < until, "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The binary that was started for this world.
fn process_of(world: &World) -> u32 {
    let config = world.path("config").to_string_lossy().into_owned();
    let of_world = |pid: &u32| {
        let read = |what: &str| fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&read("environ")).into_owned();
        read("comm") == b"lodestar\n" && environment.contains(&config)
    };
    let entries = fs::read_dir("/proc").expect("readable");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.into_iter().find(of_world).expect("it runs")
}

#[test]
fn a_request_is_granted_and_another_denied_with_a_passphrase() {
    if !tmux() || !python() {
        return;
    }
    let world = World::new();
    let drop = drop_directory(&world);
    let typed = "correct horse battery\r";
    let steps = [
        (
            "Passphrase for the new key of alice (8 characters or more): ",
            typed,
        ),
        ("Once more: ", typed),
    ];
    let made = at_terminal(
        &world,
        &["approve", "keygen", "--name", "alice"],
        &[],
        &steps,
    );
    assert_eq!(made.code, 0, "{}", made.screen);
    let asked = request(1);
    announce(&drop, &asked);
    let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], WIDE);
    pane.wait_for("1 request waiting");
    pane.press(&["g"]);
    pane.wait_for("GRANT: last four:");
    pane.type_in("zzzz");
    pane.press(&["Enter"]);
    pane.wait_for("nothing was signed");
    pane.press(&["g"]);
    // What arrives meanwhile does not slip under the hand.
    announce(&drop, &request(0));
    pane.wait_for("2 requests waiting");
    pane.type_in(&last_four(&asked));
    pane.press(&["Enter"]);
    pane.wait_for("passphrase of alice:");
    pane.type_in("wrong");
    pane.press(&["Enter"]);
    pane.wait("a refusal", |screen| {
        screen.contains("passphrase") && !screen.contains("passphrase of")
    });
    assert!(answers(&world).is_empty());
    for (key, question) in [("g", "GRANT"), ("d", "DENY")] {
        pane.press(&[key]);
        pane.wait_for(&format!("{question}: last four:"));
        pane.type_in(&last_four(&asked));
        pane.press(&["Enter"]);
        if key == "d" {
            pane.wait_for("reason: ");
            pane.type_in("not on a Friday");
            pane.press(&["Enter"]);
        }
        pane.wait_for("passphrase of alice:");
        pane.type_in("correct horse battery");
        assert!(!pane.screen().contains("horse"));
        pane.press(&["Enter"]);
        pane.wait_for(if key == "g" {
            "signed: agreed"
        } else {
            "signed: refused"
        });
    }
    assert_eq!(answers(&world).len(), 2);
    pane.wait_for("2 answers not taken up yet");
    pane.press(&["C-c"]);
    pane.wait_for("[left with 0]");
}

#[test]
fn all_arguments_are_one_key_away() {
    if !tmux() {
        return;
    }
    let world = World::new();
    let mut asked = request(1);
    asked.request.card.action.arguments["body"] =
        json!((0..500).map(|n| format!("line {n}\n")).collect::<String>());
    announce(&drop_directory(&world), &settled(asked));
    let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], WIDE);
    pane.wait_for("1 request waiting");
    pane.press(&["a"]);
    assert_frame(&pane.wait_for("\\nline 7\\n"), 100, 40);
    pane.press(&["End"]);
    pane.wait_for("line 499");
    pane.press(&["a"]);
    pane.wait_for("why held");
}

#[test]
fn hostile_values_cannot_move_hide_or_fake_anything() {
    if !tmux() {
        return;
    }
    let huge = "\u{202e}\u{200b}x\ny".repeat(150_000);
    let fake = format!(
        "ok{}\nlast four    0000\r\n──────\nlodestar 0 requests waiting",
        " ".repeat(200)
    );
    for text in [
        HOSTILE,
        "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07\x1b[1;1H\x1bc",
        &huge,
        &fake,
        "p\u{430}ypal\u{301}\u{302}\u{303}\u{304}",
        // Twice as wide as most characters, some of them only where somebody looks it up.
        &format!("{}last four    0000", "⌚☔✅🀄日".repeat(60)),
    ] {
        let world = World::new();
        let asked = hostile(1, text);
        announce(&drop_directory(&world), &asked);
        let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], WIDE);
        pane.wait_for("1 request waiting");
        let four = format!("▌ last four    {}", last_four(&asked));
        assert_frame(&pane.screen(), 100, 40);
        pane.press(&["End"]);
        let end = pane.wait("the end of the card", |screen| {
            screen.lines().any(|line| line == four)
        });
        assert_frame(&end, 100, 40);
        let fours = end
            .lines()
            .filter(|line| line.starts_with("▌ last four") || line.starts_with("last four"))
            .count();
        assert_eq!(fours, 1, "{end}");
        pane.press(&["a"]);
        let arguments = pane.wait_for("a back to the card");
        assert_frame(&arguments, 100, 40);
    }
}

#[test]
fn a_small_terminal_shows_everything_by_scrolling_and_resizing_draws_anew() {
    if !tmux() {
        return;
    }
    let world = World::new();
    let asked = request(1);
    announce(&drop_directory(&world), &asked);
    let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], (40, 12));
    let screen = pane.wait_for("1 request waiting");
    assert_frame(&screen, 40, 12);
    assert!(screen.contains("more below, PgDn"), "{screen}");
    assert!(
        !screen.contains(&last_four(&asked)),
        "it stands at the end:\n{screen}"
    );
    let mut seen = screen;
    for _ in 0..40 {
        pane.press(&["PageDown"]);
        std::thread::sleep(std::time::Duration::from_millis(40));
        seen.push_str(&pane.screen());
    }
    for text in [
        "! read",
        "? unknown",
        "goes out",
        "release-manager",
        &last_four(&asked),
    ] {
        assert!(seen.contains(text), "{text}:\n{seen}");
    }
    pane.resize(100, 40);
    let screen = pane.wait("a wide screen", |screen| screen.contains("all arguments"));
    assert_frame(&screen, 100, 40);
    pane.resize(40, 12);
    let screen = pane.wait("a small screen", |screen| screen.contains("g grant d deny"));
    assert_frame(&screen, 40, 12);
}

#[test]
fn colour_follows_provenance_and_words_tell_it_without() {
    if !tmux() {
        return;
    }
    let world = World::new();
    announce(&drop_directory(&world), &request(1));
    let pane = Pane::run(&world, &WATCH, &[], WIDE);
    pane.wait_for("1 request waiting");
    let coloured = pane.coloured();
    for (colour, word) in [
        ("32", "+ given"),
        ("36", "+ measured"),
        ("33", "! read"),
        ("31", "? unknown"),
    ] {
        let line = coloured
            .lines()
            .find(|line| line.contains(word))
            .unwrap_or_default();
        let before = line.split(word).next().unwrap_or_default();
        assert!(before.contains(&format!("\x1b[{colour}m")), "{line:?}");
    }
    let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], WIDE);
    pane.wait_for("1 request waiting");
    let plain = pane.coloured();
    assert!(!plain.contains("\x1b[3"), "{plain:?}");
    assert!(plain.contains("? unknown"), "{plain:?}");
}

#[test]
fn without_a_screen_it_says_what_to_use_instead_and_streams_as_json() {
    let world = World::new();
    let drop = drop_directory(&world);
    let run = world.run(&WATCH).expect(2);
    assert!(run.err.contains("approve list"), "{}", run.err);
    let mut command = world.command(&["approve", "watch", "--json"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("piped")));
    let mut next = || -> serde_json::Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    let asked = request(1);
    announce(&drop, &asked);
    assert_eq!(next()["happened"], "opened");
    block_on(drop.withdraw(asked.request.id, Closing::Denied)).expect("withdrawn");
    assert_eq!(next()["happened"], "closed");
    let _ = child.kill();
    let _ = child.wait();
    assert!(fs::read_dir(world.root().join(".lodestar/approvals")).is_ok());
}

#[test]
fn the_screen_goes_on_whatever_becomes_of_the_folder_and_shows_what_comes_after() {
    if !tmux() {
        return;
    }
    let world = World::new();
    let drop = drop_directory(&world);
    announce(&drop, &request(1));
    let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], WIDE);
    pane.wait_for("1 request waiting");
    // A link in place of the folder is an error for everybody who looks.
    let approvals = world.root().join(".lodestar/approvals");
    let away = world.root().join("away");
    fs::rename(&approvals, &away).expect("moved");
    std::os::unix::fs::symlink(&away, &approvals).expect("linked");
    pane.wait_for("links are not followed");
    pane.press(&["Down"]);
    fs::remove_file(&approvals).expect("removed");
    fs::rename(&away, &approvals).expect("moved back");
    announce(&drop, &request(2));
    let screen = pane.wait("2 requests and no trouble", |screen| {
        screen.contains("2 requests waiting") && !screen.contains("not followed")
    });
    assert_frame(&screen, 100, 40);
    pane.press(&["q"]);
    pane.wait_for("[left with 0]");
}

#[test]
fn keys_are_read_while_very_much_is_looked_at() {
    if !tmux() {
        return;
    }
    let world = World::new();
    announce(&drop_directory(&world), &request(1));
    let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], WIDE);
    pane.wait_for("1 request waiting");
    let folder = world.root().join(".lodestar/approvals/s-0");
    fs::create_dir(&folder).expect("created");
    let value = format!("[{}0]", "0,".repeat(10 << 20));
    for n in 0..5u64 {
        let id = lodestar_core::id::RequestId::from_parts(n, [3; 10]);
        fs::write(folder.join(format!("{id}.request.json")), &value).expect("written");
    }
    let asked = std::time::Instant::now();
    pane.press(&["a"]);
    pane.wait_for("a back to the card");
    assert!(asked.elapsed().as_millis() < 1500, "{:?}", asked.elapsed());
    pane.press(&["q"]);
    pane.wait_for("[left with 0]");
}

#[test]
fn two_requests_of_one_id_are_two_on_the_screen() {
    if !tmux() {
        return;
    }
    let world = World::new();
    announce(&drop_directory(&world), &request(1));
    let mut other = request(1);
    other.request.session = "s-2".parse().expect("a name");
    other.request.card.action.arguments["to"] = json!("eve@evil.example");
    announce(&drop_directory(&world), &settled(other));
    let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], WIDE);
    pane.wait_for("2 requests waiting");
    pane.wait_for("anna@corp.example");
    pane.press(&["Down"]);
    let screen = pane.wait_for("eve@evil.example");
    assert!(screen.contains("s-2 of project"), "{screen}");
    let chosen = screen.lines().position(|line| line.starts_with("> "));
    assert_eq!(chosen, Some(2), "{screen}");
}

#[test]
fn why_nothing_was_signed_can_be_read_in_forty_columns() {
    if !tmux() {
        return;
    }
    let world = World::new();
    announce(&drop_directory(&world), &request(1));
    world.add_operator();
    world.write(
        "work/lodestar.toml",
        "project_id = \"web\"\nactor_id = \"agent\"\n",
    );
    let pane = Pane::run(&world, &WATCH, &[("NO_COLOR", "1")], (40, 18));
    pane.wait_for("1 request waiting");
    pane.press(&["g"]);
    pane.wait_for("last four: _");
    pane.type_in(&last_four(&request(1)));
    pane.press(&["Enter"]);
    let screen = pane.wait_for("nothing was signed");
    assert_frame(&screen, 40, 18);
    let joined = screen.replace('\n', " ").replace("  ", " ");
    let why = "this key is not in `approvals.authorized_keys`, so the word of `alice` would count for nothing";
    assert!(joined.contains(why), "{screen}");
    pane.press(&["x"]);
    pane.wait_for("g grant d deny");
}

/// Every row of a card starts with a mark, and only ours with the bar.
#[track_caller]
fn assert_card(card: &str, columns: usize, four: &str) {
    let rows: Vec<&str> = card.lines().filter(|row| !row.is_empty()).collect();
    assert!(rows.len() > 40, "{card}");
    for row in &rows {
        assert!(row.starts_with(['▌', '┆']), "{row:?}:\n{card}");
        assert!(row.chars().count() <= columns, "{row:?}:\n{card}");
    }
    for label in ["▌ needs", "▌ agreed", "▌ fingerprint", "▌ last four"] {
        let found = rows.iter().filter(|row| row.starts_with(label)).count();
        assert_eq!(found, 1, "{label}:\n{card}");
    }
    let last = rows.last().expect("rows");
    assert!(last.ends_with(four), "{card}");
}

#[test]
fn no_value_fakes_a_row_of_a_card_however_narrow_the_terminal() {
    if !tmux() {
        return;
    }
    let world = World::new();
    world.add_operator();
    let mut asked = request(1);
    for pad in 0..40 {
        let fake = "▌ needs        1 ok".to_owned() + &" ".repeat(21);
        let fake = format!("{}{fake}▌ last four    beef", "x".repeat(pad));
        let arguments = &mut asked.request.card.action.arguments;
        arguments.insert(format!("a{pad:02}"), json!(fake));
    }
    let asked = settled(asked);
    announce(&drop_directory(&world), &asked);
    let (id, four) = (asked.request.id.to_string(), last_four(&asked));
    let plain = [("NO_COLOR", "1")];
    for columns in [22, 40, 59, 100] {
        let size = (columns, 900);
        let pane = Pane::run(&world, &["approve", "show", &id], &plain, size);
        let screen = pane.wait_for("[left with 0]");
        let card = screen.split("[left with").next().expect("a card");
        assert_card(card, columns.into(), &four);
    }
    let pane = Pane::run(&world, &["approve", "grant", &id], &plain, (41, 900));
    let screen = pane.wait_for("Last four characters");
    let card = screen.split("Last four characters").next().expect("a card");
    assert_card(card, 41, &four);
}

#[test]
fn a_row_of_the_list_names_its_request_in_a_narrow_terminal() {
    if !tmux() {
        return;
    }
    let world = World::new();
    announce(&drop_directory(&world), &request(1));
    let pane = Pane::run(&world, &["approve", "list"], &[("NO_COLOR", "1")], (40, 12));
    let screen = pane.wait_for("[left with 0]");
    let row = screen.lines().next().expect("a row");
    assert!(
        row.chars().count() <= 40 && row.contains("mail.send"),
        "{screen}"
    );
    let named = row.split(' ').next().expect("an id");
    world.run(&["approve", "show", named]).expect(0);
}
