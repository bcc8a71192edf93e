//! Programs that read, copy, link and pack files.

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;

use super::{given, is_stream};
use crate::command::expand::{Arg, Sure};
use crate::command::grade::{Grade, Grader};
use crate::command::paths::{MARK, Use};
use crate::command::programs::Program;
use crate::command::simple::sure_of_list;
use crate::command::variables::{judge_set, judge_value};

const UNPACKED: &str = "what is put into the folder itself could be what governs the agent";

impl Grader {
    pub(super) fn printf(&mut self, args: &[Arg], grade: &mut Grade) {
        let Some(first) = args.first() else {
            return;
        };
        if first.sure == Sure::Unknown && first.text.starts_with(MARK) {
            grade.raise(
                Rung::L4,
                "what `printf` could set is only known when it runs",
            );
        }
        let Some(attached) = first.text.strip_prefix("-v") else {
            return;
        };
        let name = match attached {
            "" => args.get(1).and_then(Arg::literal),
            name => first.literal().and(Some(name)),
        };
        match name {
            Some(name) => judge_set(name, false, grade),
            None => grade.raise(Rung::L4, "which variable is set is only known when it runs"),
        }
        for arg in args {
            judge_value(&arg.text, grade);
        }
    }

    pub(super) fn searches(
        &mut self,
        program: &'static Program,
        name: &str,
        args: &[Arg],
        grade: &mut Grade,
    ) {
        let has = |options: &[&str]| {
            args.iter().any(|arg| {
                options
                    .iter()
                    .any(|option| given(&arg.text, option).is_some())
            })
        };
        let pattern_in_option = has(&["-e", "-f", "--regexp", "--file", "--files", "--type-list"]);
        let below =
            !name.ends_with("grep") || has(&["-r", "-R", "--recursive", "--dereference-recursive"]);
        let to = match below {
            true => Use::ReadsBelow,
            false => Use::Reads,
        };
        let mut pattern = !pattern_in_option;
        for arg in args {
            if arg.is_option() {
                self.option_value(arg, grade);
            } else if std::mem::take(&mut pattern) {
                // An unquoted expansion could bring options with it.
                if !arg.is_known() && arg.splits {
                    grade.raise(Rung::L4, "what is searched for is only known when it runs");
                }
            } else {
                self.reads_all(name, std::slice::from_ref(arg), to, grade);
            }
        }
        if !program.raises.is_empty() && args.iter().any(|arg| !arg.is_known()) {
            grade.raise(
                Rung::L4,
                format!("which options `{name}` gets is only known when it runs"),
            );
        }
        if args.iter().all(Arg::is_option) || (below && args.len() < 3) {
            self.places.judge(".", to, false, grade);
        }
    }

    pub(super) fn copies(&mut self, name: &str, args: &[Arg], grade: &mut Grade) {
        let operands: Vec<&Arg> = args.iter().filter(|arg| !arg.is_option()).collect();
        for arg in args.iter().filter(|arg| arg.is_option()) {
            self.option_value(arg, grade);
        }
        let Some((last, sources)) = operands.split_last() else {
            return;
        };
        let links = args.iter().any(|arg| {
            let options = ["-s", "-l", "--symbolic-link", "--link"];
            options
                .iter()
                .any(|option| given(&arg.text, option).is_some())
        });
        for source in sources {
            match name {
                // What is moved away is written too, and what is written through a link.
                "mv" => self.writes_file(source, grade),
                _ if links => self.writes_file(source, grade),
                _ => self.reads_file(source, grade),
            }
            self.places
                .judge(&source.text, Use::ReadsBelow, source.pattern, grade);
        }
        self.writes_file(last, grade);
        let recursive = args.iter().any(|arg| {
            ["-r", "-R", "-a", "--recursive", "--archive"]
                .iter()
                .any(|option| given(&arg.text, option).is_some())
        });
        if recursive && self.places.is_root(&last.text) {
            grade.raise(Rung::L4, UNPACKED);
        }
    }

