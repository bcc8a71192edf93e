//! The reference page of graded programs, made of the table and checked in.

use std::fmt::Write as _;

use lodestar_core::ladder::{RUNGS, Rung};

use super::programs::{Effect, Options, Program, Rule, programs};
use super::rules::GIT;

const OPENING: &str = "\
<!-- Made of the table of programs by `LODESTAR_BLESS=1 cargo test -p lodestar-kernel page`. -->
# Shell commands

A command line is parsed into its parts, and each part is graded; [the rung](ladder.md) of the line is that of its strictest
part. Pipes, lists, branches, loops, functions, substitutions, here-documents and shells inside shells are looked
into. This page is made of the table that the reader uses.

- **What is not here is L4.** Nobody graded it. So is what cannot be parsed, what is nested too deep, and what is only known
  when it runs: `$CMD`, `eval \"$X\"`, `curl … | sh`.
- **Options.** A program that is L0 by itself has a list of options that are known to be harmless; any other is L4.
- **Arithmetic** runs the commands in the index of an array, so what is computed with has to be numbers that the line
  itself sets: `((x))` after `read x` is L4, and so is `[[ 'a[$(id)]' -eq 0 ]]`.
- **Paths.** Writing outside the project (absolute, from a home, or climbing) is L4; reading there is not, unless
  it is a credential: `~/.ssh`, `.env`, `*.pem`, `/etc/shadow` and their kin are L4. What governs the agent, such as
  `.lodestar/`, `.git/hooks` or a client's settings, is L5.
- **Redirections** write a file of the project: L3. `/dev/null` is nowhere; `/dev/tcp` is the network.
- **Variables** that decide which code runs (`PATH`, `LD_PRELOAD`, `GIT_*`, `PAGER`, …) are L4 to set, and others that nobody
  graded are L3 before a program. `LODESTAR_*` is L5.
- **Deleting** cannot be taken back: L4; from the root, a home or what the system is made of: L5.
- **Characters** that do not show what they are, such as controls, direction marks and invisible ones, are L4.
- A program in the project, such as `./run-tests.sh`, is code of the project: L3; named for what leaves the machine
  (`deploy`, `publish`, `release`, `push`, `upload`, `install`), L4.

What a program does once it runs is beyond any rule about its words: that is for containment. Links are not followed
here. A pattern such as `*` can find a file whose name reads as an option; only `tar` is held for it.
";

/// The page.
pub fn reference_page() -> String {
    let mut page = String::from(OPENING);
    let _ = writeln!(
        page,
        "\n{} programs.",
        programs().map(|one| one.names.len()).sum::<usize>()
    );
    for rung in RUNGS.iter().rev().map(|spec| spec.rung) {
        let plain = programs().filter(|program| program.rung == rung && !is_told(program));
        let rows: Vec<&Program> = plain.collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(
            page,
            "\n## {rung}: {}\n\n| programs | what | more with |\n|---|---|---|",
            rung.spec().meaning
        );
        for program in rows {
            let names: Vec<String> = program.names.iter().map(|name| code(name)).collect();
            let _ = writeln!(
                page,
                "| {} | {}; {} | {} |",
                names.join(", "),
                program.does,
                looked_at(program.rule),
                raises(program)
            );
        }
    }
    page.push_str("\n## By subcommand\n\nSubcommands that are not here are L4.\n\n| programs | subcommands | rung | what | more with |\n|---|---|---|---|---|\n");
    for program in programs() {
        let Rule::Subcommands(subs) = program.rule else {
            continue;
        };
        let names: Vec<String> = program.names.iter().map(|name| code(name)).collect();
        for sub in subs {
            row(
                &mut page,
                &names.join(", "),
                sub.names,
                sub.rung,
                sub.does,
                &raises(program),
            );
        }
    }
    page.push_str("\n## git\n\nFurther rules look at `branch`, `tag`, `stash`, `remote`, `config`, `checkout`, `reset`, `restore`, `clean` and others: what lists is L0, what puts aside or moves is L3, what throws work away, forces, signs or reaches another repository is L4. All else is L4.\n\n| programs | subcommands | rung | what | L4 with |\n|---|---|---|---|---|\n");
    for (names, rung, does, raising) in GIT {
        let raising: Vec<String> = raising.iter().map(|option| code(option)).collect();
        row(&mut page, "`git`", names, *rung, does, &raising.join(", "));
    }
    page
}

fn row(page: &mut String, program: &str, names: &[&str], rung: Rung, does: &str, more: &str) {
    let names: Vec<String> = names.iter().map(|name| code(name)).collect();
    let _ = writeln!(
        page,
        "| {program} | {} | {rung} | {does} | {more} |",
        names.join(", ")
    );
}

