//! Programs that are told by a word what to do: package managers, builds, processes.

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;

use super::given;
use crate::command::expand::Arg;
use crate::command::grade::{Grade, Grader, Stdin};
use crate::command::paths::Use;
use crate::command::programs::{Program, Sub};
use crate::command::simple::is_outgoing;

/// Options before a subcommand that take no value.
const PLAIN: [&str; 14] = [
    "-q",
    "-v",
    "--verbose",
    "--quiet",
    "--offline",
    "--locked",
    "--frozen",
    "--silent",
    "-B",
    "--batch-mode",
    "-ntp",
    "--no-daemon",
    "--no-color",
    "--color=always",
];

/// And those that take one.
const VALUED: [&str; 6] = ["--prefix", "-C", "--cwd", "--dir", "--color", "--filter"];

/// Why a subcommand that works on the project by itself reaches further with these words.
fn fetches(name: &str, sub: &str, rest: &[Arg]) -> Option<&'static str> {
    let mut operands = rest
        .iter()
        .map(|arg| arg.text.as_str())
        .filter(|text| !text.starts_with('-') || *text == "-");
    let has = |options: &[&str]| {
        rest.iter().any(|arg| {
            options
                .iter()
                .any(|option| given(&arg.text, option).is_some())
        })
    };
    match (name, sub) {
        ("bun", "init") => Some("fetches packages"),
        ("npm" | "pnpm" | "yarn", "init") if operands.next().is_some() || has(&["-2", "-i"]) => {
            Some("fetches a program and runs it")
        }
        ("npm" | "pnpm" | "yarn" | "bun", "pack")
            if operands.any(|text| text != "." && !text.starts_with("./")) =>
        {
            Some("fetches a package")
        }
        ("npm" | "pnpm" | "yarn" | "bun", "run" | "run-script")
            if operands.any(|text| text == "-") =>
        {
            Some("runs whatever it reads")
        }
        ("go", _) if operands.any(is_remote) => Some("fetches a module and builds or runs it"),
        ("go", "list") if has(&["-u", "-versions"]) => Some("asks for versions in the network"),
        ("go", _)
            if rest
                .iter()
                .any(|arg| arg.text.contains("extld") || arg.text == "-mod=mod") =>
        {
            Some("runs another linker or fetches modules")
        }
        ("cargo", "nextest" | "miri" | "insta")
            if matches!(operands.next(), Some("self" | "setup")) =>
        {
            Some("fetches or replaces programs")
        }
        ("cargo", _) if rest.iter().any(|arg| arg.text.contains("linker=")) => {
            Some("runs another linker")
        }
        ("pipenv", "check") => Some("speaks to the network"),
        _ => None,
    }
}

/// Whether a package of Go is named by where it is fetched from.
fn is_remote(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    let named = first.contains('.') && !first.starts_with('.') && !text.ends_with(".go");
    text.contains('@') || named
}

