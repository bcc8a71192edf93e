//! Programs that run other programs: they are looked through, as far as what they run is known.

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;

use super::own::acts_in;
use crate::command::expand::{Arg, Sure};
use crate::command::grade::{Grade, Grader, Stdin};
use crate::command::paths::{MARK, Use};
use crate::command::programs::{self, Interpreter, Program, Wrapper};
use crate::command::simple::is_outgoing;
use crate::command::variables;

/// How deep programs that run programs are followed.
const DEEPEST: usize = 8;

impl Grader {
    /// A program behind another one.
    pub(super) fn behind(&mut self, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        if self.depth >= DEEPEST {
            return grade.raise(Rung::L4, "programs run programs too deep to follow");
        }
        self.depth += 1;
        self.program(args, stdin, grade);
        self.depth -= 1;
    }

    /// A text that another shell runs.
    pub(super) fn nested(&mut self, text: &str, grade: &mut Grade) {
        let rung = self.line(text);
        grade.raise(
            rung,
            format!("what it runs, `{}`, is {rung}", Excerpt::of(text)),
        );
    }

    pub(super) fn wraps(
        &mut self,
        wrapper: Wrapper,
        name: &str,
        args: &[Arg],
        stdin: &Stdin,
        grade: &mut Grade,
    ) {
        let mut at = 0;
        while let Some(arg) = args.get(at).filter(|arg| arg.is_option()) {
            let text = arg.text.as_str();
            let attached = |option: &&str| text.starts_with(*option) && text.len() > option.len();
            let number = text[1..].chars().all(|c| c.is_ascii_digit());
            at += 1;
            match () {
                () if text == "--" => break,
                () if wrapper.plain.contains(&text) || number => {}
                () if wrapper.valued.contains(&text) => at += 1,
                () if arg.is_known() && wrapper.valued.iter().any(attached) => {}
                () => grade.raise(
                    Rung::L4,
                    format!("nobody graded `{name} {}`", Excerpt::of(text)),
                ),
            }
        }
        let operands = args
            .get(at..(at + wrapper.operands).min(args.len()))
            .unwrap_or_default();
        if operands
            .iter()
            .any(|arg| arg.splits && arg.sure > Sure::Value)
        {
            grade.raise(Rung::L4, "which program runs is only known when it runs");
        }
        if name == "flock" {
            self.works(operands, grade);
        }
        let rest = args.get(at + wrapper.operands..).unwrap_or_default();
        match rest {
            [] if name == "time" => {}
            [] => grade.raise(Rung::L4, format!("what `{name}` runs is not named")),
            rest if wrapper.text => {
                let words: Option<Vec<&str>> = rest.iter().map(Arg::literal).collect();
                match words {
                    Some(words) => self.nested(&words.join(" "), grade),
                    None => grade.raise(Rung::L4, "what it runs is only known when it runs"),
                }
            }
            rest => self.behind(rest, stdin, grade),
        }
    }

    pub(super) fn command_builtin(&mut self, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        match args {
            [first, rest @ ..] if matches!(first.text.as_str(), "-v" | "-V") => {
                if rest.iter().any(|arg| !arg.is_known() && arg.splits) {
                    grade.raise(Rung::L4, "what it asks for is only known when it runs");
                }
            }
            [first, rest @ ..] if first.text == "-p" || first.text == "--" => {
                self.behind(rest, stdin, grade)
            }
            [] => {}
            args => self.behind(args, stdin, grade),
        }
    }