    pub(super) fn second(&mut self, name: &str, args: &[Arg], grade: &mut Grade) {
        let operands = args.iter().filter(|arg| !arg.is_option());
        for (at, arg) in operands.enumerate() {
            match at {
                0 => self.reads_file(arg, grade),
                _ => {
                    grade.raise(Rung::L3, format!("`{name}` writes its second file"));
                    self.writes_file(arg, grade);
                }
            }
            if arg.splits {
                grade.raise(
                    Rung::L4,
                    format!("which file `{name}` writes is only known when it runs"),
                );
            }
        }
        for arg in args.iter().filter(|arg| arg.is_option()) {
            self.option_value(arg, grade);
        }
    }

    pub(super) fn link(&mut self, args: &[Arg], grade: &mut Grade) {
        for arg in args {
            if arg.is_option() {
                self.option_value(arg, grade);
                continue;
            }
            self.reads_file(arg, grade);
            // Whatever is done through the link is done to what it leads to.
            self.places
                .judge(&arg.text, Use::Writes, arg.pattern, grade);
        }
        if let Some(last) = args.last().and_then(Arg::literal) {
            self.writes.push(last.to_owned());
        }
    }

    pub(super) fn chmod(&mut self, args: &[Arg], grade: &mut Grade) {
        let mut operands = args
            .iter()
            .filter(|arg| !arg.is_option() || is_mode(&arg.text));
        if let Some(mode) = operands.next() {
            let text = mode.text.as_str();
            if !mode.is_known() || text.split(',').any(is_special) {
                grade.raise(
                    Rung::L4,
                    format!(
                        "`chmod {}` gives programs more than their user has",
                        Excerpt::of(text)
                    ),
                );
            }
        }
        for arg in operands {
            self.writes_file(arg, grade);
        }
        for arg in args.iter().filter(|arg| arg.is_option()) {
            if given(&arg.text, "--reference").is_some() {
                grade.raise(
                    Rung::L4,
                    "which rights a file gets is only known when it runs",
                );
            }
            self.option_value(arg, grade);
        }
    }

    pub(super) fn dd(&mut self, args: &[Arg], grade: &mut Grade) {
        for arg in args {
            if !arg.is_known() {
                grade.raise(Rung::L4, "what is copied is only known when it runs");
            }
            let part = |text: &str| Arg {
                text: text.to_owned(),
                ..arg.clone()
            };
            if let Some(path) = arg.text.strip_prefix("of=") {
                self.writes_file(&part(path), grade);
            } else if let Some(path) = arg.text.strip_prefix("if=") {
                self.reads_file(&part(path), grade);
            }
        }
    }

    pub(super) fn jq(&mut self, args: &[Arg], grade: &mut Grade) {
        let mut from_file = false;
        for arg in args {
            let text = &arg.text;
            if text.contains("env") || text.contains("$ENV") || text.contains("input_filename") {
                grade.raise(
                    Rung::L4,
                    "`jq` would show the environment, credentials with it",
                );
            }
            // A module is any file that the program names, and its data are shown.
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let modules = ["import", "include", "modulemeta", "get_search_list"];
            if words.any(|word| modules.contains(&word))
                || given(text, "-L").is_some()
                || given(text, "--library-path").is_some()
            {
                grade.raise(Rung::L4, "`jq` would read other files as modules");
            }
            if given(text, "--from-file").is_some() || given(text, "-f").is_some() {
                from_file = true;
                grade.raise(Rung::L3, "`jq` runs a program from a file");
            }
        }
        let mut operands = args.iter().filter(|arg| !arg.is_option());
        if from_file && args.iter().any(|arg| is_stream(&arg.text)) {
            grade.raise(Rung::L4, "`jq` runs whatever it reads");
        }
        let filter = match from_file {
            true => None,
            false => operands.next(),
        };
        if filter.is_some_and(|filter| !filter.is_known() && filter.splits) {
            grade.raise(Rung::L4, "what `jq` does is only known when it runs");
        }
        for arg in operands {
            self.reads_file(arg, grade);
        }
    }

