//! Text and values: programs that say something, and open nothing.

use lodestar_core::ladder::Rung::L0;

use crate::command::programs::{Program, Rule};

pub(super) static TEXT: &[Program] = &[
    Program::new(L0, &["echo"], "says its words", Rule::Text).free(),
    Program::new(L0, &["printf"], "says its words", Rule::Printf),
    Program::new(
        L0,
        &[
            "true", "false", ":", "exit", "return", "break", "continue", "shift", "times",
            "ulimit", "umask",
        ],
        "steers the shell",
        Rule::Text,
    )
    .free(),
    Program::new(L0, &["wait"], "waits for jobs", Rule::Text).plain("nf", &[]),
    Program::new(L0, &["jobs"], "lists jobs", Rule::Jobs).plain("lnprsx", &[]),
    Program::new(
        L0,
        &[
            "seq", "sleep", "yes", "expr", "basename", "dirname", "whoami", "id", "groups",
            "logname", "tty", "uname", "arch", "nproc", "uptime", "free", "vmstat", "lscpu",
            "lsblk", "getconf", "locale", "tput", "clear", "cal", "factor", "numfmt", "help",
            "pgrep", "who", "w", "last",
        ],
        "says a value",
        Rule::Text,
    )
    .free(),
    Program::new(
        L0,
        &["hostname"],
        "says the name of the machine",
        Rule::Shows,
    )
    .plain(
        "afisdAIy",
        &[
            "--fqdn",
            "--long",
            "--short",
            "--ip-address",
            "--domain",
            "--all-ip-addresses",
        ],
    ),
    Program::new(L0, &["date"], "says the time", Rule::Shows).plain(
        "uRIjd:r:v:",
        &[
            "--utc",
            "--universal",
            "--rfc-email",
            "--date=",
            "--reference=",
            "--iso-8601",
            "--iso-8601=",
            "--rfc-3339=",
        ],
    ),
    Program::new(
        L0,
        &["man", "apropos", "whatis"],
        "shows a manual",
        Rule::Reads,
    )
    .plain(
        "kfaw",
        &["--apropos", "--whatis", "--all", "--where", "--path"],
    ),
    Program::new(L0, &["info"], "shows a manual", Rule::Reads).plain("", &["--subnodes"]),
    Program::new(L0, &["ps"], "lists processes", Rule::Ps).plain(
        "AadefFlLHjMTuwxco:O:p:C:t:U:G:g:q:ysmS",
        &[
            "--sort=",
            "--no-headers",
            "--forest",
            "--pid=",
            "--ppid=",
            "--format=",
            "--headers",
            "--user=",
        ],
    ),
    Program::new(L0, &["top"], "lists processes", Rule::Text).free(),
    Program::new(L0, &["netstat"], "lists sockets", Rule::Text).free(),
    Program::new(L0, &["lsof"], "lists open files", Rule::Names)
        .plain("i:p:nPtu:c:d:alRF:s:U", &[]),
    Program::new(L0, &["ss"], "lists sockets", Rule::Text).plain(
        "tulnpaeimosx460HOr",
        &[
            "--tcp",
            "--udp",
            "--listening",
            "--numeric",
            "--processes",
            "--all",
            "--summary",
        ],
    ),
    Program::new(
        L0,
        &["which", "type", "whence", "where"],
        "says where a program lies",
        Rule::Text,
    )
    .free(),
    Program::new(L0, &["test", "["], "looks at files and values", Rule::Test),
];
