//! How the gateway sees the device: how far it has come, which runners are bound, whether a challenge waits.

use super::{Daemon, DaemonError, Heard};
use crate::client::GatewayClient;
use crate::device::{Looked, SignError, Signer};

impl Daemon {
    /// Takes up what a look showed.
    pub(super) fn seen(&mut self, looked: &Looked) {
        self.level(looked.device.level);
        self.bound = looked.device.runners.iter().copied().collect();
        self.is_key_known = true;
        if looked.is_key_new {
            self.settings.report.say("the new key is in force");
        }
    }

    /// Answers a challenge.
    pub(super) async fn answer(
        &mut self,
        client: &GatewayClient,
        signer: &Signer,
    ) -> Result<Heard, DaemonError> {
        let device = signer.identity().device;
        let challenged = match client.challenge(device).await {
            Ok(challenged) => challenged,
            Err(problem) => return self.failed(&problem),
        };
        let envelope = match signer.answer(challenged.challenge.nonce) {
            Err(SignError::Stale) => return Ok(Heard::Nothing(SignError::Stale.to_string())),
            signed => signed?,
        };
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
