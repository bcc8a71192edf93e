//! Package manifests by file name or by the tag of a code block.

/// A manifest, or a snippet of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manifest {
    /// `Cargo.toml`, or TOML whose tables say what it is.
    Toml,
    /// `package.json`.
    Npm,
    /// `requirements.txt`.
    Requirements,
    /// `go.mod`.
    Go,
}

impl Manifest {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "Cargo.toml" | "pyproject.toml" => Self::Toml,
            "package.json" => Self::Npm,
            "go.mod" => Self::Go,
            _ if name.starts_with("requirements") && name.ends_with(".txt") => Self::Requirements,
            _ => return None,
        })
    }

    pub(super) fn of_tag(tag: &str) -> Option<Self> {
        Some(match tag {
            "toml" | "TOML" => Self::Toml,
            "json" | "JSON" | "jsonc" => Self::Npm,
            "requirements" | "requirements.txt" | "pip-requirements" => Self::Requirements,
            "go.mod" | "gomod" | "go-mod" => Self::Go,
            _ => return Self::of_name(tag),
        })
    }
}
