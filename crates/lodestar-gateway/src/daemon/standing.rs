//! How the gateway sees the device: which key it has, whether a challenge waits, which runners are bound.

use super::{Daemon, DaemonError, Heard};
use crate::client::GatewayClient;
use crate::code::Code;
use crate::device::Signer;

impl Daemon {
    /// Looks whether the gateway has the key that is here, takes up a rotation that is done, and answers a
    /// challenge that waits.
    pub(super) async fn look(&mut self, client: &GatewayClient) -> Result<Heard, DaemonError> {
        let identity = self.folder.identity()?;
        let device = match client.device(identity.device).await {
            Ok(device) => device,
            Err(problem) => return self.failed(&problem),
        };
        self.level(device.level);
        self.bound = device.runners.iter().copied().collect();
        let mut own = self.folder.key()?.public();
        if let Some(next) = self.folder.next()?
            && device.key == Some(next.public())
        {
            self.folder.adopt_next()?;
            own = next.public();
            self.settings.report.say("the new key is in force");
        }
        if device.key != Some(own) {
            self.is_key_known = false;
            return Ok(Heard::Refused(
                Code::SignatureInvalid,
                "the gateway has another key of this device than the one here".to_owned(),
            ));
        }
        self.is_key_known = true;
        match device.challenge_passed_at {
            Some(_) => Ok(Heard::Answer),
            None => self.answer(client).await,
        }
    }

    /// Answers a challenge.
    async fn answer(&mut self, client: &GatewayClient) -> Result<Heard, DaemonError> {
        let identity = self.folder.identity()?;
        let device = identity.device;
        let challenged = match client.challenge(device).await {
            Ok(challenged) => challenged,
            Err(problem) => return self.failed(&problem),
        };
        let signer = Signer::new(identity, self.folder.key()?).by(self.settings.clock.clone());
        let envelope = signer.answer(challenged.challenge.nonce)?;
        match client.answer_challenge(device, &envelope).await {
            Ok(standing) => {
                self.level(standing.level);
                self.settings
                    .report
                    .say("the gateway's challenge is answered");
                Ok(Heard::Answer)
            }
            Err(problem) => self.failed(&problem),
        }
    }
}
