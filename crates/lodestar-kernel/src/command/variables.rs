//! Variables: which change how programs run, which hold credentials, which are set where.

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;

use super::grade::Grade;
use super::paths::Places;
use super::syntax::{Command, Expansion, Script, Simple, Word};

/// Names, or begins of names that end in `*`, of variables that decide which code runs, where it is found, or
/// whom it speaks to.
const DECIDING: &[&str] = &[
    "PATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "CDPATH",
    "IFS",
    "ENV",
    "BASH*",
    "SHELL",
    "SHELLOPTS",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT_COMMAND",
    "GLOBIGNORE",
    "FPATH",
    "ZDOTDIR",
    "LD_*",
    "DYLD_*",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "TERMINFO*",
    "GIT_*",
    "PAGER",
    "*_PAGER",
    "EDITOR",
    "VISUAL",
    "*_EDITOR",
    "BROWSER",
    "LESS*",
    "MANPAGER",
    "MANPATH",
    "SSH_*",
    "*_PROXY",
    "*_proxy",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PERL5*",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "CLASSPATH",
    "MAVEN_OPTS",
    "GRADLE_OPTS",
    "RUSTC",
    "RUSTC_*",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTUP_*",
    "CARGO_HOME",
    "CARGO_BUILD_*",
    "CARGO_TARGET_*",
    "CARGO_REGISTR*",
    "CARGO_NET_*",
    "CARGO_ENCODED_*",
    "CC",
    "CXX",
    "LD",
    "AR",
    "CFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MAKEFILES",
    "npm_config_*",
    "NPM_CONFIG_*",
    "NPM_TOKEN",
    "YARN_*",
    "PIP_*",
    "UV_*",
    "GOFLAGS",
    "GOPROXY",
    "GOPATH",
    "GOROOT",
    "GONOSUMDB",
    "GOENV",
    "GOBIN",
    "GOTOOLCHAIN",
    "XDG_*",
    "TMPDIR",
    "DOCKER_*",
    "KUBECONFIG",
    "AWS_*",
    "AZURE_*",
    "GOOGLE_*",
    "OPENSSL_*",
    "SSL_CERT_*",
    "CURL_*",
    "RIPGREP_CONFIG_PATH",
    "GREP_OPTIONS",
    "JQ_*",
    "TAR_OPTIONS",
    "ZIPOPT",
    "UNZIP",
    "POSIXLY_CORRECT",
    "LUA_*",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "VIMINIT",
    "EXINIT",
    "SUDO_*",
    "DBUS_*",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "AS",
    "CPP",
    "RM",
    "M4",
    "LEX",
    "YACC",
    "MAKE*",
    "CMAKE_*",
    "CTEST_*",
    "*_LAUNCHER",
    "*_COMPILER",
    "*FLAGS",
    "GCC_*",
    "COMPILER_PATH",
    "LIBRARY_PATH",
    "LLVM_*",
    "*SAN_OPTIONS",
    "CARGO",
    "CARGO_*",
    "GO*",
    "NODE_*",
    "JAVA_*",
    "MAVEN_*",
    "GRADLE_*",
    "PYTHON*",
    "COVERAGE_*",
    "MYPY*",
    "RUBY*",
    "GEM_*",
    "BUNDLE_*",
    "PHP_*",
    "COMPOSER_*",
    "PERL_*",
    "R_*",
    "JULIA_*",
    "NIX_*",
    "TAPE",
    "RSYNC_*",
    "GZIP",
    "XZ_*",
    "ZSTD_*",
    "BC_ENV_ARGS",
    "ACK*",
    "BAT_*",
    "MAN*",
    "GROFF_*",
    "INFOPATH",
    "INPUTRC",
    "TERMCAP",
    "HOSTALIASES",
    "RES_OPTIONS",
    "MALLOC_*",
    "GLIBC_*",
];

/// Of the shell's record of what was typed.
const RECORD: &[&str] = &[
    "HISTFILE",
    "HISTSIZE",
    "HISTFILESIZE",
    "HISTCONTROL",
    "HISTIGNORE",
    "SAVEHIST",
];

