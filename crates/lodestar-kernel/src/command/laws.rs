//! Laws of reading: joining, wrapping and quoting never lower a grade, and no text breaks the reader.

use std::sync::LazyLock;

use lodestar_core::ladder::Rung;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::tests::commands;
use super::{MAX_DEPTH, MAX_LEN, read};

/// Lines that can stand inside others as they are: complete, on one line, without a comment at the end.
static JOINABLE: LazyLock<Vec<(Rung, String)>> = LazyLock::new(|| {
    commands()
        .filter(|(_, _, line)| {
            !line.contains(['\n', '#', '\u{202e}', '\u{200b}']) && !line.ends_with('&')
        })
        .filter(|(_, _, line)| super::parse::parse(line, 0).1.is_none())
        .map(|(_, rung, line)| (rung, line))
        .collect()
});

fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', r"'\''"))
}

/// Every way to make a line out of two, and out of one.
fn joins(a: &str, b: &str) -> Vec<String> {
    let mut lines: Vec<String> = ["; ", " && ", " || ", " | ", " & ", "\n", " |& "]
        .iter()
        .map(|sign| format!("{a}{sign}{b}"))
        .collect();
    lines.extend([
        format!("{a}; echo $( {b} )"),
        format!("{a}; echo \"$( {b} )\""),
        format!("{a}; cat <( {b} )"),
        format!("( {a} ); {{ {b}; }}"),
        format!("if {a}; then {b}; fi"),
        format!("while {a}; do {b}; done"),
        format!("for x in 1; do {a}; {b}; done"),
        format!("case x in x) {a} ;; *) {b} ;; esac"),
        format!("fn_of_line() {{ {a}; {b}; }}; fn_of_line"),
        format!("! {a} || {b}"),
        format!("sh -c {} && bash -c {}", quoted(a), quoted(b)),
        format!("sh -c {}", quoted(&format!("{a}; bash -c {}", quoted(b)))),
        format!("eval {}; eval {}", quoted(a), quoted(b)),
        format!("cat <<END\n$( {a} )\nEND\n{b}"),
        format!("bash <<'END'\n{a}\n{b}\nEND"),
        format!("x=$( {a} ) y=$( {b} )"),
        format!("[[ -n $( {a} ) && -n $( {b} ) ]]"),
        format!("echo $(( $( {a} ) + $( {b} ) )) ${{z:-$( {a} )}}"),
    ]);
    if !a.contains(['`', '\\']) {
        lines.push(format!("echo `{a}`; {b}"));
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_line_is_never_graded_below_its_parts(a: Index, b: Index) {
        let all = &*JOINABLE;
        let (first, a) = a.get(all);
        let (second, b) = b.get(all);
        let strictest = *first.max(second);
        for line in joins(a, b) {
            let reading = read(&line);
            prop_assert!(reading.rung >= strictest, "{} < {strictest}: {line}", reading.rung);
        }
    }

    #[test]
    fn quotes_around_and_inside_a_name_change_nothing(at: Index) {
        let all = &*JOINABLE;
        let (rung, line) = at.get(all);
        let end = line.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let reserved = ["if", "for", "while", "case", "exec", "time", "coproc"];
        let whole = rest.is_empty() || rest.starts_with(' ');
        prop_assume!(name.len() > 1 && whole && !reserved.contains(&name));
        let (head, tail) = name.split_at(1);
        let hex: String = name.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        let octal: String = name.bytes().map(|byte| format!("\\{byte:03o}")).collect();
        for disguise in [
            format!("\"{name}\""), format!("'{name}'"), format!("{head}''{tail}"), format!("{head}\"\"{tail}"),
            format!("\\{name}"), format!("{head}\\{tail}"), format!("$'{name}'"), format!("$'{hex}'"),
            format!("$'{octal}'"), format!("{head}\\\n{tail}"), format!("$\"{name}\""),
        ] {
            let line = format!("{disguise}{rest}");
            prop_assert_eq!(read(&line).rung, *rung, "{}", line);
        }
    }

    #[test]
    fn what_is_held_stays_held_in_any_disguise(at: Index, how in 0..12usize) {
        let held: Vec<_> = JOINABLE.iter().filter(|(rung, _)| *rung >= Rung::L4).collect();
        let (rung, line) = at.get(&held);
        let words = quoted(line);
        let disguised = match how {
            0 => format!("eval {words}"),
            1 => format!("bash -c {words}"),
            2 => format!("echo {words} | sh"),
            3 => format!("sh <<< {words}"),
            4 => format!("X={words}; eval \"$X\""),
            5 => format!("env -i bash -c {words}"),
            6 => format!("find . -exec sh -c {words} \\;"),
            7 => format!("ls | xargs -I@ sh -c {words}"),
            8 => format!("trap {words} EXIT"),
            9 => format!("nohup timeout 5 nice -n 1 sh -c {words} &"),
            10 => format!("true && {{ (eval {words}) ; }}"),
            _ => format!("watch {words}"),
        };
        let floor = match how {
            // What a variable holds is guessed, so a prohibited line may be held there.
            4 => Rung::L4,
            _ => *rung,
        };
        prop_assert!(read(&disguised).rung >= floor, "{disguised}");
    }

    #[test]
    fn no_text_breaks_the_reader(text: String) {
        let reading = read(&text);
        prop_assert!(!reading.reason.is_empty());
        prop_assert!(reading.parts.iter().all(|part| part.rung <= reading.rung));
    }

    #[test]
    fn no_heap_of_signs_breaks_the_reader(signs in proptest::collection::vec(select(vec![
        "$(", ")", "`", "\"", "'", "{", "}", "((", "))", "[[", "]]", "<<A", "\nA\n", "|", "&&", ";", ";;", "if ",
        "then ", "fi ", "for x in ", "do ", "done ", "case x in ", "esac ", "ls ", "rm ", "$x", "${", "<(", ">", "\\",
        "\n", "#", "*", "~", "=", "x=", "{a,b}", "$'", "!", "f() ", "sh -c ", "a[1]=",
    ]), 0..60)) {
        let line = signs.concat();
        let reading = read(&line);
        prop_assert!(!reading.reason.is_empty());
    }
}

#[test]
fn what_is_too_long_or_too_deep_is_held() {
    let long = format!("echo {}", "a".repeat(MAX_LEN));
    assert_eq!(read(&long).rung, Rung::L4);
    for (open, close) in [
        ("$(", ")"),
        ("(", ")"),
        ("{ ", "; }"),
        ("\"$(", ")\""),
        ("${x:-", "}"),
    ] {
        let line = |depth: usize| format!("echo {}ls{}", open.repeat(depth), close.repeat(depth));
        assert!(read(&line(MAX_DEPTH * 3)).rung >= Rung::L4, "{open}");
    }
    for heap in [
        "$((", "((", "`", "{", "{a,", "\"$(", "if ", "a=(", "<(", "[[ ", "! ", "$((",
    ] {
        let line = heap.repeat(MAX_LEN / heap.len() / 2);
        assert!(read(&line).rung >= Rung::L4, "{heap}");
    }
}
