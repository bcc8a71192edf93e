//! One simple command: its assignments, its words, its redirections, and which entry of the table it is graded by.

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;

use super::expand::{self, Arg, Sure};
use super::grade::{Grade, Grader, Stdin};
use super::paths::{MARK, Use};
use super::syntax::{Command, Expansion, Script, Simple, Word};
use super::{DYNAMIC, characters, paths, programs, variables};

/// Folders of the system's own programs.
const SYSTEM: [&str; 7] = [
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/sbin",
    "/usr/sbin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
];

/// Parts of names of scripts and targets that do not stay on this machine.
const OUTGOING: [&str; 6] = ["deploy", "publish", "release", "upload", "push", "install"];

/// Whether a script, target or task is named for something that leaves the machine.
pub(super) fn is_outgoing(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    OUTGOING.iter().any(|part| name.contains(part))
}

impl Grader {
    /// Grades a command, and says what the next in its pipeline reads.
    pub(super) fn simple(&mut self, simple: &Simple, stdin: Stdin) -> Stdin {
        let mut grade = Grade::new(
            Rung::L0,
            match simple.assigns.is_empty() {
                true => "it only opens files",
                false => "it only sets variables",
            },
        );
        for word in &simple.words {
            self.word(word, &mut grade);
        }
        let splitter = simple.words.first().and_then(Word::literal);
        for assign in &simple.assigns {
            // `IFS= read` splits what this one `read` takes, and nothing else.
            let splits = assign.name == "IFS" && splitter.as_deref() == Some("read");
            match splits {
                true => assign
                    .values
                    .iter()
                    .for_each(|word| self.word(word, &mut grade)),
                false => self.assign(assign, !simple.words.is_empty(), &mut grade),
            }
        }
        let from_file = self.redirects(&simple.redirects, &mut grade);
        self.reads_here = from_file.is_some();
        let stdin = from_file.unwrap_or(stdin);
        let Some(args) = self.arguments(&simple.words) else {
            grade.raise(
                Rung::L4,
                "braces make more words of it than can be looked at",
            );
            self.push(Vec::new(), grade);
            return Stdin::Unknown;
        };
        let mut said = Stdin::Unknown;
        if !args.is_empty() {
            if grade.rung == Rung::L0 {
                grade.reason.clear();
            }
            said = self.said(&args, &stdin);
            if self.calls(&args[0]) {
                // Its body is graded where it stands.
                self.judge_own(&args, &mut grade);
                if grade.reason.is_empty() {
                    let shown = Excerpt::of(&args[0].text);
                    grade.reason = format!("`{shown}` is a function of this line");
                }
            } else {
                self.program(&args, &stdin, &mut grade);
            }
            for guess in self.guesses(&simple.words) {
                self.program(&guess, &stdin, &mut grade);
            }
        }
        let shown = |arg: &Arg| arg.text.replace(MARK, DYNAMIC);
        self.push(args.iter().map(shown).collect(), grade);
        said
    }

    /// Whether a word calls a function of this line that is there by now. A name of the table keeps its own grade,
    /// and a path leads to a program, whatever the line calls its functions.
    fn calls(&self, first: &Arg) -> bool {
        let defined = |name: &str| {
            self.defined
                .iter()
                .any(|(own, depth)| own == name && *depth == self.depth)
        };
        first.literal().is_some_and(|name| {
            !name.contains('/') && programs::find(name).is_none() && defined(name)
        })
    }

    /// What a command says, as far as that is known: for what reads it.
    fn said(&self, args: &[Arg], stdin: &Stdin) -> Stdin {
        let words: Option<Vec<&str>> = args.iter().map(Arg::literal).collect();
        let name = args[0].literal().unwrap_or_default();
        let names = self.names_files(args);
        match (name, words) {
            ("echo" | "printf", Some(words)) => Stdin::Text(words[1..].join(" ")),
            _ if names.is_some() => names.map_or(Stdin::Unknown, Stdin::Names),
            ("grep" | "head" | "tail" | "sort" | "uniq" | "tac", _)
                if matches!(stdin, Stdin::Names(_)) && args.iter().skip(1).all(keeps_lines) =>
            {
                stdin.clone()
            }
            _ => Stdin::Unknown,
        }
    }