    pub(super) fn env(&mut self, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let text = arg.text.as_str();
            match () {
                () if matches!(
                    text,
                    "-i" | "--ignore-environment" | "-" | "--" | "-0" | "-v"
                ) => {}
                () if matches!(text, "-u" | "--unset" | "-C" | "--chdir") => {
                    at += 1;
                    let value = args.get(at).map_or("", |value| &value.text).to_owned();
                    match text.starts_with("-u") || text == "--unset" {
                        true => variables::judge_set(&value, true, grade),
                        false => self.enter(&value),
                    }
                }
                () if arg.is_option() => {
                    // `-S` splits a text into a command.
                    grade.raise(
                        Rung::L4,
                        format!("nobody graded `env {}`", Excerpt::of(text)),
                    );
                }
                () => match text.split_once('=') {
                    Some((name, value)) => {
                        variables::judge_set(name, true, grade);
                        variables::judge_value(value, grade);
                        if name.contains(MARK) {
                            grade.raise(
                                Rung::L4,
                                "which variable is set is only known when it runs",
                            );
                        }
                    }
                    None => break,
                },
            }
            at += 1;
        }
        match args.get(at..).unwrap_or_default() {
            [] => grade.raise(Rung::L4, "`env` shows the environment, credentials with it"),
            rest => self.behind(rest, stdin, grade),
        }
    }

    pub(super) fn exec(&mut self, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        match args {
            [] => {}
            [first, ..] if first.is_option() => {
                grade.raise(Rung::L4, "`exec` runs a program under another name");
                self.behind(&args[1..], stdin, grade);
            }
            args => self.behind(args, stdin, grade),
        }
    }

    pub(super) fn eval(&mut self, args: &[Arg], grade: &mut Grade) {
        let words: Option<Vec<&str>> = args.iter().map(Arg::literal).collect();
        match words {
            Some(words) => self.nested(&words.join(" "), grade),
            None => grade.raise(Rung::L4, "what `eval` runs is only known when it runs"),
        }
    }

    pub(super) fn xargs(&mut self, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        const VALUED: [&str; 9] = [
            "-n",
            "-P",
            "-L",
            "-s",
            "-d",
            "-E",
            "--max-args",
            "--max-procs",
            "--delimiter",
        ];
        const PLAIN: [&str; 8] = [
            "-0",
            "-r",
            "-t",
            "-x",
            "--null",
            "--no-run-if-empty",
            "--verbose",
            "--exit",
        ];
        let mut at = 0;
        let mut replaced: Option<String> = None;
        let mut counted = false;
        while let Some(arg) = args.get(at).filter(|arg| arg.is_option()) {
            let text = arg.text.clone();
            at += 1;
            let attached = |option: &&str| text.starts_with(*option) && text.len() > option.len();
            counted |=
                text.starts_with("-n") || text.starts_with("-L") || text.starts_with("--max-args");
            match text.as_str() {
                "--" => break,
                "-I" => {
                    replaced = Some(args.get(at).map_or("", |arg| &arg.text).to_owned());
                    at += 1;
                }
                // These take a value only in the same word.
                "-i" | "--replace" => replaced = Some("{}".to_owned()),
                text if text.starts_with("-I") || text.starts_with("-i") => {
                    replaced = Some(text[2..].to_owned());
                }
                text if text.starts_with("--replace=") => {
                    replaced = text.split_once('=').map(|(_, mark)| mark.to_owned());
                }
                text if PLAIN.contains(&text) => {}
                text if VALUED.contains(&text) => at += 1,
                _ if VALUED.iter().any(attached) => {}
                "-a" | "--arg-file" => {
                    if let Some(file) = args.get(at) {
                        self.reads_file(&file.clone(), grade);
                    }
                    grade.raise(Rung::L4, "`xargs` takes words from a file");
                    at += 1;
                }
                _ => grade.raise(
                    Rung::L4,
                    format!("nobody graded `xargs {}`", Excerpt::of(&text)),
                ),
            }
        }
        let sure = match stdin {
            Stdin::Names(sure) => *sure,
            _ => Sure::Unknown,
        };
        if replaced.as_deref() == Some("") {
            grade.raise(Rung::L4, "what `xargs` puts words in for is not named");
        }
        // Of the two, the later one counts: words are put in, or they are added.
        if replaced.is_some() && counted {
            grade.raise(Rung::L4, "where `xargs` puts words is not clear");
        }
        let rest = args.get(at..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
        let mut inner: Vec<Arg> = Vec::new();
        for arg in rest {
            match &replaced {
                Some(mark) if !mark.is_empty() && arg.text.contains(mark.as_str()) => {
                    let text = arg.text.replace(mark.as_str(), &MARK.to_string());
                    inner.push(Arg {
                        text,
                        sure: sure.max(arg.sure),
                        ..arg.clone()
                    });
                }
                _ => inner.push(arg.clone()),
            }
        }
        if replaced.is_none() {
            inner.push(Arg::unsure(sure));
        }
        self.behind(&inner, &Stdin::Inherited, grade);
        // What is read may be known: `echo / | xargs rm -rf`.
        if let (Stdin::Text(text), None) = (stdin, &replaced) {
            let words = text.split_whitespace().map(Arg::fixed);
            let known: Vec<Arg> = rest.iter().cloned().chain(words.take(64)).collect();
            self.behind(&known, &Stdin::Inherited, grade);
        }
    }

    /// A command that is run for files that were found: `{}` stands for their names.
    pub(super) fn each_file(&mut self, args: &[Arg], sure: Sure, grade: &mut Grade) {
        let named = |arg: &Arg| match arg.text.contains("{}") {
            true => Arg {
                text: arg.text.replace("{}", &MARK.to_string()),
                sure: sure.max(arg.sure),
                ..arg.clone()
            },
            false => arg.clone(),
        };
        let inner: Vec<Arg> = args.iter().map(named).collect();
        self.behind(&inner, &Stdin::Inherited, grade);
    }

    /// `coverage run` runs what stands behind it as Python would.
    pub(super) fn coverage(&mut self, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        match args.first().and_then(Arg::literal) {
            Some("run") => {
                let own = |arg: &&Arg| {
                    let head = arg.text.split('=').next().unwrap_or_default();
                    matches!(
                        head,
                        "--branch"
                            | "--source"
                            | "--append"
                            | "-a"
                            | "-p"
                            | "--parallel-mode"
                            | "--omit"
                            | "--include"
                    )
                };
                let options = args[1..].iter().take_while(own).count();
                self.works(&args[1..=options], grade);
                self.behind_python(&args[1 + options..], stdin, grade);
            }
            Some(
                "report" | "html" | "xml" | "json" | "lcov" | "combine" | "erase" | "annotate",
            ) => {
                self.works(args, grade);
            }
            _ => grade.raise(Rung::L4, "nobody graded what `coverage` does here"),
        }
    }

    fn behind_python(&mut self, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        let python = std::iter::once(Arg::fixed("python")).chain(args.iter().cloned());
        self.behind(&python.collect::<Vec<_>>(), stdin, grade);
    }

    pub(super) fn interprets(
        &mut self,
        program: &'static Program,
        name: &str,
        how: Interpreter,
        args: &[Arg],
        stdin: &Stdin,
        grade: &mut Grade,
    ) {
        for arg in args {
            if acts_in(&arg.text) {
                grade.raise(Rung::L5, "code has Lodestar act, which is for people");
            }
            if arg.text.contains("fork")
                && (arg.text.contains("while") || arg.text.contains("for "))
            {
                grade.raise(Rung::L5, "code starts itself again, without end");
            }
        }
        if let Stdin::Text(text) = stdin
            && acts_in(text)
        {
            grade.raise(Rung::L5, "code has Lodestar act, which is for people");
        }
        if matches!(args, [only] if matches!(only.text.as_str(), "-V" | "-v" | "-h")) {
            return;
        }
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let text = arg.text.as_str();
            match () {
                () if text == "-m" => {
                    let module = args.get(at + 1).and_then(Arg::literal).unwrap_or_default();
                    let shown = Excerpt::of(module);
                    match how.modules.contains(&module) {
                        true => grade.raise(
                            Rung::L3,
                            format!("`{name} -m {shown}` runs code of the project"),
                        ),
                        false => {
                            grade.raise(Rung::L4, format!("nobody graded `{name} -m {shown}`"))
                        }
                    }
                    let rest = &args[(at + 2).min(args.len())..];
                    // What is a program of its own is graded as that.
                    return match programs::find(module).filter(|_| how.modules.contains(&module)) {
                        Some(program) => self.rule(program, module, rest, stdin, grade),
                        None => self.works(rest, grade),
                    };
                }
                () if how.plain.contains(&text) => at += 1,
                () if arg.is_option() || text == "-" => {
                    let shown = Excerpt::of(text);
                    return grade.raise(
                        Rung::L4,
                        format!("`{name} {shown}` runs code that nobody kept, or is not known"),
                    );
                }
                () => break,
            }
        }
        let Some(script) = args.get(at) else {
            return grade.raise(Rung::L4, format!("`{name}` runs whatever it reads"));
        };
        grade.raise(program.rung, format!("`{name}` {}", program.does));
        if script.sure != Sure::Fixed || !self.places.is_inside(&script.text) {
            grade.raise(
                Rung::L4,
                "which script runs is not known, or it lies outside the project",
            );
        }
        if is_outgoing(&script.text) {
            let shown = Excerpt::of(&script.text);
            grade.raise(
                Rung::L4,
                format!("`{shown}` is named for what leaves this machine"),
            );
        }
        self.places
            .judge(&script.text, Use::Reads, script.pattern, grade);
        self.works(&args[at + 1..], grade);
    }
}
