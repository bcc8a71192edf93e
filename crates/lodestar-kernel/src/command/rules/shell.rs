//! Shells, and what a shell does itself.

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;

use super::given;
use crate::command::arithmetic::is_keyed;
use crate::command::expand::{Arg, Sure};
use crate::command::grade::{COMPUTED, Grade, Grader, Stdin};
use crate::command::paths::{MARK, Use};
use crate::command::simple::is_outgoing;
use crate::command::variables;

impl Grader {
    pub(super) fn shell(&mut self, name: &str, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        let mut at = 0;
        let mut text = false;
        while let Some(arg) = args
            .get(at)
            .filter(|arg| arg.text.starts_with(['-', '+']) && arg.text.len() > 1)
        {
            let word = arg.text.as_str();
            at += 1;
            match word {
                "--" => break,
                "--login" | "--norc" | "--noprofile" | "--posix" => {}
                "-o" | "+o" | "-O" | "+O" => at += 1,
                _ if word.starts_with("--") || !arg.is_known() => {
                    let reason = format!("nobody graded `{name} {}`", Excerpt::of(word));
                    grade.raise(Rung::L4, reason);
                }
                _ => {
                    // Shells do not agree whether what follows `-c` can still be an option.
                    if text && !word[1..].chars().all(char::is_alphanumeric) {
                        self.nested(word, grade);
                        grade.raise(Rung::L4, format!("what `{name} -c` runs is not clear"));
                    }
                    text |= word.starts_with('-') && word.contains('c');
                    if word.contains(['s', 'i']) {
                        grade.raise(Rung::L4, format!("`{name}` runs whatever it reads"));
                    }
                    // `-ofoo` and `-co pipefail`: the next word belongs to it.
                    at += usize::from(word.ends_with('o') && word.len() > 2);
                }
            }
        }
        // `-` is what it reads, too.
        let Some(first) = args.get(at).filter(|first| first.text != "-") else {
            // What it reads is run.
            let here = matches!(stdin, Stdin::Text(_)) && self.reads_here;
            if let Stdin::Text(text) = stdin {
                self.nested(text, grade);
            }
            return match here {
                true => {}
                false => grade.raise(Rung::L4, format!("`{name}` runs whatever it reads")),
            };
        };
        if text {
            return match first.literal() {
                Some(text) => self.nested(text, grade),
                // Patterns are no patterns in quotes; a mark is.
                None if first.sure == Sure::Fixed => self.nested(&first.text.clone(), grade),
                None => {
                    // What is known of it may already be too much, be the rest a word or nothing.
                    for stands_for in ["x", " "] {
                        self.nested(&first.text.replace(MARK, stands_for), grade);
                    }
                    grade.raise(
                        Rung::L4,
                        format!("what `{name} -c` runs is only known when it runs"),
                    );
                }
            };
        }
        self.script_file(first, grade);
        self.works(&args[at + 1..], grade);
    }

    fn script_file(&mut self, file: &Arg, grade: &mut Grade) {
        let shown = Excerpt::of(&file.text);
        grade.raise(Rung::L3, format!("`{shown}` runs code of the project"));
        if file.sure != Sure::Fixed || file.pattern || !self.places.is_inside(&file.text) {
            grade.raise(
                Rung::L4,
                "which script runs is not known, or it lies outside the project",
            );
        }
        if is_outgoing(file.text.rsplit('/').next().unwrap_or_default()) {
            grade.raise(
                Rung::L4,
                format!("`{shown}` is named for what leaves this machine"),
            );
        }
        self.places
            .judge(&file.text, Use::Reads, file.pattern, grade);
    }

