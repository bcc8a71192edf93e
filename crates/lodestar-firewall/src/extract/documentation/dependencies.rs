//! Dependencies that a document names: in manifests, in snippets of them, in install commands.

use serde_json::Value;

use super::found::{Found, Kind};
use super::manifests::Manifest;

/// Longest JSON that is parsed for dependencies; real manifests are far smaller.
const MAX_JSON: usize = 1 << 20;

/// Longest name of a package.
const MAX_NAME: usize = 214;

/// Reads dependencies line by line.
pub(super) struct Dependencies {
    found: Found,
    manifest: Option<Manifest>,
    table: Table,
    json: String,
}

/// Where in a manifest a line stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Table {
    /// Nowhere that names dependencies.
    Other,
    /// Each line is one of this ecosystem.
    Each(&'static str),
    /// The lines describe this one.
    One(&'static str, String),
    /// The project table of `pyproject.toml`, where one member is a list of them.
    Project,
    /// A table whose members are all lists of them.
    Groups,
    /// Inside such a list; then back to the table.
    List(Box<Table>),
}

impl Dependencies {
    pub(super) fn new() -> Self {
        Self {
            found: Found::new(Kind::Dependency),
            manifest: None,
            table: Table::Other,
            json: String::new(),
        }
    }

    pub(super) fn begin(&mut self, manifest: Manifest) {
        self.manifest = Some(manifest);
        self.table = Table::Other;
        self.json.clear();
    }

    pub(super) fn line(&mut self, line: &str) {
        match self.manifest {
            Some(Manifest::Toml) => self.toml(line.trim()),
            Some(Manifest::Requirements) => self.requirement(line),
            Some(Manifest::Go) => self.go(line.trim()),
            Some(Manifest::Npm) if self.json.len() + line.len() < MAX_JSON => {
                self.json.push_str(line);
                self.json.push('\n');
            }
            Some(Manifest::Npm) | None => {}
        }
    }

    /// A whole `package.json`, whose lines may be of any length.
    pub(super) fn whole(&mut self, text: &str) {
        if text.len() < MAX_JSON {
            self.json = text.trim_start_matches('\u{feff}').to_owned();
        }
    }

    pub(super) fn end(&mut self) {
        if self.manifest.take() == Some(Manifest::Npm) {
            let json = std::mem::take(&mut self.json);
            self.npm(&json);
        }
    }

    pub(super) fn into_found(self) -> Found {
        self.found
    }

    fn add(&mut self, ecosystem: &'static str, name: &str, requirement: &str) {
        let fine = |b: u8| b.is_ascii_alphanumeric() || b"-_.@/~".contains(&b);
        let first = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'@' | b'_');
        let name_fits = name.len() <= MAX_NAME
            && name.bytes().next().is_some_and(first)
            && name.bytes().all(fine);
        if name_fits {
            self.found.dependency(ecosystem, name, requirement);
        }
    }

    fn toml(&mut self, line: &str) {
        if let Table::List(_) = self.table {
            return self.list(line);
        }
        if let Some(header) = line.strip_prefix('[') {
            self.table = table(
                header
                    .trim_start_matches('[')
                    .split(']')
                    .next()
                    .unwrap_or(""),
            );
            if let Table::One(ecosystem, name) = self.table.clone() {
                self.add(ecosystem, &name, "");
            }
            return;
        }
        let Some((key, value)) = line.split_once('=') else {
            return;
        };
        let (key, value) = (unquoted(key.trim()), value.trim());
        match self.table.clone() {
            Table::Each(ecosystem) if !line.starts_with('#') => {
                let name = key.split('.').next().unwrap_or(key);
                // Poetry states the interpreter among the packages.
                if !(ecosystem == "pypi" && name == "python") {
                    self.add(ecosystem, name, version(value));
                }
            }
            Table::One(ecosystem, name) if key == "version" => {
                self.add(ecosystem, &name, unquoted(value));
            }
            Table::Project if key == "dependencies" => self.open_list(value),
            Table::Groups if !line.starts_with('#') => self.open_list(value),
            _ => {}
        }
    }

    fn open_list(&mut self, value: &str) {
        if let Some(items) = value.strip_prefix('[') {
            let table = std::mem::replace(&mut self.table, Table::Other);
            self.table = Table::List(Box::new(table));
            self.list(items);
        }
    }

    /// Strings in quotes, until a bracket closes the list outside of them.
    fn list(&mut self, line: &str) {
        let mut rest = line;
        while let Some(at) = rest.find(['"', '\'', ']', '#']) {
            let mark = &rest[at..=at];
            rest = &rest[at + 1..];
            match mark {
                "]" => {
                    if let Table::List(table) = std::mem::replace(&mut self.table, Table::Other) {
                        self.table = *table;
                    }
                    return;
                }
                "#" => return,
                quote => {
                    let Some((text, after)) = rest.split_once(quote) else {
                        return;
                    };
                    self.requirement(text);
                    rest = after;
                }
            }
        }
    }

    /// `name[extra] >= 1 ; marker`, as Python writes it.
    fn requirement(&mut self, line: &str) {
        let line = line.split(" #").next().unwrap_or(line).trim();
        let end = line
            .find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
            .unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let rest = rest.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(extras) => extras.split_once(']').map_or("", |(_, rest)| rest),
            None => rest,
        };
        let requirement = rest.split(';').next().unwrap_or("").trim();
        // Anything but a version behind the name: prose, an option, a file.
        if requirement.is_empty() || requirement.starts_with(['=', '<', '>', '~', '!', '@', '(']) {
            self.add("pypi", name, requirement);
        }
    }

    fn go(&mut self, line: &str) {
        let line = line.split("//").next().unwrap_or("").trim();
        let mut words = line.split_ascii_whitespace();
        let first = match (words.next(), &self.table) {
            (Some(")"), _) => {
                self.table = Table::Other;
                return;
            }
            (Some("require"), _) => words.next(),
            (word, Table::Each(_)) => word,
            _ => return,
        };
        match (first, words.next()) {
            (Some("("), _) => self.table = Table::Each("go"),
            (Some(module), Some(version)) => self.add("go", module, version),
            _ => {}
        }
    }

    fn npm(&mut self, json: &str) {
        // A snippet may lack the braces around it. The parser bounds how deep it goes.
        let whole = serde_json::from_str::<Value>(json)
            .or_else(|_| serde_json::from_str(&format!("{{{json}}}")));
        let Ok(Value::Object(manifest)) = whole else {
            return;
        };
        for table in [
            "dependencies",
            "devDependencies",
            "peerDependencies",
            "optionalDependencies",
        ] {
            for (name, version) in manifest
                .get(table)
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                self.add("npm", name, version.as_str().unwrap_or(""));
            }
        }
    }

    /// Packages that a command installs.
    pub(super) fn command(&mut self, command: &str) {
        let mut words = command.split_ascii_whitespace().peekable();
        words.next_if_eq(&"sudo");
        if words
            .next_if(|word| matches!(*word, "python" | "python3"))
            .is_some()
        {
            words.next_if_eq(&"-m");
        }
        let Some(program) = words.next() else { return };
        if program == "uv" {
            words.next_if_eq(&"pip");
        }
        let ecosystem = match (program, words.next()) {
            ("cargo", Some("add")) => "cargo",
            ("npm", Some("install" | "i" | "add")) | ("yarn" | "pnpm" | "bun", Some("add")) => {
                "npm"
            }
            ("pip" | "pip3", Some("install")) | ("uv", Some("add" | "install")) => "pypi",
            ("go", Some("get")) => "go",
            _ => return,
        };
        // An option may take the next word, which then is no package: the command is left alone
        // from there on.
        for word in words.take_while(|word| !word.starts_with('-')) {
            let word = unquoted(word);
            if word.starts_with(['.', '/', '&', '|', ';', '#']) || word.contains("://") {
                break;
            }
            if ecosystem == "pypi" {
                self.requirement(word);
            } else {
                let at = word.get(1..).and_then(|rest| rest.rfind('@'));
                let (name, version) = at.map_or((word, ""), |at| (&word[..=at], &word[at + 2..]));
                self.add(ecosystem, name, version);
            }
        }
    }
}

