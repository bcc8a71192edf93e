use std::collections::BTreeSet;

use super::*;
use crate::device::DeviceEvent;

#[test]
fn the_catalogue_is_sorted_and_without_duplicates() {
    for pair in CATALOGUE.windows(2) {
        assert!(
            pair[0].id < pair[1].id,
            "{} before {}",
            pair[0].id,
            pair[1].id
        );
    }
}

#[test]
fn every_constant_resolves_to_its_own_entry() {
    assert_eq!(catalogue::CONSTANTS.len(), CATALOGUE.len());
    for (constant, id) in catalogue::CONSTANTS {
        assert_eq!(constant.as_str(), *id);
        assert_eq!(EventType::parse(id.as_bytes()), Some(*constant));
    }
}

#[test]
fn entries_are_well_formed() {
    for event in EventType::all() {
        let spec = event.spec();
        assert_eq!(spec.id, format!("{}@{}", spec.name, spec.version));
        assert!(spec.version >= 1);
        let (domain, fact) = spec.name.split_once('.').unwrap();
        for word in [domain, fact] {
            assert!(!word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        }
        assert!(!spec.carries.is_empty() && !spec.carries.contains(['|', '\n']));
        assert!(!spec.carries.ends_with('.'));
    }
}

#[test]
fn types_read_back_as_they_are_written() {
    for event in EventType::all() {
        assert_eq!(event.to_string().parse::<EventType>().unwrap(), event);
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(json, format!("\"{event}\""));
        assert_eq!(serde_json::from_str::<EventType>(&json).unwrap(), event);
    }
}

#[test]
fn near_misses_are_unknown() {
    for text in [
        "",
        "@",
        "@1",
        "action.proposed",
        "action.proposed@",
        "action.proposed@01",
        "action.proposed@2",
        "Action.proposed@1",
        " action.proposed@1",
        "action.proposed@1 ",
        "action.proposed@1\0",
    ] {
        assert_eq!(EventType::parse(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(EventType::parse(b"\xff\xfe"), None);
    let message = "x\u{1b}[31m".parse::<EventType>().unwrap_err().to_string();
    assert!(
        message.starts_with("unknown event type `x\\u{1b}[31m`"),
        "{message}"
    );
}

#[test]
fn the_agent_writes_nothing_but_notes() {
    let agents: Vec<_> = EventType::all()
        .filter(|e| e.writer() == Writer::Agent)
        .collect();
    assert_eq!(agents, [EventType::AGENT_NOTE]);
}

#[test]
fn each_domain_has_the_writers_of_the_specification() {
    let writers: BTreeSet<_> = EventType::all()
        .map(|e| (e.name().split_once('.').unwrap().0, e.writer()))
        .map(|(domain, writer)| format!("{domain}:{writer}"))
        .collect();
    let expected = "action:kernel action:policy agent:agent approval:policy attestation:gateway \
        belief:firewall calibration:harness confirmation:policy decision:guard device:gateway \
        gateway:gateway ledger:log log:log observation:guard reflection:firewall revision:firewall run:gateway \
        sentinel:harness server:mcp session:guard submission:gateway task:guard tool:mcp tool:operator";
    assert_eq!(
        writers,
        expected.split_whitespace().map(str::to_owned).collect()
    );
}

#[test]
fn the_reference_page_lists_every_type_once() {
    let page = reference_page();
    for spec in CATALOGUE {
        let row = format!("| `{}` | {} |", spec.id, spec.writer);
        assert_eq!(page.matches(&row).count(), 1, "{row}");
    }
    assert_eq!(page.matches("\n## ").count(), 22);
}

#[test]
fn the_gateway_can_record_every_move_of_a_device_and_a_refusal_of_every_request() {
    let recorded: BTreeSet<_> = DeviceEvent::ALL.iter().map(|e| e.event_type()).collect();
    assert_eq!(recorded.len(), DeviceEvent::ALL.len());
    for event in recorded {
        assert_eq!(event.writer(), Writer::Gateway);
        assert!(event.name().starts_with("device."), "{event}");
    }
    let domains: BTreeSet<_> = EventType::all()
        .filter(|event| event.writer() == Writer::Gateway)
        .map(|event| event.name().split_once('.').unwrap().0)
        .collect();
    for domain in domains {
        let refusal = format!("{domain}.refused@1");
        assert!(EventType::parse(refusal.as_bytes()).is_some(), "{refusal}");
    }
}
