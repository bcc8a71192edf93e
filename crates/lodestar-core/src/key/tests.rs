//! Published vectors, and everything about Ed25519 that lax verifiers let through.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    decode_hex(hex.as_bytes()).unwrap()
}

fn public(hex: &str) -> Result<PublicKey, KeyError> {
    PublicKey::from_bytes(&bytes(hex))
}

fn secret() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

#[test]
fn keys_and_signatures_are_those_of_rfc_8032() {
    fn check<const N: usize>(seed: &str, key: &str, message: &str, signature: &str) {
        let secret = SecretKey::from_seed(bytes(seed));
        let message = bytes::<N>(message);
        assert_eq!(secret.public(), public(key).unwrap());
        assert_eq!(secret.seed(), &bytes(seed));
        assert_eq!(secret.sign(&message), bytes(signature));
        assert_eq!(secret.public().verify(&message, &bytes(signature)), Ok(()));
    }
    check::<0>(
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155\
         5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    );
    check::<1>(
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    );
    check::<2>(
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac\
         18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    );
    check::<64>(
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589\
         09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    );
}

/// The whole small subgroup, canonically encoded.
const LOW_ORDER: [&str; 8] = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
];

#[test]
fn points_of_low_order_are_no_keys() {
    for point in LOW_ORDER {
        assert_eq!(public(point), Err(KeyError::LowOrder), "{point}");
    }
}

#[test]
fn other_encodings_of_a_point_are_no_keys() {
    // Every y from p to 2^255 − 1, with either sign: p = 2^255 − 19 ends in 0xed.
    for low in 0xed..=0xff {
        for high in [0x7f, 0xff] {
            let mut encoding = [0xff; 32];
            encoding[0] = low;
            encoding[31] = high;
            assert_eq!(
                PublicKey::from_bytes(&encoding),
                Err(KeyError::NonCanonical)
            );
        }
    }
    // x = 0 has no sign.
    for negative_zero in [
        "0100000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ] {
        assert_eq!(public(negative_zero), Err(KeyError::NonCanonical));
    }
}

#[test]
fn what_is_not_on_the_curve_is_no_key() {
    let mut encoding = [0; 32];
    encoding[0] = 2;
    assert_eq!(PublicKey::from_bytes(&encoding), Err(KeyError::NotAPoint));
}

