//! The operator who signs: whose key it is, and whether it counts here.

use std::path::PathBuf;

use clap::Args;
use lodestar_core::key::{PublicKey, SecretKey};

use crate::failure::Failure;
use crate::installation::{self, Installation, OperatorName, is_there};
use crate::operator_key::OperatorKey;
use crate::terminal::Terminal;
use crate::{files, inert, terminal};

#[derive(Debug, Args)]
pub(crate) struct OperatorArgs {
    /// The operator who signs [default: the only one whose key is here]
    #[arg(
        long,
        visible_alias = "key",
        value_name = "NAME",
        conflicts_with = "operator_key"
    )]
    operator: Option<String>,

    /// The file with the operator's private key
    #[arg(long, value_name = "FILE")]
    operator_key: Option<PathBuf>,
}

/// Whose key is meant.
pub(crate) enum Chosen {
    File(PathBuf),
    Name(OperatorName),
    Only,
}

impl OperatorArgs {
    /// The name that was given.
    pub(crate) fn name(&self) -> Option<&str> {
        self.operator.as_deref()
    }

    /// Before anything on disk is looked at.
    pub(crate) fn parse(&self) -> Result<Chosen, Failure> {
        match (&self.operator_key, &self.operator) {
            (Some(path), _) => Ok(Chosen::File(path.clone())),
            (None, Some(name)) => OperatorName::parse(name).map(Chosen::Name),
            (None, None) => Ok(Chosen::Only),
        }
    }
}

impl Chosen {
    /// The key as it lies on disk, and whose it is, for what names its signer.
    pub(crate) fn named(
        self,
        installation: &Installation,
        what: &str,
    ) -> Result<(OperatorName, OperatorKey), Failure> {
        let name = match self {
            Self::Name(name) => name,
            Self::Only => only_operator(installation, what, "--as")?,
            Self::File(path) => {
                let path = inert::path(&path);
                return Err(Failure::usage(format!(
                    "`{path}` does not say whose key it is; name the operator"
                )));
            }
        };
        let key = Self::Name(name.clone()).sealed(installation, what)?;
        Ok((name, key))
    }

    /// The key as it lies on disk; `what` is to be signed with it.
    pub(crate) fn sealed(
        &self,
        installation: &Installation,
        what: &str,
    ) -> Result<OperatorKey, Failure> {
        let path = match self {
            Self::File(path) => path.clone(),
            Self::Name(name) => path_of(name, installation)?,
            Self::Only => path_of(
                &only_operator(installation, what, "--operator")?,
                installation,
            )?,
        };
        OperatorKey::parse(&files::read_private(&path)?).map_err(|e| {
            let path = inert::path(&path);
            Failure::usage(format!("`{path}` is no operator's key: {e}"))
        })
    }
}

fn path_of(name: &OperatorName, installation: &Installation) -> Result<PathBuf, Failure> {
    let path = installation::operator_key_path(installation, name);
    if is_there(&path)? {
        return Ok(path);
    }
    Err(Failure::not_found(format!(
        "there is no key of operator `{}` (`{}`)",
        name.as_str(),
        inert::path(&path)
    ))
    .help(format!(
        "`lodestar approve keygen --name {}` makes one; the names of those that are here end in .key beside it",
        name.as_str()
    )))
}

/// `option` is how a command is told whose key is meant.
fn only_operator(
    installation: &Installation,
    what: &str,
    option: &str,
) -> Result<OperatorName, Failure> {
    let mut names = installation::operator_keys(installation)?;
    match (names.pop(), names.len()) {
        (Some(name), 0) => Ok(name),
        (None, _) => Err(Failure::not_authorised(format!(
            "{what} is signed by an operator, and no operator's key is here"
        ))
        .help(match option {
            "--as" => "make one with `lodestar approve keygen --name NAME`",
            _ => "make one with `lodestar approve keygen --name NAME`, or name a file with --operator-key",
        })),
        (Some(last), _) => {
            let names: Vec<&str> = names
                .iter()
                .chain([&last])
                .map(OperatorName::as_str)
                .collect();
            Err(Failure::usage("several operators have keys here").help(format!(
                "say who signs with {option}: {}",
                names.join(", ")
            )))
        }
    }
}

/// The key itself; a passphrase is asked for where one seals it.
pub(crate) fn open(key: OperatorKey) -> Result<SecretKey, Failure> {
    match key {
        OperatorKey::Plain(key) => Ok(key),
        OperatorKey::Sealed(sealed) => sealed.open(&terminal::passphrase_for(sealed.name())?),
    }
}

/// The key itself, for the word of a person: what seals it is typed at the terminal, and taken from
/// nowhere else.
pub(crate) fn open_in_person(key: OperatorKey) -> Result<SecretKey, Failure> {
    let sealed = match key {
        OperatorKey::Plain(key) => return Ok(key),
        OperatorKey::Sealed(sealed) => sealed,
    };
    let Some(mut terminal) = Terminal::open() else {
        return Err(Failure::not_authorised(format!(
            "the word of `{}` needs a person, and there is no terminal to ask on",
            sealed.name()
        ))
        .help("run it on a terminal; programs sign only with a key without a passphrase"));
    };
    let passphrase = terminal.ask_hidden(&format!("Passphrase of {}: ", sealed.name()))?;
    sealed.open(&passphrase)
}

/// The operators pinned here, the one who signs among them; `otherwise` says what would come of a
/// signature by somebody else.
pub(crate) fn pinned(
    installation: &Installation,
    operator: &PublicKey,
    otherwise: &str,
) -> Result<Vec<PublicKey>, Failure> {
    let pins = installation.operators()?;
    let operators: Vec<_> = pins.into_iter().map(|(_, key)| key).collect();
    if operators.contains(operator) {
        return Ok(operators);
    }
    let pins = inert::path(&installation.dir().join("operators"));
    Err(Failure::not_authorised(format!(
        "this key is not one of the operators pinned here, so {otherwise}"
    ))
    .help(format!(
        "put its public key into `{pins}` if it should count"
    )))
}