/// Variables that programs are told harmless things by.
const HARMLESS: &[&str] = &[
    "RUST_LOG",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_TEST_THREADS",
    "RUST_MIN_STACK",
    "CARGO_TERM_*",
    "CARGO_INCREMENTAL",
    "CARGO_PROFILE_*",
    "PROPTEST_*",
    "INSTA_*",
    "NEXTEST_*",
    "CI",
    "DEBUG",
    "VERBOSE",
    "V",
    "NODE_ENV",
    "APP_ENV",
    "RAILS_ENV",
    "RACK_ENV",
    "FLASK_ENV",
    "FLASK_DEBUG",
    "DJANGO_SETTINGS_MODULE",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR*",
    "COLORTERM",
    "PORT",
    "LOG_LEVEL",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONWARNINGS",
    "GOOS",
    "GOARCH",
    "CGO_ENABLED",
    "SOURCE_DATE_EPOCH",
    "JOBS",
    "BASH_SILENCE_DEPRECATION_WARNING",
    "CMAKE_BUILD_TYPE",
    "CMAKE_EXPORT_COMPILE_COMMANDS",
];

/// Variables whose value names no file and no option, and that no line can set.
pub(super) const NUMBERS: &[&str] = &["?", "#", "$", "!", "-"];

/// Parts of names that credentials have.
const CREDENTIALS: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASS",
    "KEY",
    "CRED",
    "AUTH",
    "COOKIE",
    "SESSION",
    "PRIVATE",
    "SIGNATURE",
    "DSN",
    "DATABASE_URL",
    "CONNECTION",
];

fn is_of(name: &str, list: &[&str]) -> bool {
    list.iter().any(
        |entry| match (entry.strip_suffix('*'), entry.strip_prefix('*')) {
            (Some(begin), _) => name.starts_with(begin),
            (_, Some(end)) => name.ends_with(end),
            _ => name == *entry,
        },
    )
}

/// A variable is used.
pub(super) fn judge_use(name: &str, indirect: bool, grade: &mut Grade) {
    let shown = Excerpt::of(name);
    if is_own(name) {
        return grade.raise(
            Rung::L5,
            format!("`{shown}` is a variable of what governs the agent"),
        );
    }
    if indirect {
        let reason = format!("what stands for `{shown}` is read as something else than text");
        return grade.raise(Rung::L4, reason);
    }
    let upper = name.to_ascii_uppercase();
    if CREDENTIALS.iter().any(|part| upper.contains(part)) {
        grade.raise(Rung::L4, format!("`{shown}` sounds like a credential"));
    }
}

/// A variable is set, for the shell alone or for what it starts.
pub(super) fn judge_set(name: &str, exported: bool, grade: &mut Grade) {
    let shown = Excerpt::of(name);
    match () {
        () if is_own(name) => {
            grade.raise(
                Rung::L5,
                format!("`{shown}` is a variable of what governs the agent"),
            );
        }
        () if is_of(name, RECORD) => {
            grade.raise(
                Rung::L5,
                format!("`{shown}` decides what is kept of commands"),
            );
        }
        () if is_of(name, HARMLESS) => {}
        () if is_of(name, DECIDING) || !super::syntax::is_name(name) => {
            grade.raise(
                Rung::L4,
                format!("`{shown}` decides which code runs or where it is found"),
            );
        }
        () if exported => {
            grade.raise(
                Rung::L3,
                format!("nobody graded what programs do with `{shown}`"),
            );
        }
        () => {}
    }
}

fn is_own(name: &str) -> bool {
    name.to_ascii_uppercase().starts_with("LODESTAR_")
}

