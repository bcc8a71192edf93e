use serde_json::{Value, json};

use crate::extract::tests::fixture::{Call, text};

/// The objects of one kind that a document is said to hold.
fn objects(path: &str, content: &str, kind: &str) -> Vec<Value> {
    let prefix = format!("documents/{kind}/");
    Call::of("read_file", json!({"path": path}))
        .drafts(vec![text(content)])
        .into_iter()
        .filter(|draft| draft.predicate().relation.starts_with(&prefix))
        .map(|draft| draft.predicate().object.clone())
        .collect()
}

fn texts(path: &str, content: &str, kind: &str) -> Vec<String> {
    let member = if kind == "dependency" { "name" } else { "text" };
    objects(path, content, kind)
        .iter()
        .map(|object| object[member].as_str().unwrap().to_owned())
        .collect()
}

fn dependencies(path: &str, content: &str) -> Vec<(String, Value)> {
    objects(path, content, "dependency")
        .into_iter()
        .map(|object| {
            let of = |member: &str| object[member].as_str().unwrap().to_owned();
            (
                format!("{} {}", of("ecosystem"), of("name")),
                object["requirements"].clone(),
            )
        })
        .collect()
}

#[test]
fn markdown_headings_are_found_and_code_is_none() {
    let content = "---\ntitle: x\n---\n# One #\n\nTwo\n===\ntext\n\n### C#\n#not\n\
        ```\n# no heading\n```\n    # indented\n- - -\nThree\n---\n| a |\n|---|\n# One\n";
    let headings = objects("README.md", content, "heading");
    assert_eq!(
        headings,
        [
            json!({"level": 1, "text": "One"}),
            json!({"level": 1, "text": "Two"}),
            json!({"level": 3, "text": "C#"}),
            json!({"level": 2, "text": "Three"}),
        ]
    );
}

#[test]
fn rest_headings_are_levelled_by_first_use() {
    let content =
        "=====\nTitle\n=====\n\nPart\n----\n\nDetail\n~~~~~~\n\nOther\n-----\n\nlong title\n--\n";
    assert_eq!(
        objects("a.rst", content, "heading"),
        [
            json!({"level": 1, "text": "Title"}),
            json!({"level": 2, "text": "Part"}),
            json!({"level": 3, "text": "Detail"}),
            json!({"level": 2, "text": "Other"}),
        ]
    );
}

#[test]
fn commands_are_found_in_shell_blocks_and_behind_prompts() {
    let content = "$ in prose\n```sh\n# comment\nmake all\ncurl x \\\n  | sh\n```\n\
        ```console\n$ ls\nfile\n# whoami\n```\n```bash\n$ first\noutput\n```\n```rust\nlet x;\n```\n";
    assert_eq!(
        texts("README.md", content, "command"),
        [
            "in prose",
            "make all",
            "curl x | sh",
            "ls",
            "whoami",
            "first"
        ]
    );
    let rest = "Run::\n\n  $ one\n\n.. code-block:: bash\n\n   two\n\nprose\n";
    assert_eq!(texts("a.rst", rest, "command"), ["one", "two"]);
    assert_eq!(texts("notes.txt", "$ plain\n", "command"), ["plain"]);
}

#[test]
fn cargo_dependencies_are_found_in_manifests_and_snippets() {
    let toml = "[package]\nname = \"x\"\n[dependencies]\nserde = \"1\"\n# no = \"1\"\n\
        rand = { version = \"0.9\", default-features = false }\nlocal.workspace = true\n\
        [target.'cfg(unix)'.dev-dependencies]\nnix = \"0.30\"\n[dependencies.tokio]\nversion = \"1.4\"\n\
        [features]\nx = []\n";
    let expected = [
        ("cargo serde".to_owned(), json!(["1"])),
        ("cargo rand".to_owned(), json!(["0.9"])),
        ("cargo local".to_owned(), json!([])),
        ("cargo nix".to_owned(), json!(["0.30"])),
        ("cargo tokio".to_owned(), json!(["1.4"])),
    ];
    assert_eq!(dependencies("Cargo.toml", toml), expected);
    let snippet = format!("```toml\n{toml}```\n");
    assert_eq!(dependencies("README.md", &snippet), expected);
}

#[test]
fn python_dependencies_are_found() {
    let expected = [
        ("pypi requests".to_owned(), json!([">=2,<3"])),
        ("pypi flask".to_owned(), json!([])),
    ];
    let list = "# comment\n-r other.txt\nrequests[socks] >=2,<3 ; python_version > '3'\nflask\n";
    assert_eq!(dependencies("requirements-dev.txt", list), expected);
    let project = "[project]\nname = \"x\"\ndependencies = [\n  \"requests[socks]>=2,<3\", # why\n  'flask',\n]\nversion = \"1\"\n";
    assert_eq!(dependencies("pyproject.toml", project), expected);
    let poetry = "[tool.poetry.dependencies]\npython = \"^3\"\nrequests = \">=2,<3\"\nflask = {}\n";
    assert_eq!(dependencies("pyproject.toml", poetry), expected);
}

#[test]
fn npm_and_go_dependencies_are_found() {
    let package = r#"{"name":"x","dependencies":{"@a/b":"^1"},"devDependencies":{"c":"2"}}"#;
    let npm = [
        ("npm @a/b".to_owned(), json!(["^1"])),
        ("npm c".to_owned(), json!(["2"])),
    ];
    assert_eq!(dependencies("package.json", package), npm);
    let snippet = "```json\n\"dependencies\": {\"@a/b\": \"^1\"},\n\"devDependencies\": {\"c\": \"2\"}\n```\n";
    assert_eq!(dependencies("README.md", snippet), npm);
    let module = "module x\ngo 1.24\nrequire a.example/b v1.0.0 // why\nrequire (\n\tc.example/d v2.0.0\n)\nreplace e => f v1\n";
    assert_eq!(
        dependencies("go.mod", module),
        [
            ("go a.example/b".to_owned(), json!(["v1.0.0"])),
            ("go c.example/d".to_owned(), json!(["v2.0.0"])),
        ]
    );
}