#[test]
fn a_signature_has_one_encoding_of_s() {
    // The group order L, little-endian.
    let order: [u8; 32] = bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let message = b"message";
    let good = secret().sign(message);
    let mut bad = good;
    let mut carry = 0;
    for (byte, of_order) in bad[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(of_order) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    assert_eq!(secret().public().verify(message, &good), Ok(()));
    assert_eq!(
        secret().public().verify(message, &bad),
        Err(KeyError::BadSignature)
    );
}

#[test]
fn a_signature_with_r_of_low_order_is_refused() {
    // R is the neutral element and S = k·a: the verification equation itself holds.
    let signature = bytes(
        "0100000000000000000000000000000000000000000000000000000000000000\
         27c9ecc1db2f9b300af1f21a4fd7525c82373b977328b9dc40a90d45383b2f0c",
    );
    assert_eq!(
        secret().public().verify(b"pay everything", &signature),
        Err(KeyError::BadSignature)
    );
    // Nor does any other such R with any S that is easy to come by.
    let good = secret().sign(b"message");
    for r in LOW_ORDER {
        for s in [&[0; 32], good[32..].first_chunk().unwrap()] {
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(&bytes::<32>(r));
            signature[32..].copy_from_slice(s);
            assert_eq!(
                secret().public().verify(b"message", &signature),
                Err(KeyError::BadSignature)
            );
        }
    }
}

#[test]
fn the_edge_cases_on_which_verifiers_differ_are_refused() {
    // Message, key and signature of each case of the study "Taming the many EdDSAs". Only the
    // fourth satisfies every rule: its points have a small component, but nothing is ambiguous.
    let cases = include_str!("speccheck.txt");
    let verdicts: Vec<bool> = cases
        .lines()
        .map(|case| {
            let [message, key, signature] = case.split(' ').collect::<Vec<_>>()[..] else {
                panic!("three columns");
            };
            public(key)
                .is_ok_and(|key| key.verify(&bytes::<32>(message), &bytes(signature)).is_ok())
        })
        .collect();
    assert_eq!(
        verdicts,
        [
            false, false, false, true, false, false, false, false, false, false
        ]
    );
}

#[test]
fn key_ids_have_one_spelling() {
    let key = public("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a").unwrap();
    let id = key.key_id();
    assert_eq!(
        id.as_str(),
        format!("ed25519:{}", digest::sha256(key.as_bytes()))
    );
    assert_eq!(KeyId::parse(id.as_str()), Ok(id.clone()));
    assert_eq!(id.as_str().parse(), Ok(id.clone()));
    for wrong in [
        "",
        "ed25519:",
        &id.as_str()[8..],
        &id.as_str()[..71],
        &format!("{id}0"),
        &format!(" {id}"),
        &id.as_str().replace("ed25519", "ED25519"),
        &id.as_str().to_uppercase().replace("ED25519", "ed25519"),
        &id.as_str().replace(':', "-"),
    ] {
        assert_eq!(KeyId::parse(wrong), Err(KeyError::MalformedId), "{wrong}");
    }
    let json = serde_json::to_string(&id).unwrap();
    assert_eq!(json, format!("\"{id}\""));
    assert_eq!(serde_json::from_str::<KeyId>(&json).unwrap(), id);
    assert!(serde_json::from_str::<KeyId>("\"ed25519:00\"").is_err());
}

#[test]
fn public_keys_read_back_from_text() {
    let key = secret().public();
    assert_eq!(key.to_string().parse(), Ok(key));
    assert_eq!(
        key.to_string().to_uppercase().parse::<PublicKey>(),
        Err(KeyError::MalformedText)
    );
    assert_eq!(LOW_ORDER[0].parse::<PublicKey>(), Err(KeyError::LowOrder));
    let json = serde_json::to_string(&key).unwrap();
    assert_eq!(serde_json::from_str::<PublicKey>(&json).unwrap(), key);
    assert!(HashSet::from([key]).contains(&secret().public()));
}

#[test]
fn a_secret_key_does_not_show_itself() {
    let shown = format!("{:?}", secret());
    assert_eq!(shown, format!("SecretKey({})", secret().public().key_id()));
    assert!(!shown.contains("0707"));
}

proptest! {
    #[test]
    fn a_signature_is_good_for_its_key_and_message_only(
        seed: [u8; 32],
        other: [u8; 32],
        message: Vec<u8>,
        bit in 0usize..512,
    ) {
        let key = SecretKey::from_seed(seed);
        let signature = key.sign(&message);
        prop_assert_eq!(key.public().verify(&message, &signature), Ok(()));
        prop_assert_eq!(PublicKey::from_bytes(key.public().as_bytes()), Ok(key.public()));

        let mut altered = signature;
        altered[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(key.public().verify(&message, &altered), Err(KeyError::BadSignature));

        let longer = [message.as_slice(), &[0]].concat();
        prop_assert_eq!(key.public().verify(&longer, &signature), Err(KeyError::BadSignature));
        if other != seed {
            let other = SecretKey::from_seed(other).public();
            prop_assert_eq!(other.verify(&message, &signature), Err(KeyError::BadSignature));
        }
    }

    #[test]
    fn no_bytes_make_a_key_panic(encoding: [u8; 32], signature: [[u8; 32]; 2]) {
        let signature: [u8; 64] = signature.concat().try_into().unwrap();
        if let Ok(key) = PublicKey::from_bytes(&encoding) {
            prop_assert_eq!(key.as_bytes(), &encoding);
            prop_assert!(key.verify(b"", &signature).is_err());
        }
    }
}
