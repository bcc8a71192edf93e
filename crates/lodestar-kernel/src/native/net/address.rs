//! Which addresses nobody reaches by way of a name or a URL, and what the operator opens.
//!
//! IPv4 is a list of refused ranges. IPv6 is the other way round: only global unicast is open, less
//! the ranges in it that are not, because new special ranges are carved out of what is left. A form
//! that carries an IPv4 address is judged by the address that it carries, or refused whole where
//! nothing in use needs it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;
use lodestar_core::name::Excerpt;
use serde::{Deserialize, Deserializer, de};
use thiserror::Error;

/// What a refused address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// No address at all, or `0.0.0.0/8`: this host on some systems.
    Unspecified,
    /// This host.
    Loopback,
    /// A private network.
    Private,
    /// The link: among them where cloud providers keep credentials.
    LinkLocal,
    /// A provider's own service for its machines.
    Metadata,
    /// The provider's side of carrier-grade NAT.
    SharedNat,
    /// Many receivers.
    Multicast,
    /// Made for documents.
    Documentation,
    /// Made for measurements.
    Benchmarking,
    /// Set aside by the registries.
    Reserved,
    /// A tunnel, which ends somewhere that its address hides.
    Tunnel,
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Metadata => "a cloud metadata service",
            Self::SharedNat => "carrier-grade NAT",
            Self::Multicast => "multicast",
            Self::Documentation => "for documentation",
            Self::Benchmarking => "for benchmarking",
            Self::Reserved => "reserved",
            Self::Tunnel => "a tunnel",
        })
    }
}

/// Refused IPv4 ranges; the first that matches names the class.
const REFUSED_V4: &[([u8; 4], u32, AddressClass)] = &[
    ([0, 0, 0, 0], 8, AddressClass::Unspecified),
    ([10, 0, 0, 0], 8, AddressClass::Private),
    ([100, 64, 0, 0], 10, AddressClass::SharedNat),
    ([127, 0, 0, 0], 8, AddressClass::Loopback),
    // A public range, but every machine of that provider answers to it with its secrets.
    ([168, 63, 129, 16], 32, AddressClass::Metadata),
    ([169, 254, 0, 0], 16, AddressClass::LinkLocal),
    ([172, 16, 0, 0], 12, AddressClass::Private),
    ([192, 0, 0, 0], 24, AddressClass::Reserved),
    ([192, 0, 2, 0], 24, AddressClass::Documentation),
    ([192, 88, 99, 0], 24, AddressClass::Tunnel),
    ([192, 168, 0, 0], 16, AddressClass::Private),
    ([198, 18, 0, 0], 15, AddressClass::Benchmarking),
    ([198, 51, 100, 0], 24, AddressClass::Documentation),
    ([203, 0, 113, 0], 24, AddressClass::Documentation),
    ([224, 0, 0, 0], 4, AddressClass::Multicast),
    ([240, 0, 0, 0], 4, AddressClass::Reserved),
];

/// Refused IPv6 ranges; whatever is neither here nor in `2000::/3` is refused as reserved.
const REFUSED_V6: &[([u16; 8], u32, AddressClass)] = &[
    ([0; 8], 128, AddressClass::Unspecified),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, AddressClass::Loopback),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, AddressClass::Tunnel),
    (
        [0x2001, 2, 0, 0, 0, 0, 0, 0],
        48,
        AddressClass::Benchmarking,
    ),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, AddressClass::Reserved),
    (
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],
        32,
        AddressClass::Documentation,
    ),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, AddressClass::Tunnel),
    (
        [0x3fff, 0, 0, 0, 0, 0, 0, 0],
        20,
        AddressClass::Documentation,
    ),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, AddressClass::Private),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, AddressClass::LinkLocal),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, AddressClass::Private),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, AddressClass::Multicast),
];

/// What the address is, if it is refused.
pub fn refused(address: IpAddr) -> Option<AddressClass> {
    match address {
        IpAddr::V4(v4) => refused_v4(v4),
        IpAddr::V6(v6) => refused_v6(v6),
    }
}

fn refused_v4(address: Ipv4Addr) -> Option<AddressClass> {
    let bits = address.to_bits();
    REFUSED_V4
        .iter()
        .find(|(start, length, _)| {
            (bits ^ Ipv4Addr::from(*start).to_bits()).leading_zeros() >= *length
        })
        .map(|&(_, _, class)| class)
}

fn refused_v6(address: Ipv6Addr) -> Option<AddressClass> {
    if let Some(v4) = address.to_ipv4_mapped() {
        return refused_v4(v4);
    }
    let parts = address.segments();
    let last = Ipv4Addr::from_bits((u32::from(parts[6]) << 16) | u32::from(parts[7]));
    // NAT64: how a machine without IPv4 reaches all of it.
    if parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return refused_v4(last);
    }
    let bits = address.to_bits();
    let listed = REFUSED_V6.iter().find(|(start, length, _)| {
        (bits ^ Ipv6Addr::from(*start).to_bits()).leading_zeros() >= *length
    });
    if let Some(&(_, _, class)) = listed {
        return Some(class);
    }
    // ISATAP writes an IPv4 address into the interface part of any prefix.
    if matches!(parts[4], 0 | 0x200) && parts[5] == 0x5efe {
        return refused_v4(last);
    }
    (parts[0] & 0xe000 != 0x2000).then_some(AddressClass::Reserved)
}

/// The widest range that can be opened: the widest private network of each kind.
const MIN_PREFIX_V4: u8 = 8;
const MIN_PREFIX_V6: u8 = 7;

/// An address that the operator opens, as `10.1.0.0/16` or `127.0.0.1:8080`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedAddress {
    /// Every port of a range.
    Range(IpNet),
    /// One port of one address.
    Exact(SocketAddr),
}

/// Why text opens no address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AllowedAddressError {
    /// Neither form.
    #[error(
        "`{shown}` opens no address; write a range such as `10.1.0.0/16` or one port such as `127.0.0.1:8080`"
    )]
    Malformed {
        /// The text, inert.
        shown: Excerpt,
    },
    /// It would open nearly everything.
    #[error(
        "`{shown}` is too wide; the widest range is /{MIN_PREFIX_V4} for IPv4 and /{MIN_PREFIX_V6} for IPv6"
    )]
    TooWide {
        /// The text, inert.
        shown: Excerpt,
    },
}

impl AllowedAddress {
    /// Whether it opens this one. An IPv4-mapped address is the IPv4 address.
    pub fn opens(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        match self {
            Self::Range(range) => range.contains(&ip),
            Self::Exact(exact) => exact.ip().to_canonical() == ip && exact.port() == address.port(),
        }
    }
}

impl FromStr for AllowedAddress {
    type Err = AllowedAddressError;

    fn from_str(text: &str) -> Result<Self, AllowedAddressError> {
        let shown = || Excerpt::of(text);
        if let Ok(exact) = text.parse() {
            return Ok(Self::Exact(exact));
        }
        let range: IpNet = text
            .parse()
            .map_err(|_| AllowedAddressError::Malformed { shown: shown() })?;
        let least = match range {
            IpNet::V4(_) => MIN_PREFIX_V4,
            IpNet::V6(_) => MIN_PREFIX_V6,
        };
        if range.prefix_len() < least {
            return Err(AllowedAddressError::TooWide { shown: shown() });
        }
        Ok(Self::Range(range))
    }
}

impl<'de> Deserialize<'de> for AllowedAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
