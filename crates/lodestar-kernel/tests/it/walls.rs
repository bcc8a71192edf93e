//! What keeps a cell whole: grants that cannot be had, links, covers that fall, and machines that lack a layer.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lodestar_core::contract::Sandbox;
use lodestar_kernel::contain::{Cell, Confined, ContainError, Host, Plan, Planted, Strictness};
use lodestar_kernel::protect::out_of_reach;
use rustix::process::Pid;

/// A project beside a key, in a folder of the test's own.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        // Not in the folder for temporary files, which a child has of its own.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let world = Self(folder);
        for name in ["project/.git/objects", "project/data", "keys", "secrets"] {
            fs::create_dir_all(world.path(name)).unwrap();
        }
        for (name, text) in [
            ("project/.git/HEAD", "ref: refs/heads/main"),
            ("project/.git/config", "[core]"),
            ("project/lodestar.toml", "# as it was"),
            ("project/data/a", "granted"),
            ("keys/log.key", "the key"),
            ("secrets/a", "the secret"),
        ] {
            fs::write(world.path(name), text).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn plan(&self) -> Plan {
        let (project, keys) = (self.path("project"), self.path("keys"));
        let out = out_of_reach(&project, Some(&keys), [], []);
        Plan::new([Sandbox::WriteLocal], "/bin/sh", project, out)
    }

    fn start(&self, plan: &Plan, host: Host, script: &str) -> (Child, Confined) {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .current_dir(self.path("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut confined = Cell::of(plan, host).unwrap().confine(&mut command);
        let child = command.spawn();
        drop(command);
        let child = child.map_err(|problem| confined.explain(problem)).unwrap();
        (child, confined)
    }

    /// What a script says in its cell, and what is found afterwards.
    fn run(&self, plan: &Plan, script: &str) -> (String, Vec<String>) {
        let (child, mut confined) = self.start(plan, Host::here(), script);
        let said = child.wait_with_output().unwrap().stdout;
        let found = confined.watch().look(None);
        let found = found.iter().map(Planted::to_string).collect();
        (String::from_utf8(said).unwrap(), found)
    }
}

fn refused(plan: &Plan) -> String {
    match Cell::of(plan, Host::here()) {
        Ok(cell) => panic!("{cell:?}"),
        Err(problem @ ContainError::Place { .. }) => problem.to_string(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn nobodys_word_grants_what_is_out_of_reach() {
    let world = World::new();
    for place in ["keys", "keys/log.key"] {
        let mut plan = world.plan();
        plan.reads.push(world.path(place));
        let why = refused(&plan);
        assert!(why.contains("out of reach"), "{why}");
    }
    fs::create_dir_all(world.path("project/.git/hooks/more")).unwrap();
    for place in ["project/.git/hooks", "project/.git/hooks/more"] {
        let mut plan = world.plan();
        plan.writes.push(world.path(place));
        let why = refused(&plan);
        assert!(why.contains("out of reach"), "{why}");
    }
    // What is only loaded is left out.
    let mut plan = world.plan();
    plan.loads.push(world.path("keys"));
    let key = world.path("keys/log.key");
    let (said, _) = world.run(&plan, &format!("cat {}; echo ran", key.display()));
    assert_eq!(said, "ran\n");
}

#[test]
fn a_link_that_a_child_can_lay_grants_nothing() {
    let world = World::new();
    fs::remove_dir_all(world.path("project/data")).unwrap();
    symlink(world.path("secrets"), world.path("project/data")).unwrap();
    let mut plan = world.plan();
    plan.loads.push(world.path("project").join("data"));
    let (said, _) = world.run(&plan, "cat data/a; echo ran");
    assert_eq!(said, "ran\n");
    for write in [false, true] {
        let mut plan = world.plan();
        let places = if write {
            &mut plan.writes
        } else {
            &mut plan.reads
        };
        places.push(world.path("project").join("data"));
        let why = refused(&plan);
        assert!(why.contains("name that place itself"), "{why}");
    }
    // By its own name it is granted.
    let mut plan = world.plan();
    plan.reads.push(world.path("secrets"));
    let (said, _) = world.run(&plan, "cat data/a");
    assert_eq!(said, "the secret");
}

#[test]
fn a_link_is_laid_again_that_a_child_took_away() {
    let world = World::new();
    fs::write(world.path("secrets/mcp.json"), "{}").unwrap();
    fs::create_dir(world.path("secrets/cursor")).unwrap();
    fs::create_dir(world.path("secrets/lodestar")).unwrap();
    symlink(
        world.path("secrets/lodestar"),
        world.path("project").join(".lodestar"),
    )
    .unwrap();
    symlink(
        world.path("secrets/mcp.json"),
        world.path("project").join(".mcp.json"),
    )
    .unwrap();
    symlink(
        world.path("secrets/cursor"),
        world.path("project").join(".cursor"),
    )
    .unwrap();
    let (_, found) = world.run(
        &world.plan(),
        "rm .mcp.json .cursor .lodestar; echo evil >.mcp.json; mkdir .cursor .lodestar; echo evil >.cursor/mcp.json",
    );
    let told = |name: &str| {
        found
            .iter()
            .any(|one| one.contains(name) && one.contains("link"))
    };
    for name in [".mcp.json", ".cursor", ".lodestar"] {
        assert!(told(name), "{name}: {found:?}");
    }
    assert!(world.path("project").join(".lodestar").is_symlink());
    assert_eq!(world.read("project/.mcp.json"), "{}");
    assert!(world.path("project").join(".cursor").is_symlink());
    assert!(
        world
            .path("project/.mcp.json.refused-by-lodestar")
            .is_file()
    );
}

#[test]
fn every_link_on_the_way_is_looked_at_and_so_is_its_end() {
    let world = World::new();
    let project = world.path("project");
    for folder in ["agents", "real", "evil", "conf"] {
        fs::create_dir(project.join(folder)).unwrap();
    }
    symlink("agents", project.join(".claude")).unwrap();
    symlink("conf/mcp.json", project.join(".mcp.json")).unwrap();
    symlink("l2", project.join(".gemini")).unwrap();
    symlink("real", project.join("l2")).unwrap();
    world.run(
        &world.plan(),
        "echo evil >agents/settings.json; echo evil >conf/mcp.json; rm l2; ln -s evil l2; echo evil >evil/settings.json",
    );
    for absent in [
        ".claude/settings.json",
        ".mcp.json",
        ".gemini/settings.json",
    ] {
        assert!(!project.join(absent).exists(), "{absent}");
    }
}

#[test]
fn a_folder_that_was_shut_keeps_no_plant() {
    let world = World::new();
    let (_, found) = world.run(
        &world.plan(),
        "mkdir .cursor; echo evil >.cursor/mcp.json; chmod 555 .cursor",
    );
    assert!(
        found.iter().any(|one| one.contains("refused-by-lodestar")),
        "{found:?}"
    );
    assert!(!world.path("project/.cursor/mcp.json").exists());
}

#[test]
fn keys_that_are_made_later_are_covered_before() {
    let world = World::new();
    fs::remove_dir_all(world.path("keys")).unwrap();
    let mut plan = world.plan();
    plan.reads.push(world.path("."));
    let key = world.path("keys/log.key");
    let script = format!(
        "while ! [ -e ran ]; do sleep 0.01; done; cat {}",
        key.display()
    );
    plan.writes.push(world.path("project"));
    let (child, _confined) = world.start(&plan, Host::here(), &script);
    fs::create_dir_all(world.path("keys")).unwrap();
    fs::write(&key, "the key").unwrap();
    fs::write(world.path("project/ran"), "").unwrap();
    let said = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "");
}

#[test]
fn a_program_that_is_a_link_of_the_project_grants_no_file() {
    let world = World::new();
    let program = world.path("project").join("server");
    symlink(world.path("secrets/a"), &program).unwrap();
    let plan = Plan::new(
        [Sandbox::Read],
        program,
        world.path("project"),
        world.plan().out_of_reach,
    );
    let secret = world.path("secrets/a");
    let granted = plan.grants();
    let all = [granted.system, granted.reads, granted.writes].concat();
    assert!(
        !all.iter().any(|place| secret.starts_with(place)),
        "{all:?}"
    );
}

#[test]
fn a_place_is_named_without_detours() {
    let world = World::new();
    fs::create_dir_all(world.path("secrets/b/c")).unwrap();
    fs::create_dir(world.path("shared")).unwrap();
    symlink(world.path("secrets/b"), world.path("project").join("tools")).unwrap();
    let mut plan = world.plan();
    plan.reads
        .push(world.path("project").join("tools/../../shared"));
    let granted = plan.grants().reads;
    assert!(granted.contains(&world.path("shared")), "{granted:?}");
    assert!(
        !granted
            .iter()
            .any(|place| place.starts_with(world.path("secrets"))),
        "{granted:?}"
    );
}

#[test]
fn whoever_plants_again_and_again_is_to_be_ended() {
    let world = World::new();
    let script = "while :; do echo evil >.mcp.json; sleep 0.001; done";
    let (mut child, mut confined) = world.start(&world.plan(), Host::here(), script);
    let leader = Pid::from_child(&child);
    let until = Instant::now() + Duration::from_secs(30);
    let mut moved = 0;
    let ended = loop {
        let found = confined.watch().look(Some(leader));
        moved += found.len();
        if found.iter().any(Planted::is_open) {
            break true;
        }
        if Instant::now() > until {
            break false;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    confined.watch().look(None);
    assert!(ended && moved < 100, "{moved} were moved aside");
    assert!(!world.path("project/.mcp.json").exists());
}

#[test]
fn a_project_does_not_become_a_repository_of_its_own() {
    let world = World::new();
    let (_, found) = world.run(
        &world.plan(),
        "rm .git/HEAD; mkdir objects refs; echo 'ref: refs/heads/main' >HEAD; echo evil >config",
    );
    assert!(found.iter().any(|one| one.contains("HEAD")), "{found:?}");
    assert!(!world.path("project/HEAD").exists());
    // By links it is one as well.
    let world = World::new();
    let (_, found) = world.run(
        &world.plan(),
        "mkdir o r; ln -s o objects; ln -s r refs; echo 'ref: refs/heads/main' >HEAD",
    );
    assert!(found.iter().any(|one| one.contains("HEAD")), "{found:?}");
    // A file of that name alone is nobody's harm.
    let world = World::new();
    let (_, found) = world.run(&world.plan(), "echo a >HEAD");
    assert_eq!(found, Vec::<String>::new());
    assert!(world.path("project/HEAD").exists());
}

#[test]
fn a_folder_becomes_no_repository_in_two_runs_either() {
    // At the top, without a `.git`.
    let world = World::new();
    fs::remove_dir_all(world.path("project/.git")).unwrap();
    let bare = "mkdir objects refs; echo 'ref: refs/heads/main' >HEAD; echo evil >config";
    let (_, found) = world.run(&world.plan(), bare);
    assert!(found.iter().any(|one| one.contains("HEAD")), "{found:?}");
    assert!(!world.path("project/HEAD").exists());
    // With one part of it from a run before.
    let world = World::new();
    let (_, found) = world.run(&world.plan(), "echo 'ref: refs/heads/main' >HEAD");
    assert_eq!(found, Vec::<String>::new());
    let (_, found) = world.run(
        &world.plan(),
        "mkdir objects refs; echo evil >config; rm .git/HEAD",
    );
    assert!(found.iter().any(|one| one.contains("HEAD")), "{found:?}");
    assert!(!world.path("project/HEAD").exists());
    // As `.git`, whose settings come last.
    for head in ["echo 'ref: refs/heads/main' >.git/HEAD", "true"] {
        let world = World::new();
        fs::remove_dir_all(world.path("project/.git")).unwrap();
        world.run(
            &world.plan(),
            &format!("mkdir -p .git/objects .git/refs; {head}"),
        );
        world.run(
            &world.plan(),
            "echo evil >.git/config; echo 'ref: refs/heads/main' >.git/HEAD",
        );
        let config = fs::read_to_string(world.path("project/.git/config"));
        assert_eq!(config.unwrap_or_default(), "");
    }
}

#[test]
fn a_repository_that_lies_elsewhere_is_fixed_as_well() {
    let world = World::new();
    let project = world.path("project");
    fs::rename(project.join(".git"), project.join(".bare")).unwrap();
    fs::write(project.join(".git"), "gitdir: ./.bare\n").unwrap();
    world.run(
        &world.plan(),
        "echo evil >.bare/hooks/pre-commit; echo evil >>.bare/config; echo evil >.git; echo a >.bare/a",
    );
    assert!(!project.join(".bare/hooks/pre-commit").exists());
    assert_eq!(world.read("project/.bare/config"), "[core]");
    assert_eq!(world.read("project/.git"), "gitdir: ./.bare\n");
    assert!(
        project.join(".bare/a").exists(),
        "the rest of it is written"
    );
    // A worktree's, whose settings are those of another.
    let world = World::new();
    let project = world.path("project");
    fs::rename(project.join(".git"), project.join("main")).unwrap();
    fs::create_dir_all(project.join("trees/a")).unwrap();
    fs::write(project.join("trees/a/commondir"), "../../main\n").unwrap();
    fs::write(project.join(".git"), "gitdir: trees/a\n").unwrap();
    world.run(
        &world.plan(),
        "echo evil >>main/config; mkdir main/hooks; echo evil >main/hooks/a",
    );
    assert_eq!(world.read("project/main/config"), "[core]");
    assert!(!project.join("main/hooks/a").exists());
    // The project itself.
    let world = World::new();
    let project = world.path("project");
    for name in ["objects", "HEAD", "config"] {
        fs::rename(project.join(".git").join(name), project.join(name)).unwrap();
    }
    world.run(&world.plan(), "echo evil >>config; echo evil >hooks/a");
    assert_eq!(world.read("project/config"), "[core]");
    assert!(!project.join("hooks/a").exists());
}

#[test]
fn a_protected_file_with_two_names_is_a_gap() {
    let world = World::new();
    let mut plan = world.plan();
    plan.strictness = Strictness::Wholly;
    assert!(Cell::of(&plan, Host::here()).is_ok(), "nothing is missing");
    fs::hard_link(
        world.path("project/.git/config"),
        world.path("project/alias"),
    )
    .unwrap();
    match Cell::of(&plan, Host::here()) {
        Err(ContainError::InPart(why)) => assert!(why.contains("hard link"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_git_runs_in_submodules_and_worktrees_is_fixed() {
    let world = World::new();
    let repositories = [
        "modules/a",
        "modules/b/c",
        "modules/a/modules/d",
        "worktrees/e",
    ];
    for name in repositories {
        let folder = world.path("project/.git").join(name);
        fs::create_dir_all(folder.join("hooks")).unwrap();
        for file in ["HEAD", "config", "commondir"] {
            fs::write(folder.join(file), "as it was").unwrap();
        }
    }
    // Without its head it is one still.
    fs::remove_file(world.path("project/.git/modules/b/c/HEAD")).unwrap();
    let tries = repositories.map(|name| {
        format!("echo x >.git/{name}/config; echo x >.git/{name}/hooks/post-commit; echo x >.git/{name}/commondir; echo x >.git/{name}/HEAD; ")
    });
    world.run(&world.plan(), &tries.concat());
    for name in repositories {
        let read = |file: &str| world.read(&format!("project/.git/{name}/{file}"));
        assert_eq!(read("config"), "as it was", "{name}");
        assert_eq!(read("commondir"), "as it was", "{name}");
        assert_eq!(read("HEAD"), "x\n", "{name}: granted");
        let hook = format!("project/.git/{name}/hooks/post-commit");
        assert!(!world.path(&hook).exists(), "{name}");
    }
}

#[test]
fn a_cover_that_falls_is_put_back_and_said() {
    if !Host::here().namespaces() {
        eprintln!("SKIPPED: this machine gives no user namespaces");
        return;
    }
    let world = World::new();
    let script = "while :; do echo x >>lodestar.toml; echo x >beat; sleep 0.01; done";
    let (mut child, mut confined) = world.start(&world.plan(), Host::here(), script);
    let leader = Pid::from_child(&child);
    let beat = world.path("project/beat");
    let until = Instant::now() + Duration::from_secs(20);
    while !beat.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(beat.exists(), "it runs");
    assert!(confined.watch().look(Some(leader)).is_empty());
    assert_eq!(world.read("project/lodestar.toml"), "# as it was");
    // An editor puts another file in its place.
    fs::write(world.path("project/new"), "# anew\n").unwrap();
    fs::rename(
        world.path("project/new"),
        world.path("project/lodestar.toml"),
    )
    .unwrap();
    let found = confined.watch().look(Some(leader));
    let found: Vec<String> = found.iter().map(Planted::to_string).collect();
    assert!(
        matches!(&found[..], [one] if one.contains("lodestar.toml") && one.contains("for a moment")),
        "{found:?}"
    );
    // Twice between two looks, so that a number of a file could come back.
    for text in ["# twice\n", "# thrice\n"] {
        fs::write(world.path("project/new"), text).unwrap();
        fs::rename(
            world.path("project/new"),
            world.path("project/lodestar.toml"),
        )
        .unwrap();
    }
    let found = confined.watch().look(Some(leader));
    assert_eq!(found.len(), 1, "{found:?}");
    let now = world.read("project/lodestar.toml");
    fs::remove_file(&beat).unwrap();
    while !beat.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(
        world.read("project/lodestar.toml"),
        now,
        "it is covered again"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_has_to_be_whole_does_not_begin_in_part() {
    let world = World::new();
    let mut plan = world.plan();
    plan.strictness = Strictness::Wholly;
    for host in [
        Host::here().without_namespaces(),
        Host::here().without_landlock(),
        Host::enforcing_nothing(),
    ] {
        let problem = Cell::of(&plan, host).err().map(|one| one.to_string());
        let problem = problem.unwrap_or_else(|| panic!("{host:?} was enough"));
        assert!(problem.contains("only be so in part"), "{problem}");
    }
    // What somebody opened wide is no whole cell either.
    plan.writes.push(PathBuf::from("/"));
    let problem = Cell::of(&plan, Host::here())
        .err()
        .map(|one| one.to_string());
    assert!(problem.is_some_and(|one| one.contains("what others run")));
}

#[test]
fn without_rules_keys_are_hidden_wherever_they_lie() {
    let host = Host::here().without_landlock();
    if !host.namespaces() {
        eprintln!("SKIPPED: this machine gives no user namespaces");
        return;
    }
    let world = World::new();
    let key = world.path("keys/log.key");
    let script = format!("cat {} secrets 2>&1; cat data/a", key.display());
    let (child, _confined) = world.start(&world.plan(), host, &script);
    let said = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(!said.contains("the key"), "{said}");
    assert!(said.ends_with("granted"), "{said}");
}

#[test]
fn no_terminal_is_granted_but_ones_own() {
    let world = World::new();
    let mut plan = world.plan();
    plan.terminal = true;
    let granted = plan.grants().terminals;
    let wide = ["/dev/pts", "/dev/ptmx", "/dev"];
    let is_wide = |place: &PathBuf| wide.iter().any(|one| place == Path::new(one));
    assert!(!granted.iter().any(is_wide), "{granted:?}");
}

#[test]
fn a_program_that_fetches_packages_writes_its_own_cache_and_no_programs() {
    let world = World::new();
    let home = world.path("home");
    for folder in [
        ".npm",
        ".bun/bin",
        ".bun/install/cache",
        ".local/share/pnpm",
        ".local/share/uv",
        ".cache/uv",
    ] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    for (program, cache) in [
        ("npx", ".npm"),
        ("bunx", ".bun/install/cache"),
        ("uvx", ".cache/uv"),
    ] {
        let mut plan = Plan::new(
            [],
            format!("/usr/bin/{program}"),
            world.path("project"),
            world.plan().out_of_reach,
        );
        plan.home = Some(home.clone());
        assert_eq!(plan.grants().writes, [home.join(cache)], "{program}");
        // Nothing by its name alone.
        plan.fetches_code = false;
        assert!(plan.grants().writes.is_empty() && plan.grants().network.is_none());
    }
}