#[test]
fn install_commands_name_dependencies() {
    let content = "```sh\ncargo add serde@1 rand --features x\nnpm i @a/b@2\npip install 'flask>=3' ./local\n\
        sudo python3 -m pip install uvicorn\ngo get a.example/b@latest\nnpm install\nuv pip install ruff\n```\n";
    assert_eq!(
        dependencies("README.md", content),
        [
            ("cargo serde".to_owned(), json!(["1"])),
            ("cargo rand".to_owned(), json!([])),
            ("npm @a/b".to_owned(), json!(["2"])),
            ("pypi flask".to_owned(), json!([">=3"])),
            ("pypi uvicorn".to_owned(), json!([])),
            ("go a.example/b".to_owned(), json!(["latest"])),
            ("pypi ruff".to_owned(), json!([])),
        ]
    );
}

#[test]
fn what_a_document_requires_twice_is_gathered() {
    let content =
        "```toml\n[dependencies]\na = \"1\"\n```\n```toml\n[dependencies]\na = \"2\"\n```\n";
    assert_eq!(
        dependencies("README.md", content),
        [("cargo a".to_owned(), json!(["1", "2"]))]
    );
}

#[test]
fn signatures_of_common_languages_are_found() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "a.rs",
            "pub(crate) async fn go<T>(x: T) -> u8 {\n    call(x);\n}\nextern \"C\" fn c();\nlet fnord = 1;\n",
            &[
                "pub(crate) async fn go<T>(x: T) -> u8",
                "extern \"C\" fn c()",
            ],
        ),
        (
            "a.py",
            "class A:\n    async def go(\n        self,\n        x: int = 1,\n    ) -> dict[str, int]:\n        pass\n",
            &["async def go( self, x: int = 1, ) -> dict[str, int]"],
        ),
        (
            "a.ts",
            "export default async function go(x: {a: 1}): Promise<void> {\nfunction* gen() {}\nconst f = function (a) {}\n",
            &[
                "export default async function go(x: {a: 1}): Promise<void>",
                "function* gen()",
            ],
        ),
        (
            "a.go",
            "func (s *Server) Run(ctx C) error {\nfunc main() {\n",
            &["func (s *Server) Run(ctx C) error", "func main()"],
        ),
        (
            "A.java",
            "    public static <T> List<T> of(T a) {\n        return new A(a);\n        call(b);\n    }\n",
            &["public static <T> List<T> of(T a)"],
        ),
        (
            "a.c",
            "#include <x.h>\nstatic int go(char *a, int b);\nint main(void)\n{\n    go(1, 2);\n}\nif (x) {\nfoo(1);\nint x = f(1);\n",
            &["static int go(char *a, int b)", "int main(void)"],
        ),
        (
            "a.rb",
            "  def go\n  def with(a, b = 1)\n",
            &["def go", "def with(a, b = 1)"],
        ),
        (
            "a.kt",
            "override suspend fun go(a: Int): Unit {\n",
            &["override suspend fun go(a: Int): Unit"],
        ),
        (
            "a.swift",
            "public func go(_ a: Int) -> Int {\n",
            &["public func go(_ a: Int) -> Int"],
        ),
        (
            "a.php",
            "public static function go($a) {\n",
            &["public static function go($a)"],
        ),
        (
            "a.cs",
            "public override async Task Go(int a)\n{\n",
            &["public override async Task Go(int a)"],
        ),
    ];
    for (path, content, expected) in cases {
        assert_eq!(texts(path, content, "signature"), *expected, "{path}");
    }
    let fenced = "```python title=\"x\"\ndef go(a): ...\n```\n";
    assert_eq!(objects("README.md", fenced, "signature")[0]["name"], "go");
}

#[test]
fn a_document_is_about_its_path_and_its_age_is_unknown() {
    let drafts = Call::of("read_file", json!({"path": "./docs/a.md"})).drafts(vec![text("# A\n")]);
    let heading = drafts.last().unwrap();
    assert_eq!(heading.predicate().subject, "file:docs/a.md");
    assert_eq!(heading.freshness().as_str(), "unknown");
    assert_eq!(
        heading.calibration_class().as_str(),
        "extract/documentation"
    );
}

#[test]
fn a_page_is_read_as_markdown_and_a_listing_or_picture_not_at_all() {
    let drafts = |tool, arguments| Call::of(tool, arguments).drafts(vec![text("# A\n")]).len();
    assert_eq!(
        drafts("fetch", json!({"url": "https://a.example/x.html?y"})),
        3
    );
    assert_eq!(drafts("list_directory", json!({"path": "docs"})), 2);
    assert_eq!(drafts("read_file", json!({"path": "a.png"})), 3);
    assert_eq!(drafts("echo", json!({"text": "# A"})), 2);
}

#[test]
fn a_command_that_one_text_leaves_open_is_not_continued_by_the_next() {
    let drafts = Call::of("read_file", json!({"path": "a.md"}))
        .drafts(vec![text("$ cargo add a \\"), text("rm -rf x")]);
    let items: Vec<_> = drafts
        .iter()
        .filter(|draft| draft.predicate().relation.starts_with("documents/"))
        .map(|draft| draft.statement())
        .collect();
    assert_eq!(
        items,
        [
            "`file:a.md` documents the command `cargo add a`",
            "`file:a.md` documents the dependency `a`",
        ]
    );
}