    /// Whether a command lists names of files in the project, and nothing else.
    fn names_files(&self, args: &[Arg]) -> Option<Sure> {
        let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
        let options: Vec<&str> = words
            .iter()
            .copied()
            .filter(|word| word.starts_with('-'))
            .collect();
        let only = |plain: &[&str]| {
            options
                .iter()
                .all(|option| plain.contains(&option.split('=').next().unwrap_or_default()))
        };
        let letters = |plain: &str| {
            options
                .iter()
                .all(|option| option[1..].chars().all(|c| plain.contains(c)))
        };
        // Only options that add no text of their own to the names.
        let lists = match words.as_slice() {
            ["git", "ls-files", ..] => only(&LS_FILES),
            ["git", "diff", ..] => options.contains(&"--name-only") && only(&NAME_ONLY),
            ["find", ..] => only(&FINDS),
            ["fd", ..] => only(&["-e", "-t", "-H", "-I", "-g", "-E", "-0", "-d"]),
            ["ls", ..] => letters("1aAtrRSd"),
            ["grep", ..] => {
                let flags = |option: &&str| !option.starts_with("--") && option.contains('l');
                options.iter().any(flags) && letters("lrRinEFwIse")
            }
            ["rg", ..] => {
                (options.contains(&"-l") || options.contains(&"--files"))
                    && only(&[
                        "-l", "--files", "-g", "-t", "-i", "-F", "-w", "-e", "--hidden",
                    ])
            }
            _ => false,
        };
        let inside = |arg: &Arg| {
            let mut grade = Grade::new(Rung::L0, "");
            if arg.text.contains('/') || arg.text.starts_with(['.', '~']) {
                self.places
                    .judge(&arg.text, Use::Reads, arg.pattern, &mut grade);
            }
            arg.is_known() && self.places.is_inside(&arg.text) && grade.rung == Rung::L0
        };
        let known = lists && args.iter().skip(1).all(inside) && self.places.is_inside(".");
        known.then(|| sure_of_list(&words))
    }

    fn arguments(&mut self, words: &[Word]) -> Option<Vec<Arg>> {
        let mut args = Vec::new();
        for word in words {
            args.extend(self.expand(word)?);
            if args.len() > 4096 {
                return None;
            }
        }
        Some(args)
    }

    pub(super) fn expand(&mut self, word: &Word) -> Option<Vec<Arg>> {
        expand::expand(word, &mut |expansion| self.resolve(expansion))
    }

    fn resolve(&self, expansion: &Expansion) -> (String, Sure) {
        let unknown = (MARK.to_string(), Sure::Unknown);
        match expansion {
            Expansion::Arithmetic(_) => ("0".to_owned(), Sure::Value),
            Expansion::Process(_) => ("/dev/fd/63".to_owned(), Sure::Value),
            Expansion::Parameter { length: true, .. } => ("0".to_owned(), Sure::Value),
            Expansion::Parameter { name, rest, .. } => {
                let plain = rest.is_empty();
                match name.as_str() {
                    "HOME" if plain => ("~".to_owned(), Sure::Fixed),
                    "PWD" if plain => (".".to_owned(), Sure::Fixed),
                    name if variables::NUMBERS.contains(&name) => ("0".to_owned(), Sure::Value),
                    name if plain => {
                        let looped = self.loops.iter().rev().find(|(own, _)| own == name);
                        looped.map_or(unknown, |(_, sure)| (MARK.to_string(), *sure))
                    }
                    _ => unknown,
                }
            }
            Expansion::Command(script) => self.resolve_script(script).unwrap_or(unknown),
        }
    }

