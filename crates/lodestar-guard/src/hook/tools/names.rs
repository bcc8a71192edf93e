//! What clients call things in the arguments of their tools.

/// Places: files, folders, and patterns of them.
pub(super) const PLACES: [&str; 28] = [
    "absolute_path",
    "cwd",
    "dir",
    "dir_path",
    "directories",
    "directory",
    "file",
    "file_path",
    "file_paths",
    "filename",
    "files",
    "folder",
    "glob",
    "glob_pattern",
    "include",
    "include_pattern",
    "notebook_path",
    "path",
    "paths",
    "relative_path",
    "root",
    "target_directories",
    "target_directory",
    "target_file",
    "target_notebook",
    "target_path",
    "workdir",
    "working_directory",
];

/// What is written, said or looked for.
pub(super) const CONTENTS: [&str; 24] = [
    "cell_id",
    "cell_type",
    "code_edit",
    "content",
    "contents",
    "description",
    "diff",
    "edit_mode",
    "edits",
    "explanation",
    "instruction",
    "instructions",
    "new_content",
    "new_source",
    "new_str",
    "new_string",
    "old_content",
    "old_str",
    "old_string",
    "patch",
    "pattern",
    "prompt",
    "query",
    "text",
];

/// Command lines.
pub(super) const COMMANDS: [&str; 6] = [
    "cmd",
    "command",
    "command_line",
    "commands",
    "script",
    "shell_command",
];

/// What changes what a command line does, beside the line itself.
pub(super) const AROUND_COMMANDS: [&str; 10] = [
    "args",
    "arguments",
    "argv",
    "env",
    "environment",
    "input",
    "interpreter",
    "program",
    "shell",
    "stdin",
];

/// Addresses.
pub(super) const ADDRESSES: [&str; 6] = ["address", "href", "link", "uri", "url", "urls"];

/// What a tool that asks a language server only looks with; a newer one may rename or format.
pub(super) const LOOKING_OPERATIONS: [&str; 9] = [
    "documentSymbol",
    "findReferences",
    "goToDefinition",
    "goToImplementation",
    "hover",
    "incomingCalls",
    "outgoingCalls",
    "prepareCallHierarchy",
    "workspaceSymbol",
];

/// `filePath` and `file_path` are one name.
pub(super) fn snake(name: &str) -> String {
    let mut made = String::with_capacity(name.len());
    let mut before_was_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && before_was_lower {
            made.push('_');
        }
        before_was_lower = c.is_ascii_lowercase();
        made.push(match c {
            '-' => '_',
            c => c.to_ascii_lowercase(),
        });
    }
    made
}
