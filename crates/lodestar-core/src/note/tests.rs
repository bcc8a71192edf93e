//! Published notes, and texts that are nearly notes.

use proptest::prelude::*;

use super::*;
use crate::digest::{Digest, sha256};
use crate::key::{KeyError, SecretKey};

/// The example of the Go package that the format comes from.
const NEUMANN_KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const NEUMANN_SECRET: &str =
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const NEUMANN_TEXT: &str = "If you think cryptography is the answer to your problem,\n\
                            then you don't know what your problem is.\n";
const NEUMANN_LINE: &str = "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

fn neumann() -> String {
    format!("{NEUMANN_TEXT}\n{NEUMANN_LINE}")
}

fn key(text: &str) -> NoteKey {
    text.parse().unwrap()
}

fn parse(text: &str) -> Result<Note, NoteError> {
    Note::parse(text.as_bytes())
}

fn secret(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        origin: "lodestar/demo/session-1".to_owned(),
        size: 42,
        root: sha256(b"root"),
    }
}

fn log_key() -> NoteKey {
    NoteKey::ed25519(&checkpoint().origin, &secret(1).public()).unwrap()
}

#[test]
fn the_published_note_verifies() {
    let note = parse(&neumann()).unwrap();
    assert_eq!(note.text(), NEUMANN_TEXT);
    assert_eq!(note.signatures().len(), 1);
    assert_eq!(note.signatures()[0].key_hash, [0xc7, 0x4f, 0x20, 0xa3]);
    assert_eq!(note.to_string(), neumann());
    assert_eq!(
        key(NEUMANN_KEY).verify(&note),
        Ok(NoteVerified { time: None })
    );
    assert_eq!(key(NEUMANN_KEY).to_string(), NEUMANN_KEY);
}

#[test]
fn the_published_secret_key_makes_the_published_note() {
    let (name, secret) = parse_secret(NEUMANN_SECRET).unwrap();
    assert_eq!(name, "PeterNeumann");
    assert_eq!(*encode_secret(&name, &secret).unwrap(), NEUMANN_SECRET);
    let public = NoteKey::ed25519(&name, &secret.public()).unwrap();
    assert_eq!(public.to_string(), NEUMANN_KEY);
    let mut note = Note::new(NEUMANN_TEXT).unwrap();
    note.add_signature(NoteSignature {
        name,
        key_hash: public.key_hash(),
        bytes: secret.sign(NEUMANN_TEXT.as_bytes()).to_vec(),
    })
    .unwrap();
    assert_eq!(note.to_string(), neumann());
}

#[test]
fn the_example_of_the_specification_verifies() {
    let key = key("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k");
    let note = parse(
        "This is an example message.\n\n\
         — example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n",
    )
    .unwrap();
    assert!(key.verify(&note).is_ok());
}

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
fn the_text_may_have_empty_lines_and_lines_like_signatures() {
    for text in [
        "a\n\nb\n",
        "\n",
        "\n\n",
        &format!("{NEUMANN_TEXT}\n{NEUMANN_LINE}"),
    ] {
        let note = parse(&format!("{text}\n{NEUMANN_LINE}")).unwrap();
        assert_eq!(note.text(), text);
        assert_eq!(note.signatures().len(), 1);
        assert_eq!(
            key(NEUMANN_KEY).verify(&note),
            Err(NoteError::BadSignature("PeterNeumann".to_owned()))
        );
    }
}