/// What a program that is started finds in a variable: a path that leads out of the project, or a command.
pub(super) fn judge_exported(name: &str, value: &str, places: &Places, grade: &mut Grade) {
    let shown = Excerpt::of(name);
    let address = value.contains("://");
    let outside = |part: &str| part.starts_with(['/', '~', '.']) && !places.is_inside(part);
    if !address && value.split([':', ',', ';', ' ', '=']).any(outside) {
        grade.raise(
            Rung::L4,
            format!("`{shown}` leads programs out of the project"),
        );
    }
    if value.contains([';', '|', '&', '`', '$', '<', '>', '(']) && !address {
        grade.raise(Rung::L4, format!("`{shown}` holds what reads as a command"));
    }
}

/// Shells look for code in values when they compute with them.
pub(super) fn judge_value(text: &str, grade: &mut Grade) {
    if text.contains("[") && (text.contains("$(") || text.contains('`')) {
        grade.raise(Rung::L4, "a text holds a command that arithmetic would run");
    }
}

/// Whether anything in these scripts could set a variable; of no name, any variable.
pub(super) fn sets(scripts: &[Script], name: Option<&str>) -> bool {
    scripts.iter().any(|script| {
        let mut commands = script
            .pipelines
            .iter()
            .flat_map(|pipeline| &pipeline.commands);
        commands.any(|command| command_sets(command, name))
    })
}

pub(super) fn command_sets(command: &Command, name: Option<&str>) -> bool {
    match command {
        Command::Simple(simple) => simple_sets(simple, name),
        Command::Compound(compound) => {
            let each = compound.each.as_ref();
            each.is_some_and(|(own, _)| name.is_none_or(|name| own == name))
                || compound
                    .expressions
                    .iter()
                    .any(|word| arithmetic_names(word, name))
                || compound
                    .words
                    .iter()
                    .chain(&compound.tested)
                    .any(|word| expansion_sets(word, name))
                || sets(&compound.scripts, name)
        }
        Command::Subshell(script, _) => sets(std::slice::from_ref(script), name),
        Command::Function(_, body) => command_sets(body, name),
    }
}

fn simple_sets(simple: &Simple, name: Option<&str>) -> bool {
    const SETTERS: [&str; 16] = [
        "read",
        "export",
        "declare",
        "typeset",
        "local",
        "readonly",
        "unset",
        "mapfile",
        "readarray",
        "let",
        "printf",
        "getopts",
        "eval",
        "builtin",
        "trap",
        "wait",
    ];
    let words = simple.words.iter().map(Word::literal);
    let mut words = words.skip_while(|word| matches!(word.as_deref(), Some("command" | "builtin")));
    let setter = match words.next() {
        // A file that is run in this shell can set anything.
        Some(Some(first)) if first == "source" || first == "." => return true,
        Some(Some(first)) => SETTERS.contains(&first.as_str()),
        Some(None) => true,
        None => false,
    };
    let named = |text: &str| name.is_none_or(|name| text.contains(name));
    let assigned = |own: &str| name.is_none_or(|name| own == name);
    simple.assigns.iter().any(|assign| assigned(&assign.name))
        || (setter && words.any(|word| word.is_none_or(|text| named(&text))))
        || simple.words.iter().any(|word| expansion_sets(word, name))
}

fn expansion_sets(word: &Word, name: Option<&str>) -> bool {
    word.expansions.iter().any(|expansion| match &**expansion {
        Expansion::Parameter {
            name: own,
            assigns,
            rest,
            ..
        } => (*assigns && name.is_none_or(|name| own == name)) || expansion_sets(rest, name),
        Expansion::Arithmetic(inner) => arithmetic_names(inner, name),
        Expansion::Command(_) | Expansion::Process(_) => false,
    })
}

/// Whether an expression names a variable: it could set it.
fn arithmetic_names(word: &Word, name: Option<&str>) -> bool {
    let text: String = word
        .units
        .iter()
        .map(|unit| match unit {
            super::syntax::Unit::Bare(c) | super::syntax::Unit::Quoted(c) => *c,
            super::syntax::Unit::Expansion(..) => ' ',
        })
        .collect();
    let named = name.is_none_or(|name| text.contains(name));
    (named && text.contains(['=', '+', '-'])) || expansion_sets(word, name)
}
