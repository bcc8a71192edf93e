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

#[test]
fn lines_that_multiply_are_held_soon() {
    let mut nested = "ls $x".to_owned();
    for _ in 0..7 {
        nested = format!("x=a; sh -c {} $x", quoted(&nested).replace("ls", "$x ls"));
    }
    let functions: String = (0..2000)
        .map(|n| format!("f{n}() {{ f{}; }}; ", n + 1))
        .collect();
    let wrapped = format!("x={}; {}", "a ".repeat(8000), "env $x; ".repeat(4000));
    let places = "cd a; cd b; cat $x; ".repeat(1500);
    for line in [nested, functions, wrapped, places] {
        let began = std::time::Instant::now();
        assert!(read(&line).rung >= Rung::L4);
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }
}

#[test]
fn quotes_around_and_inside_a_name_change_nothing() {
    let reserved = ["if", "for", "while", "case", "exec", "time", "coproc"];
    let mut disguised = 0;
    for (rung, line) in &*JOINABLE {
        let end = line
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let whole = rest.is_empty() || rest.starts_with(' ');
        if name.len() < 2 || !whole || reserved.contains(&name) {
            continue;
        }
        let (head, tail) = name.split_at(1);
        let hex: String = name.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        let octal: String = name.bytes().map(|byte| format!("\\{byte:03o}")).collect();
        for disguise in [
            format!("\"{name}\""),
            format!("'{name}'"),
            format!("{head}''{tail}"),
            format!("{head}\"\"{tail}"),
            format!("\\{name}"),
            format!("{head}\\{tail}"),
            format!("$'{name}'"),
            format!("$'{hex}'"),
            format!("$'{octal}'"),
            format!("{head}\\\n{tail}"),
            format!("$\"{name}\""),
        ] {
            let line = format!("{disguise}{rest}");
            assert_eq!(read(&line).rung, *rung, "{line}");
            disguised += 1;
        }
    }
    assert!(disguised > 4000, "{disguised}");
}

#[test]
fn what_is_held_stays_held_in_any_disguise() {
    let held = JOINABLE.iter().filter(|(rung, _)| *rung >= Rung::L4);
    for (rung, line) in held {
        let words = quoted(line);
        for disguised in [
            format!("eval {words}"),
            format!("bash -c {words}"),
            format!("echo {words} | sh"),
            format!("sh <<< {words}"),
            format!("env -i bash -c {words}"),
            format!("find . -exec sh -c {words} \\;"),
            format!("ls | xargs -I@ sh -c {words}"),
            format!("trap {words} EXIT"),
            format!("nohup timeout 5 nice -n 1 sh -c {words} &"),
            format!("true && {{ (eval {words}) ; }}"),
            format!("watch {words}"),
            format!("alias x={words}"),
            format!("bash <<'END'\n{line}\nEND"),
        ] {
            let reading = read(&disguised);
            assert!(
                reading.rung >= *rung,
                "{} < {rung}: {disguised}",
                reading.rung
            );
        }
        // What a variable holds is only guessed, so what is prohibited may be held there.
        let kept = format!("X={words}; eval \"$X\"");
        assert!(read(&kept).rung >= Rung::L4, "{kept}");
    }
}
