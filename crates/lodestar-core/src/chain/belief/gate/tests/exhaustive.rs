//! The gate over every set of evidence up to a size: no sample, no seed.
//!
//! Items of one of 54 kinds (quality × relation × freshness) stand in independence groups. What the
//! groups are called changes nothing, so each set is visited once up to renaming of its groups: as a
//! multiset of groups, where a group is a non-empty multiset of kinds. That this leaves nothing out,
//! and that names and order change no bit, is itself tested on every labelled list of small size.

use std::collections::BTreeSet;

use super::*;

/// Most items of a set here; so many groups can occur.
const MOST: usize = 4;

const NAMES: [&str; MOST + 1] = ["a", "b", "c", "d", "e"];

const KINDS: usize = 54;

/// An item: which kind, and in which group.
type Member = (u8, u8);

#[derive(Clone, Copy)]
struct Kind {
    quality: EvidenceQuality,
    relation: EvidenceRelation,
    freshness: EvidenceFreshness,
}

fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for &quality in EvidenceQuality::ALL {
        for &relation in EvidenceRelation::ALL {
            for &freshness in EvidenceFreshness::ALL {
                kinds.push(Kind {
                    quality,
                    relation,
                    freshness,
                });
            }
        }
    }
    assert_eq!(kinds.len(), KINDS);
    kinds
}

/// The kinds of the given directness.
fn kinds_that_are(directness: Directness) -> Vec<u8> {
    let of = |&(_, kind): &(usize, Kind)| kind.quality.directness() == directness;
    kinds()
        .into_iter()
        .enumerate()
        .filter(of)
        .map(|(kind, _)| kind as u8)
        .collect()
}

/// Weighs lists of members in one set that is used again and again.
struct Scales {
    kinds: Vec<Kind>,
    /// Every kind in every group, made once.
    items: Vec<[EvidenceItem; NAMES.len()]>,
    set: EvidenceSet,
}

impl Scales {
    fn new() -> Self {
        let item = |n: usize, kind: Kind, group| {
            samples::item(n as u8, kind.relation, kind.quality, kind.freshness, group)
        };
        let items = kinds()
            .into_iter()
            .enumerate()
            .map(|(n, kind)| NAMES.map(|group| item(n, kind, group)))
            .collect();
        Self {
            kinds: kinds(),
            items,
            set: samples::evidence(&samples::claim(0, ToolResult), Vec::with_capacity(MOST + 1)),
        }
    }

    fn weigh(&mut self, members: impl IntoIterator<Item = Member>) -> Weighing {
        self.set.items.clear();
        for (kind, group) in members {
            let item = &self.items[usize::from(kind)][usize::from(group)];
            self.set.items.push(item.clone());
        }
        weigh(&self.set)
    }

    fn kind(&self, member: Member) -> Kind {
        self.kinds[usize::from(member.0)]
    }

    /// The formula of the specification once more, plainly and without rounding: in thousandths.
    fn exactly(&self, members: &[Member]) -> Exact {
        let doubt = |side| {
            let mut doubt = 1;
            for group in 0..MOST as u8 {
                let strongest = members
                    .iter()
                    .filter(|&&member| member.1 == group && self.kind(member).relation == side)
                    .map(|&member| thousandths(self.kind(member)))
                    .max();
                doubt *= 1000 - strongest.unwrap_or(0);
            }
            doubt
        };
        let (for_it, against_it) = (doubt(Supports), doubt(Contradicts));
        Exact {
            support: ONE - for_it,
            contradiction: ONE - against_it,
            strength: u128::from(ONE - for_it) * u128::from(against_it),
        }
    }
}

/// Quality times freshness: 1.0, 0.85 and 0.7, times 1, 0.5 and 0.6.
fn thousandths(kind: Kind) -> u64 {
    let hundredths = match kind.quality {
        DirectObservation => 100,
        ToolResult => 85,
        HumanAssertion => 70,
        ModelInference | ExternalDocument | SyntheticProbe => 0,
    };
    let tenths = match kind.freshness {
        Fresh => 10,
        Stale => 5,
        Unknown => 6,
    };
    hundredths * tenths
}

/// One, for a product of a factor in thousandths per group.
const ONE: u64 = 1000_u64.pow(MOST as u32);

/// Support and contradiction in parts of [`ONE`], strength in parts of its square.
struct Exact {
    support: u64,
    contradiction: u64,
    strength: u128,
}