#[test]
fn what_is_nearly_a_note_is_refused() {
    let malformed = |line: &str| NoteError::MalformedSignature(line.to_owned());
    let signature = NEUMANN_LINE.trim_end();
    let encoded = &signature["— PeterNeumann ".len()..];
    for (text, error) in [
        (String::new(), NoteError::NoSignatures),
        ("text\n".to_owned(), NoteError::NoSignatures),
        (NEUMANN_LINE.to_owned(), NoteError::NoSignatures),
        (format!("text\n{NEUMANN_LINE}"), NoteError::NoSignatures),
        (format!("text\n\n{signature}"), NoteError::NoSignatures),
        ("text\n\n".to_owned(), NoteError::NoSignatures),
        ("text\n\n\n".to_owned(), NoteError::NoSignatures),
        (format!("text\n\n{NEUMANN_LINE}\n"), NoteError::NoSignatures),
        (
            format!("text\r\n\n{NEUMANN_LINE}"),
            NoteError::ControlCharacter,
        ),
        (
            format!("te\txt\n\n{NEUMANN_LINE}"),
            NoteError::ControlCharacter,
        ),
        (
            format!("text\n\n{signature}\r\n"),
            NoteError::ControlCharacter,
        ),
        (
            format!("text\0\n\n{NEUMANN_LINE}"),
            NoteError::ControlCharacter,
        ),
    ] {
        assert_eq!(parse(&text), Err(error), "{text:?}");
    }
    for line in [
        format!("- PeterNeumann {encoded}"),
        format!("\u{2013} PeterNeumann {encoded}"),
        format!("—PeterNeumann {encoded}"),
        format!("—  PeterNeumann {encoded}"),
        format!("— PeterNeumann  {encoded}"),
        format!("— PeterNeumann {encoded} "),
        format!(" — PeterNeumann {encoded}"),
        format!("— Peter Neumann {encoded}"),
        format!("— Peter\u{a0}Neumann {encoded}"),
        format!("— Peter+Neumann {encoded}"),
        format!("—  {encoded}"),
        "— PeterNeumann".to_owned(),
        "— PeterNeumann ".to_owned(),
        // Four bytes are a key hash without a signature.
        "— PeterNeumann AAAAAA==".to_owned(),
        // Padding left out, doubled, or with bits set that mean nothing; the URL alphabet.
        format!("— PeterNeumann {}", encoded.trim_end_matches('=')),
        format!("— PeterNeumann {encoded}="),
        format!("— PeterNeumann {}", encoded.replace("AM=", "AN=")),
        format!("— PeterNeumann {}", encoded.replace('/', "_")),
        "text".to_owned(),
    ] {
        let text = format!("text\n\n{line}\n");
        assert_eq!(parse(&text), Err(malformed(&line)), "{line:?}");
        let text = format!("text\n\n{NEUMANN_LINE}{line}\n");
        assert_eq!(parse(&text), Err(malformed(&line)), "{line:?}");
    }
    assert_eq!(Note::parse(b"t\xff\n\n"), Err(NoteError::NotUtf8));
    assert_eq!(Note::new("text"), Err(NoteError::UnfinishedText));
    assert_eq!(Note::new(""), Err(NoteError::UnfinishedText));
    assert_eq!(Note::new("te\u{7}xt\n"), Err(NoteError::ControlCharacter));
}

#[test]
fn length_and_number_of_signatures_are_limited() {
    let longest = MAX_NOTE_LEN - NEUMANN_LINE.len() - 2;
    let text = format!("{}\n\n{NEUMANN_LINE}", "x".repeat(longest));
    assert_eq!(text.len(), MAX_NOTE_LEN);
    let mut note = parse(&text).unwrap();
    assert_eq!(
        parse(&format!("x{text}")),
        Err(NoteError::TooLong(MAX_NOTE_LEN + 1))
    );
    let another = NoteSignature {
        name: "other".to_owned(),
        key_hash: [0; 4],
        bytes: vec![0],
    };
    assert!(matches!(
        note.add_signature(another.clone()),
        Err(NoteError::TooLong(_))
    ));
    assert_eq!(note.to_string(), text);

    let mut note = Note::new("text\n").unwrap();
    for n in 0..MAX_NOTE_SIGNATURES {
        note.add_signature(NoteSignature {
            name: format!("key-{n}"),
            ..another.clone()
        })
        .unwrap();
    }
    assert_eq!(parse(&note.to_string()).as_ref(), Ok(&note));
    assert_eq!(
        note.add_signature(another.clone()),
        Err(NoteError::TooManySignatures)
    );
    assert_eq!(
        parse(&format!("{note}{another}\n")),
        Err(NoteError::TooManySignatures)
    );
}

#[test]
fn a_key_signs_once() {
    let twice = format!("{}{NEUMANN_LINE}", neumann());
    assert_eq!(
        parse(&twice),
        Err(NoteError::DuplicateSignature("PeterNeumann".to_owned()))
    );
    // The same name with another key is another key.
    let mut note = parse(&neumann()).unwrap();
    note.add_signature(NoteSignature {
        name: "PeterNeumann".to_owned(),
        key_hash: [0; 4],
        bytes: vec![0; 64],
    })
    .unwrap();
    assert!(key(NEUMANN_KEY).verify(&note).is_ok());
}

#[test]
fn unusable_signatures_are_not_added() {
    let mut note = Note::new("text\n").unwrap();
    for name in ["", "a b", "a+b", "a\nb", "a\u{2003}b", "a\u{1}b"] {
        assert_eq!(
            note.add_signature(NoteSignature {
                name: name.to_owned(),
                key_hash: [0; 4],
                bytes: vec![0; 64],
            }),
            Err(NoteError::BadName(name.to_owned()))
        );
        assert_eq!(
            NoteKey::ed25519(name, &secret(1).public()),
            Err(NoteError::BadName(name.to_owned()))
        );
        assert_eq!(
            encode_secret(name, &secret(1)).unwrap_err(),
            NoteError::BadName(name.to_owned())
        );
    }
    assert!(matches!(
        note.add_signature(NoteSignature {
            name: "a".to_owned(),
            key_hash: [0; 4],
            bytes: Vec::new(),
        }),
        Err(NoteError::MalformedSignature(_))
    ));
    assert!(note.signatures().is_empty());
}