    /// Listing reads, all else writes; what is packed is read, and what runs programs is held.
    pub(super) fn tar(&mut self, program: &'static Program, args: &[Arg], grade: &mut Grade) {
        const PLAIN: [&str; 34] = [
            "--create",
            "--extract",
            "--get",
            "--list",
            "--file",
            "--verbose",
            "--gzip",
            "--xz",
            "--bzip2",
            "--zstd",
            "--directory",
            "--exclude",
            "--strip-components",
            "--wildcards",
            "--no-same-owner",
            "--keep-old-files",
            "--skip-old-files",
            "--null",
            "--sort",
            "--mtime",
            "--owner",
            "--group",
            "--numeric-owner",
            "--format",
            "--totals",
            "--append",
            "--update",
            "--diff",
            "--compare",
            "--auto-compress",
            "--no-recursion",
            "--dereference",
            "--exclude-vcs",
            "--test-label",
        ];
        // Letters behind a dash, up to one that takes the rest of the word; the first word needs no dash, and its
        // values are the words behind it.
        let letters = |at: usize, arg: &Arg| -> String {
            match arg.text.strip_prefix('-') {
                Some(rest) if rest.starts_with('-') => String::new(),
                Some(rest) => {
                    let end = rest.find(['f', 'C', 'X', 'b', 'H', 'V', 'N']);
                    rest[..end.map_or(rest.len(), |end| end + 1)].to_owned()
                }
                None if at == 0 => arg.text.clone(),
                None => String::new(),
            }
        };
        let mode: String = args
            .iter()
            .enumerate()
            .map(|(at, arg)| letters(at, arg))
            .collect();
        let long = |name: &str| args.iter().any(|arg| arg.text == name);
        let lists = (mode.contains('t') || long("--list")) && !mode.contains(['x', 'c', 'r', 'u']);
        match lists && !long("--extract") && !long("--create") && !long("--get") {
            true if grade.reason.is_empty() => grade.reason = "`tar` lists an archive".to_owned(),
            true => {}
            false => grade.raise(Rung::L3, format!("`tar` {}", program.does)),
        }
        for (at, arg) in args.iter().enumerate() {
            let head = arg.text.split('=').next().unwrap_or_default();
            let known = !head.starts_with("--") || head == "--" || PLAIN.contains(&head);
            // Not `I` and `F`, which run programs, `T`, whose file can hold options, and `P`, which leaves the folder.
            const LETTERS: &str = "ctxrudvzjJZafhkpOmSoCXbHVNiBwW0123456789";
            let runs = !letters(at, arg).chars().all(|c| LETTERS.contains(c));
            if !known || runs {
                let shown = Excerpt::of(&arg.text);
                grade.raise(
                    Rung::L4,
                    format!("`tar {shown}` runs programs, leaves the folder or is not known"),
                );
            }
            // A file whose name begins with a dash would be read as an option.
            if arg.pattern && arg.text.starts_with(['*', '?', '[']) {
                grade.raise(
                    Rung::L4,
                    "a file that the pattern finds could be read as an option of `tar`",
                );
            }
            // `tar cf host:file` goes to another machine.
            let dated = ["--exclude", "--mtime"].contains(&head);
            if arg.text.contains(':') && !dated {
                grade.raise(
                    Rung::L4,
                    "`tar` takes a name with a colon for another machine",
                );
            }
        }
        let extracts = mode.contains('x') || long("--extract") || long("--get");
        let elsewhere = args.iter().enumerate().any(|(at, arg)| {
            letters(at, arg).contains('C') || given(&arg.text, "--directory").is_some()
        });
        if extracts && !elsewhere {
            grade.raise(Rung::L4, UNPACKED);
        }
        match lists {
            true => self.reads_all("tar", args, Use::Reads, grade),
            false => self.works(args, grade),
        }
    }

    pub(super) fn unzip(&mut self, args: &[Arg], grade: &mut Grade) {
        let lists = args
            .first()
            .is_some_and(|first| matches!(first.text.as_str(), "-l" | "-v" | "-Z1"));
        match lists {
            true => self.reads_all("unzip", args, Use::Reads, grade),
            false => {
                grade.raise(Rung::L3, "`unzip` unpacks files");
                let to = |arg: &Arg| arg.text.starts_with("-d") || arg.text == "-p";
                if !args.iter().any(to) {
                    grade.raise(Rung::L4, UNPACKED);
                }
                self.works(args, grade);
            }
        }
    }