    /// `test` and `[`: a name with an index is computed with, whatever quotes it stands in.
    pub(super) fn test(&mut self, args: &[Arg], grade: &mut Grade) {
        for (at, arg) in args.iter().enumerate() {
            variables::judge_value(&arg.text, grade);
            let names = matches!(arg.text.as_str(), "-v" | "-R");
            if names
                && let Some(name) = args.get(at + 1)
                && !self.numbers.looks_at(&name.text)
            {
                grade.raise(Rung::L4, COMPUTED);
            }
            if names && args.get(at + 1).is_some_and(|name| !name.is_known()) {
                let reason = "which variable is looked at is only known when it runs";
                grade.raise(Rung::L4, reason);
            }
            if !arg.is_option() {
                self.places.judge(&arg.text, Use::Names, arg.pattern, grade);
            }
        }
    }

    pub(super) fn jobs(&mut self, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        for (at, arg) in args.iter().enumerate() {
            if !arg.is_known() {
                grade.raise(Rung::L4, "what `jobs` does is only known when it runs");
            }
            // Behind `-x` stands a command.
            if given(&arg.text, "-x").is_some() {
                self.behind(&args[at + 1..], stdin, grade);
            }
        }
    }

    pub(super) fn source(&mut self, args: &[Arg], grade: &mut Grade) {
        match args {
            [] => grade.raise(Rung::L4, "which file is run is not named"),
            [file, rest @ ..] => {
                self.script_file(file, grade);
                self.works(rest, grade);
            }
        }
    }

    /// `trap` and `alias` keep a command for later; whatever it is, it counts now.
    pub(super) fn trap(&mut self, name: &str, args: &[Arg], grade: &mut Grade) {
        let options = args
            .iter()
            .take_while(|arg| matches!(arg.text.as_str(), "-l" | "-p" | "-P" | "--" | "-a"))
            .count();
        // What a signal interrupts goes on with the variables that it left.
        let ends = args
            .last()
            .is_some_and(|last| matches!(last.text.as_str(), "EXIT" | "0"));
        for arg in &args[options..] {
            // `alias name=command`, but `trap 'NAME=value command'`.
            let text = match arg.text.split_once('=') {
                Some((_, value)) if name != "trap" => value,
                _ => arg.text.as_str(),
            };
            let signal = text
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-');
            if arg.sure != Sure::Fixed {
                grade.raise(Rung::L4, "what runs later is only known when it runs");
            } else if !signal {
                let text = text.to_owned();
                let (script, _) = crate::command::parse::parse(&text, 0);
                if !ends && variables::sets(std::slice::from_ref(&script), None) {
                    grade.raise(Rung::L4, "it sets variables between other commands");
                }
                self.nested(&text, grade);
                self.later.push(text);
            }
        }
    }

    pub(super) fn set(&mut self, args: &[Arg], grade: &mut Grade) {
        if args.is_empty() {
            grade.raise(Rung::L4, "it shows every variable, credentials with them");
        }
        for arg in args {
            let text = arg.text.to_ascii_lowercase();
            // Not `dotglob`: `*` would find what governs the agent.
            const FINE: [&str; 13] = [
                "pipefail",
                "errexit",
                "nounset",
                "xtrace",
                "verbose",
                "noglob",
                "noclobber",
                "nullglob",
                "globstar",
                "extglob",
                "failglob",
                "-o",
                "+o",
            ];
            let letters = |text: &str| {
                text.starts_with(['-', '+'])
                    && text.len() > 1
                    && text[1..].chars().all(|c| "aefnuvxCoEhbms".contains(c))
            };
            match () {
                () if text == "history" || text == "histexpand" => {
                    grade.raise(Rung::L5, "it turns the record of commands off or on");
                }
                () if !arg.is_known() && text.starts_with(MARK) => {
                    grade.raise(Rung::L4, "what it sets is only known when it runs");
                }
                () if FINE.contains(&text.as_str()) || letters(&arg.text) => {}
                () if text == "--" => break,
                () => grade.raise(
                    Rung::L4,
                    format!("nobody graded what `{}` sets", Excerpt::of(&text)),
                ),
            }
        }
    }