#[test]
fn no_signature_and_a_wrong_signature_are_told_apart() {
    let signed = checkpoint().sign(&secret(1));
    let other = NoteKey::ed25519(&checkpoint().origin, &secret(2).public()).unwrap();
    assert_eq!(
        other.verify(&signed),
        Err(NoteError::NotSigned(checkpoint().origin))
    );
    let renamed = NoteKey::ed25519("someone-else", &secret(1).public()).unwrap();
    assert_eq!(
        renamed.verify(&signed),
        Err(NoteError::NotSigned("someone-else".to_owned()))
    );
    // A witness's key is another key even if the bytes are the same.
    let witness = NoteKey::cosignature(&checkpoint().origin, &secret(1).public()).unwrap();
    assert_eq!(
        witness.verify(&signed),
        Err(NoteError::NotSigned(checkpoint().origin))
    );
    let mut wrong = Note::new(signed.text()).unwrap();
    wrong
        .add_signature(NoteSignature {
            key_hash: other.key_hash(),
            ..signed.signatures()[0].clone()
        })
        .unwrap();
    assert_eq!(
        other.verify(&wrong),
        Err(NoteError::BadSignature(checkpoint().origin))
    );
}

#[test]
fn keys_in_text_are_strict() {
    for (text, error) in [
        ("", NoteError::MalformedKey),
        ("PeterNeumann", NoteError::MalformedKey),
        ("PeterNeumann+c74f20a3", NoteError::MalformedKey),
        ("PeterNeumann+c74f20a3+", NoteError::MalformedKey),
        (
            "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::MalformedKey,
        ),
        (
            "PeterNeumann+c74f20a+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::MalformedKey,
        ),
        (
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWAAAA",
            NoteError::MalformedKey,
        ),
        (
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\n",
            NoteError::MalformedKey,
        ),
        (
            "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::KeyHashMismatch("PeterNeumann".to_owned()),
        ),
        (
            "PeterNeuman+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::KeyHashMismatch("PeterNeuman".to_owned()),
        ),
        (
            "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::BadName(String::new()),
        ),
        (
            "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::BadName("Peter Neumann".to_owned()),
        ),
        (
            "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::UnknownAlgorithm {
                name: "PeterNeumann".to_owned(),
                algorithm: 0x65,
            },
        ),
        (
            "weak+00000000+AQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            NoteError::Key {
                name: "weak".to_owned(),
                error: KeyError::LowOrder,
            },
        ),
    ] {
        assert_eq!(text.parse::<NoteKey>(), Err(error), "{text}");
    }
    let witness = NoteKey::cosignature("witness.example/w1", &secret(3).public()).unwrap();
    assert_eq!(witness.to_string().parse(), Ok(witness.clone()));
    assert_eq!(witness.algorithm(), NoteAlgorithm::Cosignature);
    let json = serde_json::to_string(&witness).unwrap();
    assert_eq!(serde_json::from_str::<NoteKey>(&json).unwrap(), witness);
}

#[test]
fn secret_keys_in_text_are_strict_and_never_repeated_in_errors() {
    let key = &NEUMANN_SECRET["PRIVATE+KEY+".len()..];
    for text in [
        "",
        key,
        &NEUMANN_SECRET.to_lowercase(),
        &NEUMANN_SECRET.replace("AYEK", "AoEK"),
        &NEUMANN_SECRET.replace("AYEK", "BIEK"),
        &NEUMANN_SECRET[..NEUMANN_SECRET.len() - 4],
        &format!("{NEUMANN_SECRET}AAAA"),
        &format!("{NEUMANN_SECRET}\n"),
    ] {
        let error = parse_secret(text).unwrap_err();
        assert_eq!(error, NoteError::MalformedSecret, "{text}");
        assert!(!error.to_string().contains("LVFG"));
    }
    assert_eq!(
        parse_secret(&NEUMANN_SECRET.replace("KDFz", "KDF0")).unwrap_err(),
        NoteError::KeyHashMismatch("PeterNeumann".to_owned())
    );
    let error = parse_secret(NEUMANN_KEY).unwrap_err();
    assert_eq!(error, NoteError::MalformedSecret);
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
    fn what_parses_prints_the_same_bytes(
        lines in prop::collection::vec("(— |-|—)?(PeterNeumann |[a-z+ ]{0,3})?(AAAAAAA=|[A-Za-z0-9/+=]{0,12})?", 0..6),
        text in "[ -~\n]{0,20}\n",
    ) {
        let candidate = format!("{text}\n{}\n", lines.join("\n"));
        if let Ok(note) = parse(&candidate) {
            prop_assert_eq!(note.to_string(), candidate);
        }
    }

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

    #[test]
    fn no_bytes_make_the_readers_panic(bytes: Vec<u8>, text: String) {
        let _ = Note::parse(&bytes);
        let _ = text.parse::<NoteKey>();
        let _ = parse_secret(&text);
        let _ = Checkpoint::parse_body(&text);
    }
}