fn is_told(program: &Program) -> bool {
    matches!(program.rule, Rule::Subcommands(_) | Rule::Git)
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn raises(program: &Program) -> String {
    let one = |raise: &super::programs::Raise| {
        let options: Vec<String> = raise.options.iter().map(|option| code(option)).collect();
        let rung = match raise.effect {
            Effect::Is(rung) => rung.to_string(),
            Effect::Writes => "L3, by its path".to_owned(),
        };
        format!("{}: {rung}, {}", options.join(" "), raise.does)
    };
    let mut all: Vec<String> = program.raises.iter().map(one).collect();
    if let Options::Plain(letters, words) = program.options {
        let letters = letters.replace(':', "");
        let letters = (!letters.is_empty()).then(|| code(&format!("-{letters}")));
        let words = words.iter().map(|word| code(word.trim_end_matches('=')));
        let plain: Vec<String> = letters.into_iter().chain(words).collect();
        all.push(match plain.is_empty() {
            true => "any option: L4".to_owned(),
            false => format!("any option but {}: L4", plain.join(" ")),
        });
    }
    all.join("; ")
}

/// How the words behind the name are looked at.
fn looked_at(rule: Rule) -> &'static str {
    match rule {
        Rule::Text => "its words are text",
        Rule::Shows => "a word that is no option sets it: L4",
        Rule::Test => {
            "its words name files that are not opened; a name with a command in its index: L4"
        }
        Rule::Jobs => "what stands behind `-x` is looked through",
        Rule::Coverage => "`run` is graded as Python is; reports are L3, all else L4",
        Rule::Printf => "its words are text; a variable that it sets counts",
        Rule::Names => "its words name files that are not opened",
        Rule::Reads => "its words name files that are read",
        Rule::Searches => "the first word is a pattern, the others are read",
        Rule::Writes => "its words name files that are written: L4 outside the project",
        Rule::Copies => "the last word is written, the others are read",
        Rule::Second => "a second file is written: L3",
        Rule::Deletes => "more than a project: L5",
        Rule::Works => "a word that leads out of the project: L4",
        Rule::Any => "whatever its words are",
        Rule::Wraps(_) | Rule::Command | Rule::Exec => "looked through: the stricter of both",
        Rule::Env => "looked through; alone it shows the environment: L4",
        Rule::Xargs => {
            "looked through; what it reads is known only if it lists files of the project"
        }
        Rule::Interprets(_) => "a script of the project; code in an option or from a pipe: L4",
        Rule::Shell => {
            "`-c` and here-documents are read; a script of the project is L3; a pipe into it is L4"
        }
        Rule::Eval => "read as a command line, where its words are known; else L4",
        Rule::Source => "from outside the project: L4",
        Rule::Trap => "what it keeps for later is read now",
        Rule::Find => "`-exec` is looked through, `-delete` is L4, `-fprint` and its kin write",
        Rule::Sed => "its script is read: `w` writes, `e` is L4; `-i` is L3",
        Rule::Awk => {
            "its program is read: what runs commands, opens files or sends output elsewhere is L4"
        }
        Rule::Jq => "`env` and `$ENV`: L4",
        Rule::Cd => "what follows is read from there too",
        Rule::Set => "options of the shell that nobody graded: L4; the record of commands: L5",
        Rule::Variables => "by the variable",
        Rule::Chmod => "the set-user-id bit and its kin: L4",
        Rule::Dd => "by what it reads and writes: a device is L5",
        Rule::Link => "a target outside the project: L4",
        Rule::Kill => "a job of this shell: L3; `-l`: L0",
        Rule::Make => "a target named for what leaves the machine: L4",
        Rule::Npx => "with `--no-install`, looked through",
        Rule::Ps => "with `e`, which shows environments: L4",
        Rule::Tar => "listing is L0; what runs programs or leaves the folder is L4",
        Rule::Unzip => "listing is L0",
        Rule::Lodestar => "what only shows something; all else is L5",
        Rule::Subcommands(_) | Rule::Git => "by its subcommand",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_says_what_the_table_says() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
        let fresh = reference_page();
        if std::env::var_os("LODESTAR_BLESS").is_some() {
            std::fs::write(&file, &fresh).unwrap();
        }
        let there = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(
            there, fresh,
            "run `LODESTAR_BLESS=1 cargo test -p lodestar-kernel page`"
        );
    }

    #[test]
    fn a_program_that_runs_unasked_has_its_options_graded() {
        for program in programs().filter(|program| program.rung < Rung::L3) {
            let by_words = matches!(
                program.rule,
                Rule::Text
                    | Rule::Shows
                    | Rule::Names
                    | Rule::Reads
                    | Rule::Searches
                    | Rule::Second
                    | Rule::Ps
                    | Rule::Works
            );
            assert!(
                !by_words || program.options != Options::ByRule,
                "{:?}",
                program.names
            );
        }
    }

    #[test]
    fn every_program_is_graded_once() {
        let mut names = BTreeSet::new();
        for program in programs() {
            for name in program.names {
                assert!(names.insert(name), "{name} twice");
            }
            assert_eq!(
                program.does.is_empty(),
                matches!(program.rule, Rule::Subcommands(_)),
                "{:?}",
                program.names
            );
        }
        assert!(names.len() >= 400, "{} programs", names.len());
    }
}