impl Exact {
    fn truth(&self) -> Truth {
        let one = u128::from(ONE).pow(2);
        if 10 * self.strength >= 6 * one {
            Truth::Supported
        } else {
            Truth::Unverified
        }
    }

    fn agrees(&self, weighing: Weighing) -> bool {
        let one = ONE as f64;
        weighing.truth == self.truth()
            && close(weighing.support, self.support as f64 / one)
            && close(weighing.contradiction, self.contradiction as f64 / one)
            && close(weighing.strength, self.strength as f64 / (one * one))
    }
}

/// The kinds of one group, in order.
#[derive(Clone, Copy)]
struct Group {
    kinds: [u8; MOST],
    len: usize,
}

impl Group {
    /// All groups of up to so many items, smaller ones first.
    fn all(most: usize) -> Vec<Self> {
        let mut all = vec![Self {
            kinds: [0; MOST],
            len: 0,
        }];
        let mut shorter = 0..1;
        for len in 1..=most {
            for at in shorter.clone() {
                let group = all[at];
                let last = group.kinds[..group.len].last().copied().unwrap_or(0);
                for kind in last..KINDS as u8 {
                    let mut longer = Self { len, ..group };
                    longer.kinds[len - 1] = kind;
                    all.push(longer);
                }
            }
            shorter = shorter.end..all.len();
        }
        all.remove(0);
        all
    }
}

/// Visits every set of up to `most` items, each once up to renaming of its groups: as its groups in
/// the order of [`Group::all`], the first called 0. Returns how many there are.
fn every_set(most: usize, mut visit: impl FnMut(&[Member])) -> u64 {
    fn go(
        groups: &[Group],
        left: usize,
        named: u8,
        members: &mut Vec<Member>,
        visit: &mut impl FnMut(&[Member]),
    ) -> u64 {
        visit(members);
        let mut count = 1;
        for (at, group) in groups.iter().enumerate() {
            if group.len > left {
                break;
            }
            let before = members.len();
            members.extend(group.kinds[..group.len].iter().map(|&kind| (kind, named)));
            count += go(&groups[at..], left - group.len, named + 1, members, visit);
            members.truncate(before);
        }
        count
    }
    let mut members = Vec::with_capacity(most);
    go(&Group::all(most), most, 0, &mut members, &mut visit)
}

/// The number of sets, from the numbers of multisets: `n` things, `k` of them, any as often as liked.
fn expected(most: usize) -> u64 {
    let multisets = |n: u64, k: u64| (0..k).fold(1, |product, i| product * (n + i) / (i + 1));
    let groups = |len| multisets(KINDS as u64, len);
    let by_size = [
        1,
        groups(1),
        groups(2) + multisets(groups(1), 2),
        groups(3) + groups(2) * groups(1) + multisets(groups(1), 3),
        groups(4)
            + groups(3) * groups(1)
            + multisets(groups(2), 2)
            + groups(2) * multisets(groups(1), 2)
            + multisets(groups(1), 4),
    ];
    by_size[..=most].iter().sum()
}

/// The one list that [`every_set`] visits for a labelled list.
fn canonical(members: &[Member]) -> Vec<Member> {
    let mut groups: Vec<Vec<u8>> = (0..NAMES.len() as u8)
        .map(|group| {
            let mut kinds: Vec<_> = members
                .iter()
                .filter(|member| member.1 == group)
                .map(|member| member.0)
                .collect();
            kinds.sort_unstable();
            kinds
        })
        .filter(|kinds| !kinds.is_empty())
        .collect();
    groups.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    (0..)
        .zip(groups)
        .flat_map(|(name, kinds)| kinds.into_iter().map(move |kind| (kind, name)))
        .collect()
}

#[test]
fn every_labelled_list_of_two_is_visited_under_its_canonical_names_and_weighs_the_same() {
    let mut scales = Scales::new();
    let mut visited = BTreeSet::new();
    let sets = every_set(2, |members| {
        assert!(visited.insert(members.to_vec()), "{members:?}");
    });
    let labelled: Vec<Member> = (0..KINDS as u8)
        .flat_map(|kind| (0..MOST as u8).map(move |group| (kind, group)))
        .collect();
    let one = labelled.iter().map(|&a| vec![a]);
    let two = labelled
        .iter()
        .flat_map(|&a| labelled.iter().map(move |&b| vec![a, b]));
    let (mut lists, mut reached) = (0, BTreeSet::new());
    for list in [vec![]].into_iter().chain(one).chain(two) {
        let set = canonical(&list);
        assert!(visited.contains(&set), "{list:?}");
        let (given, renamed) = (scales.weigh(list), scales.weigh(set.iter().copied()));
        assert_eq!(bits(given), bits(renamed), "{set:?}");
        assert_eq!(given.truth, renamed.truth);
        lists += 1;
        reached.insert(set);
    }
    assert_eq!(reached, visited);
    assert_eq!((lists, sets), (1 + 216 + 216 * 216, expected(2)));
    println!("{lists} labelled lists of up to 2 items are {sets} sets up to renaming of groups");
}

