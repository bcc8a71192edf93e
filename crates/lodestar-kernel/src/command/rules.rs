//! What the words behind a program's name make of it: one rule for each kind of program in the table.

mod awk;
mod files;
mod git;
mod own;
mod run;
mod sed;
mod shell;
mod tasks;

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;

use super::expand::{Arg, Sure};
use super::grade::{Grade, Grader, Stdin};
use super::paths::{MARK, Use};
use super::programs::{Effect, Options, Program, Rule};
pub(super) use git::ROWS as GIT;
pub(super) use own::is_operator_word;

impl Grader {
    pub(super) fn rule(
        &mut self,
        program: &'static Program,
        name: &str,
        args: &[Arg],
        stdin: &Stdin,
        grade: &mut Grade,
    ) {
        let asks = matches!(args, [only] if matches!(only.literal(), Some("--version" | "--help")));
        let runs = matches!(
            program.rule,
            Rule::Wraps(_)
                | Rule::Env
                | Rule::Eval
                | Rule::Exec
                | Rule::Source
                | Rule::Xargs
                | Rule::Lodestar
        );
        if asks && !runs && program.rung < Rung::L5 {
            if grade.reason.is_empty() {
                grade.reason = format!("`{name}` only says what it is");
            }
            return;
        }
        self.raises(program, name, args, grade);
        self.options(program, name, args, grade);
        match program.rule {
            Rule::Lodestar => return self.lodestar(args, grade),
            Rule::Git => return self.git(args, grade),
            Rule::Subcommands(subs) => return self.subcommands(program, name, subs, args, grade),
            Rule::Npx => return self.npx(args, grade),
            Rule::Kill => return self.kill(args, grade),
            Rule::Interprets(how) => {
                return self.interprets(program, name, how, args, stdin, grade);
            }
            Rule::Tar => return self.tar(program, args, grade),
            Rule::Unzip => return self.unzip(args, grade),
            _ => {}
        }
        grade.raise(program.rung, format!("`{name}` {}", program.does));
        match program.rule {
            Rule::Text => {}
            Rule::Shows => self.shows(program, name, args, grade),
            Rule::Test => self.test(args, grade),
            Rule::Jobs => self.jobs(args, stdin, grade),
            Rule::Coverage => self.coverage(args, stdin, grade),
            Rule::Printf => self.printf(args, grade),
            Rule::Names => {
                for arg in args.iter().filter(|arg| !arg.is_option()) {
                    self.places.judge(&arg.text, Use::Names, arg.pattern, grade);
                }
                self.no_options_unknown(program, name, args, grade);
            }
            Rule::Reads => {
                self.reads_all(name, args, Use::Reads, grade);
                self.no_options_unknown(program, name, args, grade);
            }
            Rule::Searches => self.searches(program, name, args, grade),
            Rule::Writes => {
                for arg in args {
                    match arg.is_option() {
                        true => self.option_value(arg, grade),
                        false => self.writes_file(arg, grade),
                    }
                }
            }
            Rule::Copies => self.copies(name, args, grade),
            Rule::Second => self.second(name, args, grade),
            Rule::Deletes => {
                for arg in args {
                    if arg.sure == Sure::Unknown {
                        grade.raise(
                            Rung::L4,
                            "which files are deleted is only known when it runs",
                        );
                    }
                    self.places
                        .judge(&arg.text, Use::Deletes, arg.pattern, grade);
                    if let Some(text) = arg.literal().filter(|_| !arg.is_option()) {
                        self.writes.push(text.to_owned());
                    }
                }
            }
            Rule::Works => self.works(args, grade),
            Rule::Any => self.any(name, args, grade),
            Rule::Wraps(wrapper) => self.wraps(wrapper, name, args, stdin, grade),
            Rule::Shell => self.shell(name, args, stdin, grade),
            Rule::Awk => self.awk(args, grade),
            Rule::Cd => self.cd(args, grade),
            Rule::Chmod => self.chmod(args, grade),
            Rule::Command => self.command_builtin(args, stdin, grade),
            Rule::Dd => self.dd(args, grade),
            Rule::Env => self.env(args, stdin, grade),
            Rule::Eval => self.eval(args, grade),
            Rule::Exec => self.exec(args, stdin, grade),
            Rule::Find => self.find(args, grade),
            Rule::Jq => self.jq(args, grade),
            Rule::Link => self.link(args, grade),
            Rule::Make => self.make(args, grade),
            Rule::Ps => self.ps(args, grade),
            Rule::Sed => self.sed(args, grade),
            Rule::Set => self.set(args, grade),
            Rule::Source => self.source(args, grade),
            Rule::Trap => self.trap(name, args, grade),
            Rule::Variables => self.variables(name, args, grade),
            Rule::Xargs => self.xargs(args, stdin, grade),
            Rule::Lodestar
            | Rule::Git
            | Rule::Subcommands(_)
            | Rule::Npx
            | Rule::Kill
            | Rule::Interprets(_)
            | Rule::Tar
            | Rule::Unzip => {}
        }
    }

