//! Checkpoints and their witnesses.

use proptest::prelude::*;

use super::*;
use crate::digest::Digest;

#[test]
fn the_checkpoint_of_the_cosignature_specification_is_read() {
    let text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\
        — example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n\
        — witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n";
    let note = parse(text).unwrap();
    assert_eq!(note.to_string(), text);
    let checkpoint = Checkpoint::parse_body(note.text()).unwrap();
    assert_eq!(checkpoint.origin, "example.com/behind-the-sofa");
    assert_eq!(checkpoint.size, 20_852_163);
    let cosignature = &note.signatures()[1].bytes;
    assert_eq!(cosignature.len(), 72);
    assert_eq!(cosignature[..8], 1_679_315_147u64.to_be_bytes());
}

#[test]
fn a_signed_checkpoint_opens_with_its_key_only() {
    let note = checkpoint().sign(&secret(1));
    assert_eq!(
        note.text(),
        "lodestar/demo/session-1\n42\nSBNJTRN+FjG7owHVrKtue7eqdM4RhdRWVl71HXN2d7I=\n"
    );
    let bytes = note.to_string().into_bytes();
    assert_eq!(
        Checkpoint::open(&bytes, &log_key()),
        Ok((checkpoint(), note.clone()))
    );
    let other = NoteKey::ed25519("lodestar/demo/session-2", &secret(1).public()).unwrap();
    assert_eq!(
        Checkpoint::open(&bytes, &other),
        Err(NoteError::NotSigned("lodestar/demo/session-2".to_owned()))
    );
    // A key of another name that did sign does not make it a checkpoint of that name.
    let mut note = note;
    note.add_signature(NoteSignature {
        name: other.name().to_owned(),
        key_hash: other.key_hash(),
        bytes: secret(1).sign(note.text().as_bytes()).to_vec(),
    })
    .unwrap();
    assert_eq!(
        Checkpoint::open(note.to_string().as_bytes(), &other),
        Err(NoteError::OriginMismatch {
            origin: checkpoint().origin,
            key: other.name().to_owned(),
        })
    );
}

#[test]
#[should_panic(expected = "valid key name")]
fn an_origin_that_is_no_name_cannot_sign() {
    let origin = "two words".to_owned();
    let _ = Checkpoint {
        origin,
        ..checkpoint()
    }
    .sign(&secret(1));
}

#[test]
fn checkpoint_bodies_are_strict() {
    let root = "SBNJTRN+FjG7owHVrKtue7eqdM4RhdRWVl71HXN2d7I=";
    let size = |size: &str| Checkpoint::parse_body(&format!("o\n{size}\n{root}\n")).map(|c| c.size);
    assert_eq!(size("0"), Ok(0));
    assert_eq!(size("18446744073709551615"), Ok(u64::MAX));
    let no_size = Err(NoteError::MalformedCheckpoint(
        "its second line is not a size",
    ));
    for wrong in [
        "",
        "00",
        "01",
        "+1",
        "-1",
        "1 ",
        " 1",
        "1.0",
        "0x1",
        "１",
        "18446744073709551616",
    ] {
        assert_eq!(size(wrong), no_size, "{wrong}");
    }
    for wrong in [
        "",
        "\n",
        "o\n1\n",
        &format!("o\n1\n{root}"),
        &format!("\n1\n{root}\n"),
        &format!("o\r\n1\n{root}\n"),
        &format!("o\n1\n{}\n", &root[..40]),
        &format!("o\n1\n{}\n", root.trim_end_matches('=')),
        &format!("o\n1\nAA{root}\n"),
        &format!("o\n1\n{}\n", root.replace("I=", "J=")),
        &format!("o\n1\n{} \n", root),
    ] {
        assert!(
            matches!(
                Checkpoint::parse_body(wrong),
                Err(NoteError::MalformedCheckpoint(_))
            ),
            "{wrong:?}"
        );
    }
    for more in ["\n", "extension\n"] {
        assert_eq!(
            Checkpoint::parse_body(&format!("o\n1\n{root}\n{more}")),
            Err(NoteError::ExtensionLines)
        );
    }
}