impl Grader {
    pub(super) fn subcommands(
        &mut self,
        program: &'static Program,
        name: &str,
        subs: &'static [Sub],
        args: &[Arg],
        grade: &mut Grade,
    ) {
        debug_assert!(program.does.is_empty());
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            match arg.literal() {
                Some(text) if VALUED.contains(&text) => at += 2,
                Some(text) if PLAIN.contains(&text) || text.starts_with('+') => at += 1,
                Some(text) if text.starts_with('-') => {
                    let reason = format!("nobody graded `{name} {}`", Excerpt::of(text));
                    grade.raise(Rung::L4, reason);
                    at += 1;
                }
                _ => break,
            }
        }
        let Some(word) = args.get(at) else {
            let reason = format!("what `{name}` does by itself, nobody graded");
            return grade.raise(Rung::L4, reason);
        };
        let rest = &args[at + 1..];
        if matches!(
            name,
            "poetry" | "pipenv" | "bundle" | "hatch" | "pdm" | "rye"
        ) && matches!(word.text.as_str(), "run" | "exec")
        {
            grade.raise(Rung::L3, format!("`{name} {}` runs a program", word.text));
            return self.program(rest, &Stdin::Unknown, grade);
        }
        // Maven and Gradle take several at once.
        let several = matches!(name, "mvn" | "mvnw" | "gradle" | "gradlew");
        let more = rest.iter().filter(|arg| several && !arg.is_option());
        for word in std::iter::once(word).chain(more) {
            // `:app:test` is a task of Gradle; for Maven, a colon names a plugin that it fetches and runs.
            let task = match name {
                "gradle" | "gradlew" => word.text.rsplit(':').next().unwrap_or_default(),
                _ => word.text.as_str(),
            };
            let shown = Excerpt::of(&word.text);
            let sub = subs
                .iter()
                .find(|sub| word.literal().is_some() && sub.names.contains(&task));
            match sub {
                Some(sub) => grade.raise(sub.rung, format!("`{name} {shown}` {}", sub.does)),
                None => grade.raise(Rung::L4, format!("nobody graded `{name} {shown}`")),
            }
            if grade.reason.is_empty() {
                grade.reason = format!("`{name} {shown}` {}", sub.map_or("", |sub| sub.does));
            }
        }
        if let Some(reason) = fetches(name, &word.text, rest) {
            grade.raise(
                Rung::L4,
                format!("`{name} {}` {reason}", Excerpt::of(&word.text)),
            );
        }
        let script = rest.iter().find(|arg| !arg.is_option());
        if matches!(word.text.as_str(), "run" | "run-script")
            && let Some(script) = script.filter(|script| is_outgoing(&script.text))
        {
            let shown = Excerpt::of(&script.text);
            grade.raise(
                Rung::L4,
                format!("`{shown}` is named for what leaves this machine"),
            );
        }
        self.works(&args[..at], grade);
        self.works(rest, grade);
    }

    pub(super) fn npx(&mut self, args: &[Arg], grade: &mut Grade) {
        match args {
            [first, rest @ ..] if matches!(first.literal(), Some("--no-install" | "--no")) => {
                grade.raise(Rung::L3, "`npx` runs a program of the project");
                self.program(rest, &Stdin::Unknown, grade);
            }
            _ => grade.raise(Rung::L4, "`npx` fetches a program and runs it"),
        }
    }

    pub(super) fn make(&mut self, args: &[Arg], grade: &mut Grade) {
        for arg in args {
            // `-DCMAKE_BUILD_TYPE=Release` names no target.
            if is_outgoing(&arg.text) && !arg.text.starts_with("-D") {
                let shown = Excerpt::of(&arg.text);
                grade.raise(
                    Rung::L4,
                    format!("`{shown}` is named for what leaves this machine"),
                );
            }
            // Of CMake: a tool of its own, or a script.
            if arg.text.starts_with("-E") || arg.text.starts_with("-P") {
                grade.raise(Rung::L4, "it runs commands of its own");
            }
            if let Some((name, _)) = arg
                .text
                .strip_prefix("-D")
                .and_then(|text| text.split_once('='))
            {
                let name = name.split(':').next().unwrap_or_default();
                crate::command::variables::judge_set(name, true, grade);
            }
            // `-f -` and `-f-`: recipes from a pipe or a here-document.
            if arg.text == "-" || matches!(arg.text.as_str(), "-f-" | "--file=-" | "--makefile=-") {
                grade.raise(Rung::L4, "it runs whatever recipes it reads");
            }
            if let Some((name, value)) = arg.text.split_once('=').filter(|_| !arg.is_option()) {
                let name = name.trim_end_matches([':', '+', '?', '!']);
                crate::command::variables::judge_set(name, true, grade);
                if value.contains(['$', '`', '|', ';', '&', ' ', '\t', '\n']) {
                    grade.raise(Rung::L4, "a variable for `make` holds a command");
                }
            }
        }
        self.works(args, grade);
    }

    pub(super) fn any(&mut self, name: &str, args: &[Arg], grade: &mut Grade) {
        for arg in args {
            self.places.judge(&arg.text, Use::Names, arg.pattern, grade);
        }
        const GUARDS: [&str; 6] = [
            "auditd",
            "firewalld",
            "apparmor",
            "ufw",
            "lodestar",
            "falcon-sensor",
        ];
        let has = |words: &[&str]| {
            args.iter().any(|arg| {
                let unit = arg.text.strip_suffix(".service").unwrap_or(&arg.text);
                words.contains(&unit)
            })
        };
        if matches!(name, "systemctl" | "service" | "launchctl")
            && has(&["stop", "disable", "mask", "kill", "unload"])
            && has(&GUARDS)
        {
            grade.raise(
                Rung::L5,
                format!("`{name}` would turn protection of the system off"),
            );
        }
    }

    pub(super) fn kill(&mut self, args: &[Arg], grade: &mut Grade) {
        let job = |arg: &Arg| arg.text.starts_with('%') && arg.is_known();
        // Behind a signal, `-1` is every process there is.
        let jobs = match args {
            [first, rest @ ..] if first.is_option() => rest,
            args => args,
        };
        match args {
            [only] if only.text == "-l" || only.text == "-L" => {
                grade.raise(Rung::L0, "`kill -l` lists signals");
            }
            _ if !jobs.is_empty() && jobs.iter().all(job) => {
                grade.raise(Rung::L3, "`kill` ends a job of this shell");
            }
            _ => grade.raise(Rung::L4, "`kill` ends processes"),
        }
    }

    pub(super) fn ps(&mut self, args: &[Arg], grade: &mut Grade) {
        // Without a dash, `e` shows the environment of every process.
        let shows = |arg: &Arg| {
            let format = arg.text.contains("env");
            !arg.is_known() || format || (!arg.is_option() && arg.text.contains('e'))
        };
        if args.iter().any(shows) {
            grade.raise(
                Rung::L4,
                "`ps` would show the environment of processes, credentials with it",
            );
        }
    }
}