#[test]
fn names_and_order_change_no_bit_of_any_set_of_three() {
    let mut scales = Scales::new();
    let mut namings = Vec::new();
    for a in 0..MOST as u8 {
        for b in (0..MOST as u8).filter(|&b| b != a) {
            for c in (0..MOST as u8).filter(|&c| c != a && c != b) {
                namings.push([a, b, c]);
            }
        }
    }
    const ORDERS: [[usize; 3]; 6] = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let (mut sets, mut compared) = (0_u64, 0_u64);
    every_set(3, |members| {
        let &[_, _, last] = members else { return };
        let groups = usize::from(last.1) + 1;
        let before = bits(scales.weigh(members.iter().copied()));
        for (at, naming) in namings.iter().enumerate() {
            // Namings that differ only in groups that the set does not have are the same.
            if at > 0 && namings[at - 1][..groups] == naming[..groups] {
                continue;
            }
            for order in ORDERS {
                let list = order.map(|i| (members[i].0, naming[usize::from(members[i].1)]));
                assert_eq!(bits(scales.weigh(list)), before, "{list:?}");
                compared += 1;
            }
        }
        sets += 1;
    });
    assert_eq!(sets, expected(3) - expected(2));
    println!("{sets} sets of 3 items: {compared} namings in all orders, each bit-equal");
}

#[test]
fn matrix_no_set_of_up_to_four_is_supported_without_direct_support_and_all_are_as_specified() {
    let mut scales = Scales::new();
    let (mut without, mut supported) = (0_u64, 0_u64);
    let sets = every_set(MOST, |members| {
        let weighing = scales.weigh(members.iter().copied());
        let direct_support = members.iter().any(|&member| {
            let kind = scales.kind(member);
            kind.relation == Supports && kind.quality.directness() == Directness::Direct
        });
        if !direct_support {
            assert_eq!(weighing.truth, Truth::Unverified, "{members:?}");
            assert_eq!(weighing.support.to_bits(), 0.0_f64.to_bits(), "{members:?}");
            without += 1;
        }
        assert!(
            scales.exactly(members).agrees(weighing),
            "{members:?}: {weighing:?}"
        );
        supported += u64::from(weighing.truth == Truth::Supported);
    });
    assert_eq!(sets, expected(MOST));
    println!(
        "{sets} sets of up to {MOST} items, up to renaming of groups: truth is the specification's in all; \
         {supported} supported; {without} without direct support, 0 of them supported"
    );
}

/// Adds each of the kinds, in each group there is and in a new one, to every set of up to three.
fn adding_changes_no_bit(added: &[u8], what: &str) {
    let mut scales = Scales::new();
    let mut additions = 0_u64;
    let sets = every_set(MOST - 1, |members| {
        let before = scales.weigh(members.iter().copied());
        let new_group = members.last().map_or(0, |member| member.1 + 1);
        for &kind in added {
            for group in 0..=new_group {
                let after = scales.weigh(members.iter().copied().chain([(kind, group)]));
                assert_eq!(bits(after), bits(before), "{members:?} + {kind} in {group}");
                assert_eq!(after.truth, before.truth, "{members:?} + {kind} in {group}");
                additions += 1;
            }
        }
    });
    assert_eq!(sets, expected(MOST - 1));
    println!(
        "{sets} sets of up to {} items: {additions} additions of one {what} item changed no bit",
        MOST - 1
    );
}

#[test]
fn matrix_one_more_indirect_item_changes_no_bit_of_any_set_of_up_to_three() {
    let indirect = kinds_that_are(Directness::Indirect);
    assert_eq!(indirect.len(), 2 * 3 * 3);
    adding_changes_no_bit(&indirect, "indirect");
}

#[test]
fn matrix_one_more_synthetic_item_changes_no_bit_of_any_set_of_up_to_three() {
    let synthetic = kinds_that_are(Directness::Excluded);
    assert_eq!(synthetic.len(), 3 * 3);
    adding_changes_no_bit(&synthetic, "synthetic");
}