    /// `export`, `read` and their kin.
    pub(super) fn variables(&mut self, name: &str, args: &[Arg], grade: &mut Grade) {
        let has = |option: &str| args.iter().any(|arg| given(&arg.text, option).is_some());
        let exports = name == "export" || has("-x");
        let declares = matches!(
            name,
            "declare" | "typeset" | "local" | "export" | "readonly"
        );
        let (whole, prints, integer) = (name, declares && has("-p"), declares && has("-i"));
        if declares && has("-n") && name != "export" {
            grade.raise(
                Rung::L4,
                "it gives a variable another name, by which it can be set",
            );
        }
        if matches!(name, "mapfile" | "readarray") && has("-C") {
            for arg in args {
                let text = given(&arg.text, "-C").filter(|text| !text.is_empty());
                self.nested(text.unwrap_or(&arg.text).to_owned().as_str(), grade);
            }
            grade.raise(
                Rung::L4,
                format!("`{name} -C` runs a command for lines that it reads"),
            );
        }
        // Only in the line's own shell, and only where it surely runs.
        let keyed = matches!(name, "declare" | "typeset")
            && (self.depth, self.unsure) == (1, 0)
            && matches!(args, [option, ..] if option.literal().is_some_and(is_keyed))
            && args[1..].iter().all(|arg| !arg.is_option());
        let mut named = false;
        for arg in args {
            // Options can hold a name too: `read -aname`.
            variables::judge_value(&arg.text, grade);
            if arg.is_option() {
                continue;
            }
            named = true;
            let (name, value) = match arg.text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.text.as_str(), None),
            };
            let name = name.strip_suffix('+').unwrap_or(name);
            if prints && value.is_none() {
                variables::judge_use(name, false, grade);
            }
            match keyed && arg.literal().is_some() {
                true => self.numbers.declare(name),
                false => self.numbers.touch(name),
            }
            if whole == "unset" {
                self.defined.retain(|(own, _)| own != name);
            }
            let computes = match whole {
                "let" => arg.is_known() && self.numbers.computes_text(&arg.text),
                _ => !integer || self.numbers.computes_text(name),
            };
            if !computes {
                grade.raise(
                    Rung::L4,
                    "it computes with a value that is not known to be a number",
                );
            }
            if name.contains(MARK) {
                grade.raise(Rung::L4, "which variable is set is only known when it runs");
            }
            match crate::command::syntax::is_name(name) {
                true => {
                    variables::judge_set(name, exports, grade);
                    if exports && let Some(value) = value {
                        variables::judge_exported(name, value, &self.places, grade);
                    }
                }
                // `read -p "Question"`, `let i++`, `mapfile -d ''`.
                false if name.contains("$(") || name.contains('`') || name.contains('[') => {
                    grade.raise(Rung::L4, "a text holds a command that arithmetic would run");
                }
                false => {}
            }
            if let Some(value) = value {
                variables::judge_value(value, grade);
                if arg.is_known() {
                    self.values.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        let reads = matches!(name, "read" | "mapfile" | "readarray") && !args.is_empty();
        if !named && !reads {
            grade.raise(Rung::L4, "it shows variables, credentials with them");
        }
    }

    pub(super) fn cd(&mut self, args: &[Arg], grade: &mut Grade) {
        let letters = |arg: &&Arg| {
            arg.text.len() > 1
                && arg.text.starts_with('-')
                && arg.text[1..].chars().all(|c| "PLen@-".contains(c))
        };
        let options = args.iter().take_while(letters).count();
        let folders = &args[options..];
        // Some shells change a part of the folder's name for another.
        if folders.len() > 1 {
            grade.raise(
                Rung::L4,
                "which folder it changes to is only known when it runs",
            );
        }
        let folder = match folders.first() {
            None => "~".to_owned(),
            Some(arg) if arg.is_option() => format!("~{MARK}"),
            Some(arg) if arg.text == "-" || arg.text.starts_with('+') => format!("~{MARK}"),
            Some(arg) if !arg.is_known() || arg.pattern => {
                format!("~{MARK}")
            }
            Some(arg) => arg.text.clone(),
        };
        self.places.judge(&folder, Use::Names, false, grade);
        self.enter(&folder);
    }
}
