//! `lodestar policy sign` and `verify`, and what a signature is good for.

use std::fs;

use lodestar_core::key::SecretKey;
use lodestar_core::note::encode_secret;

use crate::gated::{RUN, configure, project};
use crate::world::{World, operator_key, vkey};

const POLICY: &str =
    "permit (principal, action in Action::\"run\", resource)\nwhen { context.level <= 1 };\n";

fn signed() -> World {
    let world = project();
    world.add_operator();
    world.write("work/own.cedar", POLICY);
    world.run(&["policy", "sign", "own.cedar"]).expect(0);
    world
}

#[test]
fn a_signature_holds_for_these_bytes_and_no_others() {
    let world = signed();
    let run = world.run(&["policy", "verify", "own.cedar"]).expect(0);
    insta::assert_snapshot!(world.stable(&run.out));
    let report = world
        .run(&["policy", "verify", "own.cedar", "--json"])
        .expect(0)
        .json();
    assert_eq!(report["signed_by"], "alice");
    world.write("work/own.cedar", &POLICY.replace('1', "3"));
    let run = world.run(&["policy", "verify", "own.cedar"]).expect(1);
    assert!(
        run.err.contains("changed after it was signed"),
        "{}",
        run.err
    );
    world
        .run(&["policy", "sign", "own.cedar", "--operator", "alice"])
        .expect(0);
    world.run(&["policy", "verify", "own.cedar"]).expect(0);
}

#[test]
fn nobodys_and_somebody_elses_signature_do_not_count() {
    let world = signed();
    let key = vkey("alice", &operator_key());
    world
        .run(&["policy", "verify", "own.cedar", "--key", &key])
        .expect(0);
    let hex = operator_key().public().to_string();
    world
        .run(&["policy", "verify", "own.cedar", "--key", &hex])
        .expect(0);
    let other = vkey("mallory", &SecretKey::from_seed([9; 32]));
    world
        .run(&["policy", "verify", "own.cedar", "--key", &other])
        .expect(1);
    world
        .run(&["policy", "verify", "own.cedar", "--key", "a+b+c"])
        .expect(2);
    fs::remove_file(world.path("config/operators/alice.pub")).expect("removed");
    let error = world
        .run(&["policy", "verify", "own.cedar", "--json"])
        .expect(1)
        .error();
    assert_eq!(error["code"], "check_failed");
    fs::write(world.path("work/own.cedar.sig"), "{}").expect("written");
    world
        .run(&["policy", "verify", "own.cedar", "--key", &key])
        .expect(1);
    fs::remove_file(world.path("work/own.cedar.sig")).expect("removed");
    let run = world
        .run(&["policy", "verify", "own.cedar", "--key", &key])
        .expect(1);
    assert!(run.err.contains("is not signed"), "{}", run.err);
    world.run(&["policy", "verify", "none.cedar"]).expect(3);
}

#[test]
fn what_cannot_be_read_is_not_signed() {
    let world = project();
    world.write("work/own.cedar", POLICY);
    let run = world.run(&["policy", "sign", "own.cedar"]).expect(4);
    assert!(
        run.err.contains("a policy is signed by an operator"),
        "{}",
        run.err
    );
    world.add_operator();
    world.write("work/torn.cedar", "permit (principal");
    world.run(&["policy", "sign", "torn.cedar"]).expect(2);
    fs::write(world.path("work/binary.cedar"), b"\xff").expect("written");
    world.run(&["policy", "sign", "binary.cedar"]).expect(2);
    world.run(&["policy", "sign", "none.cedar"]).expect(3);
    world
        .run(&["policy", "sign", "own.cedar", "--operator", "bob"])
        .expect(3);
    for name in ["own", "torn", "binary"] {
        assert!(
            !world.path(&format!("work/{name}.cedar.sig")).exists(),
            "{name}"
        );
    }
}

#[test]
fn a_key_that_is_not_pinned_signs_and_is_told_so() {
    let world = project();
    world.write("work/own.cedar", POLICY);
    let secret = encode_secret("release", &SecretKey::from_seed([7; 32])).expect("a name");
    world.write_private("release.key", &format!("{}\n", secret.as_str()));
    let run = world
        .run(&[
            "policy",
            "sign",
            "own.cedar",
            "--operator-key",
            "../release.key",
        ])
        .expect(0);
    assert!(
        run.err.contains("not one of the operators pinned here"),
        "{}",
        run.err
    );
    world.run(&["policy", "verify", "own.cedar"]).expect(1);
}

#[test]
fn an_edited_policy_is_not_in_force() {
    let world = signed();
    let key = operator_key().public();
    configure(
        &world,
        "s-1",
        &format!("[policy]\nfile = \"own.cedar\"\nkeys = [\"{key}\"]"),
    );
    let run = world.run(&["policy", "show"]).expect(0);
    assert!(run.out.contains("signed by `alice`"), "{}", run.out);
    world.run(&["policy", "check"]).expect(0);
    world.write("work/own.cedar", &POLICY.replace('1', "3"));
    let run = world.run(&["policy", "show"]).expect(1);
    assert!(
        run.err.contains("changed after it was signed"),
        "{}",
        run.err
    );
    world.run(&RUN).expect(1);
    assert!(!world.path("work/.lodestar").exists());
    fs::remove_file(world.path("work/own.cedar.sig")).expect("removed");
    let run = world.run(&RUN).expect(1);
    assert!(run.err.contains("is not signed"), "{}", run.err);
    let mut args = RUN.to_vec();
    args.extend(["--auto-approve-up-to", "3"]);
    let run = world.run(&args).expect(2);
    assert!(run.err.contains("a policy of its own"), "{}", run.err);
}

#[test]
fn a_policy_signed_by_somebody_else_says_whose_move_it_is() {
    let world = signed();
    let other = SecretKey::from_seed([9; 32]).public();
    let policy = format!("[policy]\nfile = \"own.cedar\"\nkeys = [\"{other}\"]");
    configure(&world, "s-1", &policy);
    let run = world.run(&["policy", "show"]).expect(1);
    assert!(
        run.err.contains("put their key under `keys`"),
        "{}",
        run.err
    );
    world.run(&RUN).expect(1);
    assert!(!world.path("work/.lodestar").exists());
}