    /// What a substitution comes to, where that is known without running it.
    fn resolve_script(&self, script: &Script) -> Option<(String, Sure)> {
        let simple = only(script)?;
        let words: Option<Vec<String>> = simple.words.iter().map(Word::literal).collect();
        let words = words?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["pwd"] | ["git", "rev-parse", "--show-toplevel"] => {
                Some((".".to_owned(), Sure::Fixed))
            }
            ["nproc"] | ["whoami"] | ["hostname"] | ["date"] => Some(("0".to_owned(), Sure::Value)),
            ["uname", option] if matches!(*option, "-s" | "-m" | "-r" | "-n") => {
                Some(("0".to_owned(), Sure::Value))
            }
            ["date", format] | ["date", "-u", format] if is_time(format) => {
                Some(("0".to_owned(), Sure::Value))
            }
            // What git does not know it says as it stands.
            ["git", "rev-parse" | "merge-base", rest @ ..] => {
                let said = |word: &&str| matches!(*word, "--short" | "--verify" | "-q" | "--quiet");
                let commit = |word: &&&str| {
                    let mut grade = Grade::new(Rung::L0, "");
                    self.places.judge(word, Use::Reads, false, &mut grade);
                    let plain = |c: char| c.is_ascii_alphanumeric() || "_-/@~^{}".contains(c);
                    grade.rung == Rung::L0
                        && self.places.is_inside(word)
                        && !word.starts_with('-')
                        && word.chars().all(plain)
                };
                let known = rest.iter().all(|word| said(word) || commit(&word));
                known.then(|| ("0".to_owned(), Sure::Value))
            }
            _ => {
                let args: Vec<Arg> = words.iter().map(|word| Arg::fixed(word)).collect();
                if args.is_empty() || !simple.redirects.is_empty() {
                    return None;
                }
                let sure = self.names_files(&args)?;
                Some((MARK.to_string(), sure))
            }
        }
    }

    /// How well is known what a loop goes through.
    pub(super) fn sure_of_all(&mut self, words: &[Word]) -> Sure {
        let mut sure = Sure::Value;
        for word in words {
            let Some(args) = self.expand(word) else {
                return Sure::Unknown;
            };
            for arg in args {
                let mut grade = Grade::new(Rung::L0, "");
                self.places
                    .judge(&arg.text, Use::Reads, arg.pattern, &mut grade);
                let inside = grade.rung == Rung::L0 && self.places.is_inside(&arg.text);
                sure = match inside && !arg.text.starts_with('-') {
                    true if arg.pattern && !paths::is_narrow(&arg.text) => {
                        sure.max(arg.sure).max(Sure::Wide)
                    }
                    true => sure.max(arg.sure).max(Sure::Names),
                    false => Sure::Unknown,
                };
            }
        }
        match words.is_empty() {
            true => Sure::Unknown,
            false => sure,
        }
    }

    /// What the words could come to with the values that the line itself gives. These only ever raise a grade.
    fn guesses(&self, words: &[Word]) -> Vec<Vec<Arg>> {
        let dynamic = words.iter().any(|word| !word.expansions.is_empty());
        let most = match dynamic {
            true => 4,
            false => 0,
        };
        let mut all = Vec::new();
        for choice in 0..most {
            let mut args = Vec::new();
            let mut guessed = false;
            for word in words {
                let expanded =
                    expand::expand(word, &mut |expansion| match self.guess(expansion, choice) {
                        Some(text) => {
                            guessed = true;
                            (text, Sure::Fixed)
                        }
                        None => self.resolve(expansion),
                    });
                for mut arg in expanded.unwrap_or_default() {
                    // What is not in quotes is split into words.
                    if arg.sure == Sure::Fixed && !word.quoted && !word.expansions.is_empty() {
                        args.extend(arg.text.split_whitespace().map(Arg::fixed));
                        continue;
                    }
                    arg.splits = false;
                    args.push(arg);
                }
            }
            if !guessed || args.is_empty() || all.contains(&args) {
                break;
            }
            all.push(args);
        }
        all
    }

    fn guess(&self, expansion: &Expansion, choice: usize) -> Option<String> {
        match expansion {
            Expansion::Parameter { name, rest, .. } => {
                let mut values = self.values.iter().rev().filter(|(own, _)| own == name);
                let set = values.nth(choice).map(|(_, value)| value.clone());
                set.or_else(|| {
                    let rest = rest.literal()?;
                    let default = rest.trim_start_matches(':');
                    let default = default.strip_prefix(['-', '=', '+'])?;
                    Some(default.to_owned())
                })
            }
            Expansion::Command(script) => {
                let simple = only(script)?;
                let words: Option<Vec<String>> = simple.words.iter().map(Word::literal).collect();
                let words = words?;
                match words.first()?.as_str() {
                    "echo" | "printf" => Some(words[1..].join(" ")),
                    "which" => Some(words.get(1)?.clone()),
                    "command" => Some(words.get(2)?.clone()),
                    _ => None,
                }
            }
            Expansion::Arithmetic(_) | Expansion::Process(_) => None,
        }
    }

    /// Grades a program and its arguments.
    pub(super) fn program(&mut self, args: &[Arg], stdin: &Stdin, grade: &mut Grade) {
        let Some(first) = args.first() else {
            return grade.raise(Rung::L4, "which program runs is only known when it runs");
        };
        self.judge_own(args, grade);
        let Some(name) = first.literal().filter(|name| !name.is_empty()) else {
            return grade.raise(Rung::L4, "which program runs is only known when it runs");
        };
        let shown = Excerpt::of(name);
        if !characters::is_plain(name) {
            return grade.raise(
                Rung::L4,
                format!("`{shown}` is not written in plain letters"),
            );
        }
        let (folder, base) = match name.rsplit_once('/') {
            Some((folder, base)) => (Some(folder), base),
            None => (None, name),
        };
        let known = programs::find(base);
        match folder {
            None => {}
            Some(folder) if SYSTEM.contains(&folder) => {}
            Some(_) if self.places.is_inside(name) => {
                self.places.judge(name, Use::Reads, false, grade);
                grade.raise(Rung::L3, format!("`{shown}` runs code of the project"));
                if is_outgoing(base) {
                    grade.raise(
                        Rung::L4,
                        format!("`{shown}` is named for what leaves this machine"),
                    );
                }
                if known.is_none() {
                    return self.works(&args[1..], grade);
                }
            }
            Some(_) => {
                let reason =
                    format!("`{shown}` is a program from outside the project that nobody graded");
                grade.raise(Rung::L4, reason);
            }
        }
        let Some(program) = known else {
            for arg in &args[1..] {
                self.places.judge(&arg.text, Use::Names, arg.pattern, grade);
            }
            return grade.raise(Rung::L4, format!("nobody graded `{shown}`"));
        };
        self.rule(program, base, &args[1..], stdin, grade);
        if grade.reason.is_empty() {
            grade.reason = format!("`{shown}` {}", program.does);
        }
    }

    /// Whether words that are run name what governs the agent, and have it act.
    fn judge_own(&self, args: &[Arg], grade: &mut Grade) {
        let first = args.first().map_or("", |arg| &arg.text);
        let base = first.rsplit('/').next().unwrap_or(first);
        let text = programs::find(base).is_some_and(|program| {
            use programs::Rule;
            matches!(
                program.rule,
                Rule::Text
                    | Rule::Shows
                    | Rule::Test
                    | Rule::Printf
                    | Rule::Names
                    | Rule::Searches
                    | Rule::Git
                    | Rule::Lodestar
                    | Rule::Reads
            )
        });
        if text {
            return;
        }
        let mut names = args.iter().map(|arg| arg.text.to_ascii_lowercase());
        let own = |word: &String| {
            let base = word.rsplit('/').next().unwrap_or(word);
            base == "lodestar" || base == "lodestar.exe" || base == "lodestar-cli"
        };
        if names.any(|word| own(&word)) && names.any(|word| super::rules::is_operator_word(&word)) {
            grade.raise(
                Rung::L5,
                "it has Lodestar act as an operator, which is for people",
            );
        }
    }

    pub(super) fn reads_file(&mut self, arg: &Arg, grade: &mut Grade) {
        if arg.sure == Sure::Unknown {
            grade.raise(Rung::L4, "which file is read is only known when it runs");
        }
        if arg.text == "-" {
            return;
        }
        self.places.judge(&arg.text, Use::Reads, arg.pattern, grade);
        if let Some(text) = arg.literal() {
            self.reads.push(text.to_owned());
        }
    }

    pub(super) fn writes_file(&mut self, arg: &Arg, grade: &mut Grade) {
        if arg.sure == Sure::Unknown {
            grade.raise(Rung::L4, "which file is written is only known when it runs");
        }
        if arg.sure == Sure::Wide || (arg.pattern && !paths::is_narrow(&arg.text)) {
            grade.raise(Rung::L4, "what governs the agent could be among the files");
        }
        if arg.text == "-" {
            return;
        }
        self.places
            .judge(&arg.text, Use::Writes, arg.pattern, grade);
        if let Some(text) = arg.literal() {
            self.writes.push(text.to_owned());
        }
    }
}