#[test]
fn a_witness_signs_the_checkpoint_and_the_time() {
    let mut note = checkpoint().sign(&secret(1));
    let witness = NoteKey::cosignature("witness.example/w1", &secret(3).public()).unwrap();
    assert!(matches!(
        witness.verify(&note),
        Err(NoteError::NotSigned(_))
    ));
    Checkpoint::cosign(&mut note, "witness.example/w1", &secret(3), 1_794_779_400).unwrap();
    let note = parse(&note.to_string()).unwrap();
    assert_eq!(
        witness.verify(&note),
        Ok(NoteVerified {
            time: Some(1_794_779_400)
        })
    );
    assert!(log_key().verify(&note).is_ok());
    let signature = &note.signatures()[1];
    let message = format!("cosignature/v1\ntime 1794779400\n{}", note.text());
    let (time, bytes) = signature.bytes.split_first_chunk().unwrap();
    assert_eq!(u64::from_be_bytes(*time), 1_794_779_400);
    assert_eq!(
        secret(3)
            .public()
            .verify(message.as_bytes(), bytes.try_into().unwrap()),
        Ok(())
    );
    // The time is part of what is signed, and all bytes have to be there.
    for altered in [
        [&[0; 8], bytes].concat(),
        [&[0xff; 8], bytes].concat(),
        signature.bytes[..71].to_vec(),
        [signature.bytes.as_slice(), &[0]].concat(),
        bytes.to_vec(),
        vec![0],
    ] {
        let mut forged = checkpoint().sign(&secret(1));
        forged
            .add_signature(NoteSignature {
                bytes: altered,
                ..signature.clone()
            })
            .unwrap();
        assert!(matches!(
            witness.verify(&forged),
            Err(NoteError::BadSignature(_))
        ));
    }
}

#[test]
fn a_witness_signs_checkpoints_only_and_once() {
    let mut note = Note::new("not a checkpoint\n").unwrap();
    assert!(matches!(
        Checkpoint::cosign(&mut note, "w", &secret(3), 1),
        Err(NoteError::MalformedCheckpoint(_))
    ));
    let mut note = checkpoint().sign(&secret(1));
    let late = i64::MAX as u64 + 1;
    assert_eq!(
        Checkpoint::cosign(&mut note, "w", &secret(3), late),
        Err(NoteError::TimeOutOfRange(late))
    );
    Checkpoint::cosign(&mut note, "w", &secret(3), late - 1).unwrap();
    assert_eq!(
        Checkpoint::cosign(&mut note, "w", &secret(3), 5),
        Err(NoteError::DuplicateSignature("w".to_owned()))
    );
}

proptest! {
    #[test]
    fn no_altered_byte_goes_unnoticed(at: prop::sample::Index, byte: u8) {
        let good = checkpoint().sign(&secret(1)).to_string().into_bytes();
        let at = at.index(good.len());
        prop_assume!(good[at] != byte);
        let mut altered = good;
        altered[at] = byte;
        prop_assert!(Checkpoint::open(&altered, &log_key()).is_err());
    }

    #[test]
    fn checkpoints_read_back(origin in "[!-*,-~]{1,30}", size: u64, root: [u8; 32]) {
        let checkpoint = Checkpoint { origin, size, root: Digest::from_bytes(root) };
        prop_assert_eq!(Checkpoint::parse_body(&checkpoint.body()), Ok(checkpoint.clone()));
        let key = NoteKey::ed25519(&checkpoint.origin, &secret(9).public()).unwrap();
        let note = checkpoint.sign(&secret(9)).to_string();
        prop_assert_eq!(Checkpoint::open(note.as_bytes(), &key).unwrap().0, checkpoint);
        prop_assert_eq!(key.to_string().parse::<NoteKey>(), Ok(key));
    }
}
