//! What an owner orders: signed with the owner's key, handed in under the owner's token.

use lodestar_core::key::SecretKey;
use lodestar_core::statement::{Envelope, Issued, Order, OwnerOrder};
use lodestar_gateway::client::GatewayClient;
use lodestar_gateway::device::nonce;
use lodestar_gateway::wire;
use serde_json::Value;

use crate::commands::now;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::operator::{self, Chosen, OperatorArgs};
use crate::terminal::Terminal;

/// An owner with the key at hand and the gateway in reach.
pub(crate) struct Owner {
    pub(crate) client: GatewayClient,
    pub(crate) account: wire::Account,
    pub(crate) key: SecretKey,
}

impl Owner {
    /// Opens the owner's key, once it is certain that it is the account's.
    pub(crate) async fn come(
        client: GatewayClient,
        chosen: &Chosen,
        what: &str,
    ) -> Result<Self, Failure> {
        let account = client.account().await?;
        let installation = Installation::locate()?;
        let sealed = chosen.sealed(&installation, what)?;
        if sealed.public() != account.owner_key {
            return Err(Failure::not_authorised(format!(
                "this key is not the owner's of account `{}`; the gateway would refuse what it signs",
                account.name
            ))
            .help("name the owner's key with --operator or --operator-key"));
        }
        let key = operator::open(sealed)?;
        Ok(Self {
            client,
            account,
            key,
        })
    }

    /// Signs an order, and hands it in.
    pub(crate) async fn order(
        &self,
        order: Order,
        terms: Option<Value>,
    ) -> Result<wire::Ordered, Failure> {
        let issued = Issued {
            expires_at: None,
            issued_at: now(),
            key_id: self.key.public().key_id(),
            nonce: nonce()?,
            subject: OwnerOrder {
                account: self.account.id,
                order,
            },
        };
        let envelope = Envelope::sign(&issued, &self.key)
            .map_err(|problem| Failure::usage(format!("the order cannot be signed: {problem}")))?;
        let asked = wire::HandInOrder { envelope, terms };
        Ok(self.client.order(&asked).await?)
    }
}

/// Who signs, and whether they were asked.
#[derive(Debug, clap::Args)]
pub(crate) struct SigningArgs {
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,

    /// Sign without asking on the terminal first
    #[arg(long)]
    pub(crate) yes: bool,
}

impl SigningArgs {
    /// Asks the person whether this is to be signed.
    pub(crate) fn confirm(&self, about: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let Some(mut terminal) = Terminal::open() else {
            return Err(
                Failure::usage("there is no terminal to ask for confirmation on")
                    .help("--yes signs without asking"),
            );
        };
        match terminal
            .ask(&format!("{about}\nType `yes` to sign: "))?
            .as_str()
        {
            "yes" => Ok(()),
            _ => Err(Failure::usage("not confirmed; nothing was signed")),
        }
    }
}
