//! Authorities as capabilities: who may move a belief is who holds the value.
//!
//! [`Firewall::open`](crate::Firewall::open) hands out one of each seat, to whoever puts the parts
//! together; from there each goes to its owner. A seat cannot be made, copied or found elsewhere, and
//! works only with the firewall that gave it out. A person's authority is a signature, and has no seat;
//! new evidence and the clock are the firewall's own, and have none either.
//!
//! ```compile_fail,E0423
//! use lodestar_firewall::authority::SentinelSeat;
//!
//! fn forge() -> SentinelSeat {
//!     SentinelSeat(todo!())
//! }
//! ```
//! ```compile_fail,E0599
//! use lodestar_firewall::authority::SentinelSeat;
//!
//! fn copy(seat: &SentinelSeat) -> SentinelSeat {
//!     seat.clone()
//! }
//! ```
//! Nobody else can declare a type of their own an authority:
//!
//! ```compile_fail,E0277
//! use lodestar_core::chain::transition::AuthorityKind;
//! use lodestar_firewall::authority::Authority;
//!
//! struct Mine;
//!
//! impl Authority for Mine {}
//! ```

use lodestar_core::chain::transition::AuthorityKind;

mod sealed {
    use std::sync::Arc;

    use lodestar_core::chain::transition::AuthorityKind;

    /// Tells the seats of one firewall from those of another: equal only to itself.
    #[derive(Debug, Clone)]
    pub struct Brand(Arc<u8>);

    impl Brand {
        pub(crate) fn new() -> Self {
            // Not a zero-sized content: two of those may share an address.
            Self(Arc::new(0))
        }

        pub(crate) fn is(&self, other: &Self) -> bool {
            Arc::ptr_eq(&self.0, &other.0)
        }
    }

    pub trait Seat {
        fn kind(&self) -> AuthorityKind;
        fn brand(&self) -> &Brand;
    }
}

pub(crate) use sealed::Brand;

/// A seat that may move beliefs, as far as the table lets its kind.
pub trait Authority: sealed::Seat {}

macro_rules! seats {
    ($($(#[$doc:meta])* $name:ident = $kind:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub(crate) Brand);

        impl sealed::Seat for $name {
            fn kind(&self) -> AuthorityKind {
                AuthorityKind::$kind
            }

            fn brand(&self) -> &Brand {
                &self.0
            }
        }

        impl Authority for $name {}
    )+};
}

seats! {
    /// The sentinel runner's.
    SentinelSeat = Sentinel;
    /// For applying what a reflection proposed.
    ReflectionSeat = Reflection;
    /// The operator's policy.
    PolicySeat = Policy;
    /// A probe's: exists only in a world of its own, see [`crate::probe_world`].
    ProbeSeat = Probe;
}

/// The kernel's, for what Lodestar measures itself. It moves nothing.
#[derive(Debug)]
pub struct MeasuringSeat(pub(crate) Brand);

/// One seat of each kind that a product has.
#[derive(Debug)]
pub struct Seats {
    /// For the sentinel runner.
    pub sentinel: SentinelSeat,
    /// For whoever applies reflections.
    pub reflection: ReflectionSeat,
    /// For the operator's policy.
    pub policy: PolicySeat,
    /// For the kernel.
    pub measuring: MeasuringSeat,
}

impl Seats {
    pub(crate) fn new(brand: &Brand) -> Self {
        Self {
            sentinel: SentinelSeat(brand.clone()),
            reflection: ReflectionSeat(brand.clone()),
            policy: PolicySeat(brand.clone()),
            measuring: MeasuringSeat(brand.clone()),
        }
    }
}

pub(crate) fn kind(seat: &dyn Authority) -> AuthorityKind {
    seat.kind()
}

pub(crate) fn brand(seat: &dyn Authority) -> &Brand {
    seat.brand()
}
