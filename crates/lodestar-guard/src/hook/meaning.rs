//! What a use of a tool reaches for, whatever the client calls its arguments.
//!
//! Clients name the same thing differently, and Codex hides the files of a patch in its text. Whoever judges a use
//! asks here; where a client may mean something that is not found, the answer is that nobody knows.

use serde_json::{Map, Value};

use super::{Kind, Use};

/// Arguments that hold a file or folder, in any client.
const PLACES: [&str; 10] = [
    "file_path",
    "filePath",
    "notebook_path",
    "target_file",
    "target_notebook",
    "path",
    "dir_path",
    "directory",
    "working_directory",
    "workdir",
];

/// Lines of a patch of Codex's that name a file.
const PATCHED: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

impl Use {
    /// The command line of a shell, as the client has it.
    pub fn command(&self) -> Option<&str> {
        let is_shell = self.kind == Kind::Shell;
        is_shell.then(|| text(&self.input, "command"))?
    }

    /// Where a page is fetched from. Gemini CLI has its addresses among the words of a prompt, and no argument.
    pub fn address(&self) -> Option<&str> {
        let is_fetch = self.kind == Kind::Fetch;
        is_fetch.then(|| text(&self.input, "url"))?
    }

    /// The files and folders that are named, as they are spelt; nothing where nobody knows which they are. A use of
    /// [`Kind::Find`] that names none looks at the folder that it works in.
    pub fn places(&self) -> Option<Vec<String>> {
        if let Some(patch) = self.patch() {
            return patched(patch);
        }
        let mut places = Vec::new();
        for name in PLACES {
            match self.input.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::String(place)) if !place.is_empty() => places.push(place.clone()),
                Some(_) => return None,
            }
        }
        // Gemini CLI's `read_many_files`: patterns, in lists.
        for name in ["include", "paths"] {
            match self.input.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::Array(all)) => {
                    for place in all {
                        let place = place.as_str().filter(|place| !place.is_empty())?;
                        places.push(place.to_owned());
                    }
                }
                Some(_) => return None,
            }
        }
        let needs_one = matches!(self.kind, Kind::Read | Kind::Edit | Kind::Write);
        (!needs_one || !places.is_empty()).then_some(places)
    }

    /// The text of a patch, where the tool takes one.
    pub fn patch(&self) -> Option<&str> {
        let is_patch = self.kind == Kind::Edit && self.tool == "apply_patch";
        is_patch.then(|| text(&self.input, "command").or_else(|| text(&self.input, "input")))?
    }
}

fn text<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    input.get(name)?.as_str()
}

/// The files of a patch. A line that looks like the name of a file and is of no known sort makes all of it unknown:
/// a newer Codex may do more with a patch than is known here.
fn patched(patch: &str) -> Option<Vec<String>> {
    let mut places = Vec::new();
    for line in patch.lines().filter(|line| line.starts_with("***")) {
        let named = PATCHED.iter().find_map(|sort| line.strip_prefix(sort));
        match (named, line.trim_end()) {
            (Some(place), _) if !place.trim().is_empty() => places.push(place.trim().to_owned()),
            (None, "*** Begin Patch" | "*** End Patch" | "*** End of File") => {}
            _ => return None,
        }
    }
    (!places.is_empty()).then_some(places)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(kind: Kind, tool: &str, input: Value) -> Use {
        let Value::Object(input) = input else {
            panic!("arguments are an object");
        };
        Use {
            tool: tool.to_owned(),
            kind,
            id: None,
            input,
        }
    }

    fn patch(text: &str) -> Option<Vec<String>> {
        of(Kind::Edit, "apply_patch", json!({"command": text})).places()
    }

    #[test]
    fn every_file_of_a_patch_is_named() {
        let all = patch(
            "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** Update File: src/b.rs\n\
             *** Move to: .claude/settings.json\n@@\n-x\n+y\n*** End of File\n\
             *** Delete File: c d.txt\n*** End Patch\n",
        );
        let all = all.expect("a patch");
        assert_eq!(
            all,
            ["a.txt", "src/b.rs", ".claude/settings.json", "c d.txt"]
        );
    }

    #[test]
    fn a_patch_that_nobody_understands_has_no_known_files() {
        for text in [
            "",
            "--- a\n+++ b\n",
            "*** Begin Patch\n*** End Patch",
            "*** Begin Patch\n*** Add File: a\n*** Link File: b\n*** End Patch",
            "*** Begin Patch\n*** Add File: \n*** End Patch",
        ] {
            assert_eq!(patch(text), None, "{text}");
        }
    }

    #[test]
    fn places_are_found_under_every_clients_name_for_them() {
        for (kind, input, places) in [
            (Kind::Read, json!({"file_path": "a"}), vec!["a"]),
            (
                Kind::Edit,
                json!({"notebook_path": "n.ipynb"}),
                vec!["n.ipynb"],
            ),
            (
                Kind::Find,
                json!({"pattern": "*", "path": "src"}),
                vec!["src"],
            ),
            (Kind::Find, json!({"pattern": "*"}), vec![]),
            (
                Kind::Read,
                json!({"include": ["a", "b/*"]}),
                vec!["a", "b/*"],
            ),
        ] {
            let found = of(kind, "x", input).places().expect("known");
            assert_eq!(found, places);
        }
    }

    #[test]
    fn a_file_that_is_not_named_or_no_text_is_unknown() {
        for input in [
            json!({}),
            json!({"file_path": 1}),
            json!({"file_path": ""}),
            json!({"include": [1]}),
            json!({"file": "a"}),
        ] {
            assert_eq!(
                of(Kind::Write, "x", input.clone()).places(),
                None,
                "{input}"
            );
        }
    }

    #[test]
    fn only_a_shell_has_a_command_and_only_a_fetch_an_address() {
        let input = json!({"command": "ls", "url": "https://example.com"});
        assert_eq!(of(Kind::Shell, "Bash", input.clone()).command(), Some("ls"));
        assert_eq!(of(Kind::Read, "Read", input.clone()).command(), None);
        let fetch = of(Kind::Fetch, "WebFetch", input.clone());
        assert_eq!(fetch.address(), Some("https://example.com"));
        assert_eq!(of(Kind::Shell, "Bash", input).address(), None);
    }
}