    pub(super) fn find(&mut self, args: &[Arg], grade: &mut Grade) {
        const RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
        const WRITES: [&str; 4] = ["-fprint", "-fprint0", "-fprintf", "-fls"];
        let roots: Vec<&Arg> = args
            .iter()
            .take_while(|arg| !arg.text.starts_with(['-', '(', '!']))
            .collect();
        let inside = roots.iter().all(|root| {
            let mut grade = Grade::new(Rung::L0, "");
            self.places
                .judge(&root.text, Use::Reads, root.pattern, &mut grade);
            grade.rung == Rung::L0 && root.is_known() && self.places.is_inside(&root.text)
        }) && self.places.is_inside(".");
        for arg in args {
            if !arg.is_known() && (arg.splits || arg.text.starts_with(crate::command::paths::MARK))
            {
                grade.raise(Rung::L4, "what `find` does is only known when it runs");
            }
        }
        for root in &roots {
            self.places
                .judge(&root.text, Use::Names, root.pattern, grade);
        }
        let mut at = 0;
        while at < args.len() {
            let word = args[at].text.as_str();
            if word == "-delete" {
                grade.raise(
                    Rung::L4,
                    "`find -delete` deletes files, which cannot be taken back",
                );
                for root in &roots {
                    self.places
                        .judge(&root.text, Use::Deletes, root.pattern, grade);
                }
            } else if WRITES.contains(&word) {
                grade.raise(Rung::L3, format!("`find {word}` writes a file"));
                if let Some(target) = args.get(at + 1) {
                    self.writes_file(target, grade);
                }
            } else if word == "-files0-from" {
                grade.raise(Rung::L4, "`find` takes its folders from a file");
            } else if RUNS.contains(&word) {
                let end = (at + 1..args.len()).find(|end| ends_command(word, args, *end));
                if end.is_none() {
                    let reason = "where the command that `find` runs ends is not clear";
                    grade.raise(Rung::L4, reason);
                }
                let end = end.unwrap_or(args.len());
                let words: Vec<&str> = std::iter::once("find")
                    .chain(args[..at].iter().map(|arg| arg.text.as_str()))
                    .collect();
                let sure = match inside {
                    true => sure_of_list(&words),
                    false => Sure::Unknown,
                };
                self.each_file(&args[at + 1..end], sure, grade);
                if word == "-execdir" || word == "-okdir" {
                    grade.raise(Rung::L3, "`find` runs a program in each folder");
                }
                at = end;
            }
            at += 1;
        }
    }
}

/// Whether a word ends what `find -exec` runs. A plus does so only directly behind a word that is `{}`, and never
/// where `find` asks first; elsewhere it is a word of the command.
fn ends_command(runs: &str, args: &[Arg], at: usize) -> bool {
    match args[at].text.as_str() {
        ";" => true,
        "+" => !runs.starts_with("-ok") && args[at - 1].text == "{}",
        _ => false,
    }
}

/// Whether a part of a mode sets the bits for another user, group or owner, or is not understood.
fn is_special(part: &str) -> bool {
    let rights = part.trim_start_matches(['u', 'g', 'o', 'a']);
    let rights = rights.trim_start_matches(['+', '-', '=']);
    match rights.starts_with(|c: char| c.is_ascii_digit()) {
        true => u32::from_str_radix(rights, 8).map_or(true, |bits| bits & 0o7000 != 0),
        false => !rights.chars().all(|c| "rwxXugo+-=".contains(c)),
    }
}

fn is_mode(text: &str) -> bool {
    text.len() > 1
        && text[1..]
            .chars()
            .all(|c| matches!(c, 'r' | 'w' | 'x' | 'X' | 's' | 't' | ',' | '0'..='7'))
        && text.starts_with('-')
        && text != "-R"
}
