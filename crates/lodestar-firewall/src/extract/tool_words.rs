//! What a tool's name suggests it does with the thing its arguments name.
//!
//! A server chooses these names, so they decide nothing that matters: only which extractors look, and
//! whether two results about one path are compared with each other.

/// Words of tools that take a path and return something other than what stands at it. Without them a
/// listing, a deletion and a read of one path would contradict each other.
const NOT_READING: &[&str] = &[
    "append",
    "blame",
    "build",
    "checksum",
    "chmod",
    "commit",
    "copy",
    "count",
    "create",
    "delete",
    "diff",
    "dir",
    "directory",
    "edit",
    "exec",
    "execute",
    "exists",
    "find",
    "format",
    "glob",
    "grep",
    "hash",
    "history",
    "info",
    "insert",
    "lint",
    "list",
    "log",
    "ls",
    "metadata",
    "mkdir",
    "move",
    "patch",
    "put",
    "remove",
    "rename",
    "replace",
    "rm",
    "run",
    "save",
    "search",
    "size",
    "stat",
    "status",
    "summarize",
    "summary",
    "test",
    "touch",
    "tree",
    "update",
    "upload",
    "watch",
    "write",
];

/// The words of a name, in lower case: split at everything but letters and digits, and where a
/// capital follows a small letter.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_small = false;
    for c in name.chars() {
        let splits = !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && after_small);
        if splits && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
        after_small = c.is_ascii_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether a tool of this name may well return what stands at the path it is given.
pub(super) fn may_read(tool: &str) -> bool {
    !words(tool)
        .iter()
        .any(|word| NOT_READING.binary_search(&word.as_str()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("git_status"), ["git", "status"]);
        assert_eq!(words("listDirectory"), ["list", "directory"]);
        assert_eq!(words("fs.read-file2"), ["fs", "read", "file2"]);
        assert!(words("日本").is_empty());
    }

    #[test]
    fn tools_that_read_are_told_from_tools_that_do_something_else_to_a_path() {
        assert!(NOT_READING.is_sorted());
        for tool in ["read_file", "get_file_contents", "Read", "fetch", "view"] {
            assert!(may_read(tool), "{tool}");
        }
        for tool in [
            "list_directory",
            "get_file_info",
            "writeFile",
            "delete_file",
            "directory_tree",
        ] {
            assert!(!may_read(tool), "{tool}");
        }
    }
}
