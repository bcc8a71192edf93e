//! Room for another device where one was: what a device had that is stopped for good is set aside, and its key,
//! which somebody else may have, is nobody's any more.

use std::path::PathBuf;

use super::{
    DeviceError, DeviceFolder, FileError, IDENTITY, KEY, NEXT_KEY, RUNS, STATE, TOKEN, files,
    running,
};

/// In the order in which they go. The key first: whatever interrupts this, no other device gets it. What says
/// that the device is stopped goes last, so that it can be done again.
const ALL: [&str; 6] = [KEY, NEXT_KEY, TOKEN, RUNS, IDENTITY, STATE];

impl DeviceFolder {
    /// Makes room for a device, unless there is one that is not stopped for good.
    pub(super) fn make_room(&self) -> Result<(), DeviceError> {
        let is_enrolled = self.is_enrolled();
        if is_enrolled {
            let is_gone = self.state()?.stopped.is_some_and(|it| it.is_for_good());
            if !is_gone || running(self)?.is_some() {
                return Err(DeviceError::Enrolled(self.path.clone()));
            }
        } else if !self.was_enrolled() {
            return Ok(());
        }
        let aside = match is_enrolled {
            true => self
                .path
                .join(format!("device.{}", self.identity()?.device)),
            false => self.free_place()?,
        };
        files::private_folder(&aside)?;
        for name in ALL {
            let (from, to) = (self.path.join(name), aside.join(name));
            match std::fs::rename(&from, &to) {
                Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => {}
                moved => moved.map_err(FileError::at(&from))?,
            }
        }
        Ok(())
    }

    /// Whether something is left of a device whose identity somebody took away: an attempt that failed leaves a
    /// key, and nothing else.
    fn was_enrolled(&self) -> bool {
        let is_there = |name: &str| self.path.join(name).symlink_metadata().is_ok();
        [NEXT_KEY, TOKEN, RUNS, STATE].into_iter().any(is_there)
    }

    fn free_place(&self) -> Result<PathBuf, DeviceError> {
        let places = (1..1000).map(|n| self.path.join(format!("device.unknown-{n}")));
        let mut free = places.filter(|place| place.symlink_metadata().is_err());
        free.next()
            .ok_or_else(|| DeviceError::Enrolled(self.path.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use lodestar_core::key::SecretKey;
    use lodestar_core::name::ActorId;

    use super::super::{DeviceIdentity, Stopped, Whereabouts};
    use super::*;
    use crate::token::TokenText;

    fn enrolled(folder: &DeviceFolder, seed: u8) -> DeviceIdentity {
        let key = folder.prepare(SecretKey::from_seed([seed; 32])).unwrap();
        let identity = DeviceIdentity {
            gateway: Whereabouts {
                url: "https://gateway.example".to_owned(),
                allow_loopback_http: false,
                ca_file: None,
            },
            account: "acc_0198c1d2-0000-7000-8000-000000000000".parse().unwrap(),
            device: format!("dev_0198c1d2-0000-7000-8000-0000000000{seed:02}")
                .parse()
                .unwrap(),
            name: ActorId::new("laptop").unwrap(),
            key,
            log_key: SecretKey::from_seed([99; 32]).public(),
        };
        let token = TokenText::from_bytes([seed; 32]);
        folder.enrol(&identity, &token).unwrap();
        identity
    }

    #[test]
    fn only_a_device_that_is_stopped_for_good_makes_room_and_its_key_is_not_used_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = DeviceFolder::at(place.path().join("device"));
        let first = enrolled(&folder, 1);
        let fresh = || SecretKey::from_seed([2; 32]);
        for stopped in [None, Some(Stopped::Paused), Some(Stopped::KillSwitch)] {
            let stop = |state: &mut super::super::State| {
                state.stopped = stopped;
                Ok(())
            };
            folder.change_state(stop).unwrap();
            let refused = folder.prepare(fresh()).unwrap_err();
            assert!(matches!(refused, DeviceError::Enrolled(_)), "{refused}");
        }
        let revoke = |state: &mut super::super::State| {
            state.stopped = Some(Stopped::Revoked);
            Ok(())
        };
        folder.change_state(revoke).unwrap();
        let second = enrolled(&folder, 2);
        assert_eq!(second.key, fresh().public());
        assert_eq!(folder.state().unwrap().stopped, None);
        let aside = folder.path().join(format!("device.{}", first.device));
        let mode = std::fs::metadata(&aside).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
        let before = DeviceFolder::at(aside);
        assert_eq!(before.identity().unwrap(), first);
        assert_eq!(before.public_key().unwrap(), first.key);
        assert_eq!(before.state().unwrap().stopped, Some(Stopped::Revoked));
    }

    #[test]
    fn a_key_that_was_a_devices_is_not_used_again_when_only_its_identity_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let folder = DeviceFolder::at(place.path().join("device"));
        // An attempt that failed: its key is as good as new.
        let first = folder.prepare(SecretKey::from_seed([1; 32])).unwrap();
        assert_eq!(
            folder.prepare(SecretKey::from_seed([3; 32])).unwrap(),
            first
        );
        enrolled(&folder, 1);
        std::fs::remove_file(folder.path().join(IDENTITY)).unwrap();
        let second = folder.prepare(SecretKey::from_seed([2; 32])).unwrap();
        assert_eq!(second, SecretKey::from_seed([2; 32]).public());
        assert!(folder.path().join("device.unknown-1/device.key").exists());
    }
}
