//! Says on stderr that a call waits for somebody; it delivers nothing.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_guard::channel::{Announcement, Channel, Closing, Delivered, Doing, Notice};

use crate::inert;
use crate::paint::Paint;

/// A channel to whoever looks on.
#[derive(Default)]
pub(super) struct Waiting {
    /// The requests that were told of: news of who agreed is for others.
    told: Mutex<BTreeSet<RequestId>>,
}

impl Waiting {
    fn tell(&self, announcement: &Announcement) {
        let request = &announcement.request;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(request.id) {
            let tool = inert::line(request.card.action.tool.as_str(), 40);
            let text = format!(
                "{tool} waits for a person: {} (lodestar approve watch)",
                request.id
            );
            // Nobody may be listening there; that changes nothing.
            let _ = writeln!(std::io::stderr(), "{}", Paint::stderr().warn(text));
        }
    }
}

fn done<'a>() -> Doing<'a, ()> {
    Box::pin(std::future::ready(Ok(())))
}

impl Channel for Waiting {
    fn announce<'a>(&'a self, announcement: &'a Announcement) -> Doing<'a, ()> {
        self.tell(announcement);
        done()
    }

    fn withdraw<'a>(&'a self, _: RequestId, _: Closing) -> Doing<'a, ()> {
        done()
    }

    fn clear_away<'a>(&'a self, _: &'a SessionId, _: RequestId, _: Closing) -> Doing<'a, ()> {
        done()
    }

    fn notify<'a>(&'a self, _: &'a Notice) -> Doing<'a, ()> {
        done()
    }

    fn next(&self) -> Doing<'_, Delivered> {
        Box::pin(std::future::pending())
    }

    fn is_at_hand(&self) -> bool {
        false
    }

    fn recorded<'a>(&'a self, _: &'a Delivered) -> Doing<'a, ()> {
        done()
    }
}