    /// Options that make a program do more.
    fn raises(&mut self, program: &'static Program, name: &str, args: &[Arg], grade: &mut Grade) {
        for raise in program.raises {
            for (at, arg) in args.iter().enumerate() {
                let Some(rest) = raise
                    .options
                    .iter()
                    .find_map(|option| given(&arg.text, option))
                else {
                    continue;
                };
                let shown = Excerpt::of(&arg.text);
                match raise.effect {
                    Effect::Is(rung) => {
                        grade.raise(rung, format!("`{name} {shown}` {}", raise.does))
                    }
                    Effect::Writes => {
                        grade.raise(Rung::L3, format!("`{name} {shown}` {}", raise.does));
                        match (rest.is_empty(), args.get(at + 1)) {
                            (false, _) => self.writes_file(
                                &Arg {
                                    text: rest.to_owned(),
                                    ..arg.clone()
                                },
                                grade,
                            ),
                            (true, Some(next)) => self.writes_file(next, grade),
                            (true, None) => {}
                        }
                    }
                }
            }
        }
    }

    /// Options that nobody graded.
    fn options(&self, program: &'static Program, name: &str, args: &[Arg], grade: &mut Grade) {
        let Options::Plain(letters, words) = program.options else {
            return;
        };
        let mut before: Option<&Arg> = None;
        for arg in args {
            // `--` ends the options, unless it is the value of the one before it.
            let value = before.is_some_and(|own| {
                own.is_option() && (takes_next(&own.text, letters, words) || raised(program, own))
            });
            if arg.text == "--" && !value {
                break;
            }
            before = Some(arg);
            if arg.text == "--" {
                continue;
            }
            let could = arg.splits || arg.text.starts_with(MARK);
            if arg.sure == Sure::Unknown && could && program.rung < Rung::L3 {
                let reason = format!("which options `{name}` gets is only known when it runs");
                grade.raise(Rung::L4, reason);
            }
            if arg.is_option() && !is_plain(&arg.text, letters, words) && !raised(program, arg) {
                let shown = Excerpt::of(&arg.text);
                grade.raise(Rung::L4, format!("nobody graded `{name} {shown}`"));
            }
            // Programs of the binary utilities take options from such a file.
            if arg.text.starts_with('@') && TAKES_FILES.contains(&name) {
                grade.raise(Rung::L4, format!("`{name}` takes options from a file"));
            }
        }
    }

    /// `date`, `hostname`: words that are neither options nor their values set what is shown.
    fn shows(&self, program: &'static Program, name: &str, args: &[Arg], grade: &mut Grade) {
        let Options::Plain(letters, words) = program.options else {
            return;
        };
        let mut value = false;
        for arg in args {
            if std::mem::take(&mut value) {
                continue;
            }
            match arg.is_option() {
                true => value = takes_next(&arg.text, letters, words),
                false if arg.text.starts_with('+') => {}
                false => grade.raise(Rung::L4, format!("`{name}` would set what it shows")),
            }
        }
    }

    /// A word that may come to be an option of a program whose options matter.
    fn no_options_unknown(
        &self,
        program: &'static Program,
        name: &str,
        args: &[Arg],
        grade: &mut Grade,
    ) {
        if !program.raises.is_empty() && args.iter().any(|arg| !arg.is_known()) {
            let reason = format!("which options `{name}` gets is only known when it runs");
            grade.raise(Rung::L4, reason);
        }
    }

    /// A path in an option: `--file=path`, `-fpath`.
    pub(super) fn option_value(&self, arg: &Arg, grade: &mut Grade) {
        if let Some(path) = path_in_option(&arg.text) {
            self.places.judge(path, Use::Reads, arg.pattern, grade);
        }
        if !arg.is_known() {
            grade.raise(Rung::L4, "which options it gets is only known when it runs");
        }
    }

    pub(super) fn reads_all(&mut self, name: &str, args: &[Arg], to: Use, grade: &mut Grade) {
        for arg in args {
            // `less +!command`.
            if name == "less" && arg.text.starts_with('+') {
                grade.raise(Rung::L4, "`less` runs a command of its own");
            }
            if arg.is_option() {
                self.option_value(arg, grade);
                continue;
            }
            self.reads_file(arg, grade);
            self.places.judge(&arg.text, to, arg.pattern, grade);
        }
    }

