//! Languages by the extension of a file or the tag of a code block.

/// Extension or tag, and the language.
const LANGUAGES: &[(&str, &str)] = &[
    ("bash", "shell"),
    ("c", "c"),
    ("c#", "csharp"),
    ("c++", "cpp"),
    ("cc", "cpp"),
    ("cjs", "javascript"),
    ("console", "console"),
    ("cpp", "cpp"),
    ("cs", "csharp"),
    ("csharp", "csharp"),
    ("css", "css"),
    ("cxx", "cpp"),
    ("fish", "shell"),
    ("go", "go"),
    ("golang", "go"),
    ("h", "c"),
    ("hpp", "cpp"),
    ("html", "html"),
    ("java", "java"),
    ("javascript", "javascript"),
    ("js", "javascript"),
    ("json", "json"),
    ("jsx", "javascript"),
    ("kotlin", "kotlin"),
    ("kt", "kotlin"),
    ("kts", "kotlin"),
    ("markdown", "markdown"),
    ("md", "markdown"),
    ("mdx", "markdown"),
    ("mjs", "javascript"),
    ("php", "php"),
    ("py", "python"),
    ("pyi", "python"),
    ("python", "python"),
    ("python3", "python"),
    ("rb", "ruby"),
    ("rs", "rust"),
    ("rst", "restructuredtext"),
    ("ruby", "ruby"),
    ("rust", "rust"),
    ("sh", "shell"),
    ("shell", "shell"),
    ("shell-session", "console"),
    ("shellsession", "console"),
    ("sql", "sql"),
    ("swift", "swift"),
    ("terminal", "console"),
    ("text", "text"),
    ("toml", "toml"),
    ("ts", "typescript"),
    ("tsx", "typescript"),
    ("txt", "text"),
    ("typescript", "typescript"),
    ("xml", "xml"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
    ("zsh", "shell"),
];

/// The language of an extension or tag, whatever its case.
pub(super) fn language(tag: &str) -> Option<&'static str> {
    // Longer than any tag in the table: not worth a copy.
    if tag.len() > 16 {
        return None;
    }
    let tag = tag.to_ascii_lowercase();
    LANGUAGES
        .binary_search_by_key(&tag.as_str(), |(tag, _)| tag)
        .ok()
        .map(|place| LANGUAGES[place].1)
}

/// The last component of a path, and its extension.
pub(super) fn name_and_extension(path: &str) -> (&str, Option<&str>) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name
        .rsplit_once('.')
        .filter(|(stem, _)| !stem.is_empty())
        .map(|(_, extension)| extension);
    (name, extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_extension_and_tag() {
        assert!(LANGUAGES.is_sorted());
        assert_eq!(language("RS"), Some("rust"));
        assert_eq!(language("shell-session"), Some("console"));
        assert_eq!(language("nonsense"), None);
        assert_eq!(name_and_extension("a/b.tar.gz"), ("b.tar.gz", Some("gz")));
        assert_eq!(name_and_extension("a/.hidden"), (".hidden", None));
        assert_eq!(name_and_extension("README"), ("README", None));
    }
}