/// Options of `git ls-files` that choose files.
const LS_FILES: [&str; 12] = [
    "-z",
    "-c",
    "-m",
    "-o",
    "-d",
    "--",
    "--cached",
    "--modified",
    "--others",
    "--deleted",
    "--exclude-standard",
    "--full-name",
];

/// Options of `git diff` that go with names alone.
const NAME_ONLY: [&str; 7] = [
    "--name-only",
    "--cached",
    "--staged",
    "--diff-filter",
    "--relative",
    "-z",
    "--",
];

/// What `find` chooses files by, and how it says their names.
const FINDS: [&str; 24] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-maxdepth",
    "-mindepth",
    "-newer",
    "-size",
    "-empty",
    "-mtime",
    "-mmin",
    "-not",
    "-o",
    "-or",
    "-a",
    "-and",
    "-prune",
    "-print",
    "-print0",
];

/// Whether what a command lists could be a file that governs the agent.
pub(super) fn sure_of_list(words: &[&str]) -> Sure {
    let operands = |skip: usize| {
        let mut operands = words
            .iter()
            .skip(skip)
            .filter(|word| !word.starts_with('-'))
            .peekable();
        operands.peek().is_some() && operands.all(|word| paths::is_narrow(word))
    };
    let has = |option: &str| words.contains(&option);
    let narrow = match words {
        ["find", ..] => {
            let roots: Vec<&&str> = words[1..]
                .iter()
                .take_while(|word| !word.starts_with(['-', '(', '!']))
                .collect();
            let named = words
                .windows(2)
                .any(|two| matches!(two[0], "-name" | "-iname") && paths::is_narrow_name(two[1]));
            let all = !["-o", "-or", "-not", "!"].iter().any(|word| has(word));
            (named && all) || (!roots.is_empty() && roots.iter().all(|root| paths::is_narrow(root)))
        }
        ["git", "ls-files", ..] => operands(2),
        ["ls", ..] => operands(1),
        ["fd", ..] => has("-e"),
        ["rg", ..] if has("--files") => has("-t") || operands(1),
        ["grep" | "rg", ..] => {
            let pattern = words
                .iter()
                .skip(1)
                .position(|word| !word.starts_with('-'))
                .map_or(words.len(), |at| at + 2);
            has("-t") || operands(pattern)
        }
        _ => false,
    };
    match narrow {
        true => Sure::Names,
        false => Sure::Wide,
    }
}

