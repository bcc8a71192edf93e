//! References in a client's configuration: what stands in them now, and what only the client knows.

use std::path::Path;

/// Which references a client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// `${VAR}` and `${VAR:-otherwise}`.
    Shell,
    /// `${env:VAR}`, `${input:id}`, `${workspaceFolder}` and its kin.
    Editor,
    /// Either: nobody knows which client it is.
    Any,
    /// None: a text is what it is.
    None,
}

/// A text with its references looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Expanded {
    /// The text, as far as it is known.
    pub(crate) text: String,
    /// Variables of the environment that it takes.
    pub(crate) variables: Vec<String>,
    /// References without a value here: variables that are not set, and what the client asks people for.
    pub(crate) missing: Vec<String>,
}

impl Expanded {
    /// Whether it depends on more than where the project lies.
    pub(crate) fn is_open(&self) -> bool {
        !self.variables.is_empty() || !self.missing.is_empty()
    }
}

/// Where references are looked up.
pub(crate) struct Lookup<'a> {
    pub(crate) syntax: Syntax,
    pub(crate) folder: &'a Path,
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Lookup<'_> {
    /// Looks up the references in a text.
    pub(crate) fn expand(&self, text: &str) -> Expanded {
        let mut expanded = Expanded::default();
        let mut rest = text;
        while let Some(at) = rest.find("${").filter(|_| self.syntax != Syntax::None) {
            let Some(end) = rest[at..].find('}') else {
                break;
            };
            expanded.text.push_str(&rest[..at]);
            let whole = &rest[at..=at + end];
            self.one(&whole[2..whole.len() - 1], whole, &mut expanded);
            rest = &rest[at + end + 1..];
        }
        expanded.text.push_str(rest);
        expanded
    }

    fn one(&self, name: &str, whole: &str, expanded: &mut Expanded) {
        let is_editor = matches!(self.syntax, Syntax::Editor | Syntax::Any);
        let folder = self.folder.to_string_lossy();
        match name {
            "workspaceFolder" | "workspaceRoot" if is_editor => expanded.text.push_str(&folder),
            "workspaceFolderBasename" if is_editor => {
                let name = self.folder.file_name().unwrap_or_default();
                expanded.text.push_str(&name.to_string_lossy());
            }
            "pathSeparator" | "/" if is_editor => expanded.text.push('/'),
            "userHome" if is_editor => self.variable("HOME", None, whole, expanded),
            _ if is_editor && name.starts_with("env:") => {
                self.variable(&name[4..], None, whole, expanded);
            }
            _ if is_editor && name.starts_with("input:") => {
                expanded.missing.push(whole.to_owned());
            }
            _ if self.syntax != Syntax::Editor => {
                let (name, otherwise) = match name.split_once(":-") {
                    Some((name, otherwise)) => (name, Some(otherwise)),
                    None => (name, None),
                };
                self.variable(name, otherwise, whole, expanded);
            }
            // An editor's reference that is not known here.
            _ => expanded.missing.push(whole.to_owned()),
        }
    }

    fn variable(&self, name: &str, otherwise: Option<&str>, whole: &str, expanded: &mut Expanded) {
        expanded.variables.push(name.to_owned());
        let set = (self.variable)(name).filter(|value| !value.is_empty() || otherwise.is_none());
        match set.or(otherwise.map(str::to_owned)) {
            Some(value) => expanded.text.push_str(&value),
            None => expanded.missing.push(whole.to_owned()),
        }
    }
}

/// Whether a variable or a header of this name most likely holds a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 10] = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "APIKEY",
        "KEY",
        "AUTH",
        "PAT",
        "DSN",
    ];
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        WORDS
            .iter()
            .any(|secret| word == *secret || word == format!("{secret}S"))
    }) || name.contains("AUTHORIZATION")
        || name.ends_with("TOKEN")
        || name.ends_with("APIKEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(syntax: Syntax, text: &str) -> Expanded {
        let variable = |name: &str| (name == "SET").then(|| "value".to_owned());
        let lookup = Lookup {
            syntax,
            folder: Path::new("/w/project"),
            variable: &variable,
        };
        lookup.expand(text)
    }

    #[test]
    fn each_client_has_its_own_references() {
        for (syntax, text, shown) in [
            (Syntax::Shell, "a ${SET} ${NOT:-d}", "a value d"),
            (Syntax::Shell, "$SET ${", "$SET ${"),
            (Syntax::Editor, "${workspaceFolder}/x", "/w/project/x"),
            (Syntax::Editor, "--a=${env:SET}", "--a=value"),
            (Syntax::None, "${SET}", "${SET}"),
            (Syntax::Any, "${SET}${env:SET}${/}", "valuevalue/"),
        ] {
            let expanded = expand(syntax, text);
            assert_eq!(expanded.text, shown, "{text}");
            assert!(expanded.missing.is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_not_set_or_asked_for_is_named() {
        let missing = |syntax, text| expand(syntax, text).missing;
        assert_eq!(missing(Syntax::Shell, "${NOT}"), ["${NOT}"]);
        assert_eq!(missing(Syntax::Editor, "${input:x}"), ["${input:x}"]);
        assert_eq!(missing(Syntax::Editor, "${config:x}"), ["${config:x}"]);
        assert!(!expand(Syntax::Editor, "${workspaceFolder}").is_open());
    }

    #[test]
    fn names_of_secrets_are_told_from_others() {
        for name in [
            "GITHUB_TOKEN",
            "API_KEY",
            "Authorization",
            "DB_PASSWORD",
            "GITHUB_PAT",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "NODE_OPTIONS",
            "MEMORY_FILE_PATH",
            "LANG",
            "KEYBOARD",
            "PATH",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