/// What a TOML header says about the lines below it.
fn table(header: &str) -> Table {
    let header = header.trim();
    match header {
        "project" => return Table::Project,
        "project.optional-dependencies" | "dependency-groups" => return Table::Groups,
        _ => {}
    }
    if let Some(poetry) = header.strip_prefix("tool.poetry.") {
        return match poetry.strip_suffix("dependencies") {
            Some(_) => Table::Each("pypi"),
            None => Table::Other,
        };
    }
    let is_table = |name: &str| {
        matches!(
            name,
            "dependencies" | "dev-dependencies" | "build-dependencies"
        )
    };
    let (parent, last) = header.rsplit_once('.').unwrap_or(("", header));
    if is_table(last) {
        return Table::Each("cargo");
    }
    if last.len() <= MAX_NAME && is_table(parent.rsplit('.').next().unwrap_or(parent)) {
        return Table::One("cargo", unquoted(last).to_owned());
    }
    Table::Other
}

/// The version in what stands behind `=`: a string, or a member of an inline table.
fn version(value: &str) -> &str {
    if let Some(table) = value.strip_prefix('{') {
        return table
            .split_once("version")
            .and_then(|(_, rest)| rest.trim_start().strip_prefix('='))
            .map_or("", |rest| unquoted(rest.trim_start()));
    }
    if value.starts_with(['"', '\'']) {
        unquoted(value)
    } else {
        ""
    }
}

/// The text up to the closing quote, if it starts with one.
fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.split(quote).next().unwrap_or(inner);
        }
    }
    text
}