    /// Words of what works on the project: none may lead out of it.
    pub(super) fn works(&mut self, args: &[Arg], grade: &mut Grade) {
        for arg in args {
            if !arg.is_known() {
                grade.raise(Rung::L4, "a word of it is only known when it runs");
            }
            let path = match arg.is_option() {
                true => path_in_option(&arg.text).unwrap_or("."),
                false => arg.text.as_str(),
            };
            self.places.judge(path, Use::Reads, arg.pattern, grade);
            let includes = arg.text.starts_with("-I") || arg.text.starts_with("-L");
            let assigned = path.split_once('=').map_or(path, |(_, value)| value);
            // `-Wl,-o,/x` and `--emit=link=/x`: each part can be a path.
            let part =
                |part: &str| !part.starts_with(['/', '~', '.']) || self.places.is_inside(part);
            let inside = self.places.is_inside(path)
                && self.places.is_inside(assigned)
                && arg.text.split([',', '=', ':', ';']).all(part);
            if !includes && !inside {
                let shown = Excerpt::of(path);
                grade.raise(Rung::L4, format!("`{shown}` leads out of the project"));
            }
        }
        if !self.places.is_inside(".") {
            grade.raise(Rung::L4, "it would run outside the project");
        }
    }
}

/// Programs that read more of their options from `@file`.
const TAKES_FILES: [&str; 4] = ["strings", "nm", "size", "readelf"];

/// Whether an entry says what an option does.
fn raised(program: &Program, arg: &Arg) -> bool {
    let mut options = program.raises.iter().flat_map(|raise| raise.options);
    options.any(|option| given(&arg.text, option).is_some())
}

/// Whether a word is an option that the list has: letters behind one dash, or a whole word.
fn is_plain(text: &str, letters: &str, words: &[&str]) -> bool {
    let head = text.split_inclusive('=').next().unwrap_or(text);
    if words.contains(&text)
        || words.contains(&head)
        || words.contains(&format!("{text}=").as_str())
    {
        return true;
    }
    if text.starts_with("--") {
        return false;
    }
    for c in text[1..].chars() {
        match letters.find(c).filter(|_| c != ':') {
            None => return false,
            Some(at) if letters[at + c.len_utf8()..].starts_with(':') => return true,
            Some(_) => {}
        }
    }
    true
}

/// Whether the value of an option is the next word.
fn takes_next(text: &str, letters: &str, words: &[&str]) -> bool {
    if text.starts_with("--") {
        return words.contains(&format!("{text}=").as_str());
    }
    let valued = |c: char| letters.contains(&format!("{c}:"));
    text.find(valued).is_some_and(|at| at + 1 == text.len())
}

/// What stands behind an option in a word that gives it: the empty text where the value is the next word.
pub(super) fn given<'a>(word: &'a str, option: &str) -> Option<&'a str> {
    let (head, value) = match word.split_once('=') {
        Some((head, value)) => (head, value),
        None => (word, ""),
    };
    if let Some(long) = option.strip_prefix("--") {
        // GNU programs take any beginning of a long option.
        let given = head.strip_prefix("--").filter(|given| !given.is_empty())?;
        return long.starts_with(given).then_some(value);
    }
    let Some(letters) = option.strip_prefix('-') else {
        return (word == option).then_some("");
    };
    if letters.chars().count() > 1 {
        let given = head.strip_prefix('-')?;
        return (given.strip_prefix('-').unwrap_or(given) == letters).then_some(value);
    }
    let cluster = word
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))?;
    let at = cluster.find(letters)?;
    let plain = cluster[..at].chars().all(|c| c.is_ascii_alphanumeric());
    plain.then(|| cluster[at + letters.len()..].trim_start_matches('='))
}

/// Whether a file that code is taken from is whatever comes in, and no file that anybody kept.
pub(super) fn is_stream(path: &str) -> bool {
    path == "-" || path.contains("/dev/") || path.contains("/proc/")
}

/// The path in an option, if there is one.
fn path_in_option(text: &str) -> Option<&str> {
    if let Some((_, value)) = text.split_once('=') {
        return Some(value);
    }
    let at = text.find(['/', '~', '.'])?;
    // `-f../x` and `-C/x`; a dot inside a name is no path.
    Some(&text[at..]).filter(|_| !text.starts_with("--"))
}