/// Whether an argument of a filter leaves each line whole.
fn keeps_lines(arg: &Arg) -> bool {
    let plain = |c: char| "vwixEFunrVs".contains(c) || c.is_ascii_digit();
    arg.is_known()
        && (!arg.is_option()
            || arg.text == "-e"
            || (!arg.text.starts_with("--") && arg.text[1..].chars().all(plain)))
}

/// Whether a format of `date` comes to digits and what stands between them.
fn is_time(format: &str) -> bool {
    let Some(format) = format.strip_prefix("+%") else {
        return false;
    };
    let mut chars = format.chars();
    chars.next().is_some_and(|c| "YymdHMSsjFTN".contains(c))
        && loop {
            match chars.next() {
                None => break true,
                Some('%') => {
                    if !chars.next().is_some_and(|c| "YymdHMSsjFTN".contains(c)) {
                        break false;
                    }
                }
                Some(c) if c.is_ascii_digit() || "-_:.TZ".contains(c) => {}
                Some(_) => break false,
            }
        }
}

/// The one simple command of a script that has no other.
fn only(script: &Script) -> Option<&Simple> {
    match script.pipelines.as_slice() {
        [pipeline] => match pipeline.commands.as_slice() {
            [Command::Simple(simple)] if simple.assigns.is_empty() => Some(simple),
            _ => None,
        },
        _ => None,
    }
}
